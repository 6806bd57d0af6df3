"""Compare a failure with a stack's model: family, generation, size, checkpoint, weights. Pure."""

import re
from collections.abc import Collection, Sequence

from app.extract.rules.patterns import pattern
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.standing import CARD, LEFT_OUT, MODEL, STRONG, FailureCase, Fit, is_bounded
from app.match.search.agreement import families_named, lines_named, model_family, model_line

_VARIANT = re.compile(
    r"(?i)\b(VL|omni|coder|next|embedding|reranker|audio|math|vision|scout|maverick|distill|ocr|asr|flash|air|"
    r"speciale|terminus|1M|guard|nano|lite|mini|super|ultra|thinking|nemo|text-only|tiny|small|medium|large|base|E[24]B)\b|(?<=\d)(V)\b"
)
_GENERATION = re.compile(r"(?i)(?<![\d.])(\d{1,2}(?:\.\d{1,2})?)(?![\d.]|b\b|bit)")
_MONTH = re.compile(r"-(2[3-9](?:0[1-9]|1[0-2]))(?!\d)")
SIZE = re.compile(r"(?i)\d+(?:\.\d+)?B\b")
_EXPERTS = re.compile(r"(?i)\bA\d+(?:\.\d)?B\b")
FORM = pattern(r"(?i)nvfp4|mxfp4|fp4|fp8|w\d+a\d+|awq|gptq|int[48]|gguf|bnb|exl\d|autoround")
WORKS = pattern(r"(?i)\b(?:while|but|whereas) ([^,.;]{2,60}?) (?:works?|is (?:ok|fine))\b")
"""In a title: something that works, in contrast to the failure."""
CLASS = re.compile(r"\b([A-Z]\w{2,40}?)For(?:Conditional|Causal|Sequence|Embedding)\w+")
"""A model class."""
_CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
_SIZED = pattern(r"(?i)\b([a-z]+)[\w.-]{0,24}?[-_ ](\d+(?:\.\d+)?B)\b")
"""Model family and size, in a text."""
_PART = re.compile(
    r"(?<=[a-z\d])(?=(?:Tokenizer|Reasoning|Tool|Config|Processor|Model|For|Attention|MoE)(?![a-z]))"
)
"""In a title: boundary between a model name and a suffix such as Tokenizer."""
_GPT_OSS = re.compile(r"(?i)gpt[_ ]?oss")
_LOADING = pattern(
    r"\bload_weights\b|no module or parameter named|WeightsMapper|KeyError: '(?:model|layers|lm_head)\."
    r"|(?i)size mismatch for|\bcheckpoints?\b|safetensors"
)
NO_SIZE = "it names no size"
OF_SIZE = frozenset({"oom", "slowdown"})


def model_sign(
    stack: Stack, case: FailureCase, *, is_of_hardware: bool, is_software: bool, is_of_requests: bool
) -> Fit | None:
    """Compare the model in the title, or else in the report, with the stack's."""
    titled, names = case.titled_models, case.titled_models or case.facts.models
    title = _PART.sub(" ", _GPT_OSS.sub("gpt-oss", case.title))
    others = families_named(title)
    if other := _other_model(stack, others, () if titled else lines_named(title)):
        return Fit("no", f"its title names {other}; yours is {stack.model}")
    if not stack.model:
        named = [*names, *sorted(others)]
        if named:
            return Fit("unknown", f"it is of {named[0]}: your model is not known")
    if not names or not stack.model:
        return None if is_software or is_bounded(case) else Fit("unknown", "it names no model", LEFT_OUT)
    alike = [name for name in names if model_family(name) == stack.family]
    same = [name for name in alike if _is_same_line(name, stack.model)]
    is_sized = SIZE.search(case.title) is not None
    if same:
        return _of_same_line(
            stack.model,
            same,
            is_titled=bool(titled) or (stack.family in others and not is_software),
            is_sized=is_sized,
            is_of_size=is_sized or case.facts.failure_kind in OF_SIZE,
            is_of_hardware=is_of_hardware,
            is_software=is_software,
            sized=[name for name in case.facts.models if _size(name) and _is_same_line(name, stack.model)],
        )
    if titled:
        return Fit("no", f"its title names {titled[0]}; yours is {stack.model}")
    reason = f"it is reported with {names[0]}, not with {stack.model}"
    return Fit("unknown", reason, is_near=True) if is_of_requests else Fit("unknown", reason, 0)


def _other_model(stack: Stack, families: Collection[str], lines: Collection[str]) -> str | None:
    """Return a family or generation that a title names instead of the stack's, or None."""
    if not stack.model or (families and stack.family not in families):
        return min(families) if stack.model else None
    of_family = {line for line in lines if model_family(line) == stack.family and line != stack.family}
    is_other = of_family and stack.line not in {stack.family, *of_family}
    return min(of_family) if is_other else None


def _of_same_line(
    mine: str,
    names: Sequence[str],
    *,
    is_titled: bool,
    is_sized: bool,
    is_of_size: bool,
    is_of_hardware: bool,
    is_software: bool,
    sized: Sequence[str],
) -> Fit:
    """Judge a failure seen with these models, which belong to the same line as the stack's."""
    alike = [name for name in names if _is_same_generation(name, mine)]
    if not alike:
        return Fit("unknown", f"it is reported with {names[0]}, of another generation than yours")
    # Which kernels run, and which layers a model has, depends on its size.
    same = next((name for name in [*alike, *sized] if _size(name) == _size(mine)), alike[0])
    if not is_software and not _size(same) and sized:
        same = sized[0]  # the title omits the size, the report states it
    if (not is_software or is_sized) and _size(same) and _size(same) != _size(mine):
        weight = 0 if is_of_size else STRONG
        return Fit("unknown", f"yours is {mine}, of another size", weight, agrees=f"with {same}")
    if _size(mine) and not _size(same) and (is_of_hardware or not (is_software or is_titled)):
        return Fit("unknown", f"{NO_SIZE}, and yours is {mine}", LEFT_OUT, agrees=f"with {same}")
    if is_of_hardware and not SIZE.search(same):
        return Fit("yes", f"with {same}", CARD)
    return Fit("yes", f"with {same}", STRONG if is_titled else MODEL)


def weights_sign(stack: Stack, case: FailureCase) -> Fit | None:
    """Compare the quantization of the weights, on which the failing kernels may depend."""
    if not stack.model or not case.facts.models:
        return None
    if any(_last_part(name) == _last_part(stack.model) for name in case.facts.models):
        return None
    mine = stack_form(stack)
    names = [*case.facts.models, *case.facts.backends.get("quantization", ())]
    forms = [form for form in map(form_of, names) if form]
    if mine in forms or not (mine or forms):
        return None
    if not mine:
        return Fit("unknown", f"it was seen with {forms[0]} weights; yours are not known to be so")
    theirs = f"{forms[0]} weights" if forms else case.facts.models[0]
    return Fit("unknown", f"it was seen with {theirs}, and your weights are {mine}")


def stack_form(stack: Stack) -> str:
    """Return a stack's quantization, from model name or option; "" if unknown."""
    return form_of(stack.model or "") or form_of((stack.options or {}).get("quantization", ""))


def other_size(stack: Stack, case: FailureCase, text: str) -> Fit | None:
    """Judge by a model size in the text if title and facts state none."""
    mine = _size(stack.model or "")
    if not mine or any(_size(name) for name in (*case.titled_models, *case.facts.models)):
        return None
    named = {found[2].upper() for found in _SIZED.finditer(text) if found[1].lower() == stack.family}
    if not named or mine in named:
        return None
    return Fit("unknown", f"the report names one of {min(named)}, and yours is {stack.model}")


def works_with(stack: Stack, case: FailureCase) -> Fit | None:
    """Return "no" if the title says that a model of the stack's size works."""
    found, size = WORKS.search(case.title), _size(stack.model or "")
    is_mine = found is not None and size and size in found[1].upper()
    return Fit("no", f"its title says that {size} works") if is_mine else None


def class_sign(stack: Stack, case: FailureCase) -> Fit | None:
    """Judge by a model class in the title that belongs to another variant."""
    found = CLASS.search(case.title)
    if found is None or not stack.model or not _variants(_CAMEL.sub("-", found[1])) - _variants(stack.model):
        return None
    return Fit("unknown", f"its title names {found[0]}, which may not be the class of {stack.model}")


def checkpoint_sign(stack: Stack, case: FailureCase) -> Fit | None:
    """Compare checkpoints if the title names one or loading weights fails."""
    titled = [name for name in case.titled_models if "/" in name]
    if stack.model and titled and all(_last_part(name) != _last_part(stack.model) for name in titled):
        return Fit("unknown", f"its title names {titled[0]}, and yours is {stack.model}")
    error = case.facts.error
    if not _LOADING.search(f"{case.title} {error.line if error else ''} {error.frame if error else ''}"):
        return None
    names = case.facts.models
    if not stack.model or any(_last_part(name) == _last_part(stack.model) for name in names):
        return None
    seen = f"it was seen with {names[0]}" if names else "it names no checkpoint"
    return Fit("unknown", f"{seen}, and what fails to load depends on the checkpoint")


def _is_same_line(one: str, other: str) -> bool:
    """True if two models of one family have the same generation and variant."""
    lines = {model_line(one), model_line(other)}
    is_general = any(line == model_family(one) for line in lines)
    if len(lines) > 1 and (not is_general or (_size(one) and _size(one) != _size(other))):
        return False
    if _bases(one) != _bases(other) or _variants(one) != _variants(other):
        return False
    return bool(_EXPERTS.search(one)) == bool(_EXPERTS.search(other)) or "-" not in one


def _bases(name: str) -> frozenset[str]:
    """Return the families in a model's name: a distilled one has two, and runs as the second."""
    return families_named(_last_part(name))


def _is_same_generation(one: str, other: str) -> bool:
    """True if the version numbers and months in two model names agree, where both have one."""
    return all(
        len({match[1] for name in (one, other) if (match := rule.search(_last_part(name)))}) < 2
        for rule in (_GENERATION, _MONTH)
    )


def _size(name: str) -> str:
    """Return the size in a model's name (total size for a mixture of experts); "" if absent."""
    found = SIZE.search(_last_part(name))
    return found[0].upper() if found else ""


def _variants(name: str) -> frozenset[str]:
    plain = name.rstrip("/").rpartition("/")[2]
    return frozenset(str(match[1] or match[2]).lower() for match in _VARIANT.finditer(plain))


def _last_part(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2].lower()


def form_of(model: str) -> str:
    found = FORM.search(model)
    return found[0].upper().replace("-", "") if found else ""
