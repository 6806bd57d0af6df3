"""Which change people blame: a pull request, an issue's number or a commit.

In: a `Sentence` that a rule of `lists/regression.toml` meets. Out: what it blames, and commits said to be the
last that works, the first that fails, or a head that still fails.

Since when it fails: which versions work, which fail, and which change is blamed.

In: a `Document`. Out: one `Regression` put together from all that people say, and the quotes. A version
that is only the environment's is no regression: there must be one that works, or a word of change
("since", "from … on", "still", "fixed in").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.extract.evidence import cite
from app.extract.facts import Evidence, Regression
from app.extract.fields.failure_kind import is_guide
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set
from app.extract.text.document import Document
from app.extract.text.sentences import Sentence, is_request, lower, read_sentences
from app.extract.text.version_mentions import SpokenVersion, names_other, versions_in
from app.extract.versions import is_before, is_same, newest, oldest, ordered, sort_key

_LIST = load("regression")
_FAILURE_WORDS: tuple[str, ...] = tuple(_LIST["failure_words"])
_SUBJECTS: tuple[str, ...] = tuple(_LIST["subjects"])
_CURED: tuple[str, ...] = tuple(_LIST["cured_words"])
_NO_BLAME: tuple[str, ...] = tuple(_LIST["no_blame"])
_TOKEN = pattern(
    r"#(\d{3,6})\b|/(?:pull|issues)/(\d{1,6})|\b[Pp][Rr] ?(\d{4,6})\b"
    r"|\b([0-9a-f]{7,40})\b|/commit/([0-9a-f]{7,40})"
)
_COMMIT_FIELD = {
    "commit_works": "last_working",
    "commit_fails": "first_failing",
    "commit_still": "still_failing",
}
NO_BLAME_CHARS = 24
"""How far before the blaming words a word that takes the blame away may stand."""


def find_culprit(
    document: Document, sentence: Sentence, rules: Iterable[Rule]
) -> Iterator[tuple[str, Evidence]]:
    """The changes that a sentence blames, at most one per rule: `#12345` or a commit."""
    low = sentence.low
    for rule in rules:
        match = rule.pattern.search(sentence.text)
        if match is None:
            continue
        around = low[max(0, match.start() - NO_BLAME_CHARS) : match.end()]
        if any(word in around for word in _NO_BLAME):
            continue
        if rule.extra.get("needs_failure") and not tells_failure(low):
            continue
        if rule.extra.get("needs_subject") and not any(word in low[: match.end()] for word in _SUBJECTS):
            continue
        for token in _TOKEN.finditer(match.group(0)):
            value = _name_of(token.groups(), document.issue.number)
            if value is not None:
                start, end = match.start() + token.start(), match.start() + token.end()
                yield (
                    value,
                    cite(document, "regression.culprit", value, sentence.span(start, end), rule.id, 0.8),
                )
                break


def find_commits(
    document: Document, sentence: Sentence, rules: Iterable[Rule]
) -> Iterator[tuple[str, str, Evidence]]:
    """(part, commit, evidence) of the commits that a sentence says to work, to fail or to fail still."""
    for rule in rules:
        match = rule.pattern.search(sentence.text)
        if match is None:
            continue
        group = next(g for g in range(1, rule.pattern.groups + 1) if match.group(g))
        sha = match.group(group)
        if not sha.isdigit() and not sha.isalpha():
            field = f"regression.{_COMMIT_FIELD[rule['part']]}"
            yield (
                rule["part"],
                sha,
                cite(document, field, sha, sentence.span(*match.span(group)), rule.id, 0.75),
            )


def tells_failure(low: str) -> bool:
    """Whether a sentence speaks of a failure, not of its cure."""
    return any(word in low for word in _FAILURE_WORDS) and not any(word in low for word in _CURED)


def _name_of(groups: tuple[str | None, ...], own: int) -> str | None:
    """What a token names; None for the issue itself and for words that only look like a commit."""
    number = groups[0] or groups[1] or groups[2]
    sha = groups[4] or groups[3]
    if number:
        return f"#{number}" if int(number) != own else None
    return None if sha is None or sha.isdigit() or sha.isalpha() else sha


MAX_SENTENCES = 300
"""Sentences that name versions or changes and are read; nobody tells a regression in more."""

MAX_VERSIONS = 16
"""A sentence with more versions is a list of them, not a story."""

UPGRADED_CHARS = 40
"""How far before the word of upgrading the upgraded package may be named."""

_CURES: tuple[str, ...] = tuple(_LIST["cure_words"])
_STILL: tuple[str, ...] = tuple(_LIST["still_words"])
_MARKS: tuple[str, ...] = tuple(_LIST["marks"])
_JOINERS = frozenset(_LIST["joiners"])
_FIELD = {
    "works": "last_working",
    "fails": "first_failing",
    "changed": "first_failing",
    "still": "still_failing",
    "fixed": "fixed_in",
}
_COMMITS = ("commit_works", "commit_fails", "commit_still")

_Claim = tuple[str, Evidence]
"""A version or a change, and who says so."""


@dataclass(slots=True)
class _Said:
    """All that is said of versions, in the order of reading."""

    works: list[_Claim] = field(default_factory=list)
    fails: list[_Claim] = field(default_factory=list)
    changed: list[_Claim] = field(default_factory=list)
    still: list[_Claim] = field(default_factory=list)
    fixed: list[_Claim] = field(default_factory=list)
    culprit: list[_Claim] = field(default_factory=list)
    commit_works: list[_Claim] = field(default_factory=list)
    commit_fails: list[_Claim] = field(default_factory=list)
    commit_still: list[_Claim] = field(default_factory=list)


def find_regression(document: Document) -> tuple[Regression | None, tuple[Evidence, ...]]:
    """The regression range that people state; None if there is none."""
    if is_request(document) or is_guide(document):
        return None, ()
    said = _Said()
    count = 0
    for sentence in read_sentences(document):
        low = sentence.low
        if not any(mark in low for mark in _MARKS) or sentence.is_proposal:
            continue
        count += 1
        if count > MAX_SENTENCES:
            break
        _read_versions(document, sentence, said)
        said.culprit.extend(
            find_culprit(
                document, sentence, load_rule_set("regression", "part", "culprit").meeting(sentence.text)
            )
        )
        commits = load_rule_set("regression", "part", *_COMMITS).meeting(sentence.text)
        for part, sha, quote in find_commits(document, sentence, commits):
            getattr(said, part).append((sha, quote))
    _read_title(document, said)
    return _assemble(said)


def _read_title(document: Document, said: _Said) -> None:
    """A version that works is known: the newer one of the title fails, and it does not work itself."""
    title = document.issue.title
    versions = versions_in(Sentence(title, lower(title), "title", 0, len(title), ""))
    if len(versions) == 1:
        said.works = [item for item in said.works if item[0] != versions[0].text or item[1].source == "title"]
    if not said.works or said.fails or said.changed:
        return
    best = newest(version for version, _ in said.works)
    for version in versions:
        if is_before(best, version.text):
            span = ("title", version.start, version.end)
            quote = cite(document, "regression.first_failing", version.text, span, "regression.title", 0.7)
            said.fails.append((version.text, quote))


def _read_versions(document: Document, sentence: Sentence, said: _Said) -> None:
    versions = versions_in(sentence)
    if not versions or len(versions) > MAX_VERSIONS:
        return
    taken: set[int] = set()
    for rule in load_rule_set("regression", "part", *_FIELD).meeting(sentence.text):
        if rule.extra.get("needs_cure") and not any(word in sentence.low for word in _CURES):
            continue
        if "beside" in rule.extra and not any(word in sentence.low for word in rule["beside"]):
            continue
        if rule.extra.get("where") == "title" and sentence.source != "title":
            continue
        for match in rule.pattern.finditer(sentence.text):
            for at, version in _near(sentence, versions, rule, match.start(), match.end()):
                if at in taken:
                    continue
                taken.add(at)
                span = sentence.span(version.start, version.end)
                part = rule["part"]
                if rule.extra.get("still_if") and any(word in sentence.low for word in _STILL):
                    part = "still"
                evidence = cite(document, "regression." + _FIELD[part], version.text, span, rule.id, 0.8)
                getattr(said, part).append((version.text, evidence))


def _near(
    sentence: Sentence, versions: list[SpokenVersion], rule: Rule, start: int, end: int
) -> Iterator[tuple[int, SpokenVersion]]:
    """The versions that a cue speaks of: the one it touches, and those enumerated with it."""
    reach = int(rule.extra.get("reach", 24))
    if rule["side"] == "after":
        first = next((i for i, v in enumerate(versions) if 0 <= v.start - end + 2 <= reach + 2), None)
    else:
        before = [i for i, v in enumerate(versions) if v.end <= end and start - v.end <= reach]
        first = before[-1] if before else None
    if first is None:
        return
    if rule.extra.get("upgrade") and names_other(
        sentence.low[max(0, start - UPGRADED_CHARS) : versions[first].start]
    ):
        return
    yield first, versions[first]
    step = 1 if rule["side"] == "after" else -1
    last, at = first, first + step
    while 0 <= at < len(versions) and rule.extra.get("many", True):
        low, high = (versions[last], versions[at]) if step > 0 else (versions[at], versions[last])
        between = sentence.low[low.end : high.start].replace("vllm", "").replace("version", "").strip(" v*`=")
        if between not in _JOINERS:
            return
        yield at, versions[at]
        last, at = at, at + step


def _assemble(said: _Said) -> tuple[Regression | None, tuple[Evidence, ...]]:
    """The newest version that works, the oldest that fails after it, and the rest."""
    fixed = said.fixed[0] if said.fixed else None
    culprit = said.culprit[0] if said.culprit else None
    last, bad = _range(said)
    first = min(bad, key=lambda item: (ordered(item[0]) is None, sort_key(item[0])), default=None)
    if first is None and said.commit_fails:
        first = said.commit_fails[0]
    known = {item[0] for item in (last, first) if item}
    rest = [*said.still, *said.commit_still]
    if first is not None:
        rest.extend(item for item in bad if not _is_up_to(item[0], first[0]))
    still: dict[str, Evidence] = {}
    for version, quote in rest:
        if version not in known and version not in still and (fixed is None or version != fixed[0]):
            still[version] = quote.model_copy(update={"field": "regression.still_failing"})
    if last is None and first is None and culprit is None and fixed is None and not still:
        return None, ()
    evidence = [item[1] for item in (last, first, fixed, culprit) if item]
    regression = Regression(
        last_working=last[0] if last else None,
        first_failing=first[0] if first else None,
        still_failing=tuple(sorted(still, key=sort_key)),
        fixed_in=fixed[0] if fixed else None,
        culprit=culprit[0] if culprit else None,
    )
    return regression, (*evidence, *still.values())


def _range(said: _Said) -> tuple[_Claim | None, list[_Claim]]:
    """The version that worked last, and those that fail after it."""
    bad = [*said.fails, *said.changed]
    worst = oldest(version for version, _ in bad)
    good = [item for item in said.works if worst is None or is_before(item[0], worst)] or said.works
    if good:
        last = max(good, key=lambda item: sort_key(item[0]))
        return last, [item for item in bad if not _is_up_to(item[0], last[0])]
    return (said.commit_works[0] if said.commit_works else None), said.changed


def _is_up_to(version: str, last: str) -> bool:
    """Whether a version is known to be the same as `last`, or to come before it."""
    return is_same(version, last) or is_before(version, last)
