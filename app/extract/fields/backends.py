"""Backends in use when the failure occurs.

In: a `Document`, its settings and its `Environment`. Out: evidence of `backends.<key>` for the keys of
`facts.BACKEND_KEYS`; a key may have several values.

Each key ranks its sources by trust (`ORDER`), and the first source with a value wins: vLLM's log, settings,
files in the traceback, the title, the author's prose. If several values are in use and the title names
some of them, only those are kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from app.extract.evidence import FoundValue, cite
from app.extract.facts import BACKEND_KEYS, Evidence
from app.extract.fields.environment import Environment
from app.extract.fields.failure_kind import is_feature_request
from app.extract.fields.gpus import find_gpus
from app.extract.fields.models import find_models
from app.extract.fields.settings import Setting
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set
from app.extract.text.blocks import Places, windows
from app.extract.text.claims import claimed_to_work
from app.extract.text.document import Document, Span

MAX_VALUES = 4

_IGNORED_IN_REQUESTS = frozenset(["path", "text", "prose"])
"""Sources that are ignored in feature requests, where they describe what is wanted."""

_RELIABLE_IN_TITLES = frozenset(["engine", "platform"])
"""Keys that even the title of a feature request states reliably; other keys it only asks for."""

MAX_HITS = 40
"""Hits read per rule and text; logs repeat their lines, so later hits add nothing."""

ORDER: dict[str, tuple[str, ...]] = {
    "attention": ("log", "setting", "path", "title", "prose"),
    "moe": ("title", "log", "setting", "prose"),
    "all2all": ("log", "setting", "title", "prose"),
    "quantization": ("setting", "log", "path", "name", "title", "prose"),
    "kv_cache_dtype": ("setting", "title", "prose"),
    "executor": ("setting", "log", "path", "title", "prose"),
    "structured_output": ("log", "setting", "path", "title", "prose"),
    "speculative": ("setting", "title", "prose"),
    "lora": ("setting", "title"),
    "engine": ("log", "title", "path", "variable", "prose"),
    "platform": ("build", "log", "title", "gpu", "text", "title_cuda"),
}
"""Sources of each key, most trusted first."""

_LIST = load("backends")
_SETTINGS: dict[str, str] = _LIST["settings"]
_FROM_DUMP = frozenset(_LIST["from_dump"]["keys"])
_METHODS = frozenset(_LIST["methods"]["values"])
_UNSET = frozenset(_LIST["unset"]["values"])
_PLATFORM_OF: dict[str, list[str]] = _LIST["platform_of"]
_CONFIDENCE: dict[str, float] = _LIST["confidence"]
_KNOWN: dict[str, frozenset[str]] = {key: frozenset(words) for key, words in _LIST["known"].items()}
_NEGATION_BEFORE = pattern(_LIST["denied"]["before"], ignore_case=True)
_IN_NAME = pattern(_LIST["in_model_name"]["pattern"], ignore_case=True)
_VALUE_NOISE = str.maketrans("", "", " _-.'\"`")


_Hit = tuple[str, str, FoundValue]
"""Key, source (as in `ORDER`), and the value found."""


def find_backends(
    document: Document, settings: Sequence[Setting], environment: Environment
) -> tuple[Evidence, ...]:
    """Return evidence of all `backends.<key>`, in the order of `BACKEND_KEYS`."""
    found: dict[str, dict[str, list[FoundValue]]] = {key: {} for key in BACKEND_KEYS}
    for key, where, item in chain(
        _from_settings(document, settings),
        _speculative_methods(settings),
        _from_model_names(document, settings),
        _platforms(document, environment),
        _in_texts(document),
    ):
        found[key].setdefault(where, []).append(item)
    return tuple(
        cite(document, f"backends.{key}", item.value, item.span, item.rule, _confidence(key, where))
        for key in BACKEND_KEYS
        for where, item in _choose(key, found[key], is_feature_request=is_feature_request(document))
    )


def _confidence(key: str, where: str) -> float:
    return _CONFIDENCE.get(f"{key}.{where}", _CONFIDENCE[where])


def _choose(
    key: str, found: Mapping[str, list[FoundValue]], *, is_feature_request: bool
) -> list[tuple[str, FoundValue]]:
    """Return the values from a key's most trusted source, each with its source, narrowed by the title."""
    only_mentioned = _IGNORED_IN_REQUESTS if key in _RELIABLE_IN_TITLES else _IGNORED_IN_REQUESTS | {"title"}
    places = [place for place in ORDER[key] if not (is_feature_request and place in only_mentioned)]
    where = next((place for place in places if found.get(place)), None)
    if where is None:
        return []
    first, titled = _first_by_name(found, where), _first_by_name(found, "title")
    if key == "engine" and len(first) > 1:
        return [first["v1"]]
    if where != "title" and len(first) > 1 and titled.keys() & first.keys():
        return [item for name, item in first.items() if name in titled]
    if key == "quantization" and set(first) == {"compressedtensors"}:
        first = {**first, **titled, **_first_by_name(found, "name"), **first}
    limit = 1 if key in ("engine", "platform", "executor", "lora") else MAX_VALUES
    return list(first.values())[:limit]


def _first_by_name(found: Mapping[str, list[FoundValue]], where: str) -> dict[str, tuple[str, FoundValue]]:
    first: dict[str, tuple[str, FoundValue]] = {}
    for item in found.get(where, ()):
        first.setdefault(_fold(item.value), (where, item))
    return first


def _from_settings(document: Document, settings: Sequence[Setting]) -> Iterator[_Hit]:
    places = Places(document)
    for setting in settings:
        name, value = setting.name, setting.value
        if name in _SETTINGS and setting.is_chosen and claimed_to_work(document, places, setting.span):
            continue
        if name == "VLLM_USE_V1" and value in ("0", "1"):
            yield "engine", "variable", FoundValue(f"V{value}", setting.span, "engine.variable")
        elif name in ("enable-lora", "lora-modules"):
            if setting.is_chosen and value.lower() != "false":
                yield "lora", "setting", FoundValue("true", setting.span, "lora.setting")
        elif (key := _SETTINGS.get(name)) and (setting.is_chosen or key in _FROM_DUMP):
            named = None if value.lower() in _UNSET else canonical_value(key, value)
            if named is not None and key in _KNOWN and _fold(named) not in _KNOWN[key]:
                continue
            if named is not None:
                yield key, "setting", FoundValue(named, setting.span, f"{key}.setting")


def _from_model_names(document: Document, settings: Sequence[Setting]) -> Iterator[_Hit]:
    """Yield quantization formats in model names: `…-AWQ`, `…-FP8-Dynamic`."""
    for model in find_models(document, settings):
        for match in _IN_NAME.finditer(model.quote):
            start = model.start + match.start(1)
            span = (model.source, start, start + len(match.group(1)))
            yield "quantization", "name", FoundValue(match.group(1), span, "quantization.model_name")


def _speculative_methods(settings: Sequence[Setting]) -> Iterator[_Hit]:
    """Yield the speculative decoding method: as configured, or implied by a draft model."""
    for setting in settings:
        if setting.name == "method" and setting.is_chosen and setting.value in _METHODS:
            yield "speculative", "setting", FoundValue(setting.value, setting.span, "speculative.setting")
        elif setting.name == "speculative-model" and setting.is_chosen and setting.value:
            named = (method for method in ("ngram", "medusa") if method in setting.value.lower())
            value = next(named, "draft_model")
            yield "speculative", "setting", FoundValue(value, setting.span, "speculative.model")


def canonical_value(key: str, value: str) -> str | None:
    """Return a value's canonical form; None if the key has a list of names without this one."""
    names: dict[str, str] | None = _names().get(key)
    bare = value.strip(" '\"`.,")
    if names is None:
        return bare if bare and len(bare) <= 40 and " " not in bare.strip() else (bare[:40] or None)
    return names.get(_fold(bare)) or names.get(_fold(bare.partition(":")[0]))


def known_value(key: str, value: str) -> str | None:
    """Return a value's canonical form; None if no list has it or the key has no list."""
    named = canonical_value(key, value)
    if named is None or (key not in _names() and _fold(named) not in _KNOWN.get(key, ())):
        return None
    return named


def _fold(value: str) -> str:
    return value.lower().translate(_VALUE_NOISE)


@lru_cache(maxsize=1)
def _names() -> dict[str, dict[str, str]]:
    """Return a table: key -> folded spelling -> canonical value."""
    table: dict[str, dict[str, str]] = {}
    for key, rows in _LIST["names"].items():
        table[key] = {_fold(spelling): name for name, spellings in rows.items() for spelling in spellings}
        table[key] |= {_fold(name): name for name in rows}
    return table


def _in_texts(document: Document) -> Iterator[_Hit]:
    """Yield the values that the rules find in a document's title and texts."""
    places = Places(document)
    texts = [("title", 0, document.sources["title"]), *windows(document)]
    rules = load_rule_set("backends")
    met = [{rule.id for rule in rules.meeting(text)} for _, _, text in texts]
    for rule in rules.rules:
        for (source, offset, text), ids in zip(texts, met, strict=True):
            if rule.id not in ids or rule["where"].startswith("title") != (source == "title"):
                continue
            for item in _rule_hits(rule, source, offset, text):
                if rule["where"] != "prose" or _is_in_use(document, places, item.span):
                    yield rule["key"], rule["where"], item


def _is_in_use(document: Document, places: Places, span: Span) -> bool:
    return places.is_prose(span[0], span[1]) and not claimed_to_work(document, places, span)


def _rule_hits(rule: Rule, source: str, offset: int, text: str) -> Iterator[FoundValue]:
    seen: set[str] = set()
    is_stated = rule["where"] in ("title", "title_cuda", "prose")
    for match in islice(rule.pattern.finditer(text), MAX_HITS):
        start, end, words = _matched_text(match)
        value = canonical_value(rule["key"], words if rule["value"] == "$1" else rule["value"])
        if value is None or value in seen or not words:
            continue
        if is_stated and any(
            _NEGATION_BEFORE.search(text[max(0, at - 30) : at]) for at in {start, match.start()}
        ):
            continue
        seen.add(value)
        yield FoundValue(value, (source, offset + start, offset + end), rule.id)
        if rule["value"] != "$1":
            return


def _matched_text(match: Any) -> tuple[int, int, str]:
    """Return start, end and text of the first non-empty group, or of the whole match."""
    for group in range(1, match.re.groups + 1):
        if words := match.group(group):
            return *match.span(group), words
    return *match.span(), match.group()


def _platforms(document: Document, environment: Environment) -> Iterator[_Hit]:
    """Yield platforms implied by torch's build and the GPU's vendor."""
    torch = environment.entries.get("PyTorch version")
    gpus = find_gpus(document, environment)
    is_hosted = bool(gpus) and gpus[0].value != "CPU"
    for part, value in (("+cpu", "cpu"), ("+rocm", "rocm"), ("+xpu", "xpu")):
        if torch is not None and part in torch.value and not (is_hosted and value == "cpu"):
            yield "platform", "build", FoundValue(value, torch.span, "platform.torch_build")
    rocm = environment.entries.get("ROCM used to build PyTorch")
    if rocm is not None and rocm.value[:1].isdigit():  # not "N/A", which more may follow
        yield "platform", "build", FoundValue("rocm", rocm.span, "platform.rocm_build")
    for gpu in gpus:
        value = next(
            (name for name, starts in _PLATFORM_OF.items() if gpu.value.startswith(tuple(starts))), "cuda"
        )
        if value:
            yield "platform", "gpu", FoundValue(value, (gpu.source, gpu.start, gpu.end), "platform.gpu")
