"""A language model that a team serves itself reads issues too. Off unless an address is set.

    texts ──> prompt (numbered lines, secrets masked) ──> client ──> reply (JSON by a schema)
                                                                       │ kept raw: table `model_reply`
    facts of the rules ──> merge (precedence by field) <── check <─────┘

    titles, root causes, questions ──> embeddings ──> table `issue_vector`, search by questions
    a pasted log, if its owner and the operator allow it ──> prompt, client, check ──> the answer

Both servers are asked through `connection`; `configured` gives a serving process its clients. The model adds
only what the text proves: a value without a verbatim quote at the line it names is dropped and counted, and
so is one that the house's own parsers refuse. What a page displays are fields and quotes; no sentence of the
model's leaves this room. `prompt.md` holds the instructions, `precedence.json` says by field whom to believe.
"""
