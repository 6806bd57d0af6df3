"""CATALOGUE: find the stored issues that match a log, a question, or each other. Start here.

Vocabulary
    term       unit of the index: a word, a pair of adjacent words, a frame `file:function`, a whole
               signature. A term is a channel and a text; its id is a hash of both.
    channel    kind of a term, each weighted separately: TEXT (words of the whole text), ERROR (masked words
               of error lines), FRAME, SIGNATURE, and HEADING (title and facts of an issue).
    posting    one row of the index: this term occurs in this issue.
    profile    all terms of one issue with their counts, packed into one row.
    df         document frequency: the number of issues with a term. A term's weight is its idf, in nats.
    candidate  an issue that shares enough rare terms with the query to be scored in full.
    part       section of a log's query: root cause, other errors, frames, lines near the cause, the rest. A
               term belongs to one part only, and each part is bounded, whatever the length of the paste.
    score      BM25, summed by part. A share is coverage: the fraction of the query's idf that an issue holds.
    agreement  how well the facts match: model family, GPU architecture, backend, version.
    chance     the score of a match that users see, from 0 to 1: a calibrated probability that it is the same
               failure.
    band       the chance in words: `same`, `likely`, `related`. The thresholds were measured.
    pair       two stored issues, compared when one of them is read.
    tie        a pair in band `same` or `likely`: likely enough, named in common, and without contradiction.
    cluster    issues joined by ties, duplicates and people's judgements: one failure.

The steps from a log to its matches (`search/`)
    1. `log_query.py`   the terms of the log, part by part; lines that healthy servers print are left out.
    2. `bm25.py`        idf of each term (smoothed with a full corpus in a small database), and the issues
                        with the heaviest terms.
    3. `log_search.py`  fifty candidates with score and coverage of each part. A question in words goes to
                        `question_search.py` instead, where titles and facts count; the words of the search
                        box to `word_search.py`, which returns issues that contain all of them.
    4. `agreement.py`   the facts of the first ten, compared with the log's.
    5. `ranking.py`     order, chance and band, by the learned weights of `weights.json`. A message that
                        unrelated failures share (`common_errors.toml`) is not enough for a high band.
    The cost of a search is bounded by the postings it may read, not by the number of stored issues.

The steps from a new issue to its cluster (`pairs/`, then `clusters/`)
    1. `pairs/candidates.py`      stored issues that share the distinctive terms of the issue.
    2. `pairs/features.py`        the features of one issue: weighted words, conditions, backends, date.
    3. `pairs/score.py`           the chance of each pair, by the weights of `pair_weights.json`; the best
                                  pairs become links. A pair's score does not depend on other stored issues.
    4. `pairs/one_failure.py`     which pairs may be `same` or `likely`, as a high chance alone is not enough:
                                  both name one failure, and nothing keeps them apart. `slots.py` beside it
                                  finds what two texts of one template differ in.
    5. `clusters.py`              groups: from judgements first, then duplicates, then the strongest ties.

How to add a search field
    Give it a number beside the channels in `search/terms.py` and let `terms_of` yield its terms. For logs,
    name a part in PARTS of `search/log_query.py`, yield its terms there, and give it a SEED_WEIGHT in
    `search/log_search.py` (for questions, name it in POSTINGS_MAX and with a `Field`, whose k1, b and mean
    length set saturation and normalisation). `triage reextract` writes the new postings. The part's coverage
    becomes an ORDER_FEATURE automatically.

How to add a feature and learn the weights again
    Name it in FEATURES (the chance) or ORDER_FEATURES of `search/ranking.py` and return its value at the same
    position of `features_of` or `order_features`. Then
    `python -m app.train.log_ranking --database URL QUERIES.jsonl` learns order, chance and bands from
    labelled logs, prints the precision of the bands on held-out queries, and writes `weights.json`.
    `app.train.question_ranking` does the same for questions, `app.train.pair_score` for pairs, and
    `app.train.background` counts the terms of a full database. Run the benchmarks before and after: leave out
    a feature that does not help on unseen logs, whatever it does for the known ones.
"""
