"""Benchmark of how well a pasted log finds its issue in the operator's own database.

    real_logs.jsonl.gz, unseen_logs.jsonl.gz   complete logs of servers that were made to fail, with labels
    cases.jsonl      which span of which issue is a log, and its correct answers
    questions.jsonl  questions without a log, with correct answers; held-out ones were not used for tuning
    foreign.jsonl    texts that no issue explains
    cases.py         loads these files and the texts of the local database, and matches them
    run.py           runs all queries, checks the answers to real logs, computes the figures; Markdown
                     (templates/bench.md) and JSON

Issue texts are never stored here, only facts about them: numbers, offsets, hashes.
`tests/benchmarks/choose.py` selects the cases from a synced database, `tests/benchmarks/real_logs.py` packs
logs; `tests/benchmarks/libraries.py` compares with search libraries, also on rewritten logs.
"""
