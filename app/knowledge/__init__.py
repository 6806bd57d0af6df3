"""What is known of stored issues, and the answers made of it. Start here.

Vocabulary
    issue         a GitHub issue or pull request, stored as GitHub sent it; comments and releases likewise.
    fact          what the rules of `app.extract` read in an issue's text: GPUs, versions, error, workarounds,
                  regression range, fix. Every value has evidence: a quote and its place.
    reading       all facts of one issue, with the version of the rules that read them.
    stale         an issue whose reading is older than its text, its comments or the rules.
    link          a relation of two issues: one names, repeats, fixes or reverts the other, or is like it.
    tie           what joins two issues in one cluster: a likeness that is sure enough, or a duplicate.
    cluster       issues that report one failure; its signature is the text that stands for it.
    judgement     a maintainer's word that two issues are the same or not; it outlives every rebuild.
    remedy        a workaround as it is shown: what to do, who says that it helps, under which conditions.
    fix state     whether a failure is fixed, by which pull request, and in which release.
    span          a regression range: last working, first failing, still failing, fixed in.
    view          an answer's shape: frozen, masked, the same for page, JSON, Markdown and MCP.

Which folder answers what
    indexing      raw issues in, facts, links and clusters stored. The only folder that writes what it reads.
    diagnosis     a pasted log: which failure is it, how sure is that, what helps, what to do next.
    issue         one issue: its page, its report, what it is related to; and lists of issues.
    cluster       one failure with all its reports: since when, on which hardware, growing or not, what helps.
    version       one version: what fails in it, what stopped working with it, what may have caused that.
    fix           whether a failure is fixed, in which release, and what that means for a given version.
    digest        one week: what is new, what grows, what is fixed.
    operations    what an operator needs: what is wrong with a base, what may be forgotten.
    text          texts made safe to show: quoted for Markdown, secrets masked.
    Beside them: `home` (the front page), `freshness` (how old the copy is), `remedies` (ranking workarounds),
    `iso_week`, `labels` (words for values that all formats share).

From raw text to an answer
    1. `ingest` stores rows as they come and asks `indexing.batches` to derive the facts of what changed.
    2. `indexing.derive` reads each issue with `app.extract`, adds what its starter card says, and stores
       facts, evidence and search terms (`app.match.search`).
    3. It compares the issue with its nearest neighbours (`app.match.pairs`) and stores links.
    4. `cluster.update` puts the issues that a change reaches into clusters again (`app.match.clusters`).
    5. A question comes from a route, a tool or a command. It opens one read session and finds numbers first:
       by search, by filter, by version or by week. Facts are loaded for those only, texts only for what is
       shown.
    6. The fix state of what was found is decided (`fix.state`), seen from the caller's version if known.
       Versions are compared by `app.extract.versions` alone; a build without a place in the order is unknown.
    7. The parts are put into a view. Quotes are taken from the stored text by their place, then masked.

How to add an answer
    1. Name the subject it is about and work in that folder; a new subject gets a folder of its own.
    2. Write its shape beside the function that makes it, as a `Frozen` model; describe what is not plain.
    3. Put queries into `app.store`: nothing here writes SQL. Ask for many issues at once, not one by one.
    4. Write a function `(store, repo, …) -> shape` that is pure but for its session. Decide in functions of
       frozen values, and test those without a database (`fix.decide` is an example).
    5. Say what is not known. An answer that guesses has a field that says so and a sentence of reason.
    6. Serve it: a route in `app.web.routes`, a tool in `app.web.mcp`, a template per format in `templates/`.

Folders use each other in one direction: fix and issue facts below version, version below cluster, all of them
below diagnosis and digest. Nothing here asks GitHub; that is `ingest`.
"""
