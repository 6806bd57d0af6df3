"""Number of accelerators in the machine, or given to the run.

In: a `Document`, its `Environment` and its settings. Out: evidence of `gpu_count`, or None if not stated:
neither a tensor-parallel setting nor a plural such as "A100 GPUs" gives a count.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from app.extract.evidence import cite
from app.extract.facts import Evidence
from app.extract.fields.environment import Environment
from app.extract.fields.failure_kind import is_feature_request
from app.extract.fields.gpu_names import COUNT_WORDS, MAX_COUNT
from app.extract.fields.gpus import cpu_only, is_owned, mentions_of, smi_rows
from app.extract.fields.settings import Setting
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import windows
from app.extract.text.document import Block, Document, Span

_LIST = load("gpus")
_CONFIDENCE: dict[str, float] = _LIST["count_confidence"]
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
_PART_BEFORE = pattern(r"(?:\d[.\-–]?|[._<;~]|\bMI )$", ignore_case=True)
"""Before a number that is part of a version, a range, a comparison or a GPU's name."""
_NO_COUNT = ("per node", "/node", "per worker", ":", "model", "card model", "card:")
"""After "GPU": the number counts other GPUs, or ends the line above a label."""
_TOPOLOGY_WORD = pattern(r"\bGPU(\d{1,2})\b")
_PER_NODE = pattern(r"^[^\n(]{0,6}\(?(\d{1,2}) ?(?:x|×|GPUs?)\b( per node|/node)?", ignore_case=True)
_MANY_NODES = pattern(r"\b(?:cross|multi|two|several|\d+)[- ]nodes?\b", ignore_case=True)
_PARALLEL = pattern(r"\b(TP|DP|PP) (\d{1,2})\b")

_Counted = tuple[int, Span, str]


def count_gpus(
    document: Document, environment: Environment, settings: Sequence[Setting] = ()
) -> Evidence | None:
    """Return evidence of `gpu_count` from the environment or the text; None if neither states it."""
    if cpu_only(document, environment):
        return None
    is_asked = is_feature_request(document)
    found: _Counted | None = (
        _from_environment(document, environment)
        or (None if is_asked else _counted_mention(document) or _counted_words(document, settings))
        or _visible_devices(settings)
        or (None if is_asked else _stated_parallel(document) or _single_gpu(document, settings))
    )
    if found is None or not 0 < found[0] <= MAX_COUNT:
        return None
    count, span, rule = found
    return cite(document, "gpu_count", str(count), span, f"gpu_count.{rule}", _CONFIDENCE[rule])


def _number(word: str) -> int:
    return COUNT_WORDS.get(word.lower()) or int(word)


def _from_environment(document: Document, environment: Environment) -> _Counted | None:
    """Count GPUs in the dump, its topology table (ROCm's dump lists one GPU for all) or `nvidia-smi`."""
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
    return (len(rows), list(rows.values())[-1], "nvidia_smi") if rows else None


def _counted_mention(document: Document) -> _Counted | None:
    """Return the largest count beside a GPU name, such as "8xH100"; the title is read first."""
    mentions = mentions_of(document)
    for place in ("title", "stated", "comment"):
        counted = [(m.count * _node_factor(document, m.span), m.span) for m in mentions[place] if m.count]
        if counted:
            return (*max(counted, key=lambda item: item[0]), "named")
        for source, start, end in (mention.span for mention in mentions[place]):
            text = document.sources[source]
            match = _PER_NODE.search(text[end : end + 24])
            if match and not (match.group(2) and _MANY_NODES.search(text)):
                return int(match.group(1)), (source, start, end + match.end()), "named"
    return None


def _node_factor(document: Document, span: Span) -> int:
    """Return the number of nodes a count is multiplied by: "two 8xH100 nodes", "2 nodes with 8xH100"."""
    source, start, end = span
    text = document.sources[source]
    line = text[max(0, start - 50) : start].rsplit("\n", 1)[-1].rstrip("0123456789xX×* ") + " "
    if (match := _NODES_BEFORE.search(line)) is None:
        return 1
    is_named = match.group().strip().lower() != match.group(1).lower()
    return _number(match.group(1)) if is_named or _NODES_AFTER.match(text[end : end + 12]) else 1


def _counted_words(document: Document, settings: Sequence[Setting]) -> _Counted | None:
    """Return counts such as "4 GPUs", "2 nodes with 8 GPUs"; a count of 1 is ignored in parallel runs."""
    least = 2 if _is_parallel(settings) else 1
    for block in document.of_kind("prose", "heading"):
        text = block.text
        if match := _NODES_TIMES.search(text):
            return _number(match.group(1)) * _number(match.group(2)), _span(block, match), "nodes"
        for match in _GPU_WORDS.finditer(text):
            after = text[match.end() : match.end() + 12].lower().lstrip()
            count = _number(match.group(1))
            is_part = bool(_PART_BEFORE.search(text[max(0, match.start() - 3) : match.start()]))
            if least <= count <= 1024 and not is_part and not after.startswith(_NO_COUNT):
                return count, _span(block, match), "stated"
    return None


def _span(block: Block, match: Any) -> Span:
    return block.source, block.start + match.start(), block.start + match.end()


def _is_parallel(settings: Sequence[Setting]) -> bool:
    return any(
        s.name in ("tensor-parallel-size", "pipeline-parallel-size") and s.value not in ("", "1")
        for s in settings
    )


def _stated_parallel(document: Document) -> _Counted | None:
    """Return the product of parallel sizes in the author's words: "at TP 4", "DP 8, TP 1"."""
    for source in ("title", "body"):
        sizes: dict[str, tuple[int, Span]] = {}
        for match in _PARALLEL.finditer(document.sources[source][:4_000]):
            sizes.setdefault(match.group(1), (int(match.group(2)), (source, *match.span())))
        total = prod(size for size, _ in sizes.values())
        if total > 1:
            return total, max(sizes.values())[1], "parallel"
    return None


def _visible_devices(settings: Sequence[Setting]) -> _Counted | None:
    """Count distinct devices in CUDA_VISIBLE_DEVICES and docker's `--gpus device=0,1`."""
    seen: dict[str, Span] = {}
    for setting in settings:
        if setting.name.endswith("_VISIBLE_DEVICES") or setting.name == "gpus":
            ids = setting.value.removeprefix("device=").split(",")
            is_list = setting.name != "gpus" or "device=" in setting.value
            if is_list and all(item.isdecimal() for item in ids):
                for item in ids:
                    seen.setdefault(item, setting.span)
    return (len(seen), list(seen.values())[-1], "visible") if seen else None


def _single_gpu(document: Document, settings: Sequence[Setting]) -> _Counted | None:
    """Return one GPU if the author names a single one, such as "on my RTX 3060"."""
    mentions = mentions_of(document)
    for place in ("title", "stated"):
        if len({mention.name for mention in mentions[place]}) != 1:
            continue
        spans = [mention.span for mention in mentions[place]]
        if _is_parallel(settings) or any(_is_plural(document, s) for s in spans):
            return None
        if owned := next((span for span in spans if is_owned(document, span)), None):
            return 1, owned, "lone"
    return None


def _is_plural(document: Document, span: Span) -> bool:
    """True if the name is plural: "A100s", "A100 GPUs", "GB200 NVL72"."""
    source, start, end = span
    words, after = document.sources[source][start:end].lower(), document.sources[source][end : end + 12]
    return words.endswith(("gpus", "nvl72", "nvl36")) or bool(_PLURAL.match(after))
