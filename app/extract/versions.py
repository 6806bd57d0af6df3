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

from app.extract.document import Document
from app.extract.environment import Entry, Environment, Span
from app.extract.evidence import cite
from app.extract.facts import VERSION_KEYS, Evidence
from app.extract.patterns import pattern
from app.extract.rules import Rule, load_rules
from app.extract.sections import Places, windows

MAX_HITS = 60

ORDER: dict[str, tuple[str, ...]] = {
    "vllm": ("title", "stated", "image", "log", "dump", "package", "install", "commit", "said", "path", "branch"),
    "torch": ("dump", "package", "said"),
    "cuda": ("dump", "said", "torch", "log"),
    "python": ("dump", "said", "path"),
    "transformers": ("package", "said"),
    "driver": ("dump", "said"),
}
"""The order of trust for each key."""

_CONFIDENCE = {"title": 0.95, "stated": 0.95, "log": 0.95, "dump": 0.97, "package": 0.95, "image": 0.9,
               "install": 0.85, "said": 0.85, "path": 0.75, "commit": 0.7, "torch": 0.85,
               "branch": 0.6}  # fmt: skip
_DUMP = {
    "vllm": "vLLM Version", "torch": "PyTorch version", "cuda": "CUDA used to build PyTorch",
    "python": "Python version", "driver": "Nvidia driver version",
}  # fmt: skip
_PACKAGES = ("vllm", "torch", "transformers")
_WORKS = pattern(
    r"\b(?:works?|worked|working|fine|fast|good|okay?|runs|ran|succeed\w*|served|correct(?:ly)?|no (?:issue|problem|error))\b",
    ignore_case=True,
)
_FAILS = pattern(
    r"\b(?:fail\w*|crash\w*|br(?:oke|eaks?|oken)|dies|error\w*|slow\w*|stops?|hangs?|stuck|regress\w*|drops?|wrong|raises?|not|"
    r"n't|cannot|since|bug)\b",
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
    for key, where, item in (*_from_dump(environment), *_matched(document)):
        found[key].setdefault(where, []).append(item)
    result = []
    for key in VERSION_KEYS:
        for where in ORDER[key]:
            if candidates := found[key].get(where):
                chosen = _failing(document, candidates) if where in ("title", "said") else candidates[0]
                result.append(
                    cite(document, f"versions.{key}", chosen.value, chosen.span, chosen.rule, _CONFIDENCE[where])
                )
                break
    return tuple(result)


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
                yield rule["key"], "title", item
    for source, offset, text in windows(document):
        for rule in load_rules("versions"):
            where = rule["where"]
            if where == "title" or not any(word in text for word in rule["needs"]):
                continue
            for item in _hits(rule, source, offset, text):
                if where == "said" and not _is_statement(places, item.span):
                    continue
                yield rule["key"], where, item
                if rule["key"] == "torch" and (cuda := _cuda_of(item.value, item.span)):
                    yield "cuda", "torch", cuda
                if where != "said":
                    break


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
            start, end = match.span(group)
            value = match.group(group).rstrip(".")
            yield _Found(value, (source, offset + start, offset + start + len(value)), rule.id)


def _failing(document: Document, candidates: list[_Found]) -> _Found:
    """Of several versions somebody names, the one that fails.

    "a -> b" fails with b; of the others the first whose clause speaks of failing, then the first whose
    clause does not speak of working.
    """
    if len({item.value for item in candidates}) == 1:
        return candidates[0]
    ordered = sorted(candidates, key=lambda item: item.span)
    for before, after in zip(ordered, ordered[1:], strict=False):
        between = document.sources[before.span[0]][before.span[2] : after.span[1]]
        if before.span[0] == after.span[0] and len(between) < 12 and _ONWARD.match(between):
            return after
    judged = [(item, _clause(document, item.span)) for item in ordered]
    for item, clause in judged:
        if _FAILS.search(clause) and not _WORKS.search(clause):
            return item
    for item, clause in judged:
        if not _WORKS.search(clause):
            return item
    return ordered[0]


def _clause(document: Document, span: Span) -> str:
    """The words around a version up to the nearest comma, semicolon, bracket or line end."""
    text = document.sources[span[0]]
    start, end = max(0, span[1] - 80), min(len(text), span[2] + 80)
    before, after = text[start : span[1]], text[span[2] : end]
    for sign in (",", ";", ". ", "(", "\n", ":", " but ", " while ", " and "):
        before = before.rsplit(sign, 1)[-1]
        after = after.split(sign, 1)[0]
    return f"{before} {after}"
