"""CATALOGUE: which stored issues are like a log, like a question, or like each other. Start here.

Vocabulary
    term       something a text is found by: a word, a pair of neighbouring words, a frame `file:function`,
               a whole signature. A term is a channel and a text; its id is a hash of both.
    channel    the kind of a term, as the kinds weigh differently much: TEXT (words of the whole text), ERROR
               (masked words of error lines), FRAME, SIGNATURE, and HEADING (title and facts of an issue).
    posting    one row of the index: this term stands in this issue.
    profile    all terms of one issue with their counts, packed into one row.
    df         in how many issues a term stands. What a term weighs is its idf, in nats: the rarer, the more.
    candidate  an issue that shares enough rare terms with the query to be looked at closely.
    part       of a log's query: its cause, the errors around it, frames, the lines near, the rest. A term
               belongs to one part only, and each part is bounded, so that a paste's length does not matter.
    score      BM25, summed by part; a share is the part of the query's information that an issue holds.
    agreement  how far the facts of both fit: model family, GPU architecture, backend, version.
    chance     the score of a match that users see, from 0 to 1: a calibrated probability that it is the same
               failure.
    band       the chance in words: `same`, `likely`, `related`. Where a band begins was measured.
    pair       two stored issues that are weighed against each other when one of them is read.
    tie        a pair that is likely enough, with no contradiction, to report one failure.
    cluster    the issues that ties, duplicates and people's judgements join: one failure.

The steps from a log to its matches (`search/`)
    1. `log_query.py`   the terms of the log, part by part; lines that healthy servers print are left out.
    2. `bm25.py`        how rare each term is (a small base borrows the counts of a full one), and which
                        issues hold the heaviest terms.
    3. `log_search.py`  fifty candidates with their scores and shares of each part. A question in words goes
                        to `question_search.py` instead, where titles and facts count; the words of the
                        search box to `word_search.py`, which asks for issues that hold all of them.
    4. `agreement.py`   the facts of the first ten, compared with the log's.
    5. `ranking.py`     order, chance and band, by the learned weights of `weights.json`. A message that
                        unlike faults share (`common_errors.toml`) is no reason to be sure.
    What the search costs is bounded by the postings it may read, not by the number of stored issues.

The steps from a new issue to its cluster (`pairs/`, then `clusters/`)
    1. `pairs/candidates.py`      stored issues that share the distinctive terms of the issue.
    2. `pairs/features.py`        what an issue is compared by: weighted words, conditions, backends, date.
    3. `pairs/score.py`           the chance of each pair, by the weights of `pair_weights.json`; the best
                                  pairs become links. A pair has one score, whatever else is stored.
    4. `clusters.py`             which pairs may be tied: a high chance alone is not enough. Groups from
                                  judgements first, then duplicates, then the strongest ties.

How to add a search field
    Give it a number beside the channels in `search/terms.py` and let `terms_of` yield its terms. For logs,
    name a part in PARTS of `search/log_query.py`, yield its terms there, and give it a SEED_WEIGHT in
    `search/log_search.py` (for questions, name it in POSTINGS_MAX and with a `Field`, whose k1, b and mean
    length say how counts and lengths are taken). `triage reextract` writes the new postings. The part's share
    is an ORDER_FEATURE by itself.

How to add a feature and learn the weights again
    Name it in FEATURES (the chance) or ORDER_FEATURES of `search/ranking.py` and give its value at the same
    place of `features_of` or `order_features`. Then
    `python -m app.train.log_ranking --database URL QUERIES.jsonl` learns order, chance and bands from logs
    whose right answers are known, prints what the bands are worth on queries it did not learn from, and
    writes `weights.json`. `app.train.question_ranking` does the same for questions, `app.train.pair_score`
    for pairs, and `app.train.background` counts the terms of a full base. Run the benchmarks before and
    after: a feature that does not help on unseen logs is left out, whatever it does for the known ones.
"""
