"""Which accelerators it fails on, and how many the machine has.

In: a `Document` and its `Environment`. Out: evidence for `gpus` (one per canonical name) and `gpu_count`.

Sources, the more trusted first: what the environment dump lists, `nvidia-smi`, the title, then the
author's own words, the log and, last, comments. A lower source is asked only when the higher ones are
silent, since texts also name GPUs on which it works, or where others saw it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from app.extract.commands import Setting
from app.extract.document import Document
from app.extract.environment import Environment, Span
from app.extract.evidence import cite
from app.extract.facts import Evidence
from app.extract.gpu_names import COUNT_WORDS, Mention, canonical_name, find_mentions
from app.extract.lists import load
from app.extract.patterns import pattern
from app.extract.sections import windows

_LIST = load("gpus")
_CPU_LOG: tuple[str, ...] = tuple(_LIST["cpu"]["log"])
_NOT_CPU: tuple[str, ...] = tuple(_LIST["cpu"]["unless"])
_CPU_TITLE = pattern(_LIST["cpu"]["title"], ignore_case=True)
_ELSEWHERE = pattern(_LIST["elsewhere"]["before"], ignore_case=True)
_SMI_ROW = pattern(
    r"(?m)^\s*\|\s+(\d{1,2})\s+"
    r"((?:NVIDIA|Tesla|GeForce|Quadro|AMD|GRID|Graphics) ?[^|]{0,40}?)\s+(?:On|Off|N/A)\b"
)
_SMI_LIST = pattern(r"(?m)^\s*GPU (\d{1,2}): ((?:NVIDIA|Tesla|GeForce|AMD)[^(\n]{2,50}?) ?\(UUID")
_GPU_WORDS = pattern(
    r"\b(\d{1,3}|single|one|two|dual|three|four|eight)[ \-]?(?:x |[x×*] ?)?"
    r"(?:(?:NVIDIA|AMD|same|local|identical) )?GPUs?\b",
    ignore_case=True,
)
_TOPOLOGY_WORD = pattern(r"\bGPU(\d{1,2})\b")
_PER_NODE = pattern(r"^[^\n(]{0,5}\(?(\d{1,2}) ?(?:x|×|GPUs?)\b( per node|/node)?", ignore_case=True)
_MANY_NODES = pattern(r"\b(?:cross|multi|two|several|\d+)[- ]nodes?\b", ignore_case=True)
_PARALLEL = pattern(r"\b(TP|DP|PP) (\d{1,2})\b")

MAX_GPUS = 8


def find_gpus(document: Document, environment: Environment) -> tuple[Evidence, ...]:
    """Evidence of field `gpus`, one per canonical name, in the order of the text."""
    if cpu := _cpu(document, environment):
        return (cpu,)
    if named := _from_environment(document, environment):
        return named
    rows = list(_smi_rows(document))
    if rows:
        return _unique(document, ((name, span) for _, name, span in rows), "gpus.nvidia_smi", 0.97)
    mentions = _mentions(document)
    for rule, chosen, confidence in (
        ("gpus.title", mentions.title, 0.95),
        ("gpus.stated", mentions.prose, 0.85),
        ("gpus.log", mentions.log, 0.8),
        ("gpus.comment", mentions.comments, 0.7),
    ):
        if chosen:
            return _unique(document, ((m.name, span) for m, span in chosen), rule, confidence)
    return ()


def count_gpus(
    document: Document, environment: Environment, settings: Sequence[Setting] = ()
) -> Evidence | None:
    """Evidence of field `gpu_count`: GPUs the environment lists, or the author states; None if neither."""
    if _cpu(document, environment):
        return None
    for found in (
        _listed(document, environment),
        _counted_mention(document),
        _counted_words(document, settings),
        _visible(settings),
        _ranks(document, environment, settings),
        _spoken_parallel(document),
    ):
        if found is not None:
            count, span, rule = found
            return cite(document, "gpu_count", str(count), span, rule, 0.9)
    return None


class _Mentions:
    """Accelerators by the place that names them."""

    def __init__(self) -> None:
        self.title: list[tuple[Mention, Span]] = []
        self.prose: list[tuple[Mention, Span]] = []
        self.log: list[tuple[Mention, Span]] = []
        self.comments: list[tuple[Mention, Span]] = []


def _mentions(document: Document) -> _Mentions:
    found = _Mentions()
    for mention in find_mentions(document.sources["title"]):
        if not _is_elsewhere(document.sources["title"], mention):
            found.title.append((mention, ("title", mention.start, mention.end)))
    starts = {source: [b.start for b in document.of_source(source)] for source in document.sources}
    kinds = {source: [b.kind for b in document.of_source(source)] for source in document.sources}
    for source, offset, text in windows(document):
        for mention in find_mentions(text):
            span = (source, offset + mention.start, offset + mention.end)
            at = bisect_right(starts[source], span[1]) - 1
            is_code = at >= 0 and kinds[source][at] in ("code", "quote")
            if is_code and not mention.is_branded:
                continue
            if not is_code and _is_elsewhere(text, mention):
                continue
            where = found.log if is_code else found.prose
            if source == "body":
                where.append((mention, span))
            elif not found.comments or found.comments[-1][1][0] == source:
                found.comments.append((mention, span))
    return found


def _is_elsewhere(text: str, mention: Mention) -> bool:
    """Whether the words in front say that it is not the machine on which it fails."""
    before = text[max(0, mention.start - 60) : mention.start]
    return bool(_ELSEWHERE.search(before))


def _from_environment(document: Document, environment: Environment) -> tuple[Evidence, ...]:
    named = []
    for entry in environment.gpus:
        name = canonical_name(entry.value)
        if name is None:
            name = entry.value.split("(")[0].replace("NVIDIA ", "").replace("AMD ", "").strip()
            if not name or name.lower() in ("amd radeon graphics", "radeon graphics"):
                continue
        named.append((name, entry.span))
    return _unique(document, named, "gpus.environment", 0.99)


def _unique(
    document: Document, named: Iterable[tuple[str, Span]], rule: str, confidence: float
) -> tuple[Evidence, ...]:
    first: dict[str, Span] = {}
    for name, span in named:
        first.setdefault(name, span)
    return tuple(
        cite(document, "gpus", name, span, rule, confidence) for name, span in list(first.items())[:MAX_GPUS]
    )


def _cpu(document: Document, environment: Environment) -> Evidence | None:
    """Whether it runs on a CPU alone: the build says so, the log does, or the title."""
    torch = environment.entries.get("PyTorch version")
    if torch is not None and "+cpu" in torch.value:
        return cite(document, "gpus", "CPU", torch.span, "gpus.cpu_build", 0.9)
    for source, offset, text in windows(document):
        for words in _CPU_LOG:
            at = text.find(words)
            if at >= 0 and not environment.gpus and not any(other in text for other in _NOT_CPU):
                span = (source, offset + at, offset + at + len(words))
                return cite(document, "gpus", "CPU", span, "gpus.cpu_log", 0.9)
    if not environment.gpus and (match := _CPU_TITLE.search(document.sources["title"])):
        return cite(document, "gpus", "CPU", ("title", match.start(), match.end()), "gpus.cpu_title", 0.8)
    return None


def _smi_rows(document: Document) -> Iterator[tuple[str, str, Span]]:
    """Rows of `nvidia-smi` and `nvidia-smi -L`: index, name, span."""
    for source, offset, text in windows(document):
        for rule, mark in ((_SMI_ROW, "NVIDIA-SMI"), (_SMI_LIST, "(UUID")):
            if mark not in text:
                continue
            for match in rule.finditer(text):
                if name := canonical_name(match.group(2)):
                    start, end = match.span(2)
                    yield match.group(1), name, (source, offset + start, offset + end)


_Count = tuple[int, Span, str]


def _listed(document: Document, environment: Environment) -> _Count | None:
    """GPUs in the dump, in its topology table (ROCm's dump names one for all), or in `nvidia-smi`."""
    if environment.is_indexed and environment.gpus:
        return len(environment.gpus), environment.gpus[-1].span, "gpu_count.environment"
    if environment.has_dump:
        for source, offset, text in windows(document):
            at = text.find("GPU Topology")
            if at >= 0:
                region = text[at : at + 3_000]
                marks = [(int(m.group(1)), m.span()) for m in _TOPOLOGY_WORD.finditer(region)]
                if marks:
                    last, (start, end) = max(marks)
                    return last + 1, (source, offset + at + start, offset + at + end), "gpu_count.topology"
    rows = {index: span for index, _, span in _smi_rows(document)}
    if rows:
        return len(rows), list(rows.values())[-1], "gpu_count.nvidia_smi"
    return None


def _counted_mention(document: Document) -> _Count | None:
    """Counts such as "8xH100" and its like: the largest count beside a name, the title first."""
    mentions = _mentions(document)
    for chosen in (mentions.title, mentions.prose, mentions.comments):
        counted = [(m.count, span) for m, span in chosen if m.count]
        if counted:
            count, span = max(counted, key=lambda item: item[0])
            return count, span, "gpu_count.named"
        for _, span in chosen:
            text = document.sources[span[0]]
            match = _PER_NODE.search(text[span[2] : span[2] + 24])
            if match and not (match.group(2) and _MANY_NODES.search(text)):
                place = (span[0], span[1], span[2] + match.end())
                return int(match.group(1)), place, "gpu_count.named"
    return None


def _counted_words(document: Document, settings: Sequence[Setting]) -> _Count | None:
    """Counts such as "4 GPUs", "single GPU" in the author's words; not one if the run asked for more."""
    is_parallel = any(s.name == "tensor-parallel-size" and s.value not in ("", "1") for s in settings)
    for block in document.of_kind("prose", "heading"):
        if "gpu" not in block.text.lower():
            continue
        for match in _GPU_WORDS.finditer(block.text):
            word = match.group(1).lower()
            count = COUNT_WORDS.get(word) or int(word)
            if (1 if is_parallel else 0) < count <= 1024 and not _per_node(block.text, match.end()):
                span = (block.source, block.start + match.start(), block.start + match.end())
                return count, span, "gpu_count.stated"
    return None


def _per_node(text: str, end: int) -> bool:
    return text[end : end + 12].lower().lstrip().startswith(("per node", "/node", "per worker"))


def _ranks(document: Document, environment: Environment, settings: Sequence[Setting]) -> _Count | None:
    """The ranks of one machine's run, where ROCm's dump names its GPUs but does not count them."""
    if not environment.gpus or environment.is_indexed:
        return None
    for setting in settings:
        if setting.name == "tensor-parallel-size" and setting.value.isdigit() and int(setting.value) > 1:
            last = int(setting.value) - 1
            marks = (f"rank={last} ", f"ranks=[{', '.join(map(str, range(last + 1)))}]")
            if last < 64 and any(mark in text for _, _, text in windows(document) for mark in marks):
                return int(setting.value), setting.span, "gpu_count.ranks"
    return None


def _spoken_parallel(document: Document) -> _Count | None:
    """Sizes such as "at TP 4", "DP 8, TP 1" in the author's words: as many GPUs as the sizes multiply to."""
    for source in ("title", "body"):
        sizes: dict[str, tuple[int, Span]] = {}
        for match in _PARALLEL.finditer(document.sources[source][:4_000]):
            span = (source, match.start(), match.end())
            sizes.setdefault(match.group(1), (int(match.group(2)), span))
        total = 1
        for size, _ in sizes.values():
            total *= size
        if total > 1:
            return total, max(sizes.values())[1], "gpu_count.parallel"
    return None


def _visible(settings: Sequence[Setting]) -> _Count | None:
    """Device lists given to the run: CUDA_VISIBLE_DEVICES, docker's `--gpus device=0,1`."""
    for setting in settings:
        if setting.name.endswith("_VISIBLE_DEVICES") or setting.name == "gpus":
            ids = setting.value.removeprefix("device=").split(",")
            if all(item.isdigit() for item in ids) and ("device=" in setting.value or setting.name != "gpus"):
                return len(ids), setting.span, "gpu_count.visible"
    return None
