"""How a stored failure relates to a stack: what agrees, what differs, and what rules the stack out. Pure.

Every part of a report gives signs. One that rules out decides; a failure is the stack's if its model or a
feature of its own agrees and nothing differs. What a report leaves out is no difference: the answer says what
it rests on, and the reader has the report beside it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from app.extract.facts import ErrorFact
from app.extract.fields.gpu_names import architecture_of, find_mentions
from app.extract.fields.settings import normalise_name
from app.extract.log.messages import wrapper_rule
from app.extract.rules.patterns import PatternSet, pattern
from app.knowledge.stack.features import (
    DECISIVE_OPTIONS,
    NEEDS,
    PARSER_OPTIONS,
    PARSERS,
    TITLED_OPTIONS,
    USUAL_OPTIONS,
    all_features,
    doubt_sentence,
    features_of,
    features_of_run,
    has_feature,
    settings_of_run,
)
from app.knowledge.stack.models import is_very_model, model_signs, other_variant, plain_title
from app.knowledge.stack.shapes import HARDWARE_KINDS, FailureCase, Relation, Sign
from app.knowledge.stack.stack import Stack
from app.match.pairs.features import VAGUE_AXES, axes_of
from app.match.search.agreement import families_named

TEXT_MAX = 40_000
"""Maximum number of code points of a report searched for its run."""
_UNTOLD_KINDS = frozenset({"exception", "other"})
"""Kinds that, without an error, do not say what failed."""
_VERY_CARD_KINDS = frozenset({"oom", "slowdown"})
"""Kinds that depend on the very card, not only on its architecture."""
_COMPUTATION = pattern(
    r"(?i)garb|gibberish|!!!|exclamation|nonsens|\bnan\b|accura|degrad|diverge|determinis|quality|hallucinat|corrupt|incoheren|repeat"
    r"|random|scrambl|endless|precision|(?:wrong|weird|different|incorrect) (?:output|answer|result)"
)
"""In the title of a wrong output: the computation is at fault, which depends on the kernels."""
_KERNEL = pattern(
    r"(?i)cuda|\bhip|triton|nccl|illegal|out ?of ?(?:memory|resources)|cublas|cutlass|flash|deep_?gemm"
    r"|kernel|ptxas|PassManager|capability|\bsm_?\d|torch\.ops|_C\b|nvrtc|nvcc|cudnn"
)
"""In an error or its frame: GPU-dependent code."""
_PLATFORMS = {
    "NVIDIA": r"(?i)\b(?:cuda|nvidia|nvcc|cublas|cudnn|cutlass|flashinfer|deep_?gemm|trt-?llm|flashmla)",
    "AMD": r"(?i)\brocm|\bamd\b|\baiter\b|\bhip\b|\bgfx\d|\bMI ?[23]\d\d|radeon|strix|ryzen",
    "CPU": r"(?i)\bcpu (?:backend|only|inference|build|platform|device)|\[cpu\]|\baarch64\b|s390x|ppc64",
    "TPU": r"(?i)\btpu\b",
    "Intel": r"(?i)\bxpu\b|\bintel\b|\barc\b|\bgaudi\b|\bhpu\b",
    "Ascend": r"(?i)\bascend\b|\bnpu\b",
    "Neuron": r"(?i)\bneuron\b|trainium|inferentia",
    "OpenVINO": r"(?i)openvino",
}
_OF_HARDWARE = frozenset({"several_gpus", "kv_dtype"})
"""Features of a run that decide only where the failure depends on the hardware."""
_CUDA_ERROR = pattern(r"(?i)\bcuda (?:driver |runtime )?error\b|\bcudaError\w+|\bCUBLAS_STATUS_\w+")
"""An error that NVIDIA's libraries report; AMD's have names of their own."""
_LABELS = {"rocm": "AMD", "cpu": "CPU", "tpu": "TPU", "intel-gpu": "Intel", "aws-neuron": "Neuron"}
_BUILDS = {"+cpu": "CPU", ".cpu": "CPU", "+rocm": "AMD", "+xpu": "Intel", "+tpu": "TPU", ".empty": "another"}
"""Version suffixes by the platform they were built for."""
_ARCHITECTURES: tuple[tuple[str, str, str], ...] = (
    (r"(?i)\bvolta\b|\bsm[-_ ]?70\b", "Volta", ""),
    (r"(?i)\bturing\b|\bsm[-_ ]?75\b", "Turing", ""),
    (r"(?i)\bampere\b|\bsm[-_ ]?8[067]\b", "Ampere", ""),
    (r"(?i)\bada\b|\bsm[-_ ]?89\b", "Ada Lovelace", ""),
    (r"(?i)\bhopper\b|\bsm[-_ ]?90a?\b", "Hopper", ""),
    (r"(?i)\bsm[-_ ]?100a?\b|\bsm[-_ ]?10\.0", "Blackwell", "server"),
    (r"(?i)\bsm[-_ ]?103a?\b|\bsm[-_ ]?10\.3", "Blackwell", "ultra"),
    (r"(?i)\bsm[-_ ]?120a?\b|\bsm[-_ ]?12\.0|rtx blackwell", "Blackwell", "workstation"),
    (r"(?i)\bblackwell\b", "Blackwell", ""),
    (r"(?i)\bsm[-_ ]?1(?:10|21)a?\b|\bsm[-_ ]?1(?:1\.0|2\.1)|jetson|\bthor\b|spark\b", "Blackwell", "edge"),
)
"""Architecture names in titles: pattern, architecture, chip class."""
_TITLED_PLATFORMS = PatternSet([*_PLATFORMS.values()])
_TITLED_ARCHITECTURES = PatternSet([text for text, _, _ in _ARCHITECTURES])
_VENDORS = (
    (pattern(r"(?i)^(?:MI ?\d|radeon|RX ?\d|W\d{4}|gfx|strix|ryzen)"), "AMD"),
    (pattern(r"(?i)^CPU"), "CPU"),
    (pattern(r"(?i)tpu"), "TPU"),
    (pattern(r"(?i)arc|gaudi|xpu|max 1\d{3}"), "Intel"),
    (pattern(r"(?i)ascend|910|npu"), "Ascend"),
    (pattern(r"(?i)trn|inf\d|inferentia|trainium|neuron"), "Neuron"),
)
_WORKSTATION = pattern(r"(?i)RTX|GeForce|^A(?:2|10|10G|16|40)$")
_EDGE = pattern(r"(?i)GB10\b|Thor|Spark|Jetson|Orin")
_ULTRA = pattern(r"(?i)B300")
"""Blackwell cards with an instruction set of their own, `sm_103`."""
_CHIPS = pattern(r"^MI ?(\d)(\d)\d|^RX ?(\d)\d{3}")
"""The digits of an AMD card that name its generation: MI355 has other limits than MI325."""
_OPTION = pattern(r"(--[a-z][a-z_-]+[a-z])(?:[ =]([\w.]+))?")
_UNSET = pattern(
    r"(?i)\bwithout (?:(?:setting|using|specifying) )?[`'\"]?(--[a-z_-]+)"
    r"|(--[a-z_-]+)[`'\"]? (?:is|was) not (?:enabled|set|given|used)\b"
)
"""In a title: an option without which it fails."""
_COMPARED = pattern(r"(?i)\b(?:than|vs|versus|compared|slower|faster)\b|% of\b")
"""In a title that names two GPUs: the second is what the first is measured by."""
_BARE_OPTION = pattern(r"\b[a-z]+(?:[-_][a-z\d]+)+\b")
_NUMBER = re.compile(r"[\d.]+")
_PARSER = pattern(
    r"\b([A-Z][A-Za-z0-9]*?)(?:Reasoning|Tool(?:Call)?)Parser\b|\b(\w+?)_(?:tool|reasoning)_parser\b"
    r"|(?i)\b([a-z]\w*\d\w*) (?:tool|reasoning)[ -](?:call(?:ing)?[ -])?parser\b"
    r"|\b(hermes|pythonic)\b"
    rf"|\b({'|'.join(PARSERS)})(?:[ _-](?:tool|reasoning|call(?:s|ing)?)){{0,2}}[ _-]?pars(?:er|ing)"
)
"""A parser's class, module, versioned name or well-known name, in a title."""
_CLAUSES = pattern(
    r"(?i)(\b(?:when(?:ever)?|if|using|under|during|while|with(?:out)?|after|unless|upon|via|through|on|for|from)\b)"
    r"|\b(?:and|but|in|to|due|because|since|despite|causes?|leads?)\b|[,.;:()\[\]]\B|[()\[\]]"
)
"""Start of a clause in a title; group 1 if the clause states a condition."""
_FILLERS = pattern(
    r"(?i)\b(?:vllm|running|runs?|serv\w+|using|loading|load(?:ed)?|models?|server|engine|inference|deploy\w*|start\w*"
    r"|updat\w+|upgrad\w+|a|an|the|it|its|this|any|some|new|latest|same|multiple|following|all|even|only|no"
    r"|when|whenever|if|under|during|while|with|without|after|upon|via|through|unless|on|for|from"
    r"|api|openai|chat|completions|requests?|weights?|checkpoints?|warm-?up|runtime|decod\w+|inferenc\w+"
    r"|nightly|v1|hardware|phase"
    r"|first|second|one|two|gpus?|single|\d+)\b|\W+"
)
"""Words that add no condition to such a clause."""
_SYMPTOM = pattern(
    r"(?i)error|exception|exit|\bcode\b|fail|traceback|messag|crash|assert|nan\b|warning|valu|status|support|expect"
    r"|output|probab|profil|start|init|finish"
    r"|gibber|garb|empty|wrong|missing|incorrect|invalid|unexpected|latency|slow|platform|cuda|rocm|cpu|\d\.\d"
)
"""Marks of a clause that states the symptom or version, not a condition."""
_EXPLICIT_CONDITION = pattern(
    r"(?i)\bonly (?:occurs?|happens?|happened|appears?|reproduc\w+|fails?|crashes|affects?|when|if|with)\b"
    r"[^.,;:()\n]{3,60}"
)
"""In a text: an explicit condition of the failure."""
_SPARED = pattern(
    r"(?i)(?:not|n't|never) (?:occur|happen|appear|reproduc\w+|fail|affect|exist|present)\w*"
    r"(?: at all)? (?:with|on|for|in|using|when using) (?:the )?[`'\"]?([\w./-]+)"
    r"|\b([\w./-]+)[`'\"]?(?:(?:,| \()[^().\n]{1,40}\))? (?:model )?"
    r"(?:works|is working|runs|loads|(?:deploys and )?serves) (?:fine|well|correctly|as expected|without)"
    r"|(?i)\bbut ([\w./-]+)(?: \d+B)? (?:does(?: not|n't)|works)\b"
)
"""In a text: what the failure is said not to occur with."""
_ERROR_LINE = re.compile(r"\b\w*(?:[Ee]rror|Exception)\b: ?")
_BARE_TYPE = re.compile(r"\w*(?:Error|Exception):?")
_NOT_OF_THE_RUN = pattern(
    r"https?://[^\s)\]>]+|\b[\w-]+/[\w.-]+#\d+|with the command `pip install [^`\n]{1,60}`"
)
"""In a text: links, and the advice transformers prints for an unknown model."""


def relate(stack: Stack, case: FailureCase) -> Relation:
    """Return how a failure relates to a stack, by facts, title and labels."""
    agrees: dict[str, None] = {}
    differs: dict[str, bool] = {}
    is_specific = False
    for sign in _signs(stack, case):
        if sign.kind == "rules_out":
            return Relation(ruled_out=sign.words)
        if sign.kind == "agrees":
            agrees[sign.words] = None
        else:
            differs[sign.words] = sign.is_slight
        is_specific |= sign.is_specific
    slight = frozenset(words for words, is_slight in differs.items() if is_slight)
    return Relation(tuple(agrees), tuple(differs), None, is_specific, slight)


def title_test(stack: Stack) -> Callable[[str, Collection[str]], bool]:
    """Return a test of title and labels: may they name what this stack has, and not every stack?"""
    rows = [row for row in all_features() if has_feature(stack, row) and not row.get("is_common")]
    texts = [row["title"].pattern for row in rows] + (["--", _PARSER.pattern] if stack.options else [])
    titles = PatternSet(texts)
    labels = {label for row in rows for label in row.get("labels", ())}
    return lambda title, named: bool(titles.matching(title)) or not labels.isdisjoint(map(str.lower, named))


def relate_text(stack: Stack, case: FailureCase, text: str, found: Relation) -> Relation:
    """Return the relation `found` with what else differs in the run that the report's text tells of."""
    more = [*_differences_of_text(stack, case, _NOT_OF_THE_RUN.sub("", text[:TEXT_MAX]))]
    return replace(
        found,
        differs=tuple(dict.fromkeys([*found.differs, *(sign.words for sign in more)])),
        slight=found.slight.union(sign.words for sign in more if sign.is_slight),
    )


def _signs(stack: Stack, case: FailureCase) -> Iterator[Sign]:
    """Yield the signs of each part of a report."""
    features = features_of_case(case)
    for read in (_platform, _titled_architecture, _options, _bare_options, _parser, _remedied):
        yield from read(stack, case)
    for row in features:
        yield from _feature(stack, row, case)
    is_software, is_of_hardware = _parts_at_fault(case, features)
    yield from model_signs(stack, case, is_software=is_software, is_of_hardware=is_of_hardware)
    yield from _gpu(stack, case, is_of_hardware=is_of_hardware, is_software=is_software)
    if not (case.titled_gpus or case.facts.gpus):
        if case.facts.failure_kind in HARDWARE_KINDS and not is_software:
            yield Sign("differs", "it may depend on the card, and it names none")
        elif not is_software and _is_any_failure(case):
            yield Sign("differs", "its error has many causes, and it names no card")
        elif is_of_hardware and stack.gpu and vendor_of(stack.gpu) != "NVIDIA":
            yield Sign("differs", f"it names no card, and {vendor_of(stack.gpu)} has kernels of its own")
    if not features and _is_untold(case):
        yield Sign("differs", "it does not tell what fails")
    if case.facts.failure_kind == "slowdown" and case.facts.regression is None:
        yield Sign("differs", "it compares with no other version")
    if condition := _stated_condition("its title", _clauses(case.title), features):
        yield Sign("differs", condition)


def features_of_case(case: FailureCase) -> Sequence[Mapping[str, Any]]:
    return features_of(case.title, case.labels, case.facts.versions.get("vllm"))


def is_of_software(features: Iterable[Mapping[str, Any]]) -> bool:
    """True if a failure with these features depends neither on the hardware nor on a model's size."""
    return any(row.get("is_software") for row in features)


def _parts_at_fault(case: FailureCase, features: Iterable[Mapping[str, Any]]) -> tuple[bool, bool]:
    """Return whether a failure is of software alone (`is_software`), and whether it may depend on the GPU."""
    error, kind = case.facts.error, case.facts.failure_kind
    if is_of_software(features):
        return True, False
    if kind in HARDWARE_KINDS or _COMPUTATION.search(case.title):
        return False, True
    return False, error is not None and _KERNEL.search(f"{error.line} {error.frame}") is not None


def _platform(stack: Stack, case: FailureCase) -> Iterator[Sign]:
    """Judge by the hardware vendor; a match alone is no evidence that the stack is affected."""
    theirs = {[*_PLATFORMS][at] for at in _TITLED_PLATFORMS.matching(case.title)}
    theirs |= {_LABELS[label] for label in case.labels if label in _LABELS}
    theirs |= {vendor_of(gpu) for gpu in case.titled_gpus}
    theirs |= {name for mark, name in _BUILDS.items() if mark in case.facts.versions.get("vllm", "")}
    if not theirs and case.facts.error and _CUDA_ERROR.search(case.facts.error.line):
        theirs = {"NVIDIA"}
    if not stack.gpu:
        if other := sorted(theirs - {"NVIDIA"}):
            yield Sign("differs", f"it is of {' and '.join(other)}: your GPU is not known")
        return
    mine = vendor_of(stack.gpu)
    theirs = theirs or {vendor_of(gpu) for gpu in case.facts.gpus}
    if theirs and mine not in theirs:
        yield Sign("rules_out", f"it is of {' and '.join(sorted(theirs))}; yours is {mine}")


@lru_cache(maxsize=2048)
def vendor_of(gpu: str) -> str:
    """Return the vendor of an accelerator."""
    return next((vendor for rule, vendor in _VENDORS if rule.search(gpu)), "NVIDIA")


def generation_of(gpu: str) -> tuple[str, str] | None:
    """Return architecture and chip class, as each has its own kernels; None if unknown."""
    architecture = architecture_of(gpu)
    if architecture is None:
        return None
    chip = "edge" if _EDGE.search(gpu) else "workstation" if _WORKSTATION.search(gpu) else "server"
    if found := _CHIPS.search(gpu):
        chip = "new" if (found[2] or found[3]) in {"5", "9"} else "old"
    return architecture, chip


def _titled_architecture(stack: Stack, case: FailureCase) -> Iterator[Sign]:
    """Rule out a stack whose architecture is none of those that the title names."""
    mine = generation_of(stack.gpu) if stack.gpu else None
    named = [_ARCHITECTURES[at][1:] for at in _TITLED_ARCHITECTURES.matching(case.title)]
    chips = {"", "ultra"} if _ULTRA.search(stack.gpu or "") else {"", mine[1]} if mine else set()
    if any(chip for _, chip in named):  # "SM120 (Blackwell)" is of SM120
        named = [one for one in named if one[1] or one[0] != "Blackwell"]
    if mine and named and not any(name == mine[0] and chip in chips for name, chip in named):
        yield Sign("rules_out", f"its title names {' '.join(named[0]).strip()}; yours is {stack.gpu}")


def _is_any_failure(case: FailureCase) -> bool:
    """True if the error has many causes, is told by its type alone, or is not told at all."""
    error = _shown_error(case)
    if error is None:
        return _is_untold(case) or _names_many_failures(case.title)
    return _BARE_TYPE.fullmatch(error.line) is not None or _names_many_failures(error.line)


def _is_untold(case: FailureCase) -> bool:
    """True if the report shows no error but a wrapper, and its kind does not say what fails either."""
    is_silent = case.facts.failure_kind in _UNTOLD_KINDS and case.facts.regression is None
    return is_silent and _shown_error(case) is None


def _shown_error(case: FailureCase) -> ErrorFact | None:
    """Return the error of a report; None for a wrapper of one that it does not show."""
    error = case.facts.error
    return error if error is not None and wrapper_rule(error.line) is None else None


@lru_cache(maxsize=8192)
def _names_many_failures(error: str) -> bool:
    return bool(axes_of(error) & VAGUE_AXES)


def _gpu(stack: Stack, case: FailureCase, *, is_of_hardware: bool, is_software: bool) -> Iterator[Sign]:
    """Compare the GPU in the title, or else in the report, with the stack's.

    Another architecture is a slight difference if an error or the part at fault shows that it seldom decides.
    """
    titled, names = case.titled_gpus, case.titled_gpus or case.facts.gpus
    if not names:
        return
    if not stack.gpu:
        if titled or is_of_hardware:
            yield Sign("differs", f"it was seen on {names[0]}: your GPU is not known")
        return
    mine = generation_of(stack.gpu)
    same = next((name for name in names if mine and generation_of(name) == mine), None)
    is_very_card = case.facts.failure_kind in _VERY_CARD_KINDS
    if _COMPARED.search(case.title) and len(titled) > 1:
        yield Sign("differs", f"its title compares {' and '.join(titled)}")
    if stack.gpu in names:
        yield Sign("agrees", f"on {stack.gpu}")
    elif same and not is_very_card:
        yield Sign("agrees", f"on {same}, {stack.architecture} as yours")
    elif titled and not same:
        yield Sign("rules_out", f"its title names {titled[0]}; yours is {stack.gpu}")
    elif is_of_hardware or not same:
        is_slight = not is_of_hardware and (is_software or case.facts.error is not None)
        yield Sign("differs", f"it was seen on {same or names[0]}, not on {stack.gpu}", is_slight=is_slight)


def _options(stack: Stack, case: FailureCase) -> Iterator[Sign]:
    """Judge by the options in the title."""
    if stack.options is None:
        return
    named = {normalise_name(one[1]): one for one in _OPTION.finditer(case.title) if "--no-" not in one[1]}
    unset = {normalise_name(one[1] or one[2]) for one in _UNSET.finditer(case.title)}
    unset |= {needed for name, needed in NEEDS.items() if name in unset}
    for name in sorted(unset.intersection(stack.options)):
        yield Sign("rules_out", f"it fails without --{name}, which yours sets")
    named = {name: one for name, one in named.items() if name not in unset}
    common = sorted(stack.options.keys() & named.keys())
    if named and not common:
        yield Sign("rules_out", f"it needs {next(iter(named.values()))[1]}, which yours has not")
    for name in common:
        option, value = named[name].groups("")
        mine = stack.options[name]
        if value and mine and _plain_name(value) not in _plain_name(mine) and not _NUMBER.fullmatch(mine):
            yield Sign("differs", f"its title names {option} {value}; yours is {mine}")
        else:
            yield Sign("agrees", f"with {option}, as yours", is_specific=name not in USUAL_OPTIONS)


def _bare_options(stack: Stack, case: FailureCase) -> Iterator[Sign]:
    """Judge by an option that the title names without dashes."""
    named = {normalise_name(found) for found in _BARE_OPTION.findall(case.title)} & TITLED_OPTIONS
    for name in sorted(named.difference(stack.options or ()))[:1]:
        yield Sign("differs", f"its title names {name}: it matters if yours sets it")


def _parser(stack: Stack, case: FailureCase) -> Iterator[Sign]:
    """Judge by the parser that the title names."""
    found = _PARSER.search(case.title)
    if found is None:
        return
    name = found[1] or found[2] or found[3] or found[4] or found[5]
    if stack.options is None:
        yield Sign("differs", f"it is of the parser {name}: your arguments are not known")
        return
    options = [option for word, option in PARSER_OPTIONS.items() if word in found[0].lower()]
    mine = [_plain_name(stack.options.get(option, "")) for option in options or PARSER_OPTIONS.values()]
    if any(one and one in _plain_name(name) for one in mine):
        yield Sign("agrees", f"of the parser {name}, as yours", is_specific=True)
    else:
        yield Sign("rules_out", f"its title names the parser {name}, which yours has not")


def _remedied(stack: Stack, case: FailureCase) -> Iterator[Sign]:
    """Judge by the options that a working remedy sets: where the stack has chosen them, it may be spared."""
    for item in case.facts.workarounds:
        if item.outcome == "fails" or item.without:
            continue
        for found in _OPTION.finditer(item.action):
            name, value = normalise_name(found[1]), found[2] or ""
            mine = (stack.options or {}).get(name)
            if mine is not None and (mine == value or not _NUMBER.fullmatch(mine or value)):
                yield Sign("differs", f"{found[1]} is reported to avoid it, and yours sets it")


def _plain_name(name: str) -> str:
    return re.sub(r"[ _-]", "", name.lower())


def _feature(stack: Stack, row: Mapping[str, Any], case: FailureCase) -> Iterator[Sign]:
    if row.get("is_compared") and case.facts.regression is not None:
        return
    is_on = has_feature(stack, row)
    if is_on is None:
        yield Sign("differs", doubt_sentence(row, case.title), is_slight=bool(row.get("is_slight")))
    elif not is_on:
        yield Sign("rules_out", f"it needs {row['name']}, which yours has not")
    elif not row.get("is_common"):
        # A closed report of tool calls or reasoning is mostly of one model or parser, named or not.
        is_specific = case.state == "open" or not row.get("is_software")
        yield Sign("agrees", f"of {row['name']}, as yours", is_specific=is_specific)


def _clauses(title: str) -> list[str]:
    """Return the clauses of a title that state a condition."""
    title = _ERROR_LINE.split(title)[0]
    marks = [*_CLAUSES.finditer(title)]
    ends = [following.start() for following in marks[1:]]
    return [title[mark.start() : end] for mark, end in zip_longest(marks, ends) if mark[1]]


def _stated_condition(
    place: str, clauses: Iterable[str], features: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return a sentence on the first condition that no other sign covers, or None."""
    for words in clauses:
        clause = words.strip(" *`'\"-\u2014")
        is_asked = "--" in clause or any(row["title"].search(clause) for row in features)
        is_card = _TITLED_ARCHITECTURES.matching(clause) or any(find_mentions(clause))
        is_named = is_card or families_named(plain_title(clause)) or _PARSER.search(clause)
        if not (is_asked or is_named or _SYMPTOM.search(clause)) and _FILLERS.sub("", clause):
            return f"{place} says “{clause}”: it matters if that is so for you"
    return None


def _differences_of_text(stack: Stack, case: FailureCase, text: str) -> Iterator[Sign]:
    """Yield the differences between the run that a report's text tells of and the stack."""
    if not text.strip():
        yield Sign("differs", "it has no text: what it takes is not known")
    features = features_of_case(case)
    tried = " ".join(item.action for item in case.facts.workarounds)
    settings = [(name, value) for name, value in settings_of_run(text) if name not in tried]
    known = [row["id"] for row in features]
    _, is_of_hardware = _parts_at_fault(case, features)
    for row, verb in features_of_run(text, settings, known, case.facts.versions.get("vllm")):
        if has_feature(stack, row) is not True:
            words = row.get("doubt", f"the report {verb} {row['name']}: it matters if yours has that")
            is_slight = row.get("is_slight") or (not is_of_hardware and row["id"] in _OF_HARDWARE)
            yield Sign("differs", words, is_slight=bool(is_slight))
    if other := other_variant(stack, text):
        yield Sign("differs", f"the report speaks of {other}")
    stated = (found[0] for found in _EXPLICIT_CONDITION.finditer(text))
    if condition := _stated_condition("the report", stated, features):
        yield Sign("differs", condition)
    for found in _SPARED.finditer(f"{case.title}\n{text}"):
        name = found[1] or found[2] or found[3]
        if is_very_model(name, stack) or stack.gpu in {item.name for item in find_mentions(name)}:
            yield Sign("differs", f"the report says that it does not fail with {name}")
    mine = stack.options or {}
    parsers = {option for name, option in PARSER_OPTIONS.items() if {name, f"{name}s", "parser"} & {*known}}
    decisive = DECISIVE_OPTIONS | parsers
    for name, value in settings:
        given = mine.get(name)
        is_same = given is not None and value.lower().replace("true", "") == given.lower().replace("true", "")
        if name in decisive and not is_same:
            setting = f"--{name} {value}".strip()
            yield Sign("differs", f"the report sets {setting}, which yours is not known to")
