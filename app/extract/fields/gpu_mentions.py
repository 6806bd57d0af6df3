"""Where a document names accelerators: in its title, the author's words, a log, `nvidia-smi`, comments.

In: a `Document` and its `Environment`. Out: `Mentions` by place, rows of `nvidia-smi`, and whether the run
has no accelerator at all. `gpus.py` chooses among them, `gpu_count.py` counts them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from app.extract.fields.environment import Environment
from app.extract.fields.gpu_names import Mention, canonical_name, find_mentions
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import windows
from app.extract.text.document import Document, Span

_LIST = load("gpus")
_CPU_LOG: tuple[str, ...] = tuple(_LIST["cpu"]["log"])
_NOT_CPU: tuple[str, ...] = tuple(_LIST["cpu"]["unless"])
_HOSTED: tuple[str, ...] = tuple(_LIST["cpu"]["hosts"])
_CPU_TITLE = pattern(_LIST["cpu"]["title"], ignore_case=True)
_ELSEWHERE = pattern(_LIST["elsewhere"]["before"], ignore_case=True)
_ELSEWHERE_AFTER = pattern(_LIST["elsewhere"]["after"], ignore_case=True)
_HOST_TITLE = pattern(_LIST["cpu"]["host_title"], ignore_case=True)
_OWNED = pattern(_LIST["owned"]["before"], ignore_case=True)
_SMI_ROW = pattern(
    r"(?m)^\s*\|\s+(\d{1,2})\s+"
    r"((?:NVIDIA|Tesla|GeForce|Quadro|AMD|GRID|Graphics) ?[^|]{0,40}?)\s+(?:On|Off|N/A)\b"
)
_SMI_LIST = pattern(
    r"(?m)^\s*GPU (\d{1,2}): ((?:NVIDIA|Tesla|GeForce|AMD)[^(\r\n]{2,50}?)(?: ?\(UUID|[ \r]*$)"
)

Named = tuple[Mention, Span]


@dataclass(frozen=True, slots=True)
class Mentions:
    """Accelerators by the place that names them; `code` are bare names in blocks of code or output."""

    title: list[Named] = field(default_factory=list)
    prose: list[Named] = field(default_factory=list)
    log: list[Named] = field(default_factory=list)
    comments: list[Named] = field(default_factory=list)
    code: list[Named] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CpuOnly:
    """What says that the run has no accelerator; `how` names the kind of place."""

    span: Span
    how: str


@lru_cache(maxsize=2)
def mentions_of(document: Document) -> Mentions:
    """All accelerators a document names, without those it names as the ones on which it works."""
    found = Mentions()
    for mention in find_mentions(document.sources["title"]):
        if not _is_elsewhere(document.sources["title"], mention):
            found.title.append((mention, ("title", mention.start, mention.end)))
    for source, offset, text in windows(document):
        starts = [block.start for block in document.of_source(source)]
        kinds = [block.kind for block in document.of_source(source)]
        for mention in find_mentions(text):
            span = (source, offset + mention.start, offset + mention.end)
            at = bisect_right(starts, span[1]) - 1
            is_code = at >= 0 and kinds[at] in ("code", "quote")
            where = _place(found, text, mention, source, is_code)
            if where is not None:
                where.append((mention, span))
    return found


def _place(found: Mentions, text: str, mention: Mention, source: str, is_code: bool) -> list[Named] | None:
    """The list a mention belongs to; None if it says nothing about this machine."""
    if is_code and not mention.is_branded:
        is_theirs = source == "body" and is_owned(text, mention) and not _is_remark(text, mention)
        return found.code if is_theirs else None
    if not is_code and _is_elsewhere(text, mention):
        return None
    if source == "body":
        return found.log if is_code else found.prose
    return found.comments if not found.comments or found.comments[-1][1][0] == source else None


def is_owned(text: str, mention: Mention) -> bool:
    """Whether the words in front speak of the one machine in use ("on my", "using an")."""
    return bool(_OWNED.search(text[max(0, mention.start - 40) : mention.start]))


def _is_remark(text: str, mention: Mention) -> bool:
    """Whether it stands in a program's remark, which explains the program rather than the machine."""
    line = text.rfind("\n", max(0, mention.start - 200), mention.start) + 1
    return text[line : mention.start].lstrip().startswith(("#", "//"))


def _is_elsewhere(text: str, mention: Mention) -> bool:
    """Whether the words around say that it is not the machine on which it fails."""
    before = text[max(0, mention.start - 60) : mention.start]
    return bool(_ELSEWHERE.search(before) or _ELSEWHERE_AFTER.search(text[mention.end : mention.end + 60]))


@lru_cache(maxsize=2)
def cpu_only(document: Document, environment: Environment) -> CpuOnly | None:
    """Whether it runs on a CPU alone: the build says so, the log does, or the title."""
    torch = environment.entries.get("PyTorch version")
    if torch is not None and "+cpu" in torch.value and not _has_host_build(document):
        return CpuOnly(torch.span, "cpu_build")
    if environment.gpus:
        return None
    for source, offset, text in windows(document):
        for words in _CPU_LOG:
            at = text.find(words)
            if at >= 0 and not any(other in text for other in _NOT_CPU):
                return CpuOnly((source, offset + at, offset + at + len(words)), "cpu_log")
    if match := _CPU_TITLE.search(document.sources["title"]):
        return CpuOnly(("title", match.start(), match.end()), "cpu_title")
    return None


def _has_host_build(document: Document) -> bool:
    """Whether an accelerator is named whose torch is a CPU build, as that of TPUs is."""
    if _HOST_TITLE.search(document.sources["title"]):
        return True
    named = mentions_of(document)
    return any(m.name.startswith(_HOSTED) for m, _ in (*named.title, *named.prose, *named.log))


@lru_cache(maxsize=2)
def smi_rows(document: Document) -> tuple[tuple[str, str, Span], ...]:
    """Rows of `nvidia-smi` and `nvidia-smi -L`: index, canonical name, span of the name."""
    return tuple(_smi_rows(document))


def _smi_rows(document: Document) -> Iterator[tuple[str, str, Span]]:
    for source, offset, text in windows(document):
        for rule, mark in ((_SMI_ROW, "NVIDIA-SMI"), (_SMI_LIST, "GPU 0: ")):
            if mark not in text:
                continue
            for match in rule.finditer(text):
                if name := canonical_name(match.group(2)):
                    start, end = match.span(2)
                    yield match.group(1), name, (source, offset + start, offset + end)
