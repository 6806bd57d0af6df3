"""Which backends are in use when it fails.

In: a `Document`, its settings and its `Environment`. Out: evidence of `backends.<key>` for the keys of
`facts.BACKEND_KEYS`; a key may have several values.

For each key the sources are asked in an order of trust and the first that answers is taken: what vLLM
logged, what somebody set, what the traceback runs through, the title, the author's words. If the title
names one of several values in use, it is that one which fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.extract.commands import Setting
from app.extract.document import Document
from app.extract.environment import Environment, Span
from app.extract.evidence import cite
from app.extract.facts import BACKEND_KEYS, Evidence
from app.extract.gpus import find_gpus
from app.extract.lists import load
from app.extract.models import find_models
from app.extract.patterns import pattern
from app.extract.rules import Rule, load_rules
from app.extract.sections import Places, windows

MAX_VALUES = 4
MAX_HITS = 40
"""A log repeats its lines; the first hits of a rule tell all it has to tell."""

ORDER: dict[str, tuple[str, ...]] = {
    "attention": ("log", "setting", "path", "title", "prose"),
    "moe": ("title", "log", "setting", "prose"),
    "all2all": ("log", "setting", "title", "prose"),
    "quantization": ("setting", "log", "name", "title", "prose"),
    "kv_cache_dtype": ("setting", "title", "prose"),
    "executor": ("setting", "log", "path"),
    "structured_output": ("setting", "path", "title", "prose"),
    "speculative": ("setting", "title", "prose"),
    "lora": ("setting", "title"),
    "engine": ("log", "variable", "title", "path", "prose"),
    "platform": ("build", "log", "title", "gpu", "text"),
}
"""The order of trust for each key."""

_CONFIDENCE = {"log": 0.97, "setting": 0.95, "variable": 0.95, "build": 0.95, "gpu": 0.9, "path": 0.9,
               "title": 0.8, "name": 0.75, "prose": 0.7, "text": 0.7}  # fmt: skip

_LIST = load("backends")
_SETTINGS: dict[str, str] = _LIST["settings"]
_FROM_DUMP = frozenset(_LIST["from_dump"]["keys"])
_METHODS = frozenset(_LIST["methods"]["values"])
_UNSET = frozenset(_LIST["unset"]["values"])
_PLATFORM_OF: dict[str, list[str]] = _LIST["platform_of"]
_DEVICES = ("neuron", "tpu", "xpu", "hpu")
_METHOD = pattern(r"[\"']?method[\"']?\s*[:=]\s*[\"']?([\w\-]+)")
_IN_NAME = pattern(_LIST["in_model_name"]["pattern"], ignore_case=True)
_VALUE_NOISE = str.maketrans("", "", " _-.'\"`")


@dataclass(frozen=True, slots=True)
class _Hit:
    key: str
    where: str
    value: str
    span: Span
    rule: str


def find_backends(
    document: Document, settings: Sequence[Setting], environment: Environment
) -> tuple[Evidence, ...]:
    """Evidence of all `backends.<key>`, in the order of the keys."""
    hits: dict[str, dict[str, list[_Hit]]] = {key: {} for key in BACKEND_KEYS}
    for hit in _all_hits(document, settings, environment):
        hits[hit.key].setdefault(hit.where, []).append(hit)
    found: list[Evidence] = []
    for key in BACKEND_KEYS:
        found.extend(
            cite(document, f"backends.{key}", hit.value, hit.span, hit.rule, _CONFIDENCE[hit.where])
            for hit in _choose(key, hits[key])
        )
    return tuple(found)


def _choose(key: str, by_place: dict[str, list[_Hit]]) -> list[_Hit]:
    """The values of one key: of the most trusted place, narrowed by the title."""
    for where in ORDER[key]:
        first: dict[str, _Hit] = {}
        for hit in by_place.get(where, ()):
            first.setdefault(_fold(hit.value), hit)
        if not first:
            continue
        if key == "engine" and len(first) > 1:
            return [first["v1"]]
        titled = {_fold(hit.value) for hit in by_place.get("title", ())}
        if len(first) > 1 and titled & first.keys():
            return [hit for name, hit in first.items() if name in titled]
        if key == "quantization" and set(first) == {"compressedtensors"}:
            extra = [*by_place.get("title", ()), *by_place.get("name", ())]
            first |= {_fold(hit.value): hit for hit in extra if _fold(hit.value) not in first}
        limit = 1 if key in ("engine", "platform", "executor", "lora") else MAX_VALUES
        return list(first.values())[:limit]
    return []


def _all_hits(document: Document, settings: Sequence[Setting], environment: Environment) -> Iterator[_Hit]:
    yield from _set(settings)
    yield from _speculative(settings)
    yield from _named_quantization(document, settings)
    yield from _matched(document)
    yield from _platforms(document, settings, environment)


def _set(settings: Sequence[Setting]) -> Iterator[_Hit]:
    for setting in settings:
        name, value = setting.name, setting.value
        if name == "VLLM_USE_V1" and value in ("0", "1"):
            yield _Hit("engine", "variable", f"V{value}", setting.span, "engine.variable")
        elif name in ("enable-lora", "lora-modules"):
            if setting.is_chosen and value.lower() != "false":
                yield _Hit("lora", "setting", "true", setting.span, "lora.setting")
        elif name == "worker-use-ray" and (value == "True" or setting.origin == "command"):
            yield _Hit("executor", "setting", "ray", setting.span, "executor.worker_use_ray")
        elif (key := _SETTINGS.get(name)) and (setting.is_chosen or key in _FROM_DUMP):
            named = None if value.lower() in _UNSET else canonical_value(key, value)
            if named is not None:
                yield _Hit(key, "setting", named, setting.span, f"{key}.setting")


def _named_quantization(document: Document, settings: Sequence[Setting]) -> Iterator[_Hit]:
    """The format a model's name ends in: `…-AWQ`, `…-FP8-Dynamic`."""
    for model in find_models(document, settings):
        for match in _IN_NAME.finditer(model.quote):
            start = model.start + match.start(1)
            span = (model.source, start, start + len(match.group(1)))
            yield _Hit("quantization", "name", match.group(1), span, "quantization.model_name")


def _speculative(settings: Sequence[Setting]) -> Iterator[_Hit]:
    """The method of speculative decoding: in its configuration, or implied by a draft model."""
    for setting in settings:
        if setting.name == "speculative-config" and setting.is_chosen:
            source, start, _ = setting.span
            if match := _METHOD.search(setting.value):
                span = (source, start + match.start(1), start + match.end(1))
                yield _Hit("speculative", "setting", match.group(1), span, "speculative.setting")
        elif setting.name == "method" and setting.is_chosen and setting.value in _METHODS:
            yield _Hit("speculative", "setting", setting.value, setting.span, "speculative.setting")
        elif setting.name == "speculative-model" and setting.is_chosen and setting.value:
            value = "ngram" if "ngram" in setting.value else "draft_model"
            yield _Hit("speculative", "setting", value, setting.span, "speculative.model")


def canonical_value(key: str, value: str) -> str | None:
    """A value's canonical form; None where the key has a list of names and this is none of them."""
    names: dict[str, str] | None = _names().get(key)
    bare = value.strip(" '\"`.,")
    if names is None:
        return bare if bare and len(bare) <= 40 and " " not in bare.strip() else (bare[:40] or None)
    return names.get(_fold(bare))


def _fold(value: str) -> str:
    return value.lower().translate(_VALUE_NOISE)


@lru_cache(maxsize=1)
def _names() -> dict[str, dict[str, str]]:
    """Key -> folded spelling -> canonical value."""
    table: dict[str, dict[str, str]] = {}
    for key, rows in _LIST["names"].items():
        table[key] = {_fold(spelling): name for name, spellings in rows.items() for spelling in spellings}
        table[key] |= {_fold(name): name for name in rows}
    return table


def _matched(document: Document) -> Iterator[_Hit]:
    title = document.sources["title"]
    for rule in load_rules("backends"):
        if rule["where"] == "title" and any(word in title for word in rule["needs"]):
            yield from _hits_of(rule, "title", 0, title)
    places = Places(document)
    for source, offset, text in windows(document):
        for rule in load_rules("backends"):
            if rule["where"] != "title" and any(word in text for word in rule["needs"]):
                for hit in _hits_of(rule, source, offset, text):
                    if rule["where"] != "prose" or places.is_prose(source, hit.span[1]):
                        yield hit


def _hits_of(rule: Rule, source: str, offset: int, text: str) -> Iterator[_Hit]:
    """What a rule finds, each value once."""
    seen: set[str] = set()
    for count, match in enumerate(rule.pattern.finditer(text)):
        if count >= MAX_HITS:
            return
        start, end, words = _words(match)
        value = canonical_value(rule["key"], words if rule["value"] == "$1" else rule["value"])
        if value is None or value in seen or not words:
            continue
        seen.add(value)
        yield _Hit(rule["key"], rule["where"], value, (source, offset + start, offset + end), rule.id)


def _words(match: Any) -> tuple[int, int, str]:
    """The first group that took part, or the whole match."""
    for group in range(1, match.re.groups + 1):
        if match.group(group):
            return match.start(group), match.end(group), match.group(group)
    return match.start(), match.end(), match.group()


def _platforms(document: Document, settings: Sequence[Setting], environment: Environment) -> Iterator[_Hit]:
    """The platform from the device that was asked for, torch's build and the GPU's maker."""
    for setting in settings:
        if setting.name == "device" and setting.is_chosen and setting.value in _DEVICES:
            yield _Hit("platform", "build", setting.value, setting.span, "platform.device")
    torch = environment.entries.get("PyTorch version")
    for part, value in (("+cpu", "cpu"), ("+rocm", "rocm"), ("+xpu", "xpu")):
        if torch is not None and part in torch.value:
            yield _Hit("platform", "build", value, torch.span, "platform.torch_build")
    if rocm := environment.entries.get("ROCM used to build PyTorch"):
        yield _Hit("platform", "build", "rocm", rocm.span, "platform.rocm_build")
    for gpu in find_gpus(document, environment):
        value = next(
            (name for name, starts in _PLATFORM_OF.items() if gpu.value.startswith(tuple(starts))), "cuda"
        )
        if value:
            yield _Hit("platform", "gpu", value, (gpu.source, gpu.start, gpu.end), "platform.gpu")
    if torch is not None and "+cu" in torch.value:
        yield _Hit("platform", "gpu", "cuda", torch.span, "platform.torch_build")
