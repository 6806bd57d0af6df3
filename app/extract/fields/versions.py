"""Software versions with which the failure occurs.

In: a `Document` and its `Environment`. Out: evidence of `versions.<key>`, one per key of
`facts.VERSION_KEYS`, as written without a leading v.

For vLLM the title and the author's statement win over the log, and the log over the environment dump,
since people often collect the environment after downgrading to a version that works. For everything
else the dump is the most reliable. Of several failing versions in a list the newest is taken.
"""

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

from app.extract.evidence import FoundValue, cite
from app.extract.facts import VERSION_KEYS, Evidence
from app.extract.fields.environment import Entry, Environment
from app.extract.fields.failure_kind import is_feature_request
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set
from app.extract.text.blocks import Places, windows
from app.extract.text.document import Document, Span
from app.extract.versions import is_before, is_same

MAX_HITS = 60
"""Hits read per rule and text."""

DUMP_LABELS = {
    "vllm": "vLLM Version",
    "torch": "PyTorch version",
    "cuda": "CUDA used to build PyTorch",
    "python": "Python version",
    "driver": "Nvidia driver version",
}
_PACKAGES = ("vllm", "torch", "transformers")
_IN_PROSE = frozenset(["said", "plain", "major", "used"])
_MANY_HITS = frozenset(["image", *_IN_PROSE])
_LIST = load("versions")
_PRODUCTS = frozenset(_LIST["products"])
_NOT_INSTALLED: tuple[str, ...] = tuple(_LIST["not_installed"])
_GLUE = frozenset(
    ["and", "or", "v", "to", "->", "from", "version", "==", "=", ":", "&", "/", "is", "vs", "than"]
)
_STATED_UNDER = ("environment", "version", "setup", "installing", "software", "hardware", "system")
_RANGE_AFTER = pattern(
    r"^[`*]*(?:\+(?:\W|$)| ?(?:⇄|↔|<->)|,? (?:or|and|to) (?:\d|later|newer|above|higher|greater|up)"
    r"| (?:was|were|is|are) (?:\w+ )?supported)"
)
MAX_STATED_CODE_CHARS = 3_000
"""Longer code below a heading on the environment is a log, not a statement of versions."""


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
    "cuda": ("dump", "said", "torch", "log", "title", "image", "major"),
    "python": ("dump", "said", "log", "title", "install"),
    "transformers": ("package", "said", "list", "title"),
    "driver": ("dump", "said", "log", "title"),
}
"""Sources of each key, most trusted first."""

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
}
_WEIGHED = ("title", "stated", "used", "image", "said", "plain")
_ALL_MAY_WORK = frozenset(["used", "said", "plain"])
"""Sources whose versions may all be reported to work; the next source is read then."""

_ONLY_MENTIONED = frozenset(["title", "used", "said", "plain", "major", "branch"])
"""Sources that are ignored in feature requests: their versions are only mentioned."""

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
_AFTER_PACKAGES = pattern(
    r"(?:[A-Za-z][\w.-]* \(?\d[\w.]*\)?(?: pypi_0 pypi)? (?:- Installing )?){2,}[A-Za-z][\w.-]* \(?$"
)
"""Before a version in the output of pip, conda or poetry that lost its line breaks."""
_GLUED = pattern(r"[\w.\-/]*[\w\]]==[vV]?$|[\w.\-]+/[\w.\-/]+:[vV]?$")
"""A package or an image's name right before its version."""
MAX_LISTED_CHARS = 160
MAX_COMMIT_CHARS = 60
"""Text before a commit that is searched for its product."""
_NO_VERSIONS = ("0.0.", "1.0.0.dev")
"""An IP address, and the name that all of vLLM's nightly wheels bear."""
_ONWARD = pattern(r"^\S*?[ `]*(?:->|-->|→|=>|\bto\b)[ `]*v?$")
MAX_ONWARD_CHARS = 12
_LISTED = frozenset(["", ",", "and", "/", "&", ", and", "、", "or"])


def find_versions(
    document: Document, environment: Environment, worked: str | None = None
) -> tuple[Evidence, ...]:
    """Return evidence of `versions.<key>`, at most one per key.

    Args:
        worked: a version of vLLM that people report to work, which is not the one that fails.
    """
    found: dict[str, dict[str, list[FoundValue]]] = {key: {} for key in VERSION_KEYS}
    dump = environment.entries.get(DUMP_LABELS["vllm"])
    for key, where, item in _all_versions(document, environment):
        if where == "stated" and dump is not None and item.span[:2] == dump.span[:2]:
            continue
        if key == "vllm" and is_same(item.value, worked):
            continue
        found[key].setdefault(where, []).append(item)
    return tuple(
        cite(document, f"versions.{key}", item.value, item.span, item.rule, _CONFIDENCE[where])
        for key in VERSION_KEYS
        for where, item in _choose(document, key, found[key])
    )


def _choose(
    document: Document, key: str, by_place: dict[str, list[FoundValue]]
) -> Iterator[tuple[str, FoundValue]]:
    """Yield the most trusted source with a version of the key, and that version."""
    ignored = _ONLY_MENTIONED if is_feature_request(document) else ()
    for where in ORDER[key]:
        candidates = by_place.get(where)
        if not candidates or where in ignored:
            continue
        chosen: FoundValue | None = candidates[0]
        if key == "vllm" and where in _WEIGHED:
            chosen = _failing(document, candidates) or (None if where in _ALL_MAY_WORK else chosen)
        if chosen is not None:
            same = [item for item in candidates if is_same(item.value, chosen.value)]
            yield where, max([chosen, *same], key=lambda item: len(item.value))
            return


def _failing(document: Document, candidates: list[FoundValue]) -> FoundValue | None:
    """Return the version that fails; None if all are reported to work.

    "a -> b" fails with b. Otherwise the first version whose clause mentions a failure, else the first whose
    clause does not mention success; if versions are listed with it, the newest of them.
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


def _later_of_two(document: Document, ordered: list[FoundValue]) -> FoundValue | None:
    """Return b of "a -> b"; None if there is no such pair."""
    for before, after in pairwise(ordered):
        if before.span[0] != after.span[0]:
            continue
        text = document.sources[before.span[0]]
        between = text[before.span[2] : after.span[1]]
        if len(between) < MAX_ONWARD_CHARS and _ONWARD.match(between):
            return after
    return None


def _newest_listed(document: Document, ordered: list[FoundValue], chosen: FoundValue) -> FoundValue:
    """Return the newest of the chosen version and those listed after it."""
    at = ordered.index(chosen)
    for before, after in pairwise(ordered[at:]):
        between = document.sources[before.span[0]][before.span[2] : after.span[1]].strip(" v`*")
        if before.span[0] != after.span[0] or between not in _LISTED:
            break
        if is_before(chosen.value, after.value):
            chosen = after
    return chosen


def _clause(document: Document, item: FoundValue) -> str:
    """Return the words around a version up to the nearest comma, semicolon, bracket or line end."""
    source, first, last = item.span
    text = document.sources[source]
    start, end = max(0, first - 80), min(len(text), last + 80)
    before, after = text[start:first], text[last:end]
    for sign in (",", ";", ". ", "(", "\n", "##", ":", " but ", " while ", " and "):
        before = before.rsplit(sign, 1)[-1]
        after = after.split(sign, 1)[0]
    clause = f"{before} {after}"
    if any(char.isalpha() for char in clause.replace("v", "", 1)):
        return clause
    start = max(start, *(text.rfind(sign, start, first) for sign in ("\n", ". ", ";", "##")))
    return text[start:end].lstrip("#").split("\n\n", 1)[0].split("##", 1)[0]


def _all_versions(document: Document, environment: Environment) -> Iterator[tuple[str, str, FoundValue]]:
    """Yield (key, source, version) for every candidate version."""
    yield from _from_dump(environment)
    yield from _from_title(document)
    places = Places(document)
    for source, offset, text in windows(document):
        for rule in load_rule_set("versions").meeting(text):
            if rule["where"] == "title":
                continue
            for item in _rule_versions(rule, places, source, offset, text):
                yield rule["key"], rule["where"], item
                if rule["key"] == "torch" and (cuda := _cuda_of(item.value, item.span)):
                    yield "cuda", "torch", cuda


def _cuda_of(torch: str, span: Span) -> FoundValue | None:
    """Return the CUDA version of a torch build: `2.6.0+cu124` is 12.4."""
    at = torch.find("+cu")
    digits = torch[at + 3 : at + 6]
    if at < 0 or len(digits) != 3 or not digits.isdigit():
        return None
    place = (span[0], span[1] + at + 1, span[1] + at + 6)
    return FoundValue(f"{digits[:2]}.{digits[2]}", place, "cuda.torch_build")


def _from_dump(environment: Environment) -> Iterator[tuple[str, str, FoundValue]]:
    """Yield versions from the environment dump's entries and package lists."""
    entries, packages = environment.entries, environment.packages
    sources = [
        *((key, "dump", entries.get(label)) for key, label in DUMP_LABELS.items()),
        *((name, "package", packages.get(name)) for name in _PACKAGES),
    ]
    for key, where, entry in sources:
        if entry is not None and (item := _first_word(entry, f"{key}.{where}")):
            yield key, where, item
    torch = entries.get("PyTorch version") or packages.get("torch")
    if torch is not None and (item := _cuda_of(torch.value, torch.span)):
        yield "cuda", "torch", item


def _first_word(entry: Entry, rule: str) -> FoundValue | None:
    """Return a value up to the first space if it is a version; an unfilled commit placeholder is removed."""
    word = entry.value.split(None, 1)[0].rstrip(",;") if entry.value else ""
    base, sign, commit = word.partition("@")
    if sign and not all(char in "0123456789abcdef" for char in commit.lower()):
        word = base
    bare = word.lstrip("vV")
    if not bare[:1].isdigit() or "." not in bare:
        return None
    source, start, _ = entry.span
    begin = start + len(word) - len(bare)
    return FoundValue(bare, (source, begin, begin + len(bare)), rule)


def _from_title(document: Document) -> Iterator[tuple[str, str, FoundValue]]:
    """Yield versions in the title: vLLM's by title rules, other packages' by the rules for prose."""
    title = document.sources["title"]
    for rule in load_rule_set("versions").meeting(title):
        is_own = rule["where"] == "title"
        if not is_own and (rule["where"] != "said" or rule["key"] == "vllm"):
            continue
        for item in _hits(rule, "title", 0, title):
            if not (is_own and _is_foreign(title, item.span[1])):
                yield rule["key"], "title", item


def _rule_versions(rule: Rule, places: Places, source: str, offset: int, text: str) -> Iterator[FoundValue]:
    """Yield a rule's hits in a body: the first or, in prose and images, all that state an installed one."""
    hits = _hits(rule, source, offset, text)
    if rule["where"] == "commit":
        hits = (item for item in hits if not _is_of_product(text[: item.span[1] - offset]))
    if rule["where"] not in _MANY_HITS:
        yield from islice(hits, 1)
        return
    for item in hits:
        is_theirs = rule["key"] == "vllm" and _is_foreign(text, item.span[1] - offset)
        if not is_theirs and (rule["where"] == "image" or _is_statement(places, item.span)):
            yield item


def _is_foreign(text: str, start: int) -> bool:
    """True if the word before a version, or before its list, names another product or a listed package."""
    before = text[max(0, start - MAX_LISTED_CHARS) : start].rsplit("\n", maxsplit=1)[-1]
    if glued := _GLUED.search(before):
        name = glued.group().lower().rstrip("v=:")
        return "vllm" not in name and name not in _GLUE
    for word in reversed(before[-48:].replace(",", " ").split()):
        bare = word.lower().strip("`*()[]:=<>~!")
        if bare and bare not in _GLUE and not bare[0].isdigit():
            return bare in _PRODUCTS or ("vllm" not in bare and bool(_AFTER_PACKAGES.search(before)))
    return False


def _is_of_product(before: str) -> bool:
    """True if the sentence before a commit names another product, and not vLLM."""
    words = before[-MAX_COMMIT_CHARS:].lower().rpartition(". ")[2].replace("`", " ").split()
    named = [word for word, after in pairwise([*words, ""]) if word in _PRODUCTS and not after[:1].isdigit()]
    return bool(named) and not any("vllm" in word for word in words)


def _is_statement(places: Places, span: Span) -> bool:
    """True if the author states the version: in prose, or in short code below an environment heading."""
    block = places.block_at(span[0], span[1])
    if block is None or block.kind in ("prose", "heading"):
        return True
    heading = block.heading.lower()
    is_short = len(block.text) < MAX_STATED_CODE_CHARS
    return block.kind == "code" and is_short and any(word in heading for word in _STATED_UNDER)


def _hits(rule: Rule, source: str, offset: int, text: str) -> Iterator[FoundValue]:
    for match in islice(rule.pattern.finditer(text), MAX_HITS):
        group = next((g for g in range(1, rule.pattern.groups + 1) if match.group(g)), None)
        if group is None:
            continue
        start = match.start(group)
        value = match.group(group).rstrip(".+")
        if value.startswith(_NO_VERSIONS) or _is_only_mentioned(rule, text, match, start + len(value)):
            continue
        yield FoundValue(
            value.replace("%2B", "+"), (source, offset + start, offset + start + len(value)), rule.id
        )


def _is_only_mentioned(rule: Rule, text: str, match: Any, end: int) -> bool:
    """True if the version is required, mentioned or the end of a range, and not installed."""
    if rule["key"] == "vllm" or rule["where"] not in _IN_PROSE:
        return False
    before = text[max(0, match.start() - 24) : match.start() + 1].lower().rstrip(" `*(")
    return before.endswith(_NOT_INSTALLED) or _RANGE_AFTER.match(text[end : end + 12]) is not None
