"""READING: text in, facts out. Start here. Pure: no file but its own lists, no database, no network.

Vocabulary
    document    an issue's title, body and comments, or a pasted log, cut into blocks of one kind:
                heading, prose, code (a log counts as code), quote. Every place is (source, start, end) in
                code points.
    sentence    what a person wrote: prose without logs, code, commands, tables and the form's own words.
    frame       one line of a traceback, written `file.py:function`. Frames of frameworks and of the event
                loop ("plumbing") lead to the failing place but are not it.
    error       one exception, native fault or error line of a log, with the process that printed it.
    wrapper     an error that only reports another one: "Engine core initialization failed", "see the
                stack trace above", whatever was raised `from` another error.
    death       a process ended, and another one reports it; the cause where no earlier error is printed.
    course      what a log shows of the run behind an error: it went on, only a request failed, it was
                already asked to stop. An error that was survived is no cause.
    root cause  what is left when every wrapper is taken off, in the innermost process that reports an
                error (worker before engine core before API server before client).
    apparent    the deepest wrapper, where a log holds nothing else. It is displayed, with low confidence,
                but no signature is made of it.
    signature   the readable key of a failure: `Type | masked message | frame < frame`. Numbers, paths,
                addresses and names are masked, so that one failure has one key on every machine. Its id
                is `s1-` and 12 hex digits of the text's hash; a change of the rules for it raises `s1` to
                `s2`.
    rule        a pattern as data: an id that never changes, a reason, a text it must hit and one it must
                miss.
    fact        one value of a field: a GPU, a version, a remedy. The fields are `facts.py`, a public
                contract.
    evidence    the quote that a fact was read from, its place, the rule and the confidence. No fact
                without.
    confidence  how often the rule was right on labelled issues, 0 to 1 (`confidence.json`, learned).
    remedy      a change and what came of it: it works, works in part, or fails. Called a workaround in
                the API.
    statement   what a sentence says of a change or a version: an outcome, or a role in a regression, with
                the chance that it is meant so. Below .5 nothing is stated; from .95 on a remedy is handed
                over to be typed, between them it is quoted.

Order of the steps
    A folder imports only those before it: lists, rules, text, log with redaction and statements, fields,
    remedies, prose.
    `reader.py` has the two entry points, `read_issue` and `read_log`; both go through the same rules.

    1. text      `text/blocks.py` cuts the texts into a `Document`, also one that lost its line breaks;
                 `text/sentences.py` gives the sentences, `text/claims.py` the versions in them.
    2. log       `log/containers.py` takes a log out of a platform's export, `log/lines.py` the logger's
                 prefix off each line, `log/process_stream.py` sorts lines by process,
                 `log/tracebacks.py` and `log/error_lines.py` find the errors, `log/course.py` reads what
                 followed each, `log/root_cause.py` decides between cause and wrappers, and
                 `log/signature.py` makes the signature.
    3. fields    one module for each: GPUs and their number, models, backends, versions, settings,
                 environment, and what kind of failure it is. Each asks its places in a fixed order and
                 takes the first that answers: what a log states beats what a traceback suggests, and both
                 beat a name in prose.
    4. remedies  the grammar reads what is said of changes: `cues.py` finds words of success and failure,
                 `changes.py` what was changed, `candidates.py` pairs the two. `stated.py` gives what it
                 read, as one voice, to `statements/`: every span that may name a change is judged there by
                 weights learned on 13,000 labelled sentences. `typed.py` writes what to type, if the words
                 before do not take it away, and `workarounds.py` puts all together and counts the other
                 people who confirm or refute.
    5. prose     what else people state: since which version it fails (roles by `statements/` too), its
                 cause, its fix, issues mentioned; and the error itself, where no log prints it.
    6. facts     `reader.py` collects everything with its evidence, `facts.py` makes one sentence of it.

    `redact.py` stands beside these steps: facts are read from the text as it is, and whatever is displayed,
    answered or kept of it is masked by blocks of equal length, so that every place stays true.

How to add a rule
    1. Find the list: the table in `lists/README.md` says which file holds what, and when to edit it.
    2. Write a `[[rule]]` with a new `id`, the `reason`, a `pattern` in RE2 syntax (linear time: no
       look-around, no back-references), and texts of your own for `hit` and `miss`. The best miss is the
       wrong reading that made you write the rule. Describe a shape; no rule may fit one issue only.
    3. Run `pytest tests/extract`. One test runs every rule of every list against its hit and its miss;
       add a test beside the module that uses the list for what the rule is meant to read.
       `tests/test_quality.py` holds minimum scores on labelled texts: it fails when a rule breaks what
       others read.
    4. Run `triage reextract --diff` on a base of real issues. It writes nothing and lists by field what
       would change, with examples. Read them: a wrong value is worse than none.
    5. Raise `RULES_VERSION` in `reader.py`, so that stored issues are read again; `triage reextract` does
       it at once. After a change to what a signature is made of, raise the signature's own version
       instead. After a change in the grammar of remedies, learn the weights again (`python -m
       app.train.remedy_score`).

    A wrong result that is not mended yet belongs into `tests/extract/test_known_wrong.py`, as input, wanted
    and actual result. How well each field is read is measured in `README.md` in this folder.
"""
