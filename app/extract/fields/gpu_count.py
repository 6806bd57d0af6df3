"""How many accelerators the machine has, or the run was given.

In: a `Document`, its `Environment` and its settings. Out: evidence of `gpu_count`, or None if nobody says:
a tensor-parallel size alone counts no GPUs, and "A100 GPUs" is a number nobody gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.extract.evidence import cite
from app.extract.facts import Evidence
from app.extract.fields.environment import Environment
from app.extract.fields.failure_kind import is_wish
from app.extract.fields.gpu_mentions import Named, cpu_only, is_owned, mentions_of, smi_rows
from app.extract.fields.gpu_names import COUNT_WORDS
from app.extract.fields.settings import Setting
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import windows
from app.extract.text.document import Document, Span

MAX_COUNT = 4_096

_LIST = load("gpus")
_CONFIDENCE: dict[str, float] = _LIST["count_confidence"]
_LONE = frozenset(_LIST["lone"]["names"])
_PODS: tuple[str, ...] = tuple(_LIST["lone"]["pods"])
_NUMBER = r"\d{1,3}|single|one|two|dual|three|four|eight"
_NODES = r"(?:nodes?|machines?|servers?|hosts?)"
_GPU_WORDS = pattern(
    rf"\b({_NUMBER})[ \-]?(?:x |[x×*] ?)?(?:(?:NVIDIA|AMD|same|local|identical|\d{{2,3}} ?GB) )?GPUs?\b",
    ignore_case=True,
)
_NODES_TIMES = pattern(
    rf"\b({_NUMBER}) {_NODES}[ ,(/:]*(?:(?:with|of|and|each|having|x|×|\*)[ ,]?)*({_NUMBER})[ x×*]*"
    r"(?:(?:NVIDIA|AMD|local) )?(?:GPUs?|chips?|cards?)\b",
    ignore_case=True,
)
_NODES_BEFORE = pattern(
    rf"\b({_NUMBER}) (?:{_NODES}[ ,(/:]*(?:(?:with|of|and|each|having|x|×|\*)[ ,]?)*)?$", ignore_case=True
)
_NODES_AFTER = pattern(rf"^ ?{_NODES}\b", ignore_case=True)
_PLURAL = pattern(
    r"^(?:['’]?s\b| ?(?:GPUs|cards|nodes|cluster|machines|servers|instances|[x×*/&])|-?\d)", ignore_case=True
)
_COUNT_LINE = pattern(
    r"\b(?:GPU (?:count|number|num)|number of GPUs|num GPUs)[*_`]* ?[:=：] ?[*_`]*(\d{1,3})\b",
    ignore_case=True,
)
_TOPOLOGY_WORD = pattern(r"\bGPU(\d{1,2})\b")
_PER_NODE = pattern(r"^[^\n(]{0,6}\(?(\d{1,2}) ?(?:x|×|GPUs?)\b( per node|/node)?", ignore_case=True)
_MANY_NODES = pattern(r"\b(?:cross|multi|two|several|\d+)[- ]nodes?\b", ignore_case=True)
_PARALLEL = pattern(r"\b(TP|DP|PP) (\d{1,2})\b")
_WORLD = pattern(r"\brank \d+ in world size (\d{1,4})\b|\bworld_size=(\d{1,4}) rank=\d")
_SPANNING = (", ip=", "spans across nodes")
"""What a log prints of a run that spans several machines."""
_NODE_FLAG = pattern(r"(?:^|\s)--n?nodes[= ](\d{1,3})\b")
_RAY_STATUS = pattern(
    r"\b\d+\.\d+/(\d+)\.0 (?:GPU|TPU)\b|\b(?:nvidia|amd|google)\.com/(?:gpu|tpu)[\"']?: ?[\"']?(\d{1,3})\b"
)

_Count = tuple[int, Span, str]


def count_gpus(
    document: Document, environment: Environment, settings: Sequence[Setting] = ()
) -> Evidence | None:
    """Evidence of field `gpu_count`: GPUs the environment lists, or the author states; None if neither."""
    if cpu_only(document, environment):
        return None
    is_asked = is_wish(document)
    found: _Count | None = (
        _across_nodes(document, _listed(document, environment))
        or (None if is_asked else _counted_mention(document) or _counted_words(document, settings))
        or _ray_status(document)
        or _visible(settings)
        or _ranks(document, environment, settings)
        or (None if is_asked else _spoken_parallel(document) or _lone(document, settings))
    )
    if found is None or not 0 < found[0] <= MAX_COUNT:
        return None
    count, span, rule = found
    return cite(document, "gpu_count", str(count), span, f"gpu_count.{rule}", _CONFIDENCE[rule])


def _number(word: str) -> int:
    return COUNT_WORDS.get(word.lower()) or int(word)


def _listed(document: Document, environment: Environment) -> _Count | None:
    """GPUs in the dump, in its topology table (ROCm's dump names one for all), or in `nvidia-smi`."""
    if environment.is_indexed and environment.gpus:
        return len(environment.gpus), environment.gpus[-1].span, "environment"
    if environment.has_dump:
        for source, offset, text in windows(document):
            at = text.find("GPU Topology")
            if at >= 0:
                region = text[at : at + 3_000]
                marks = [(int(m.group(1)), m.span()) for m in _TOPOLOGY_WORD.finditer(region)]
                if marks:
                    last, (start, end) = max(marks)
                    return last + 1, (source, offset + at + start, offset + at + end), "topology"
    rows = {index: span for index, _, span in smi_rows(document)}
    if rows:
        return len(rows), list(rows.values())[-1], "nvidia_smi"
    return None


def _across_nodes(document: Document, listed: _Count | None) -> _Count | None:
    """What is listed; more where the run spans several machines: its ranks, or `--nodes`."""
    ranks = _largest(document, _WORLD, "world")
    if listed is None:
        is_spanning = any(mark in text for _, _, text in windows(document) for mark in _SPANNING)
        return (*ranks, "world") if ranks is not None and is_spanning and ranks[0] > 1 else None
    if ranks is not None and ranks[0] > listed[0]:
        return (*ranks, "world")
    nodes = _largest(document, _NODE_FLAG, "nodes")
    return (listed[0] * nodes[0], nodes[1], "nodes") if nodes is not None and nodes[0] > 1 else listed


def _largest(document: Document, rule: Any, *marks: str) -> tuple[int, Span] | None:
    """The largest number that a rule finds, and where; one of the marks is in every text it hits."""
    best: tuple[int, Span] | None = None
    for source, offset, text in windows(document):
        if not any(mark in text for mark in marks):
            continue
        for match in rule.finditer(text):
            size = int(next(group for group in match.groups() if group))
            if best is None or size > best[0]:
                best = size, (source, offset + match.start(), offset + match.end())
    return best


def _counted_mention(document: Document) -> _Count | None:
    """Counts such as "8xH100" and its like: the largest count beside a name, the title first."""
    mentions = mentions_of(document)
    for chosen in (mentions.title, mentions.prose, mentions.code, mentions.comments):
        counted = [(m.count * _nodes_around(document, span), span) for m, span in chosen if m.count]
        if counted:
            count, span = max(counted, key=lambda item: item[0])
            return count, span, "named"
        for _, span in chosen:
            text = document.sources[span[0]]
            match = _PER_NODE.search(text[span[2] : span[2] + 24])
            if match and not (match.group(2) and _MANY_NODES.search(text)):
                place = (span[0], span[1], span[2] + match.end())
                return int(match.group(1)), place, "named"
    return None


def _nodes_around(document: Document, span: Span) -> int:
    """The number of machines that have so many each: "two 8xH100 nodes", "2 nodes with 8xH100"."""
    source, start, end = span
    text = document.sources[source]
    line = text[max(0, start - 50) : start].rsplit("\n", 1)[-1].rstrip("0123456789xX×* ") + " "
    if (match := _NODES_BEFORE.search(line)) is None:
        return 1
    is_named = match.group().strip().lower() != match.group(1).lower()
    return _number(match.group(1)) if is_named or _NODES_AFTER.match(text[end : end + 12]) else 1


def _counted_words(document: Document, settings: Sequence[Setting]) -> _Count | None:
    """Counts such as "4 GPUs", "2 nodes with 8 GPUs"; no single GPU if the run asked for more."""
    is_parallel = _is_parallel(settings)
    for block in document.of_kind("prose", "heading"):
        if "gpu" not in (low := block.text.lower()) and "chip" not in low:
            continue
        if match := _COUNT_LINE.search(block.text):
            span = (block.source, block.start + match.start(), block.start + match.end())
            return int(match.group(1)), span, "stated"
        if match := _NODES_TIMES.search(block.text):
            span = (block.source, block.start + match.start(), block.start + match.end())
            return _number(match.group(1)) * _number(match.group(2)), span, "nodes"
        for match in _GPU_WORDS.finditer(block.text):
            count = _number(match.group(1))
            if (1 if is_parallel else 0) < count <= 1024 and not _per_node(block.text, match.end()):
                span = (block.source, block.start + match.start(), block.start + match.end())
                return count, span, "stated"
    return None


def _per_node(text: str, end: int) -> bool:
    return text[end : end + 12].lower().lstrip().startswith(("per node", "/node", "per worker"))


def _is_parallel(settings: Sequence[Setting]) -> bool:
    return any(
        s.name in ("tensor-parallel-size", "pipeline-parallel-size") and s.value not in ("", "1")
        for s in settings
    )


def _ray_status(document: Document) -> _Count | None:
    """What `ray status` says the cluster has, "0.0/16.0 GPU", or Kubernetes gives, "nvidia.com/gpu: 8"."""
    found = _largest(document, _RAY_STATUS, ".0 GPU", ".0 TPU", ".com/gpu", ".com/tpu")
    return (*found, "ray_status") if found is not None and 0 < found[0] <= MAX_COUNT else None


def _ranks(document: Document, environment: Environment, settings: Sequence[Setting]) -> _Count | None:
    """The ranks of one machine's run, where ROCm's dump names its GPUs but does not count them."""
    if not environment.gpus or environment.is_indexed:
        return None
    for setting in settings:
        if setting.name == "tensor-parallel-size" and setting.value.isdecimal() and int(setting.value) > 1:
            last = int(setting.value) - 1
            marks = (f"rank={last} ", f"ranks=[{', '.join(map(str, range(last + 1)))}]") if last < 64 else ()
            if any(mark in text for _, _, text in windows(document) for mark in marks):
                return int(setting.value), setting.span, "ranks"
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
            return total, max(sizes.values())[1], "parallel"
    return None


def _visible(settings: Sequence[Setting]) -> _Count | None:
    """Devices given to the runs: CUDA_VISIBLE_DEVICES, docker's `--gpus device=0,1`; each once."""
    seen: dict[str, Span] = {}
    for setting in settings:
        if setting.name.endswith("_VISIBLE_DEVICES") or setting.name == "gpus":
            ids = setting.value.removeprefix("device=").split(",")
            is_list = setting.name != "gpus" or "device=" in setting.value
            if is_list and all(item.isdecimal() for item in ids):
                for item in ids:
                    seen.setdefault(item, setting.span)
    return (len(seen), list(seen.values())[-1], "visible") if seen else None


def _lone(document: Document, settings: Sequence[Setting]) -> _Count | None:
    """One GPU where the author speaks of one: "on my RTX 3060", "an A100 GPU"; or a board that has one."""
    mentions = mentions_of(document)
    for chosen in (mentions.title, mentions.prose):
        if len({mention.name for mention, _ in chosen}) != 1:
            continue
        name, span = chosen[0][0].name, chosen[0][1]
        if name in _LONE:
            return 1, span, "lone_board"
        if _is_parallel(settings) or name.startswith(_PODS):
            return None
        if any(_is_plural(document, place) for _, place in chosen):
            return None
        if spoken := _first_owned(document, chosen):
            return 1, spoken, "lone"
    return None


def _first_owned(document: Document, chosen: Sequence[Named]) -> Span | None:
    for mention, (source, start, end) in chosen:
        text = document.sources[source][max(0, start - 60) : start]
        here = type(mention)(mention.name, len(text), len(text), None, mention.is_branded)
        if is_owned(text, here):
            return source, start, end
    return None


def _is_plural(document: Document, span: Span) -> bool:
    """Whether a name is followed, or ends, as the name of several is: "A100s", "A100 GPUs", "GB200 NVL72"."""
    words = document.sources[span[0]][span[1] : span[2]].lower()
    after = document.sources[span[0]][span[2] : span[2] + 12]
    return words.endswith(("gpus", "nvl72", "nvl36")) or bool(_PLURAL.match(after))
