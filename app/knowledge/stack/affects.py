"""Decide whether a stored failure applies to a stack's GPU, model and arguments. Pure.

A report that names no model may still concern it, so silence never counts as "affects".
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

from app.extract.fields.gpu_names import architecture_of
from app.extract.fields.settings import normalise_name
from app.extract.rules.patterns import pattern, pattern_set
from app.knowledge.stack.features import (
    PARSER_OPTIONS,
    PARSERS,
    TITLED_OPTIONS,
    USUAL_OPTIONS,
    differences_of_run,
    doubt_sentence,
    features_of,
    has_feature,
)
from app.knowledge.stack.models import (
    CLASS,
    FORM,
    NO_SIZE,
    OF_SIZE,
    WORKS,
    checkpoint_sign,
    class_sign,
    model_sign,
    other_size,
    stack_form,
    weights_sign,
    works_with,
)
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.standing import CARD, LEFT_OUT, MODEL, STRONG, FailureCase, Fit, is_bounded

_COUNT = pattern(
    r"\bTP ?[=:]? ?(\d)\b|(?i)\btensor[-_ ]parallel(?:[-_ ]size)?[ =:]+(\d)\b|(?i)\b(\d)[- *x×]gpus?\b"
    r"|\b(\d) ?[x×*] ?(?:NVIDIA )?(?:A|H|B|L|T|V|RTX |GB|MI)\d"
)
"""Number of GPUs, in a title."""
_PLATFORMS = {
    "NVIDIA": r"(?i)\b(?:cuda|nvidia|nvcc|cublas|cudnn|cutlass|flashinfer|deep_?gemm|trt-?llm|flashmla)",
    "AMD": r"(?i)\brocm|\bamd\b|\baiter\b|\bhip\b|\bgfx\d|\bMI ?[23]\d\d|radeon|strix|ryzen",
    "CPU": r"(?i)\bcpu (?:backend|only|inference|build|platform|device)|\[cpu\]|\baarch64\b|s390x|ppc64",
    "TPU": r"(?i)\btpu\b",
    "Intel": r"(?i)\bxpu\b|\bintel\b|\barc\b|\bgaudi\b|\bhpu\b",
    "Ascend": r"(?i)\bascend\b|\bnpu\b",
    "Neuron": r"(?i)\bneuron\b|trainium|inferentia",
}
_CUDA_ERROR = pattern(r"(?i)\bcuda (?:driver |runtime )?error\b|\bcudaError\w+|\bCUBLAS_STATUS_\w+")
"""An error that NVIDIA's libraries report; AMD's have names of their own."""
_WORKSTATION = pattern(r"(?i)RTX|GeForce|^A(?:2|10|10G|16|40)$")
_OPTION = pattern(r"(--[a-z][a-z_-]+[a-z])(?:[ =]([\w.]+))?")
_UNSET = pattern(
    r"(?i)\bwithout (?:(?:setting|using|specifying) )?[`'\"]?(--[a-z_-]+)"
    r"|(--[a-z_-]+)[`'\"]? (?:is|was) not (?:enabled|set|given|used)\b"
)
"""In a title: an option without which it fails."""
_BARE_OPTION = pattern(r"\b[a-z]+(?:[-_][a-z\d]+)+\b")
_NUMBER = re.compile(r"[\d.]+")
_PARSER = pattern(
    r"\b([A-Z][A-Za-z0-9]*?)(?:Reasoning|Tool(?:Call)?)Parser\b|\b(\w+?)_(?:tool|reasoning)_parser\b"
    r"|(?i)\b([a-z]\w*\d\w*) (?:tool|reasoning)[ -](?:call(?:ing)?[ -])?parser\b"
    rf"|\b({'|'.join(PARSERS)})(?:[ _-](?:tool|reasoning|call(?:s|ing)?)){{0,2}}[ _-]?pars(?:er|ing)"
)
"""A parser's class, module, versioned name or well-known name, in a title."""
_TAG = re.compile(r"\[[^\]]{0,30}\]:?")
_EDGE = pattern(r"(?i)GB10|Thor|Spark|Jetson|Orin")
_CHIPS = pattern(r"^MI ?(\d)(\d)\d|^RX ?(\d)\d{3}")
"""The digits of an AMD card that name its generation: MI355 has other limits than MI325."""
_Reader = Callable[[Stack, FailureCase], Fit | None]
_LABELS = {"rocm": "AMD", "cpu": "CPU", "tpu": "TPU", "intel-gpu": "Intel", "aws-neuron": "Neuron"}
_BUILDS = {
    "+cpu": "CPU",
    ".cpu": "CPU",
    "+rocm": "AMD",
    "+xpu": "Intel",
    "+tpu": "TPU",
    ".empty": "another platform",
}
"""Version suffixes by the platform they were built for."""
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
"""Architecture names in titles: pattern, architecture, chip class."""
_TITLED_PLATFORMS = pattern_set([*_PLATFORMS.values()])
_TITLED_ARCHITECTURES = pattern_set([text for text, _, _ in _ARCHITECTURES])
_VENDOR = (
    (pattern(r"(?i)^(?:MI ?\d|radeon|RX ?\d|W\d{4}|gfx|strix|ryzen)"), "AMD"),
    (pattern(r"(?i)^CPU"), "CPU"),
    (pattern(r"(?i)tpu"), "TPU"),
    (pattern(r"(?i)arc|gaudi|xpu|max 1\d{3}"), "Intel"),
    (pattern(r"(?i)ascend|910|npu"), "Ascend"),
    (pattern(r"(?i)trn|inf\d|inferentia|trainium|neuron"), "Neuron"),
)


NO_GPU = "it names no GPU"
WORDS_MIN = 12
"""A report without an error and with fewer words than this does not say what fails, or when."""
_TEMPLATE = pattern(
    r"(?s)#{2,4} (?:Your current environment|\S{0,4} ?Describe the bug)|#{2,4} Before submitting.*|https?://\S+"
    r"|<!--.{0,400}?-->|</?(?:details|summary)>|The output of `?python collect_env\.py`?|```\w*"
)
"""What the form of a report adds to it, and links."""
UNKNOWNS_MAX = 2
"""Maximum number of unknowns in a failure that still counts as near."""
_HARDWARE_KINDS = frozenset({"crash", "oom", "slowdown", "hang", "wrong_output"})
_KINDS_WITHOUT_ERROR = frozenset({"wrong_output", "slowdown", "hang"})
_KINDS_WITH_ERROR = frozenset({"crash", "exception", "oom", "install"})
_RESPONSE_FORMAT = pattern(
    r"(?i)stream|completions?\b|\bfields?\b|response|\bAPI\b|parser|template|\busage\b|finish_reason|metric|\blogs?\b"
    r"|endpoint|tokeni[sz]er|\bjson\b|\bdelta\b"
)
"""In the title of a wrong output: response formatting is at fault."""
_COMPUTATION = pattern(
    r"(?i)garb|gibberish|!!!|nonsens|\bnan\b|accura|degrad|diverge|determinis|quality|corrupt|incoheren|repeat"
    r"|random|scrambl|endless|precision|(?:wrong|weird|different|incorrect) (?:output|answer|result)"
)
"""In the title of a wrong output: the computation is at fault, which depends on the kernels."""
_KERNEL = pattern(
    r"(?i)cuda|\bhip|triton|nccl|illegal|out ?of ?(?:memory|resources)|cublas|cutlass|flash|deep_?gemm"
    r"|kernel|ptxas|capability|\bsm_?\d|torch\.ops|_C\b|nvrtc|nvcc|cudnn"
)
"""In an error or its frame: GPU-dependent code."""


def fit(stack: Stack, case: FailureCase, *, is_in_form: bool = False) -> Fit:
    """Return whether a failure applies to a stack, judged by facts, title and labels."""
    signs: list[Fit] = []
    for sign in _signs(stack, case, is_in_form=is_in_form):
        if sign.answer == "no":
            return sign
        signs.append(sign)
    agreeing = [sign.reason if sign.answer == "yes" else sign.agrees for sign in signs]
    reasons = "; ".join(dict.fromkeys(filter(None, agreeing)))
    strong = [sign for sign in signs if sign.answer == "yes" and sign.weight == STRONG]
    weight = sum(sign.weight if sign.answer == "yes" else CARD * bool(sign.agrees) for sign in signs)
    is_like = bool(strong) or weight > MODEL or (weight == MODEL and is_bounded(case))
    if case.facts.failure_kind == "slowdown" and not is_bounded(case):
        signs.append(Fit("unknown", "no release is named that was faster", 0))
    open_ones = [sign for sign in signs if sign.answer == "unknown"]
    is_of_model = any(sign.reason.startswith("with ") for sign in strong)
    if is_of_model and case.facts.failure_kind not in OF_SIZE:
        # The title names the very model: what the report leaves out is no condition that it states.
        open_ones = [sign for sign in open_ones if sign.reason != NO_GPU]
    if open_ones:
        # A matching GPU says little if neither a model nor a part of vLLM is named.
        is_named = strong or case.facts.models or case.titled_models
        is_near = bool(is_named and weight >= MODEL) or all(sign.is_near for sign in open_ones)
        # Nobody can check a condition that the report leaves out.
        is_of_part = any(sign.reason.startswith("of ") for sign in strong)
        is_stated = is_of_part or is_bounded(case) or all(sign.weight != LEFT_OUT for sign in open_ones)
        is_near = is_near and is_stated and _is_descriptive(case.title)
        return _unknown(open_ones, reasons, weight, is_near=is_near)
    missing = "the report does not say what it depends on" if signs else "nothing in it names your stack"
    is_near = weight > MODEL
    if is_like:
        # What merely stops with the stack's model or feature may stop for any reason.
        kind = case.facts.failure_kind
        is_told = kind not in _KINDS_WITH_ERROR or is_bounded(case)
        if case.facts.error or kind in _KINDS_WITHOUT_ERROR or (strong and is_told):
            return Fit("yes", reasons, weight)
        missing = "its error is not known"
    return _unknown([Fit("unknown", missing)], reasons, weight, is_near=is_near)


def _is_descriptive(title: str) -> bool:
    """True if a title has more than one word besides its tags."""
    return len(_TAG.sub("", title).split()) > 1


def _unknown(open_ones: Sequence[Fit], agrees: str, weight: int, *, is_near: bool) -> Fit:
    """Combine the unknowns into one answer. A sign with weight 0 speaks against the stack."""
    missing = {sign.reason: sign.missing for sign in open_ones}
    count = sum(missing.values())
    is_near = is_near and count <= UNKNOWNS_MAX and all(sign.weight > 0 for sign in open_ones)
    return Fit("unknown", "; ".join(missing), weight - count, is_near, agrees, count)


def _signs(stack: Stack, case: FailureCase, *, is_in_form: bool) -> Iterator[Fit]:
    """Yield the evidence from each part of a report."""
    for read in (_platform, _titled_architecture, *_readers_of(case.title), checkpoint_sign):
        if sign := read(stack, case):
            yield sign
    features = features_of(case.title, case.labels)
    yield from (_feature(stack, row, case.title) for row in features)
    is_software = any(row.get("is_software") for row in features)
    is_of_hardware = not is_software and _depends_on_hardware(case)
    is_of_requests = is_software and any(row.get("asked") for row in features)
    if sign := model_sign(
        stack,
        case,
        is_of_hardware=is_of_hardware,
        is_software=is_software,
        is_of_requests=is_of_requests,
    ):
        yield sign
    if sign := _gpu(stack, case, is_of_hardware, is_of_part=bool(features)):
        yield sign
    if not (is_software or is_in_form) and (sign := weights_sign(stack, case)):
        yield sign


@lru_cache(maxsize=1)
def _readers() -> tuple[Any, tuple[_Reader, ...]]:
    """Return one automaton that says which title readers apply, and the readers."""
    rows: tuple[tuple[Any, _Reader], ...] = (
        (_OPTION, _titled_options),
        (_BARE_OPTION, _titled_options),
        (_PARSER, _titled_parser),
        (CLASS, class_sign),
        (_COUNT, _titled_count),
        (WORKS, works_with),
    )
    return pattern_set([rule.pattern for rule, _ in rows]), tuple(read for _, read in rows)


@lru_cache(maxsize=16_384)
def _readers_of(title: str) -> tuple[_Reader, ...]:
    """Return the readers whose pattern matches the title."""
    found, readers = _readers()
    return tuple(dict.fromkeys(readers[at] for at in sorted(found.Match(title) or ())))


def refine_fit(stack: Stack, case: FailureCase, text: str, found: Fit) -> Fit:
    """Refine the answer `found` with the text of the report."""
    if (mine := stack_form(stack)) and mine in {match[0].upper() for match in FORM.finditer(text)}:
        read = fit(stack, case, is_in_form=True)  # the text names the stack's quantization
        is_all = read.answer != found.answer
        found = (
            replace(found, reason=f"its text names {mine} weights, perhaps of another run")
            if is_all
            else read
        )
    differences = [*differences_of_run(stack, case.facts, case.title, case.labels, text)]
    if size := other_size(stack, case, text):
        differences.append(size)
    if case.facts.error is None and len(_TEMPLATE.sub(" ", text).split()) < WORDS_MIN:
        differences.append(Fit("unknown", "the report says little"))
    if not differences:
        return found
    if found.answer == "yes":
        return _unknown(differences, found.reason, found.weight, is_near=True)
    reason = found.reason
    if size:  # the text names a size and the facts do not
        reason = "; ".join(part for part in reason.split("; ") if not part.startswith(NO_SIZE))
    stated = Fit("unknown", reason, missing=found.missing)
    known = found.weight + found.missing
    return _unknown([stated, *differences], found.agrees, known, is_near=found.is_near)


def _depends_on_hardware(case: FailureCase) -> bool:
    """True if a failure may depend on the GPU: any kind but plain exceptions and response formatting."""
    error, kind = case.facts.error, case.facts.failure_kind
    if (
        kind in {"wrong_output", "other"}
        and _RESPONSE_FORMAT.search(case.title)
        and not _COMPUTATION.search(case.title)
    ):
        return False
    if error is None or kind in _HARDWARE_KINDS:
        return True
    return bool(_KERNEL.search(f"{error.line} {error.frame}"))


def _platform(stack: Stack, case: FailureCase) -> Fit | None:
    """Judge by the hardware vendor; a match alone is no evidence that the stack is affected."""
    theirs = {[*_PLATFORMS][at] for at in _TITLED_PLATFORMS.Match(case.title) or ()}
    theirs |= {_LABELS[label] for label in case.labels if label in _LABELS}
    theirs |= {vendor_of(gpu) for gpu in case.titled_gpus}
    theirs |= {name for mark, name in _BUILDS.items() if mark in case.facts.versions.get("vllm", "")}
    if not theirs and case.facts.error and _CUDA_ERROR.search(case.facts.error.line):
        theirs = {"NVIDIA"}
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
    """Return architecture and chip class, as each has its own kernels; None if unknown."""
    architecture = architecture_of(gpu)
    if architecture is None:
        return None
    chip = "edge" if _EDGE.search(gpu) else "workstation" if _WORKSTATION.search(gpu) else "server"
    if found := _CHIPS.search(gpu):
        chip = "new" if (found[2] or found[3]) in {"5", "9"} else "old"
    return architecture, chip


def _titled_options(stack: Stack, case: FailureCase) -> Fit | None:
    """Judge by options in the title that the stack does not set, or sets to another value."""
    named = {normalise_name(one[1]): one for one in _OPTION.finditer(case.title) if "--no-" not in one[1]}
    unset = {normalise_name(one[1] or one[2]) for one in _UNSET.finditer(case.title)}
    if helping := sorted(unset.intersection(stack.options or ())):
        return Fit("no", f"it fails without --{helping[0]}, which yours sets")
    named = {name: one for name, one in named.items() if name not in unset}
    if not named and (bare := _bare_option(stack, case.title)):
        return bare
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


def _bare_option(stack: Stack, title: str) -> Fit | None:
    """Judge by an option that the title names without dashes and the stack may not set."""
    named = {normalise_name(found) for found in _BARE_OPTION.findall(title)} & TITLED_OPTIONS
    missing = sorted(named.difference(stack.options or ()))
    if not missing:
        return None
    is_known = stack.options is not None and missing[0] not in USUAL_OPTIONS
    reason = f"its title names {missing[0]}: it matters if yours sets it"
    return Fit("unknown", reason, 0 if is_known else STRONG)


def _titled_parser(stack: Stack, case: FailureCase) -> Fit | None:
    """Judge by the parser that the title names."""
    found = _PARSER.search(case.title)
    if found is None:
        return None
    name = found[1] or found[2] or found[3] or found[4]
    if stack.options is None:
        return Fit("unknown", f"it is of the parser {name}: your arguments are not known")
    options = [option for word, option in PARSER_OPTIONS.items() if word in found[0].lower()]
    mine = [_plain_name(stack.options.get(option, "")) for option in options or PARSER_OPTIONS.values()]
    if any(one and one in _plain_name(name) for one in mine):
        return Fit("yes", f"of the parser {name}, as yours")
    return Fit("no", f"its title names the parser {name}, which yours has not")


def _titled_count(stack: Stack, case: FailureCase) -> Fit | None:
    """Judge by the number of GPUs that the title names."""
    found = _COUNT.search(case.title)
    if found is None or stack.options is None:
        return None
    named = int(next(filter(None, found.groups())))
    sizes = [stack.options.get(f"{name}-parallel-size", "1") for name in ("tensor", "pipeline", "data")]
    mine = prod(int(size) for size in sizes if size.isdigit())
    if named in {mine, int(sizes[0]) if sizes[0].isdigit() else mine}:
        return None
    return Fit("unknown", f"its title names {found[0].strip()}, and yours has {mine}", 0)


def _plain_name(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _titled_architecture(stack: Stack, case: FailureCase) -> Fit | None:
    """Return "no" if the title names only other architectures than the stack's."""
    mine = generation_of(stack.gpu) if stack.gpu else None
    named = [_ARCHITECTURES[at][1:] for at in sorted(_TITLED_ARCHITECTURES.Match(case.title) or ())]
    if mine is None or not named or any(name == mine[0] and chip in {"", mine[1]} for name, chip in named):
        return None
    return Fit("no", f"its title names {' '.join(named[0]).strip()}; yours is {stack.gpu}")


@lru_cache(maxsize=2048)
def vendor_of(gpu: str) -> str:
    """Return the vendor of an accelerator."""
    return next((vendor for rule, vendor in _VENDOR if rule.search(gpu)), "NVIDIA")


def _feature(stack: Stack, row: dict[str, Any], title: str) -> Fit:
    is_on, name = has_feature(stack, row), row["name"]
    if is_on is None:
        weight = 0 if row.get("is_apart") else STRONG
        is_of_requests = bool(row.get("is_software") and row.get("asked"))
        return Fit("unknown", doubt_sentence(row, title), weight, is_near=is_of_requests)
    if not is_on:
        return Fit("no", f"it needs {name}, which yours has not")
    is_sign = "on" in row and not row.get("is_common")
    return Fit("yes", f"of {name}, as yours", STRONG if is_sign else 0)


def _gpu(stack: Stack, case: FailureCase, is_of_hardware: bool, *, is_of_part: bool) -> Fit | None:
    """Compare the GPU in the title, or else in the report, with the stack's."""
    titled, names = case.titled_gpus, case.titled_gpus or case.facts.gpus
    if not stack.gpu:
        depends = titled or (names and is_of_hardware)
        return Fit("unknown", f"it was seen on {names[0]}: your GPU is not known") if depends else None
    mine, weight = generation_of(stack.gpu), MODEL if titled else CARD
    same = next((name for name in names if mine and generation_of(name) == mine), None)
    if stack.gpu in names:
        return Fit("yes", f"on {stack.gpu}", weight)
    # A title that names a card says that others may not fail.
    is_alike = case.facts.failure_kind not in OF_SIZE and not (titled and is_of_hardware)
    if same and is_alike:
        return Fit("yes", f"on {same}, {stack.architecture} as yours", weight)
    if titled and not same:
        return Fit("no", f"its title names {titled[0]}; yours is {stack.gpu}")
    if not is_of_hardware and (is_of_part or not names or same):
        return None
    seen = f"it was seen on {same or names[0]}, not on {stack.gpu}" if names else NO_GPU
    return Fit("unknown", seen, STRONG if names and is_of_hardware else LEFT_OUT)
