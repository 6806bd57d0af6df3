"""The versions it fails with.

In: a `Document` and its `Environment`. Out: evidence of `versions.<key>`, one per key of
`facts.VERSION_KEYS`, as written without a leading v.

For vLLM the title and the author's statement win over the log, and the log over the environment dump,
since people collect the environment after they have gone back to a version that works. For everything
else the dump is the better witness. Of several versions that fail the newest is taken.
"""

from __future__ import annotations

from itertools import pairwise

from app.extract.evidence import cite
from app.extract.facts import VERSION_KEYS, Evidence
from app.extract.fields.environment import Environment
from app.extract.fields.failure_kind import is_titled_wish, is_wish
from app.extract.fields.version_sources import DUMP_LABELS, FoundVersion, all_versions
from app.extract.rules.patterns import pattern
from app.extract.text.document import Document
from app.extract.versions import is_before

ORDER: dict[str, tuple[str, ...]] = {
    "vllm": (
        "title",
        "stated",
        "used",
        "image",
        "log",
        "dump",
        "package",
        "install",
        "commit",
        "said",
        "plain",
        "path",
        "branch",
    ),
    "torch": ("dump", "package", "said", "log", "list", "title"),
    "cuda": ("dump", "said", "torch", "log", "title", "image", "major", "runtime"),
    "python": ("dump", "said", "log", "title", "install"),
    "transformers": ("package", "said", "list", "title"),
    "driver": ("dump", "said", "log", "title"),
}
"""The order of trust for each key."""

_CONFIDENCE = {
    "title": 0.95,
    "stated": 0.95,
    "used": 0.9,
    "log": 0.95,
    "dump": 0.97,
    "package": 0.95,
    "image": 0.9,
    "install": 0.85,
    "said": 0.85,
    "path": 0.75,
    "commit": 0.7,
    "torch": 0.85,
    "list": 0.9,
    "branch": 0.6,
    "plain": 0.7,
    "major": 0.7,
    "runtime": 0.7,
}
_WEIGHED = ("title", "stated", "used", "image", "said", "plain")
_ALL_MAY_WORK = frozenset(["used", "said", "plain"])
"""Places whose versions may all be said to work; the next place is asked then."""

_ONLY_TITLED = frozenset(["title"])
_SPOKEN_OF = frozenset(["title", "used", "said", "plain", "major", "branch"])
"""Places whose versions a wish only speaks of: other packages' everywhere, vLLM's outside the title."""

_WORKS = pattern(
    r"\b(?:works?|worked|working|fine|fast(?:er)?|good|okay?|runs|ran|succe(?:ed|ss)\w*|served|"
    r"correct(?:ly)?|normal(?:ly)?|"
    r"no (?:issue|problem|error|crash)|fix\w*|remov\w+|resolv\w+|revert\w*|downgrad\w*)\b",
    ignore_case=True,
)
_FAILS = pattern(
    r"\b(?:fail\w*|crash\w*|br(?:oke|eaks?|oken)|dies|error\w*|slow\w*|stops?|hangs?|stuck|regress\w*|drops?|wrong|raises?|"
    r"not|n't|cannot|since|bug)\b",
    ignore_case=True,
)
_ONWARD = pattern(r"^\S*?[ `]*(?:->|-->|→|=>|\bto\b)[ `]*v?$")
_BETTER_THAN = pattern(r"\b(?:faster|better|quicker) than\b", ignore_case=True)
_LISTED = frozenset([",", "and", "/", "&", ", and", "、", "or"])
MAX_ONWARD_CHARS = 12
MAX_COMPARED_CHARS = 60


def find_versions(document: Document, environment: Environment) -> tuple[Evidence, ...]:
    """Evidence of `versions.<key>`, one per key."""
    found: dict[str, dict[str, list[FoundVersion]]] = {key: {} for key in VERSION_KEYS}
    dump = environment.entries.get(DUMP_LABELS["vllm"])
    for key, where, item in all_versions(document, environment):
        if where == "stated" and dump is not None and item.span[:2] == dump.span[:2]:
            continue
        found[key].setdefault(where, []).append(item)
    result = []
    for key in VERSION_KEYS:
        if chosen := _choose(document, key, found[key]):
            where, item = chosen
            evidence = cite(document, f"versions.{key}", item.value, item.span, item.rule, _CONFIDENCE[where])
            result.append(evidence)
    return tuple(result)


def _choose(
    document: Document, key: str, by_place: dict[str, list[FoundVersion]]
) -> tuple[str, FoundVersion] | None:
    """The version of one key from the most trusted place that has one, and that place."""
    wanted = _wanted(document)
    for where in ORDER[key]:
        candidates = by_place.get(where)
        if not candidates or (where in wanted and (key != "vllm" or where != "title")):
            continue
        if key != "vllm":
            return where, candidates[0]
        chosen = _failing(document, candidates) if where in _WEIGHED else candidates[0]
        if chosen is None and where not in _ALL_MAY_WORK:
            chosen = candidates[0]
        if chosen is not None:
            return where, _more_exact(where, chosen, by_place.get("dump", []))
    return None


def _wanted(document: Document) -> frozenset[str]:
    """The places whose versions the author wants, or only speaks of; of the documentation's he has one."""
    if is_wish(document) and not document.issue.title.lower().startswith("[doc"):
        return _SPOKEN_OF
    return _ONLY_TITLED if is_titled_wish(document) else frozenset()


def _more_exact(where: str, chosen: FoundVersion, dumped: list[FoundVersion]) -> FoundVersion:
    """The dump's spelling of the same version, where it adds the build; people's versions mean no commit."""
    signs = ("@", "+") if where in ("log", "dump") else ("+",)
    for item in dumped:
        if item.value.startswith(tuple(f"{chosen.value}{sign}" for sign in signs)):
            return item
    return chosen


def _failing(document: Document, candidates: list[FoundVersion]) -> FoundVersion | None:
    """Of the versions somebody names, the one that fails; None if all are said to work.

    "a -> b" and "a is faster than b" fail with b; of the others the first whose clause speaks of failing,
    then the first whose clause does not speak of working; of those listed with it the newest.
    """
    ordered = sorted(candidates, key=lambda item: item.span)
    if (later := _later_of_two(document, ordered)) is not None:
        return later
    judged = [(item, _clause(document, item)) for item in ordered]
    for item, clause in judged:
        if _FAILS.search(clause) and not _WORKS.search(clause):
            return _newest_listed(document, ordered, item)
    for item, clause in judged:
        if not _WORKS.search(clause):
            return _newest_listed(document, ordered, item)
    return None


def _later_of_two(document: Document, ordered: list[FoundVersion]) -> FoundVersion | None:
    """The right one of "a -> b", "between a and b", "a is faster than b"."""
    for before, after in pairwise(ordered):
        if before.span[0] != after.span[0]:
            continue
        text = document.sources[before.span[0]]
        between = text[before.span[2] : after.span[1]]
        lead = text[max(0, before.span[1] - 20) : before.span[1]]
        if len(between) < MAX_ONWARD_CHARS and (
            _ONWARD.match(between) or ("between" in lead and between.strip(" v`") == "and")
        ):
            return after
        if len(between) < MAX_COMPARED_CHARS and "\n" not in between and _BETTER_THAN.search(between):
            return after
    return None


def _newest_listed(document: Document, ordered: list[FoundVersion], chosen: FoundVersion) -> FoundVersion:
    """The newest of the versions that stand in one list with the chosen one."""
    at = ordered.index(chosen)
    for before, after in pairwise(ordered[at:]):
        between = document.sources[before.span[0]][before.span[2] : after.span[1]].strip(" v`*")
        if before.span[0] != after.span[0] or between not in _LISTED:
            break
        if is_before(chosen.value, after.value):
            chosen = after
    return chosen


def _clause(document: Document, item: FoundVersion) -> str:
    """The words around a version up to the nearest comma, semicolon, bracket or line end."""
    source, first, last = item.span
    text = document.sources[source]
    start, end = max(0, first - 80), min(len(text), last + 80)
    before, after = text[start:first], text[last:end]
    for sign in (",", ";", ". ", "(", "\n", ":", " but ", " while ", " and "):
        before = before.rsplit(sign, 1)[-1]
        after = after.split(sign, 1)[0]
    clause = f"{before} {after}"
    if any(char.isalpha() for char in clause.replace("v", "", 1)):
        return clause
    start = max(start, *(text.rfind(sign, start, first) for sign in ("\n", ". ", ";")))
    return text[start:end].split("\n\n", 1)[0]
