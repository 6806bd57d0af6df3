"""Derived knowledge about stored issues, and the answers built from it. Start here.

Vocabulary
    issue         a GitHub issue or pull request, stored as GitHub sent it; comments and releases likewise.
    fact          a value that the rules of `app.extract` read in an issue's text: GPUs, versions, error,
                  workarounds, regression range, fix. Each has evidence: a quote and its position.
    reading       all facts of one issue, with the version of the rules that read them.
    stale         said of an issue whose reading is older than its text, its comments or the rules.
    link          a relation between two issues: mention, duplicate, fix, revert or similarity.
    tie           a link or judgement strong enough to put two issues in the same cluster.
    cluster       the issues that report the same failure; identified by a signature, a readable text.
    judgement     a maintainer's decision whether two issues are the same failure; survives every rebuild.
    remedy        a workaround as shown: the action, who reports that it helps, under which conditions.
    fix state     whether a failure is fixed, by which pull request, and in which release.
    span          a regression range: last working, first failing, still failing, fixed in.
    view          the model of an answer: frozen, masked, the same for page, JSON, Markdown and MCP.

Folders
    indexing      derives and stores facts, links and clusters from raw issues.
    diagnosis     a pasted log: which failure it is, with what probability, what helps, what to do next.
    issue         one issue: its page, its report, its related issues; and lists of issues.
    cluster       one failure with all its reports: regression range, hardware, growth, remedies.
    version       one version: its known issues, its regressions and their possible causes.
    fix           whether a failure is fixed, in which release, and what that means for a given version.
    digest        one week: what is new, growing and fixed.
    operations    for operators: checking an installation, deletion, running the models.
    stack         one user's setup: what affects it, and what an upgrade would change.
    Modules: `home` (the front page), `freshness` (age of the data), `remedies` (ranking workarounds), `inbox`
    (possible duplicates), `launch` (commands), `markdown`, `labels` (display names for values), `iso_week`.

From raw text to an answer
    1. `ingest` stores raw rows and calls `indexing.batches` to derive the facts of changed issues.
    2. `indexing.derive` reads each issue with `app.extract`, adds its starter card's facts, and stores facts,
       evidence and search terms (`app.match.search`).
    3. It compares the issue with its nearest neighbours (`app.match.pairs`) and stores links.
    4. `cluster.update` reclusters the issues affected by a change (`app.match.clusters`).
    5. A request from a route, tool or command opens one read session and first finds issue numbers by search,
       filter, version or week. Facts are loaded only for those, texts only for what is shown.
    6. `fix.state` decides the fix state of these issues, for the caller's version if known. Versions are
       compared only by `app.extract.versions`; for a build that cannot be ordered the answer is unknown.
    7. The parts are put into a view. Quotes are cut from the stored text by position, then masked.

How to add an answer
    1. Work in the folder of its subject; a new subject gets its own folder.
    2. Define its model, a `Frozen`, beside the function that builds it; describe fields that are not obvious.
    3. Put queries into `app.store`: no SQL here. Query many issues at once, not one by one.
    4. Write a function `(store, repo, …) -> model` that is pure except for its session. Put decisions into
       functions of frozen values, and test those without a database (see `fix.decide`).
    5. State what is not known. A guess is marked by a field, with a sentence that gives the reason.
    6. Serve it: a route in `app.web.routes`, a tool in `app.web.mcp`, a template per format in `templates/`.

Folders depend on each other in one direction: fix and issue below version, version below cluster, all of them
below diagnosis and digest. Nothing here calls GitHub; that is `ingest`.
"""
