"""The versions it fails with.

In: a `Document` and its `Environment`. Out: evidence of `versions.<key>`, one per key of
`facts.VERSION_KEYS`, as written without a leading v.

For vLLM the title and the author's statement win over the log, and the log over the environment dump,
since people collect the environment after they have gone back to a version that works. For everything
else the dump is the better witness.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from app.extract.document import Document
from app.extract.environment import Entry, Environment, Span
from app.extract.evidence import cite
from app.extract.facts import VERSION_KEYS, Evidence
from app.extract.lists import load
from app.extract.patterns import pattern
from app.extract.rules import Rule, load_rules
from app.extract.sections import Places, windows

MAX_HITS = 60

ORDER: dict[str, tuple[str, ...]] = {
    "vllm": (
        "title",
        "stated",
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
    "torch": ("dump", "package", "said"),
    "cuda": ("dump", "said", "torch", "log", "major"),
    "python": ("dump", "said"),
    "transformers": ("package", "said"),
    "driver": ("dump", "said"),
}
"""The order of trust for each key."""

_CONFIDENCE = {"title": 0.95, "stated": 0.95, "log": 0.95, "dump": 0.97, "package": 0.95, "image": 0.9,
               "install": 0.85, "said": 0.85, "path": 0.75, "commit": 0.7, "torch": 0.85,
               "branch": 0.6, "plain": 0.7, "major": 0.7}  # fmt: skip
_DUMP = {
    "vllm": "vLLM Version", "torch": "PyTorch version", "cuda": "CUDA used to build PyTorch",
    "python": "Python version", "driver": "Nvidia driver version",
}  # fmt: skip
_PRODUCTS = frozenset(load("versions")["products"])
_GLUE = frozenset(["and", "or", "v", "to", "->", "from", "version", "==", "=", ":", "&", "/", "is", "vs"])
_SPOKEN = ("said", "plain", "major")
_WEIGHED = ("title", "said", "plain")
_PACKAGES = ("vllm", "torch", "transformers")
_WORKS = pattern(
    r"\b(?:works?|worked|working|fine|fast|good|okay?|runs|ran|succeed\w*|served|correct(?:ly)?|"
    r"no (?:issue|problem|error|crash)|fix\w*|remov\w+|resolv\w+)\b",
    ignore_case=True,
)
_FAILS = pattern(
    r"\b(?:fail\w*|crash\w*|br(?:oke|eaks?|oken)|dies|error\w*|slow\w*|stops?|hangs?|stuck|regress\w*|drops?|wrong|raises?|"
    r"not|n't|cannot|since|bug)\b",
    ignore_case=True,
)
_ONWARD = pattern(r"^\S*?[ `]*(?:->|-->|→|=>|\bto\b)[ `]*v?$")


@dataclass(frozen=True, slots=True)
class _Found:
    value: str
    span: Span
    rule: str


def find_versions(document: Document, environment: Environment) -> tuple[Evidence, ...]:
    """Evidence of `versions.<key>`, one per key."""
    found: dict[str, dict[str, list[_Found]]] = {key: {} for key in VERSION_KEYS}
    dump = environment.entries.get(_DUMP["vllm"])
    for key, where, item in (*_from_dump(environment), *_matched(document)):
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


def _choose(document: Document, key: str, by_place: dict[str, list[_Found]]) -> tuple[str, _Found] | None:
    """The version of one key from the most trusted place that has one, and that place."""
    for where in ORDER[key]:
        candidates = by_place.get(where)
        if not candidates:
            continue
        if key != "vllm":
            return where, candidates[0]
        chosen = _failing(document, candidates) if where in _WEIGHED else candidates[0]
        if chosen is not None:
            return where, _more_exact(chosen, by_place.get("dump", []))
    return None


def _more_exact(chosen: _Found, dumped: list[_Found]) -> _Found:
    """The dump's spelling of the same version, where it adds the commit."""
    for item in dumped:
        if item.value.startswith((f"{chosen.value}@", f"{chosen.value}+")):
            return item
    return chosen


def _from_dump(environment: Environment) -> Iterator[tuple[str, str, _Found]]:
    """The environment dump's own lines and its package lists."""
    for key, label in _DUMP.items():
        entry = environment.entries.get(label)
        if entry is not None and (item := _first_word(entry, f"{key}.dump")):
            yield key, "dump", item
    for name in _PACKAGES:
        entry = environment.packages.get(name)
        if entry is not None and (item := _first_word(entry, f"{name}.package")):
            yield name, "package", item
    torch = environment.entries.get("PyTorch version") or environment.packages.get("torch")
    if torch is not None and (item := _cuda_of(torch.value, torch.span)):
        yield "cuda", "torch", item


def _first_word(entry: Entry, rule: str) -> _Found | None:
    """A value up to the first blank, if it is a version."""
    word = entry.value.split(None, 1)[0].rstrip(",;") if entry.value else ""
    bare = word.lstrip("vV")
    if not bare[:1].isdigit() or "." not in bare:
        return None
    source, start, _ = entry.span
    begin = start + len(word) - len(bare)
    return _Found(bare, (source, begin, begin + len(bare)), rule)


def _cuda_of(torch: str, span: Span) -> _Found | None:
    """The CUDA version in a torch build: `2.6.0+cu124` is 12.4."""
    at = torch.find("+cu")
    digits = torch[at + 3 : at + 6]
    if at < 0 or len(digits) != 3 or not digits.isdigit():
        return None
    source, start, _ = span
    return _Found(f"{digits[:2]}.{digits[2]}", (source, start + at + 1, start + at + 6), "cuda.torch_build")


def _matched(document: Document) -> Iterator[tuple[str, str, _Found]]:
    places = Places(document)
    title = document.sources["title"]
    for rule in load_rules("versions"):
        if rule["where"] == "title" and any(word in title for word in rule["needs"]):
            for item in _hits(rule, "title", 0, title):
                if not _is_foreign(title, item.span[1]):
                    yield rule["key"], "title", item
    for source, offset, text in windows(document):
        for rule in load_rules("versions"):
            if rule["where"] != "title" and any(word in text for word in rule["needs"]):
                for item in _told(rule, places, source, offset, text):
                    yield rule["key"], rule["where"], item
                    if rule["key"] == "torch" and (cuda := _cuda_of(item.value, item.span)):
                        yield "cuda", "torch", cuda


def _told(rule: Rule, places: Places, source: str, offset: int, text: str) -> Iterator[_Found]:
    """What a rule finds in a body: the first, or of what people say all that is about their machine."""
    if rule["where"] not in _SPOKEN:
        yield from islice(_hits(rule, source, offset, text), 1)
        return
    for item in _hits(rule, source, offset, text):
        is_theirs = rule["key"] == "vllm" and _is_foreign(text, item.span[1] - offset)
        if not is_theirs and _is_statement(places, item.span):
            yield item


def _is_foreign(text: str, start: int) -> bool:
    """Whether the word before a version, or before a list of versions, names another product."""
    before = text[max(0, start - 48) : start].rsplit("\n", maxsplit=1)[-1]
    for word in reversed(before.replace(",", " ").split()):
        bare = word.lower().strip("`*()[]:=")
        if bare and bare not in _GLUE and not bare[0].isdigit():
            return bare in _PRODUCTS
    return False


def _is_statement(places: Places, span: Span) -> bool:
    """Whether somebody tells the version of his environment there, rather than a program of something."""
    block = places.block_at(span[0], span[1])
    if block is None or block.kind in ("prose", "heading"):
        return True
    heading = block.heading.lower()
    return block.kind == "code" and len(block.text) < 3_000 and any(w in heading for w in _TOLD_UNDER)


_TOLD_UNDER = ("environment", "version", "setup", "installing", "software", "hardware", "system")


def _hits(rule: Rule, source: str, offset: int, text: str) -> Iterator[_Found]:
    for count, match in enumerate(rule.pattern.finditer(text)):
        if count >= MAX_HITS:
            return
        group = next((g for g in range(1, rule.pattern.groups + 1) if match.group(g)), None)
        if group is not None:
            start, _end = match.span(group)
            value = match.group(group).rstrip(".")
            if value.startswith("0.0."):  # an address, not a release
                continue
            yield _Found(value, (source, offset + start, offset + start + len(value)), rule.id)


def _failing(document: Document, candidates: list[_Found]) -> _Found | None:
    """Of the versions somebody names, the one that fails; None if all are said to work.

    "a -> b" fails with b; of the others the first whose clause speaks of failing, then the first whose
    clause does not speak of working.
    """
    ordered = sorted(candidates, key=lambda item: item.span)
    for before, after in pairwise(ordered):
        between = document.sources[before.span[0]][before.span[2] : after.span[1]]
        if before.span[0] != after.span[0] or len(between) >= 12:
            continue
        lead = document.sources[before.span[0]][max(0, before.span[1] - 20) : before.span[1]]
        if _ONWARD.match(between) or ("between" in lead and between.strip(" v`") == "and"):
            return after
    judged = [(item, _clause(document, item.span)) for item in ordered]
    for item, clause in judged:
        if _FAILS.search(clause) and not _WORKS.search(clause):
            return item
    for item, clause in judged:
        if not _WORKS.search(clause):
            return item
    return ordered[0] if ordered[0].span[0] == "title" else None


def _clause(document: Document, span: Span) -> str:
    """The words around a version up to the nearest comma, semicolon, bracket or line end."""
    text = document.sources[span[0]]
    start, end = max(0, span[1] - 80), min(len(text), span[2] + 80)
    before, after = text[start : span[1]], text[span[2] : end]
    for sign in (",", ";", ". ", "(", "\n", ":", " but ", " while ", " and "):
        before = before.rsplit(sign, 1)[-1]
        after = after.split(sign, 1)[0]
    clause = f"{before} {after}"
    if any(char.isalpha() for char in clause.replace("v", "", 1)):
        return clause
    start = max(start, *(text.rfind(sign, start, span[1]) for sign in ("\n", ". ", ";")))
    return text[start:end].split("\n\n", 1)[0]
