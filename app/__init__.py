"""vLLM Triage: issues of an inference engine in, known failures and their remedies out.

The map of the house. Data flows one way:

    GitHub ──> ingest ──> store (raw) ──> extract ──> store (facts) ──> match ──> knowledge ──> web
                                                    pasted log ──> extract ──> match ──┘

    extract     READING ROOM   text in, facts out; pure
    store       ARCHIVE        the only room that speaks SQL
    match       CATALOGUE      likeness: candidates, score, probability
    knowledge   what follows from facts and links: diagnosis, remedies, fix state
    web         FRONT DESK     JSON routes and pages
    starter     the cards an empty database starts with
    train       learns the weights that `match` reads; never imported by a serving process
    bench       how well a log finds its issue, beside search libraries; run by hand
    ingest      POST ROOM      the only room that speaks to GitHub (beside this package)

Imports go down only: cli, main → web, ingest → knowledge → match → store → extract → errors, config.

The words of the house: a *signature* is the readable key of a failure; a *wrapper* is an error that only
reports another; a *frame* is a place in a traceback; *evidence* is the quote that says a value; a *band*
(same, likely, related, unknown) is how sure an answer is; a *card* is a known failure told by us.
"""

__version__ = "0.1.0"
