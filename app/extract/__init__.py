"""READING: text in, facts out. Start here. Pure: no database, no network, no files but its own lists.

Vocabulary
    document    an issue's title, body and comments, or a pasted log, split into blocks of one kind:
                heading, prose, code (a log counts as code), quote. A span is (source, start, end) in code
                points.
    sentence    text that a person wrote: prose without logs, code, commands, tables and form boilerplate.
    frame       one entry of a traceback, written `file.py:function`. Frames of frameworks and of the event
                loop ("plumbing") occur in every traceback and do not identify a failure.
    error       one exception, native fault or error line of a log, with the process that printed it.
    wrapper     an error that only reports another one: "Engine core initialization failed", "see the
                stack trace above", any error raised `from` another one.
    death       a process ended, and another one reports it; the cause if no earlier error is printed.
    course      what happened after an error: the program continued, only a request failed, or shutdown had
                already been requested. A survived error is not a cause.
    root cause  the first error that is not a wrapper, in the innermost process that reports one (worker
                before engine core before API server before client).
    apparent    the innermost wrapper, if a log contains only wrappers. It is displayed with low
                confidence, but gets no signature.
    signature   the readable key of a failure: `Type | masked message | frame < frame`. Numbers, paths,
                addresses and names are masked, so that one failure has the same key on every machine. Its
                id is `s1-` and 12 hex digits of the text's hash; a change of the algorithm raises `s1` to
                `s2`.
    rule        a pattern as data: an id that never changes, a reason, a text it must hit and one it must
                miss.
    fact        one value of a field: a GPU, a version, a remedy. The fields are `facts.py`, a public
                contract.
    evidence    the quote that a fact was read from, its span, the rule and the confidence. Every fact has
                evidence.
    confidence  precision of the rule on labelled issues, 0 to 1 (`confidence.json`, learned).
    remedy      a change and its outcome: it works, works in part, or fails. Called a workaround in the
                API.
    statement   what a sentence says about a change or a version: an outcome, or a role in a regression,
                with a probability. Below .5 it is ignored; from .95 on a remedy is offered as a command,
                in between it is quoted.

Order of the steps
    A folder imports only those before it: lists, rules, text, log with redaction and statements, fields,
    remedies, prose.
    `reader.py` has the two entry points, `read_issue` and `read_log`; both go through the same rules.

    1. text      `text/blocks.py` splits the texts into a `Document`, even if line breaks were lost;
                 `text/sentences.py` finds the sentences, `text/claims.py` the versions in them.
    2. log       `log/containers.py` extracts a log from a platform's export, `log/lines.py` strips the
                 prefix of each line, `log/process_stream.py` keeps the state of each process,
                 `log/tracebacks.py` and `log/error_lines.py` find the errors, `log/course.py` determines
                 what followed each, `log/root_cause.py` separates cause and wrappers, and
                 `log/signature.py` builds the signature.
    3. fields    one module for each: GPUs and their number, models, backends, versions, settings,
                 environment, and kind of failure. Each checks its sources in a fixed order and takes the
                 first value: explicit log lines before hints in tracebacks, and both before names in
                 prose.
    4. remedies  the grammar reads what is said of changes: `cues.py` finds words of success and failure,
                 `changes.py` what was changed, `candidates.py` pairs the two. `stated.py` gives what it
                 read, as one voice, to `statements/`: every span that may name a change is judged there by
                 weights learned on 13,000 labelled sentences. `typed.py` writes what to type, if the words
                 before do not take it away, and `workarounds.py` puts all together and counts the other
                 people who confirm or refute.
    5. prose     what else people state: since which version it fails (roles by `statements/` too), its
                 cause, its fix, issues mentioned; and the error itself, where no log prints it.
    6. facts     `reader.py` collects everything with its evidence, `facts.py` summarises it in a sentence.

    `redact.py` is separate from these steps: facts are read from the original text, and everything that is
    displayed, returned or stored is masked by blocks of equal length, so that all spans stay valid.

How to add a rule
    1. Find the list: the table in `lists/README.md` describes each file and when to edit it.
    2. Write a `[[rule]]` with a new `id`, the `reason`, a `pattern` in RE2 syntax (linear time: no
       look-around, no back-references), and texts of your own for `hit` and `miss`. The best miss is the
       wrong reading that made you write the rule. Describe a shape; no rule may fit one issue only.
    3. Run `pytest tests/extract`. One test runs every rule of every list against its hit and its miss;
       add a test beside the module that uses the list for what the rule is meant to read.
       `tests/test_quality.py` holds minimum scores on labelled texts: it fails if a rule causes a
       regression.
    4. Run `triage reextract --diff` on a database of real issues. It writes nothing and lists by field what
       would change, with examples. Read them: a wrong value is worse than none.
    5. Raise `RULES_VERSION` in `reader.py`, so that stored issues are read again; `triage reextract` does
       it at once. After a change of the signature algorithm, raise the signature's own version instead.
       After a change in the grammar of remedies, learn the weights again (`python -m
       app.train.remedy_score`).

    A known wrong result that is not fixed yet belongs in `tests/extract/test_known_wrong.py`, as input,
    desired and actual result. The accuracy of each field is reported in `README.md` in this folder.
"""
