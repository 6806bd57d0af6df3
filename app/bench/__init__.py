"""The benchmark: how well a pasted log finds its issue in the operator's own base.

    real_logs.jsonl.gz, unseen_logs.jsonl.gz   whole logs of servers that were made to fail, with labels
    cases.jsonl      which span of which issue is a log, its right answers
    questions.jsonl  questions without a log, with right answers; by those held out nothing was chosen
    foreign.jsonl    texts behind which no issue stands
    cases.py         these facts, the texts of the reader's own base, and which cases they still hold
    run.py           asks all of them; whether the answer to a real log is right
    report.py        figures, Markdown (templates/bench.md) and JSON

Issue texts are never kept here, only facts about them: numbers, places, hashes.
`tests/benchmarks/choose.py` picks the cases out of a synced base, `tests/benchmarks/real_logs.py` packs logs;
`tests/benchmarks/libraries.py` compares with search libraries, also over logs that are rewritten.
"""
