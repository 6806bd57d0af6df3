"""Since when it fails: which versions work, which fail, and which change is blamed.

In: a `Document`. Out: one `Regression` put together from all that people say, and the quotes. A version
that is only the environment's is no regression: there must be one that works, or a word of change
("since", "from … on", "still", "fixed in").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.extract.document import Document
from app.extract.evidence import cite
from app.extract.facts import Evidence, Regression
from app.extract.lists import load
from app.extract.narrative import Sentence, is_request, lower, read_sentences
from app.extract.patterns import pattern
from app.extract.rules import Rule, load_rules

_LIST = load("regression")
_GUARD: tuple[str, ...] = tuple(_LIST["guard"])
_FOREIGN: tuple[str, ...] = tuple(_LIST["foreign"])
_FAILURE_WORDS: tuple[str, ...] = tuple(_LIST["failure_words"])
_CURES: tuple[str, ...] = tuple(_LIST["cure_words"])
_SUBJECTS: tuple[str, ...] = tuple(_LIST["subjects"])
_STILL: tuple[str, ...] = tuple(_LIST["still_words"])
_CURED: tuple[str, ...] = tuple(_LIST["cured_words"])
_VERSION = pattern(
    r"\bv?\.?(\d{1,2}\.\d{1,2}(?:\.\d{1,2}){0,2}(?:[._-]?(?:post|rc|dev|a|b)\d+)*(?:\.dev\d+)?(?:\+[\w.]*\w)?)\b",
    ignore_case=True,
)
_NUMBERS = pattern(r"\d+")
_CULPRIT_TOKEN = pattern(
    r"#(\d{3,6})\b|/(?:pull|issues)/(\d{1,6})|\b([0-9a-f]{7,40})\b|/commit/([0-9a-f]{7,40})"
)
_JOINER = (
    " and ",
    ", ",
    " or ",
    "/",
    " & ",
    ", and ",
    " to ",
    "->",
    " -> ",
    "→",
    " → ",
    "、",
    "和",
    " through ",
)
_FIRST_RELEASE_OF_ONES = 1
"""vLLM is below version 1; a larger first number is another package's."""


@dataclass(frozen=True, slots=True)
class _Version:
    text: str
    start: int
    end: int


@dataclass(slots=True)
class _Said:
    """All that is said of versions, in the order of reading: (version, evidence)."""

    works: list[tuple[str, Evidence]]
    fails: list[tuple[str, Evidence]]
    changed: list[tuple[str, Evidence]]
    still: list[tuple[str, Evidence]]
    fixed: list[tuple[str, Evidence]]
    culprit: list[tuple[str, Evidence]]
    good_commit: list[tuple[str, Evidence]]


def find_regression(document: Document) -> tuple[Regression | None, tuple[Evidence, ...]]:
    """The regression range that people state; None if there is none."""
    if is_request(document):
        return None, ()
    said = _Said([], [], [], [], [], [], [])
    for sentence in read_sentences(document):
        if sentence.is_proposal or not any(word in sentence.low for word in _GUARD):
            continue
        _read_versions(document, sentence, said)
        _read_culprit(document, sentence, said)
        _read_commits(document, sentence, said)
    if said.works and not said.fails and not said.changed:
        _read_title(document, said)
    return _assemble(said)


def _read_title(document: Document, said: _Said) -> None:
    """A version that works is known: the one in the title is the one that fails."""
    title = document.issue.title
    sentence = Sentence(title, lower(title), "title", 0, len(title), "")
    best = max(order_of(version) for version, _ in said.works)
    for version in _versions(sentence):
        if order_of(version.text) > best:
            span = sentence.span(version.start, version.end)
            quote = cite(document, "regression.first_failing", version.text, span, "regression.title", 0.7)
            said.fails.append((version.text, quote))


def order_of(version: str) -> tuple[int, ...]:
    """A key that sorts versions: `0.9.0` < `0.10.0rc1` < `0.10.0` < `0.10.0.post1`."""
    base = version.lower().split("+")[0]
    numbers = [int(number) for number in _NUMBERS.findall(base)]
    release = numbers[: base.replace("rc", ".rc").count(".") + 1][:3] if "dev" not in base else numbers[:3]
    while len(release) < 3:
        release.append(0)
    stage = -1 if "rc" in base or "dev" in base else 1 if "post" in base else 0
    return (*release, stage, *numbers[3:])


def _read_versions(document: Document, sentence: Sentence, said: _Said) -> None:
    versions = _versions(sentence)
    if not versions:
        return
    taken: set[int] = set()
    buckets = {
        "works": said.works, "fails": said.fails, "changed": said.changed, "still": said.still,
        "fixed": said.fixed,
    }  # fmt: skip
    for rule in load_rules("regression"):
        if rule["part"] not in buckets or not any(word in sentence.low for word in rule["words"]):
            continue
        if rule.extra.get("needs_cure") and not any(word in sentence.low for word in _CURES):
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
                buckets[part].append((version.text, evidence))


_FIELD = {
    "works": "last_working", "fails": "first_failing", "changed": "first_failing", "still": "still_failing",
    "fixed": "fixed_in",
}  # fmt: skip


def _near(
    sentence: Sentence, versions: list[_Version], rule: Rule, start: int, end: int
) -> Iterator[tuple[int, _Version]]:
    """The versions that a cue speaks of: the one it touches, and those enumerated with it."""
    reach = int(rule.extra.get("reach", 24))
    if rule["side"] == "after":
        first = next((i for i, v in enumerate(versions) if 0 <= v.start - end + 2 <= reach + 2), None)
    else:
        before = [i for i, v in enumerate(versions) if v.end <= end and start - v.end <= reach]
        first = before[-1] if before else None
    if first is None:
        return
    yield first, versions[first]
    step = 1 if rule["side"] == "after" else -1
    last, at = first, first + step
    while 0 <= at < len(versions) and rule.extra.get("many", True):
        low, high = (versions[last], versions[at]) if step > 0 else (versions[at], versions[last])
        between = sentence.text[low.end : high.start].replace("vllm", "").replace("vLLM", "").strip("v*`()")
        if between.strip() and not any(between.strip() == joiner.strip() for joiner in _JOINER):
            return
        yield at, versions[at]
        last, at = at, at + step


def _versions(sentence: Sentence) -> list[_Version]:
    """VLLM's versions in a sentence; those behind another package's name are left out."""
    if "." not in sentence.text:
        return []
    found: list[_Version] = []
    foreign_end = -10
    for match in _VERSION.finditer(sentence.text):
        text, start, end = match.group(1), match.start(), match.end()
        numbers = text.split(".")
        before = sentence.low[max(0, start - 28) : start].rstrip(" =<>~:`*(v-@")
        is_listed = sentence.text[foreign_end:start].strip() in {",", "and", "->", "to", "/", "or", "→"}
        if before.endswith(_FOREIGN) or (foreign_end > 0 and is_listed):
            foreign_end = end
            continue
        is_named = match.group(0)[:1] in "vV" or before.endswith(("vllm", "version", "release", "image"))
        if text.startswith("0.0.0") or (sentence.text[end : end + 2] in (".x", ".*") and len(numbers) > 2):
            continue
        if int(numbers[0]) >= _FIRST_RELEASE_OF_ONES or (
            len(numbers) < 3 and not _is_short(sentence, match, is_named)
        ):
            continue
        if sentence.text[end : end + 1] == "%" or sentence.text[end : end + 4].lower().startswith(
            (" gb", " gi", " mb")
        ):
            continue
        if (
            start
            and sentence.text[start - 1] in "-/=_"
            and not is_named
            and "->" not in sentence.text[:start][-3:]
        ):
            continue
        found.append(_Version(text, start, end))
    return found


def _is_short(sentence: Sentence, match: Any, is_named: bool) -> bool:
    """Whether `0.27` is a version here: named as one, or right behind a word of place."""
    start: int = match.start()
    text: str = match.group(1)
    before = sentence.low[max(0, start - 6) : start]
    return is_named or (
        before.endswith((" on ", " in ", "since ", "from ")) and len(text) >= 4 and text[2] in "123"
    )


def _read_culprit(document: Document, sentence: Sentence, said: _Said) -> None:
    low = sentence.low
    for rule in load_rules("regression"):
        if rule["part"] != "culprit" or not any(word in low for word in rule["words"]):
            continue
        match = rule.pattern.search(sentence.text)
        if match is None:
            continue
        if rule.extra.get("needs_failure") and not _tells_failure(low):
            continue
        if rule.extra.get("needs_subject") and not any(word in low[: match.end()] for word in _SUBJECTS):
            continue
        for token in _CULPRIT_TOKEN.finditer(match.group(0)):
            number = token.group(1) or token.group(2)
            sha = token.group(4) or token.group(3)
            if number and int(number) == document.issue.number:
                continue
            if sha and not number and (sha.isdigit() or sha.isalpha()):
                continue
            value = f"#{number}" if number else sha
            start = match.start() + token.start()
            span = sentence.span(start, match.start() + token.end())
            said.culprit.append((value, cite(document, "regression.culprit", value, span, rule.id, 0.8)))
            return


def _tells_failure(low: str) -> bool:
    """Whether a sentence speaks of a failure, not of its cure."""
    return any(word in low for word in _FAILURE_WORDS) and not any(word in low for word in _CURED)


def _read_commits(document: Document, sentence: Sentence, said: _Said) -> None:
    """Commits named as the last that works, or as a head that still fails."""
    for rule in load_rules("regression"):
        if not rule["part"].startswith("commit_") or not any(word in sentence.low for word in rule["words"]):
            continue
        match = rule.pattern.search(sentence.text)
        if match is None:
            continue
        group = 1 if match.group(1) else 2
        sha = match.group(group)
        if sha.isdigit() or sha.isalpha():
            continue
        works = rule["part"] == "commit_works"
        field = "regression.last_working" if works else "regression.still_failing"
        quote = cite(document, field, sha, sentence.span(*match.span(group)), rule.id, 0.75)
        (said.good_commit if works else said.still).append((sha, quote))


def _assemble(said: _Said) -> tuple[Regression | None, tuple[Evidence, ...]]:
    """The newest version that works, the oldest that fails after it, and the rest."""
    evidence: list[Evidence] = []
    fixed = said.fixed[0] if said.fixed else None
    culprit = said.culprit[0] if said.culprit else None
    bad = [*said.fails, *said.changed]
    worst = min((order_of(v) for v, _ in bad), default=None)
    good = [item for item in said.works if worst is None or order_of(item[0]) < worst] or said.works
    last = max(good, key=lambda item: order_of(item[0])) if good else None
    if last is None:
        bad = said.changed
        last = said.good_commit[0] if said.good_commit else None
    else:
        bad = [item for item in bad if order_of(item[0]) > order_of(last[0])]
    first = min(bad, key=lambda item: order_of(item[0])) if bad else None
    known = {item[0] for item in (last, first) if item}
    rest = [*said.still, *(item for item in bad if first and order_of(item[0]) > order_of(first[0]))]
    still: dict[str, Evidence] = {}
    for version, quote in rest:
        if version not in known and version not in still and (fixed is None or version != fixed[0]):
            still[version] = quote.model_copy(update={"field": "regression.still_failing"})
    if last is None and first is None and culprit is None and fixed is None and not still:
        return None, ()
    evidence.extend(item[1] for item in (last, first, fixed, culprit) if item)
    evidence.extend(still.values())
    regression = Regression(
        last_working=last[0] if last else None, first_failing=first[0] if first else None,
        still_failing=tuple(sorted(still, key=order_of)), fixed_in=fixed[0] if fixed else None,
        culprit=culprit[0] if culprit else None,
    )  # fmt: skip
    return regression, tuple(evidence)
