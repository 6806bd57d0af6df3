"""Advice in an error message: quotes, the nearest legal value, and the option that the message is about.

The patterns that recognise advice are data: `advice.toml`. A step has a command only if the message names
the command or the argument.
"""

import json
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from itertools import takewhile
from typing import Any, NamedTuple

from app.extract.fields.launch import Launch
from app.extract.fields.settings import KNOWN_OPTIONS
from app.extract.reader import LogReading
from app.extract.rules.patterns import pattern
from app.knowledge.diagnosis.error_text import (
    ARGUMENT,
    CHOICES,
    lines_above,
    masked_text,
    message_lines,
    sentences,
)
from app.knowledge.diagnosis.headline import cut_at_word
from app.knowledge.diagnosis.shapes import NextStep, QuotedAdvice
from app.knowledge.launch import LEFT_OUT, OWN_COMMAND, named_options, value_of

MAX_QUOTES = 2
MAX_QUOTE_CHARS = 320
MIN_SIMILARITY, MIN_FLAG_SIMILARITY = 0.6, 0.8
MAX_LEGAL_VALUES = 400
MIN_STEM_CHARS = 3
"""Fewest characters of a legal value that the given one extends."""

_INPUT = pattern(r"\[type=[a-z_]+, input_value=.*$")
_QUOTED = pattern(r"'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|`([^`\n]{1,80})`")
_BARE = pattern(r"[\w./+-]*\w")
_LIST = pattern(r"[\[({]([^\[\](){}]+)[\])}]?")
_UNKNOWN = pattern(r"unrecognized arguments?:([^\n]+)")
_FIELD = pattern(r"(?m)validation errors? for (\w+)\s*\n\s*([a-z]\w*(?:\.\w+)*)\s*$")
_PIP = pattern(
    r"\b((?:uv )?pip3? install(?: -[-\w]+)*) "
    r"['\"]?([A-Za-z-][\w\[\]>=<~!.,:/@+-]*[\w\]])['\"]?((?: -[-\w]+)*)"
)
_PLAIN_VALUE = pattern(r"^[\w./+:-]+$")
"""A value that needs no quoting in a command."""
_ASSIGNMENT = pattern(r"\b([A-Z][A-Z0-9]*_[A-Z0-9_]+=['\"]?[\w./:-]*\w)")
_SWITCH = pattern(r"\b([a-z]+(?:_[a-z]+)+)`? ?(?:=|must be (?:set to )?)`?True\b")
_TYPED_OPTION = pattern(r"`--([a-z][a-z-]+)[ =]([\w./-]*\w)`|(?:^|[\s`'\"])--([a-z][a-z-]+)=([\w./-]*\w)")
"""An option that a message spells out with its value."""
_FILLER = frozenset({"or", "and", "are", "is", "of", "the", "one", "be", "to", "type"})


@lru_cache(maxsize=1)
def advice_data() -> dict[str, Any]:
    """Return the parsed `advice.toml`."""
    return tomllib.loads((files(__package__) / "advice.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=5)
def _patterns(name: str) -> tuple[Any, ...]:
    return tuple(pattern(row["pattern"]) for row in advice_data()[name])


class QuotedSteps(NamedTuple):
    """A message's advice as quotes and as steps.

    `later`: steps that the message itself warns about, and those without a command that only an outer error
    says or that list legal values.
    """

    advice: tuple[QuotedAdvice, ...]
    steps: tuple[NextStep, ...]
    later: tuple[NextStep, ...]
    is_risky: bool

    def joined(self, ours: Sequence[NextStep], proven: Sequence[NextStep] = ()) -> tuple[NextStep, ...]:
        """Merge with our own steps; our first step comes before the later ones.

        A command that occurs in both is kept only in our step, which explains it better. If our first step is
        `proven` by the message and has a command, it comes before quotes that have none.
        """
        ours_typed = {step.command for step in ours}
        steps, later = (
            tuple(
                step.model_copy(update={"command": ""}) if step.command in ours_typed else step
                for step in one
            )
            for one in (self.steps, self.later)
        )
        is_first = ours[:1] == proven[:1] and any(step.command for step in ours[:1])
        typed = [step for step in steps if step.command or not is_first]
        return (*typed, *ours[:1], *(step for step in steps if step not in typed), *later, *ours[1:])


def quoted_steps(reading: LogReading, masked_log: str, launch: Launch | None = None) -> QuotedSteps:
    """Return the message's advice as quotes and as steps with commands; corrections come first.

    Args:
        launch: the caller's command, which shows the option that has an illegal value.
    """
    lines = message_lines(reading)
    text = "\n".join(masked_text(line, masked_log) for line in lines)
    above = "\n".join(masked_text(line, masked_log) for line in lines_above(reading))
    advice: list[QuotedAdvice] = []
    steps: list[NextStep] = []
    later: list[NextStep] = []
    if correction := _correction(text, above, launch) or _correct_flag(text):
        advice.append(QuotedAdvice(text=correction.text, source="rule"))
        steps.append(correction)
    quotes = list(dict.fromkeys(_advice_in(text)))
    is_outer = not quotes
    for record in reading.errors.chain if is_outer else ():
        outer = "\n".join(masked_text(line, masked_log) for line in message_lines(reading, record))
        quotes += [quote for quote in _advice_in(outer) if quote not in quotes]
    speaker = "An error raised on top of it" if is_outer else "The message itself"
    for quote in quotes[:MAX_QUOTES]:
        advice.append(QuotedAdvice(text=quote, source="log"))
        step = NextStep(text=f"{speaker} says: “{quote}”", command=_command_in(quote))
        is_first = not _is_warning(quote) and (step.command or not (is_outer or CHOICES.search(quote)))
        (steps if is_first else later).append(step)
    is_risky = any(map(_is_warning, quotes[:MAX_QUOTES]))
    return QuotedSteps(tuple(advice), tuple(steps), tuple(later), is_risky)


def option_step(
    launch: Launch, message: str, steps: Iterable[NextStep], said: Iterable[NextStep] = ()
) -> NextStep | None:
    """Return the step that names the options a message is about; None if it names none, or a step does.

    If the message says that a single option is unsupported, the step leaves it out.

    Args:
        steps: all steps known so far.
        said: those of them that the message itself says or proves.
    """
    named = named_options(launch, message)
    is_answered = any(f"--{piece.name}" in f"{step.text} {step.command}" for piece in named for step in said)
    if len(named) == 1 and not is_answered and any(item.search(message) for item in _patterns("unsupported")):
        return NextStep(
            text=f"The message is about `{named[0].text}` in your command: leave it out.",
            command=f"{LEFT_OUT} --{named[0].name}",
        )
    covered = " ".join(f"{step.text} {step.command}" for step in steps)
    named = tuple(piece for piece in named if f"--{piece.name}" not in covered)
    if not named:
        return None
    texts = " and ".join(f"`{piece.text}`" for piece in named)
    what = "it" if len(named) == 1 else "one of them"
    return NextStep(text=f"The message is about {texts} in your command: correct {what}.")


def is_advice(sentence: str) -> bool:
    """True if a sentence of an error message says what to do."""
    if any(item.search(sentence) for item in _patterns("ignored")):
        return False
    return any(item.search(sentence) for item in _patterns("advice"))


def legal_values(text: str) -> tuple[str, ...]:
    """Return the values that a message lists as legal, in its order."""
    found = CHOICES.search(text)
    if found is None:
        return ()
    rest = _INPUT.sub("", text[found.end() :].partition("\n")[0])
    inner = _LIST.search(rest)
    if inner and inner.start() < 4:
        rest = inner.group(1)
    quoted = [next(filter(None, item.groups())) for item in _QUOTED.finditer(rest)]
    if not quoted:
        quoted = [item.group() for item in _BARE.finditer(rest.partition(")")[0].partition(". ")[0])]
        quoted = [word for word in quoted if word not in _FILLER]
    return tuple(dict.fromkeys(quoted))[:MAX_LEGAL_VALUES]


def given_value(text: str) -> str | None:
    """Return the illegal value that was given; None if the message does not name it."""
    for item in _patterns("given"):
        if found := item.search(text):
            return str(found.group("given"))
    return None


def _correction(text: str, above: str, launch: Launch | None) -> NextStep | None:
    """Suggest the legal value nearest to the given one; None if there is none."""
    values, given = legal_values(text), given_value(text)
    if not given or given in values:
        return None
    meant = _nearest(given, values)
    if meant is None:
        return None
    command = _set_option_with(given, meant, launch) or _set_argument(f"{above}\n{text}", meant)
    return NextStep(text=f"“{given}” is not a legal value; “{meant}” is the nearest one.", command=command)


def _correct_flag(text: str) -> NextStep | None:
    """Suggest the flag nearest to an unrecognised one; None if there is none."""
    found = _UNKNOWN.search(text)
    flags = [word for word in found.group(1).split() if word.startswith("--")] if found else []
    if not flags:
        return None
    given = flags[0].partition("=")[0]
    name = given[2:].replace("_", "-")
    if name in KNOWN_OPTIONS:
        return NextStep(
            text=f"{given} is a flag of vLLM 0.33: the release that runs is another one; ask it for its own.",
            command="vllm --version; vllm serve --help=all | grep -e " + f"--{name}",
        )
    opposite = f"enable-{name.removeprefix('disable-').removeprefix('no-')}"
    if opposite != f"enable-{name}" and opposite in KNOWN_OPTIONS:
        return NextStep(
            text=f"{given} is no flag of this release: leave it out. "
            f"--{opposite} switches on what it switched off."
        )
    meant = _nearest(name, KNOWN_OPTIONS, MIN_FLAG_SIMILARITY)
    if meant is None:
        return None
    return NextStep(
        text=f"{given} is no flag of this release; --{meant} is the nearest one.",
        command=f"{OWN_COMMAND} --{meant}",
    )


def _nearest(given: str, values: Iterable[str], similarity: float = MIN_SIMILARITY) -> str | None:
    """Return the value that is spelled most like the given one, or that it extends: `qwen3_thinking`.

    Of numbers it is the least that is not smaller, else the greatest.
    """
    values = [*values]
    if given.isdigit() and all(value.isdigit() for value in values):
        numbers = sorted(map(int, values))
        return (
            str(next((number for number in numbers if number >= int(given)), numbers[-1]))
            if numbers
            else None
        )
    by_name = {value.lower(): value for value in values}
    low = given.lower()
    nearest = get_close_matches(low, list(by_name), 1, similarity)
    begun = [
        name for name in by_name if len(name) >= MIN_STEM_CHARS and low.startswith((f"{name}_", f"{name}-"))
    ]
    best = max(begun, key=len, default=nearest[0] if nearest else None)
    return by_name[best] if best is not None else None


def _set_argument(text: str, value: str) -> str:
    """Return the command that sets the argument named in the message; empty if none is named."""
    argument, field = ARGUMENT.search(text), _FIELD.search(text)
    if argument is None or not _PLAIN_VALUE.match(value):
        return ""
    given = f"'{json.dumps({field.group(2): value})}'" if field else value
    return f"{OWN_COMMAND} {argument.group(1)} {given}"


def _set_option_with(given: str, meant: str, launch: Launch | None) -> str:
    """Return the command that sets the only option whose value is, or has in JSON, the given one; else ""."""
    if launch is None or not _PLAIN_VALUE.match(meant):
        return ""
    inside = (json.dumps(given), json.dumps(meant))
    found = [
        (piece.name, value.replace(*inside) if inside[0] in value else meant)
        for piece in launch.pieces
        if piece.name and (value := value_of(piece)) and (value == given or inside[0] in value)
    ]
    return f"{OWN_COMMAND} --{found[0][0]} {shlex.quote(found[0][1])}" if len(found) == 1 else ""


def _advice_in(text: str) -> Iterator[str]:
    """Yield the advice in a message, each with the warnings that follow it.

    The first sentence states the error, so it counts only if it has a command or legal values.
    """
    all_sentences = tuple(sentences(text))
    for at, sentence in enumerate(all_sentences):
        if not is_advice(sentence) or (_is_warning(sentence) and not _command_in(sentence)):
            continue
        if at or _command_in(sentence) or CHOICES.search(sentence):
            behind = takewhile(_is_warning, all_sentences[at + 1 :])
            yield cut_at_word(" ".join([sentence, *behind]), MAX_QUOTE_CHARS)


def _is_warning(words: str) -> bool:
    return any(item.search(words) for item in _patterns("warning"))


def _command_in(quote: str) -> str:
    """Return the command that a quote suggests; empty if there is none."""
    if found := _PIP.search(quote):
        return f"{found.group(1)} {shlex.quote(found.group(2))}{found.group(3)}"
    variables: Sequence[str] = _ASSIGNMENT.findall(quote)
    if len(variables) == 1:
        return f"{variables[0]} {OWN_COMMAND}"
    for name, value in (filter(None, groups) for groups in _TYPED_OPTION.findall(quote)):
        if flag := _flag(name):
            return f"{OWN_COMMAND} {flag} {value}"
    switch = _SWITCH.search(quote)
    flag = _flag(switch.group(1)) if switch else None
    return f"{OWN_COMMAND} {flag}" if flag else ""


def _flag(field: str) -> str | None:
    """Return the flag of `vllm serve` that sets a configuration field; None if there is none."""
    name = field.replace("_", "-")
    return f"--{name}" if name in KNOWN_OPTIONS else None
