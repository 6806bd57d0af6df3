"""vLLM Triage: issues of an inference engine in, known failures and their remedies out.

Data flows one way:

    GitHub ──> ingest ──> store (raw) ──> extract ──> store (facts) ──> match ──> knowledge ──> web
                                                    pasted log ──> extract ──> match ──┘

    extract     text in, facts out; pure
    store       the only package that speaks SQL
    match       likeness: candidates, score, probability
    model_reader  a language model's reading, as far as quotes prove it; off by default
    knowledge   what follows from facts and links: diagnosis, remedies, fix state
    web         JSON routes and pages
    starter     the cards and the release table that an empty database starts with
    train       learns the weights that `match` reads; never imported by a serving process
    bench       how well a log finds its issue, beside search libraries; run by hand
    ingest      the only package that speaks to GitHub (beside this package)

Imports go down only: cli, main → web, ingest → knowledge → match → store → extract → errors, config.

Vocabulary: a *signature* is the readable key of a failure; a *wrapper* is an error that only
reports another; a *frame* is a place in a traceback; *evidence* is the quote that says a value; a *band*
(same, likely, related, unknown) is how sure an answer is; a *card* is a known failure described by us.
"""

__version__ = "0.1.0"
