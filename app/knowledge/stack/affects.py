"""Whether a stored failure is of a stack's GPU, model and arguments, by its facts, title and text. Pure.

A report that names no model may still be of one, so a failure that says nothing of a stack never affects it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from app.extract.fields.gpu_names import architecture_of
from app.extract.fields.settings import normalise_name
from app.extract.rules.patterns import pattern, pattern_set
from app.knowledge.stack.features import difference_of_run, features_of, has_feature
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.standing import CARD, MODEL, STRONG, FailureCase, Fit, is_bounded
from app.match.search.agreement import families_named, model_family, model_line

_VARIANT = re.compile(
    r"(?i)\b(VL|omni|coder|next|embedding|reranker|audio|math|vision|scout|maverick|distill|ocr|asr|flash|air|"
    r"speciale|guard|nano|super|ultra|thinking|E[24]B)\b|(?<=\d)(V)\b"
)
_GENERATION = re.compile(r"(?i)(?<![\d.])(\d{1,2}(?:\.\d{1,2})?)(?![\d.]|b\b|bit)")
_SIZE = re.compile(r"(?i)\d+(?:\.\d+)?B\b")
_EXPERTS = re.compile(r"(?i)\bA\d+(?:\.\d)?B\b")
_PLATFORMS = {
    "NVIDIA": r"(?i)\b(?:cuda|nvidia|nvcc|cublas|cudnn)",
    "AMD": r"(?i)\brocm|\bamd\b|\baiter\b|\bhip\b|\bgfx\d|\bMI ?[23]\d\d|radeon|strix|ryzen",
    "CPU": r"(?i)\bcpu (?:backend|only|inference|build|platform|device)|\[cpu\]|\baarch64\b|s390x|ppc64",
    "TPU": r"(?i)\btpu\b",
    "Intel": r"(?i)\bxpu\b|\bintel\b|\barc\b|\bgaudi\b|\bhpu\b",
    "Ascend": r"(?i)\bascend\b|\bnpu\b",
    "Neuron": r"(?i)\bneuron\b|trainium|inferentia",
}
_WORKSTATION = pattern(r"(?i)RTX|GeForce|^A(?:2|10|10G|16|40)$")
_OPTION = pattern(r"(--[a-z][a-z_-]+[a-z])(?:[ =]([\w.]+))?")
_NUMBER = re.compile(r"[\d.]+")
_PARSER = pattern(
    r"\b([A-Z][A-Za-z0-9]*?)(?:Reasoning|Tool(?:Call)?)Parser\b|\b(\w+?)_(?:tool|reasoning)_parser\b"
    r"|(?i)\b([a-z]\w*\d\w*) (?:tool|reasoning)[ -](?:call(?:ing)?[ -])?parser\b"
)
"""A parser's class, module, or name with a number in it, in a title."""
_CLASS = re.compile(r"\b([A-Z]\w{2,40}?)For(?:Conditional|Causal|Sequence|Embedding)\w+")
"""The class of a model."""
_CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
_LOADING = pattern(r"\bload_weights\b")
_EDGE = pattern(r"(?i)GB10|Thor|Spark|Jetson|Orin")
_CHIPS = pattern(r"^MI ?(\d)(\d)\d|^RX ?(\d)\d{3}")
"""Of AMD's cards the digits that name a generation: MI355 has other limits than MI325."""
_LABELS = {"rocm": "AMD", "cpu": "CPU", "tpu": "TPU", "intel-gpu": "Intel", "aws-neuron": "Neuron"}
_BUILDS = {"+cpu": "CPU", "+rocm": "AMD", "+xpu": "Intel", "+tpu": "TPU", ".empty": "another platform"}
"""What a version says of the platform that it was built for."""
_ARCHITECTURES: tuple[tuple[str, str, str], ...] = (
    (r"(?i)\bvolta\b|\bsm[_ ]?70\b", "Volta", ""),
    (r"(?i)\bturing\b|\bsm[_ ]?75\b", "Turing", ""),
    (r"(?i)\bampere\b|\bsm[_ ]?8[067]\b", "Ampere", ""),
    (r"(?i)\bada\b|\bsm[_ ]?89\b", "Ada Lovelace", ""),
    (r"(?i)\bhopper\b|\bsm[_ ]?90a?\b", "Hopper", ""),
    (r"(?i)\bsm[_ ]?10[03]a?\b|\bsm[_ ]?10\.[03]", "Blackwell", "server"),
    (r"(?i)\bsm[_ ]?120a?\b|\bsm[_ ]?12\.0|rtx blackwell", "Blackwell", "workstation"),
    (r"(?i)\bsm[_ ]?1(?:10|21)a?\b|\bsm[_ ]?1(?:1\.0|2\.1)|jetson|\bthor\b|spark\b", "Blackwell", "edge"),
)
"""Architectures as titles name them, and which of their chips."""
_TITLED_PLATFORMS = pattern_set([*_PLATFORMS.values()])
_TITLED_ARCHITECTURES = pattern_set([text for text, _, _ in _ARCHITECTURES])
_VENDOR = (
    (pattern(r"(?i)^(?:MI ?\d|radeon|RX ?\d|W\d{4}|gfx|strix|ryzen)"), "AMD"),
    (pattern(r"(?i)^CPU"), "CPU"),
    (pattern(r"(?i)tpu"), "TPU"),
    (pattern(r"(?i)arc|gaudi|xpu|max 1\d{3}"), "Intel"),
    (pattern(r"(?i)ascend|910|npu"), "Ascend"),
    (pattern(r"(?i)trn|inf\d|neuron"), "Neuron"),
)


_OF_HARDWARE = frozenset({"crash", "oom", "slowdown", "hang", "wrong_output"})
_OF_SIZE = frozenset({"oom", "slowdown"})
_WITHOUT_ERROR = frozenset({"wrong_output", "slowdown", "hang"})
_OF_ANSWERS = pattern(
    r"(?i)stream|completions?\b|\bfields?\b|response|\bAPI\b|parser|template|\busage\b|finish_reason|metric|\blogs?\b"
    r"|endpoint|tokeni[sz]er|\bjson\b|\bdelta\b"
)
"""In the title of a wrong output: it is of how answers are written."""
_OF_NUMBERS = pattern(
    r"(?i)garb|gibberish|!!!|nonsens|\bnan\b|accura|degrad|diverge|determinis|quality|corrupt|incoheren|repeat"
    r"|random|scrambl|endless|precision"
)
"""In the title of a wrong output: it is of what is computed, which depends on the kernels."""
_KERNEL = pattern(
    r"(?i)cuda|\bhip|triton|nccl|illegal|out ?of ?(?:memory|resources)|cublas|cutlass|flash|deep_?gemm"
    r"|kernel|ptxas|capability|\bsm_?\d|torch\.ops|_C\b|nvrtc|nvcc|cudnn"
)
"""In an error or its frame: what depends on the card."""
_FORM = pattern(r"(?i)nvfp4|mxfp4|fp4|fp8|w\d+a\d+|awq|gptq|int[48]|gguf|bnb|exl\d|autoround")


def fit(stack: Stack, case: FailureCase) -> Fit:
    """Whether a failure is of a stack's GPU, model and arguments, by its facts, title and labels."""
    signs: list[Fit] = []
    for sign in _signs(stack, case):
        if sign.answer == "no":
            return sign
        signs.append(sign)
    reasons = "; ".join(dict.fromkeys(sign.reason for sign in signs if sign.answer == "yes"))
    strong = [sign for sign in signs if sign.answer == "yes" and sign.weight == STRONG]
    weight = sum(sign.weight for sign in signs if sign.answer == "yes")
    is_like = bool(strong) or weight > MODEL or (weight == MODEL and is_bounded(case))
    if open_ones := [sign for sign in signs if sign.answer == "unknown"]:
        unsure = open_ones[0]
        is_near = weight >= MODEL and unsure.weight > 0
        return replace(unsure, is_near=is_near, weight=weight - len(open_ones))
    if case.facts.failure_kind == "slowdown" and not is_bounded(case):
        return Fit("unknown", "no release is named that was faster", weight - 1, is_near=weight >= MODEL)
    if not is_like:
        missing = (
            f"{reasons}, but nothing says that this matters" if signs else "nothing in it names your stack"
        )
        return Fit("unknown", missing, weight - 1, is_near=weight >= MODEL)
    if case.facts.error is None and not strong and case.facts.failure_kind not in _WITHOUT_ERROR:
        return Fit("unknown", f"{reasons}, but it states no error", weight - 1, is_near=True)
    return Fit("yes", reasons, weight)


def _signs(stack: Stack, case: FailureCase) -> Iterator[Fit]:
    """What each part of a report says of a stack."""
    for read in (
        _platform,
        _titled_architecture,
        _titled_options,
        _titled_parser,
        _titled_class,
        _checkpoint,
    ):
        if sign := read(stack, case):
            yield sign
    features = features_of(case.title, case.labels)
    yield from (_feature(stack, row) for row in features)
    is_software = any(row.get("is_software") for row in features)
    is_of_hardware = not is_software and _is_of_hardware(case)
    if sign := _model(stack, case, is_of_hardware=is_of_hardware, is_software=is_software):
        yield sign
    if sign := _gpu(stack, case, is_of_hardware):
        yield sign
    if not is_software and (sign := _weights(stack, case)):
        yield sign


def fit_of_run(stack: Stack, case: FailureCase, text: str, found: Fit) -> Fit:
    """Whether a failure that seems to be of a stack, as `found` says, is so by its report's text too."""
    difference = difference_of_run(stack, case.facts, case.title, case.labels, text)
    return Fit("unknown", difference, found.weight - 1, is_near=True) if difference else found


def _is_of_hardware(case: FailureCase) -> bool:
    """Whether a failure may depend on the card that runs it, as most do that no plain exception names."""
    error, kind = case.facts.error, case.facts.failure_kind
    if kind == "wrong_output" and _OF_ANSWERS.search(case.title) and not _OF_NUMBERS.search(case.title):
        return False
    if error is None or kind in _OF_HARDWARE:
        return True
    return bool(_KERNEL.search(f"{error.line} {error.frame}"))


def _platform(stack: Stack, case: FailureCase) -> Fit | None:
    """A failure of another vendor's hardware; agreement alone is no sign that it affects."""
    theirs = {[*_PLATFORMS][at] for at in _TITLED_PLATFORMS.Match(case.title) or ()}
    theirs |= {_LABELS[label] for label in case.labels if label in _LABELS}
    theirs |= {vendor_of(gpu) for gpu in case.titled_gpus}
    theirs |= {name for mark, name in _BUILDS.items() if mark in case.facts.versions.get("vllm", "")}
    if not stack.gpu:
        other = sorted(theirs - {"NVIDIA"})
        return Fit("unknown", f"it is of {' and '.join(other)}: your GPU is not known") if other else None
    mine = vendor_of(stack.gpu)
    if not theirs:
        theirs = {vendor_of(gpu) for gpu in case.facts.gpus}
    if theirs and mine not in theirs:
        return Fit("no", f"it is of {' and '.join(sorted(theirs))}; yours is {mine}")
    return None


def generation_of(gpu: str) -> tuple[str, str] | None:
    """The architecture, and which of its chips it is, since each has kernels of its own; None if unknown."""
    architecture = architecture_of(gpu)
    if architecture is None:
        return None
    chip = "edge" if _EDGE.search(gpu) else "workstation" if _WORKSTATION.search(gpu) else "server"
    if found := _CHIPS.search(gpu):
        chip = "new" if (found[2] or found[3]) in {"5", "9"} else "old"
    return architecture, chip


def _titled_options(stack: Stack, case: FailureCase) -> Fit | None:
    """A title that names options, none of which the stack has, or one with another value."""
    named = {normalise_name(one[1]): one for one in _OPTION.finditer(case.title) if "--no-" not in one[1]}
    if stack.options is None or not named:
        return None
    common = stack.options.keys() & named.keys()
    if not common:
        return Fit("no", f"it needs {next(iter(named.values()))[1]}, which yours has not")
    for name in sorted(common):
        option, value = named[name].groups("")
        mine = stack.options[name]
        if value and mine and _plain_name(value) not in _plain_name(mine) and not _NUMBER.fullmatch(mine):
            return Fit("unknown", f"its title names {option} {value}; yours is {mine}")
    return None


def _titled_parser(stack: Stack, case: FailureCase) -> Fit | None:
    """A title that names a parser, which is not the stack's."""
    found = _PARSER.search(case.title)
    if found is None:
        return None
    name = found[1] or found[2] or found[3]
    if stack.options is None:
        return Fit("unknown", f"it is of the parser {name}: your arguments are not known")
    option = "tool-call-parser" if "tool" in found[0].lower() else "reasoning-parser"
    mine = _plain_name(stack.options.get(option, ""))
    if mine and mine in _plain_name(name):
        return Fit("yes", f"of the parser {name}, as yours")
    return Fit("no", f"its title names the parser {name}, which yours has not")


def _titled_class(stack: Stack, case: FailureCase) -> Fit | None:
    """A title that names the class of a model of another variant."""
    found = _CLASS.search(case.title)
    if found is None or not stack.model or not _variants(_CAMEL.sub("-", found[1])) - _variants(stack.model):
        return None
    return Fit("unknown", f"its title names {found[0]}, which may not be the class of {stack.model}")


def _plain_name(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _checkpoint(stack: Stack, case: FailureCase) -> Fit | None:
    """A failure to load weights, which depends on the checkpoint itself and not on its kind of model."""
    error = case.facts.error
    if not _LOADING.search(f"{case.title} {error.line if error else ''} {error.frame if error else ''}"):
        return None
    names = case.facts.models
    if not stack.model or any(_last_part(name) == _last_part(stack.model) for name in names):
        return None
    seen = f"it was seen with {names[0]}" if names else "it names no checkpoint"
    return Fit("unknown", f"{seen}, and what fails to load depends on the checkpoint")


def _last_part(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2].lower()


def _titled_architecture(stack: Stack, case: FailureCase) -> Fit | None:
    """A title that names another architecture than the stack's."""
    mine = generation_of(stack.gpu) if stack.gpu else None
    named = [_ARCHITECTURES[at][1:] for at in sorted(_TITLED_ARCHITECTURES.Match(case.title) or ())]
    if mine is None or not named or any(name == mine[0] and chip in {"", mine[1]} for name, chip in named):
        return None
    return Fit("no", f"its title names {' '.join(named[0]).strip()}; yours is {stack.gpu}")


@lru_cache(maxsize=2048)
def vendor_of(gpu: str) -> str:
    """Whose accelerator it is."""
    return next((vendor for rule, vendor in _VENDOR if rule.search(gpu)), "NVIDIA")


def _feature(stack: Stack, row: dict[str, Any]) -> Fit:
    is_on, name = has_feature(stack, row), row["name"]
    if is_on is None:
        return Fit("unknown", row.get("doubt") or f"it matters if yours has {name}")
    if not is_on:
        return Fit("no", f"it needs {name}, which yours has not")
    is_sign = "on" in row and not row.get("is_common")
    return Fit("yes", f"of {name}, as yours", STRONG if is_sign else 0)


def _model(stack: Stack, case: FailureCase, *, is_of_hardware: bool, is_software: bool) -> Fit | None:
    """The model that the title names, or that was run, against the stack's."""
    others = families_named(case.title)
    if stack.model and others and stack.family not in others:
        return Fit("no", f"its title names {sorted(others)[0]}; yours is {stack.model}")
    titled, names = case.titled_models, case.titled_models or case.facts.models
    if not stack.model:
        named = [*names, *sorted(others)]
        if named:
            return Fit("unknown", f"it is of {named[0]}: your model is not known")
    if not names or not stack.model:
        return None if is_software or is_bounded(case) else Fit("unknown", "it names no model")
    alike = [name for name in names if model_family(name) == stack.family]
    same = [name for name in alike if _is_same_line(name, stack.model)]
    if same:
        return _of_same_line(
            stack.model,
            same,
            is_titled=bool(titled) or (stack.family in others and not is_software),
            is_sized=_SIZE.search(case.title) is not None,
            is_of_hardware=is_of_hardware,
            is_software=is_software,
        )
    if titled:
        return Fit("no", f"its title names {titled[0]}; yours is {stack.model}")
    return Fit("unknown", f"it is reported with {names[0]}, not with {stack.family or stack.model}", 0)


def _of_same_line(
    mine: str,
    names: Sequence[str],
    *,
    is_titled: bool,
    is_sized: bool,
    is_of_hardware: bool,
    is_software: bool,
) -> Fit:
    """What it says that a failure was seen with these models, which are of one line with the stack's."""
    alike = [name for name in names if _is_same_generation(name, mine)]
    if not alike:
        return Fit("unknown", f"it is reported with {names[0]}, of another generation than yours")
    # Which kernels run, and which layers a model has, depends on its size.
    same = next((name for name in alike if _sizes(name) == _sizes(mine)), alike[0])
    if (not is_software or is_sized) and _sizes(same) and _sizes(same) != _sizes(mine):
        return Fit("unknown", f"it is reported with {same}, of another size than {mine}")
    if is_of_hardware and not _SIZE.search(same):
        return Fit("yes", f"with {same}", CARD)
    return Fit("yes", f"with {same}", STRONG if is_titled else MODEL)


def _is_same_line(one: str, other: str) -> bool:
    """Whether two models of one family are of one generation and variant."""
    lines = {model_line(one), model_line(other)}
    is_general = any(line == model_family(one) for line in lines)
    if len(lines) > 1 and not is_general:
        return False
    if _variants(one) != _variants(other):
        return False
    return bool(_EXPERTS.search(one)) == bool(_EXPERTS.search(other)) or "-" not in one


def _is_same_generation(one: str, other: str) -> bool:
    """Whether the numbers behind the names of two models agree, where both have one."""
    found = [match[1] for name in (one, other) if (match := _GENERATION.search(_last_part(name)))]
    return len({*found}) < 2


def _sizes(name: str) -> frozenset[str]:
    """How large a model is, as its name says it: all parameters, and those that one token uses."""
    return frozenset(found.upper() for found in _SIZE.findall(_last_part(name)))


def _variants(name: str) -> frozenset[str]:
    plain = name.rstrip("/").rpartition("/")[2]
    return frozenset(str(match[1] or match[2]).lower() for match in _VARIANT.finditer(plain))


def _gpu(stack: Stack, case: FailureCase, is_of_hardware: bool) -> Fit | None:
    """The GPU that the title names, or that it was seen on, against the stack's."""
    titled, names = case.titled_gpus, case.titled_gpus or case.facts.gpus
    if not stack.gpu:
        depends = titled or (names and is_of_hardware)
        return Fit("unknown", f"it was seen on {names[0]}: your GPU is not known") if depends else None
    mine, weight = generation_of(stack.gpu), MODEL if titled else CARD
    same = next((name for name in names if mine and generation_of(name) == mine), None)
    if stack.gpu in names:
        return Fit("yes", f"on {stack.gpu}", weight)
    if same and case.facts.failure_kind not in _OF_SIZE:
        return Fit("yes", f"on {same}, {stack.architecture} as yours", weight)
    if titled and not same:
        return Fit("no", f"its title names {titled[0]}; yours is {stack.gpu}")
    if not is_of_hardware:
        return None
    seen = f"it was seen on {same or names[0]}, not on {stack.gpu}" if names else "it names no GPU"
    return Fit("unknown", seen)


def _weights(stack: Stack, case: FailureCase) -> Fit | None:
    """The form of the weights, where the failing kernels may depend on it."""
    if not stack.model or not case.facts.models:
        return None
    mine, forms = _form(stack.model), [_form(name) for name in case.facts.models]
    if mine in forms:
        return None
    theirs = f"it was seen with {forms[0] or 'unquantised'} weights"
    return Fit("unknown", f"{theirs}; yours are {mine or 'not quantised by their name'}")


def _form(model: str) -> str:
    found = _FORM.search(model)
    return found[0].upper().replace("-", "") if found else ""
