"""Accelerators on which the failure occurs.

In: a `Document` and its `Environment`. Out: evidence of field `gpus`, one per canonical name.

Sources, most trusted first: the environment dump, the title, the author's prose, the log, comments. A source
is read only if those before it name no GPU, since texts also name GPUs on which it works or on which others
saw the failure. `gpu_count.py` counts them.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from app.extract.evidence import cite
from app.extract.facts import Evidence
from app.extract.fields.environment import Environment
from app.extract.fields.failure_kind import is_feature_request
from app.extract.fields.gpu_names import NO_ARCH, GpuMention, canonical_name, find_mentions
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import Places, windows
from app.extract.text.document import Document, Span

MAX_GPUS = 8

_LIST = load("gpus")
_CONFIDENCE: dict[str, float] = _LIST["confidence"]
_NAMELESS = frozenset(_LIST["nameless"]["names"])
_CPU_LOG: tuple[str, ...] = tuple(_LIST["cpu"]["log"])
_NOT_CPU: tuple[str, ...] = tuple(_LIST["cpu"]["unless"])
_HOSTED: tuple[str, ...] = tuple(_LIST["cpu"]["hosts"])
_CPU_TITLE = pattern(_LIST["cpu"]["title"], ignore_case=True)
_HOST_TITLE = pattern(_LIST["cpu"]["host_title"], ignore_case=True)
_ELSEWHERE = pattern(_LIST["elsewhere"]["before"], ignore_case=True)
_OWNED = pattern(_LIST["owned"]["before"], ignore_case=True)
_SMI_ROW = pattern(
    r"(?m)^\s*\|\s+(\d{1,2})\s+"
    r"((?:NVIDIA|Tesla|GeForce|Quadro|AMD|GRID|Graphics) ?[^|]{0,40}?)\s+(?:On|Off|N/A)\b"
)
_SMI_LIST = pattern(
    r"(?m)^\s*GPU (\d{1,2}): ((?:NVIDIA|Tesla|GeForce|AMD)[^(\r\n]{2,50}?)(?: ?\(UUID|[ \r]*$)"
)
_ORDER = ("title", "stated", "log", "comment")
"""Places of mentions, most trusted first."""


@lru_cache(maxsize=2)
def find_gpus(document: Document, environment: Environment) -> tuple[Evidence, ...]:
    """Return evidence of `gpus`, one per canonical name, in text order."""
    if cpu := cpu_only(document, environment):
        return _cite_unique(document, [("CPU", cpu[1])], cpu[0])
    if named := _cite_unique(document, _from_environment(environment), "environment"):
        return named
    if is_feature_request(document):
        return ()
    mentions = mentions_of(document)
    place = next((place for place in _ORDER if mentions[place]), _ORDER[0])
    return _cite_unique(document, ((mention.name, mention.span) for mention in mentions[place]), place)


def _from_environment(environment: Environment) -> Iterator[tuple[str, Span]]:
    for entry in environment.gpus:
        name = canonical_name(entry.value)
        if name is None:
            name = entry.value.split("(")[0].replace("NVIDIA ", "").replace("AMD ", "").strip()
            name = name.split(NO_ARCH)[0]
            if not name or name.lower() in _NAMELESS:
                continue
        yield name, entry.span


def _cite_unique(document: Document, named: Iterable[tuple[str, Span]], rule: str) -> tuple[Evidence, ...]:
    first: dict[str, Span] = {}
    for name, span in named:
        first.setdefault(name, span)
    return tuple(
        cite(document, "gpus", name, span, f"gpus.{rule}", _CONFIDENCE[rule])
        for name, span in list(first.items())[:MAX_GPUS]
    )


@lru_cache(maxsize=2)
def mentions_of(document: Document) -> Mapping[str, list[GpuMention]]:
    """Return the accelerators named in a document, by place, without those on which it does not fail.

    The places are `title`, `stated` (the author's words), `log` and `comment` (the first one).
    """
    found: dict[str, list[GpuMention]] = {place: [] for place in _ORDER}
    title = document.sources["title"]
    found["title"] = [m for m in find_mentions(title, "title") if not _is_other_machine(title, m)]
    places = Places(document)
    for source, offset, text in windows(document):
        for mention in find_mentions(text, source, offset):
            block = places.block_at(source, mention.span[1])
            is_code = block is not None and block.kind in ("code", "quote")
            if not mention.is_branded if is_code else _is_other_machine(document.sources[source], mention):
                continue
            place = "comment" if source != "body" else "log" if is_code else "stated"
            if place != "comment" or not found[place] or found[place][-1].span[0] == source:
                found[place].append(mention)
    return found


def _is_other_machine(text: str, mention: GpuMention) -> bool:
    """True if the words before say that the failure is not on this GPU."""
    start = mention.span[1]
    return bool(_ELSEWHERE.search(text[max(0, start - 60) : start]))


def is_owned(document: Document, span: Span) -> bool:
    """True if the words before refer to the machine in use ("on my", "using an")."""
    source, start, _ = span
    return bool(_OWNED.search(document.sources[source][max(0, start - 40) : start]))


@lru_cache(maxsize=2)
def cpu_only(document: Document, environment: Environment) -> tuple[str, Span] | None:
    """Return rule and span that show a CPU-only run (build, log or title); None if it is not one."""
    torch = environment.entries.get("PyTorch version")
    if torch is not None and "+cpu" in torch.value and not _uses_cpu_torch(document):
        return "cpu_build", torch.span
    if environment.gpus:
        return None
    for source, offset, text in windows(document):
        for words in _CPU_LOG:
            at = text.find(words)
            if at >= 0 and not any(other in text for other in _NOT_CPU):
                return "cpu_log", (source, offset + at, offset + at + len(words))
    match = _CPU_TITLE.search(document.sources["title"])
    return ("cpu_title", ("title", *match.span())) if match else None


def _uses_cpu_torch(document: Document) -> bool:
    """True if an accelerator is named that is used with a CPU build of torch, such as a TPU."""
    mentions = mentions_of(document)
    return bool(_HOST_TITLE.search(document.sources["title"])) or any(
        mention.name.startswith(_HOSTED)
        for place in ("title", "stated", "log")
        for mention in mentions[place]
    )


@lru_cache(maxsize=2)
def smi_rows(document: Document) -> tuple[tuple[str, str, Span], ...]:
    """Return the rows of `nvidia-smi` and `nvidia-smi -L`: index, canonical name, span of the name."""
    return tuple(
        (match.group(1), name, (source, offset + match.start(2), offset + match.end(2)))
        for source, offset, text in windows(document)
        for rule, mark in ((_SMI_ROW, "NVIDIA-SMI"), (_SMI_LIST, "GPU 0: "))
        if mark in text
        for match in rule.finditer(text)
        if (name := canonical_name(match.group(2)))
    )
