"""Compare the models of a report with a stack's: family, generation, variant, size, weights. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from app.extract.rules.patterns import pattern
from app.knowledge.stack.shapes import HARDWARE_KINDS, FailureCase, Sign
from app.knowledge.stack.stack import Stack
from app.match.search.agreement import families_named, lines_named, model_family, model_line

_VARIANT = re.compile(
    r"(?i)\b(VL|omni|coder|next|embedding|reranker|audio|math|vision|scout|maverick|distill|ocr|asr|flash|air|"
    r"speciale|terminus|1M|reasoning|multimodal|guard|linear|nano|lite|mini|super|ultra|thinking|nemo|text-only|korean|japanese|chinese|german|sft|dpo|abliterated|tiny|small|medium|large|base|E[24]B)\b|(?<=\d)(VL?|n)\b"
)
_GENERATION = re.compile(r"(?i)(?<![\d.])(\d{1,2}(?:\.\d{1,2})?)(?![\d.]|b\b|bit)")
_MONTH = re.compile(r"-(2[3-9](?:0[1-9]|1[0-2]))(?!\d)")
_SIZE = re.compile(r"(?i)\d+(?:\.\d+)?B\b")
_EXPERTS = re.compile(r"(?i)\bA\d+(?:\.\d)?B\b")
_DENSE = re.compile(r"(?i)\bdense\b")
_WEIGHTS = pattern(r"(?i)nvfp4|mxfp4|fp4|fp8|w\d+a\d+|awq|gptq|int[48]|gguf|bnb|exl\d|autoround")
_PART = re.compile(
    r"(?<=[A-Za-z\d])(?=(?:Next|VL|Omni|Coder|Moe|Tokenizer|Reasoning|Tool|Config|Processor|Model|For|Attention|MoE)(?![a-z]))"
)
"""In a title: boundary between a model name and a suffix such as Tokenizer."""
_GPT_OSS = re.compile(r"(?i)gpt[_ ]?oss|\bharmony\b")
_DEEPSEEK = re.compile(r"\bDS[- ]?([RV]\d)")
_POINT = re.compile(r"(?<=[a-z]\d)_+(?=\d)")
"""A point in a generation, as model types and ModelScope's folders write it: `qwen3_5`, `Qwen2___5`."""


def model_signs(
    stack: Stack, case: FailureCase, *, is_software: bool, is_of_hardware: bool
) -> Iterator[Sign]:
    """Compare the model in the title, or else in the report, with the stack's.

    is_software: the failure depends neither on the model's size nor on its weights. Otherwise another size
    differs, slightly if the title is of all sizes and the kind of failure does not depend on the hardware; so
    do other weights, slightly if the report states none and the failure does not depend on the hardware.
    """
    names = case.titled_models or case.facts.models
    title = plain_title(case.title)
    families, lines = families_named(title), lines_named(title)
    families = families or families_named(" ".join(case.labels))
    if not stack.model:
        if named := [*names, *sorted(families)]:
            yield Sign("differs", f"it is of {named[0]}: your model is not known")
        return
    if other := _other_model(stack, families, () if case.titled_models else lines):
        yield Sign("rules_out", f"its title names {other}; yours is {stack.model}")
        return
    same = [name for name in names if _is_same_model(name, stack.model, any_size=is_software)]
    if same:
        best = next((name for name in same if _size(name) == _size(stack.model)), same[0])
        yield Sign("agrees", f"with {best}", is_specific=True)
        if other := other_variant(stack, title, is_beside=True):
            yield Sign("differs", f"its title names {other} as well")
        if not is_software:
            is_of_line = stack.line in lines and not _SIZE.search(title)
            is_any_size = is_of_line and case.facts.failure_kind not in HARDWARE_KINDS
            for words in _size_difference(best, stack, case.facts.models):
                yield Sign("differs", words, is_slight=is_any_size)
            yield from _weights_difference(stack, case, is_of_hardware=is_of_hardware)
    elif case.titled_models:
        yield Sign("rules_out", f"its title names {names[0]}, not {stack.model}")
    elif names:
        yield Sign("differs", f"reported with {names[0]}, not {stack.model}")
    elif (
        stack.line in lines
        and _variants(title) == _variants(stack.model)
        and _same_number(title, stack.model)
    ):
        yield Sign("agrees", f"with {stack.line} models, as yours", is_specific=True)
    elif not is_software:
        yield Sign("differs", "it names no model")


def plain_title(title: str) -> str:
    """Return a title with model names in their usual spelling, parted from suffixes."""
    title = _DEEPSEEK.sub(r"DeepSeek-\1", title)
    return _PART.sub(" ", _GPT_OSS.sub("gpt-oss", _POINT.sub(".", title))).replace("_", "-")


def _other_model(stack: Stack, families: Iterable[str], lines: Iterable[str]) -> str | None:
    """Return a family or generation that a title names instead of the stack's, or None."""
    if families and stack.family not in families:
        return min(families)
    of_family = {line for line in lines if model_family(line) == stack.family and line != stack.family}
    is_other = of_family and stack.line not in {stack.family, *of_family}
    return min(of_family) if is_other else None


def _size_difference(best: str, stack: Stack, names: Iterable[str]) -> Iterator[str]:
    """Yield the difference in size: which kernels run, and which layers a model has, depends on it."""
    mine = stack.model or ""
    sizes = [_size(name) for name in (best, *names) if _size(name) and _is_same_model(name, mine)]
    if sizes and _size(mine) not in sizes:
        yield f"of another size than {mine}" if _size(mine) else f"yours may not be of {sizes[0]}"


def _weights_difference(stack: Stack, case: FailureCase, *, is_of_hardware: bool) -> Iterator[Sign]:
    """Yield a difference in quantization, which decides on the kernels."""
    named = [found for found in map(_weights, case.facts.models) if found]
    theirs = named + [found for found in map(_weights, case.facts.backends.get("quantization", ())) if found]
    stored = _weights(stack.model or "")
    mine = stored or _weights((stack.options or {}).get("quantization", ""))
    if named and mine and not stored:
        yield Sign("differs", f"seen with {named[0]} weights; yours become {mine} when they are loaded")
    elif mine and mine not in theirs:
        words = f"seen with {theirs[0] if theirs else 'other'} weights, and yours are {mine}"
        yield Sign("differs", words, is_slight=not theirs and not is_of_hardware)
    elif theirs and not mine:
        yield Sign("differs", f"seen with {theirs[0]} weights; yours are not known to be so")


def other_variant(stack: Stack, text: str, *, is_beside: bool = False) -> str | None:
    """Return another variant of the stack's model that a text names; with the stack's own if `is_beside`."""
    if not stack.line:
        return None
    line = re.escape(stack.line).replace(r"\-", "[-_ ]?")
    written = re.finditer(
        rf"(?i)\b{line}(?:[-_][a-z.\d]+| ?(?:vl|omni|coder|audio|math|next)\b){{0,4}}", text
    )
    named = {found[0]: _variants(found[0]) for found in written}
    mine = _variants(stack.model or "")
    others = [name for name, variants in named.items() if variants - mine]
    return others[0] if others and (is_beside or len(others) == len(named)) else None


def may_be_model(name: str, stack: Stack) -> bool:
    """True if a name in lower case is of the stack's model, in any size."""
    return stack.family in name and _is_same_model(name, stack.model or "", any_size=True)


def is_of_line(title: str, stack: Stack) -> bool:
    """True if a title names the stack's family and generation."""
    return bool(stack.model) and stack.line in lines_named(plain_title(title))


def is_very_model(name: str, stack: Stack) -> bool:
    """True if a name is the stack's model, and states no other size."""
    mine = stack.model or ""
    return bool(mine) and _size(name) in {"", _size(mine)} and _is_same_model(name, mine)


@lru_cache(maxsize=1 << 12)
def _is_same_model(one: str, other: str, *, any_size: bool = False) -> bool:
    """True if two names are of one family, generation and variant, where both state them.

    any_size: a dense model and a mixture of experts may be the same.
    """
    a, b = _read_name(one), _read_name(other)
    if (a.family, a.families, a.variants) != (b.family, b.families, b.variants):
        return False
    if a.line != b.line and a.family not in {a.line, b.line}:
        return False
    if (a.is_dense and b.is_of_experts) or (a.is_of_experts and b.is_dense):
        return False
    if not any_size and a.size and b.size and a.is_of_experts != b.is_of_experts:
        return False
    return _same_number(_POINT.sub(".", one), _POINT.sub(".", other))


@dataclass(frozen=True, slots=True)
class _ModelName:
    """What a model's name states. `families`: all that its last part names."""

    family: str
    families: frozenset[str]
    line: str
    variants: frozenset[str]
    size: str
    is_dense: bool
    is_of_experts: bool


@lru_cache(maxsize=1 << 13)
def _read_name(name: str) -> _ModelName:
    name = _POINT.sub(".", name)
    return _ModelName(
        model_family(name),
        families_named(last_part(name)),
        model_line(name),
        _variants(name),
        _size(name),
        _DENSE.search(name) is not None,
        _EXPERTS.search(name) is not None,
    )


def _same_number(one: str, other: str) -> bool:
    """True if two names do not state two generations or two months."""
    return all(
        len({match[1] for name in (one, other) if (match := rule.search(last_part(name)))}) < 2
        for rule in (_GENERATION, _MONTH)
    )


def _size(name: str) -> str:
    """Return the size in a model's name (total size for a mixture of experts); "" if absent."""
    found = _SIZE.search(last_part(name))
    return found[0].upper() if found else ""


def _variants(name: str) -> frozenset[str]:
    return frozenset(
        str(match[1] or match[2]).lower() for match in _VARIANT.finditer(last_part(name).replace("_", "-"))
    )


def last_part(model: str) -> str:
    """Return a model's name without its organisation or folder, in lower case."""
    return model.rstrip("/").rpartition("/")[2].lower()


def _weights(name: str) -> str:
    found = _WEIGHTS.search(name)
    return found[0].upper().replace("-", "") if found else ""
