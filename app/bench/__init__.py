"""The benchmark: how well a pasted log finds its issue, beside what search libraries reach on the same.

    cases.jsonl      which span of which issue is a log, its right answers, the rewrites to ask
    questions.jsonl  questions without a log, with right answers; by those held out nothing was chosen
    foreign.jsonl    texts behind which no issue stands
    twins.jsonl      groups of issues that report one failure, by reading
    choose.py        picks the cases out of a synced base; the rest only reads what it wrote
    rewrite.py       the same crash on another machine      cascade.py  as a server of today prints it
    corpus.py        the reader's own texts, and which cases they still hold
    rivals.py        TF-IDF, bm25s, FTS5                    run.py      asks all of them
    score.py         figures                                table.py    Markdown and text of them

Issue texts are never kept here, only facts about them: numbers, places, hashes.
"""
