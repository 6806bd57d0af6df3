"""Turn a remedy into a line to type: a flag, a variable or an installation command.

In: the text of an action and the text around it. Out: one line, or None if the action names nothing that can
be typed verbatim.
"""

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.statements.candidates import BAD, NEGATIONS
from app.extract.statements.tokens import NAMED, Token, tokenise

_REMOVAL = r"(?:without|remov\w*|drop(?:s|ped|ping)?|unset\w*|omit\w*|disabl\w*|not|no|off|instead of)"
REMOVES = pattern(rf"(?i)\b{_REMOVAL}\b")
"""Words that say that something is left out."""

_LEFT_OUT = pattern(
    rf"(?i)\b{_REMOVAL}\s(?:[\w`*\"'=./-]+\s(?:[\w`*\"'=./-]+\s){{0,2}}(?:or|and)\s(?:the |flag |option )*"
    r"|(?:the |using |setting |set |passing |flag |option )*)[`*\"']*$"
)
_CONDITION = pattern(
    r"(?i)(?:^|[^\w'])(?:occurs?|happens?|fails?|crash(?:es)?|hangs?|breaks|errors?|appears?|arises?)\s(?:only\s)?"
    r"(?:when|with|if)\s(?:(?:i|we|you)\s)?"
    r"(?:(?:using|setting|running with|passing|adding|the flag|export)\s){0,2}[`*\"']*$"
)
_DENIED = pattern(r"(?i)(?:\b(?:not?|never|no longer)|n['’]?t)\**\s(?:\w+\s){0,3}(?:when|with|if)\s[^,;.]*$")
_UNSET = pattern(
    r"(?i)^[`*\"']*\s(?:flag |option |parameter |argument )?(?:(?:is|are|was|were|has been)(?: not|n['’]t)"
    r" (?:set|used|enabled|passed|given|present|specified|provided|added|on|there)"
    r"|(?:is|are|was|were|has been) (?:disabled|removed|(?:turned )?off|omitted|unset|dropped|left out))\b"
)
_LEADING = pattern(r"(?i)\b(?:with|by|via|if|when|once|after)\b|\sto\s")
"""Words that start another change: "disabling TP with `--tensor-parallel-size 1`"."""

_MOVE = pattern(r"(?i)\b(?:install|downgrad|upgrad|updat|roll|revert|back to|pin|switch)\w*")
_ASSIGNED = pattern(r"^(?:export )?([A-Z][A-Z0-9]*_[A-Z0-9_]+) ?= ?([^\s`'\"]+|'[^']*'|\"[^\"]*\")$")
_LISTED = pattern(r"^(?:,\w|\s*[*+/]\s*\w)")
"""Continuation of a value that is a list or a product: "set CUDA_VISIBLE_DEVICES=2,1"."""

_JOINERS = frozenset([",", "and", "+", "&", "plus"])
_CONTRASTS = NEGATIONS | {"or", "but", "however", "instead", "while", "whereas"}
_SETTINGS = frozenset(["FLAG", "ENV", "SETTING"])
MAX_NEAR_CHARS = 80
_MARKS = "`*\"' "

_KEYWORD = pattern(r"^([A-Za-z][\w.-]*) ?= ?([\w./-]+)$")
_VALUED = pattern(r"^--[a-z][\w-]*[= ]\S+$")
_SWITCH_STARTS = ("--no-", "--disable-", "--enable-", "--skip-")
_COMMANDS = load("commands")
_NO_CURE = frozenset([*_COMMANDS["own"]["names"], *_COMMANDS["diagnostic"]["names"]])
_NUMBERS = {"true": "1", "false": "0"}
_SWITCHES = frozenset(_COMMANDS["switches"]["names"])
_WITH_VALUE = frozenset(_COMMANDS["valued"]["names"])
_ALIASES: dict[str, str] = _COMMANDS["aliases"]


def command_of(action: str, *, is_ours: bool = False) -> str | None:
    """Return the line to type; None if something is to be left out, described in words, or several changes.

    Args:
        action: the text of the change.
        is_ours: versions in the action are vLLM's.
    """
    whole = action.strip("` ")
    if _VALUED.search(whole):
        return whole
    if match := _ASSIGNED.search(whole):
        return _export(match.group(1), match.group(2))
    tokens = tokenise(action)
    if REMOVES.search(_words(tokens)) or sum(token.kind in NAMED for token in tokens) > 1:
        return None
    is_ours = is_ours or "vllm" in action.lower()
    lines = [line for line in (_line(token, action, is_ours=is_ours) for token in tokens) if line]
    return lines[0] if len(lines) == 1 else None


def is_left_out(before: str) -> bool:
    """True if the text before a change removes it: "either removing `--a` or", "it crashes when using"."""
    if _CONDITION.search(before) and not _DENIED.search(before):
        return True
    match = _LEFT_OUT.search(before)
    return match is not None and not _LEADING.search(match.group(0))


def after_unset(after: str) -> str | None:
    """Return the text after the words that unset a change: "it works when `--a` is not set"; else None."""
    match = _UNSET.search(after)
    return after[match.end() :] if match else None


def is_part(before: str, action: str, after: str) -> bool:
    """True if more was changed than the action says: "with tp=2, pp=2", "`--a` and `--b`", "0.9.*".

    Another setting named before it, unless in contrast to it, was changed too: "I set --a, which works with
    --b".
    """
    if after.startswith((".*", ".x")):
        return True
    own = {_setting(token) for token in tokenise(action) if token.kind in _SETTINGS}
    named_before = tokenise(before) if own else ()
    if any(token.kind in _SETTINGS for token in named_before) and not any(
        token.low in _CONTRASTS or token.kind in BAD or _setting(token) in own for token in named_before
    ):
        return True
    left, right = before.rstrip(_MARKS)[-MAX_NEAR_CHARS:], after.lstrip(_MARKS)[:MAX_NEAR_CHARS]
    near = tokenise(left)[-2:], tokenise(right)[:2]
    pairs = (near[0][::-1], near[1])
    return any(len(pair) > 1 and pair[0].low in _JOINERS and pair[1].kind in _SETTINGS for pair in pairs)


def _setting(token: Token) -> str:
    """Return the name of a token's setting, without its value."""
    name = token.low.strip(_MARKS).removeprefix("export ").partition("=")[0].partition(" ")[0]
    return name.strip(_MARKS + "-").replace("_", "-").removeprefix("no-")


def _is_switch(flag: str) -> bool:
    """True if a flag takes no value."""
    return flag.startswith(_SWITCH_STARTS) or flag.lstrip("-").replace("_", "-") in _SWITCHES


def _words(tokens: tuple[Token, ...]) -> str:
    """Return the plain words only: `--no-enable-x` is a flag to add, not one to leave out."""
    return " ".join(token.text for token in tokens if token.text[0].isalpha())


def _line(token: Token, action: str, *, is_ours: bool) -> str | None:
    text = token.text.strip("`")
    if token.kind == "FLAG":
        return text if _VALUED.search(text) or _is_switch(text) else None
    if token.kind == "ENV" and (match := _ASSIGNED.search(text)) and not _LISTED.search(action[token.end :]):
        return _export(match.group(1), match.group(2))
    if token.kind == "PIN":
        return f"pip install {text}"
    if token.kind == "VERSION" and _MOVE.search(action) and is_ours:
        return f"pip install vllm=={text.lower().removeprefix('v')}"
    return None if token.kind == "ENV" else _flag_of(text)


def _export(name: str, value: str) -> str | None:
    """Return the line for a variable. vLLM's switches are numeric; some VLLM_ names are really flags."""
    if name in _NO_CURE:
        return None
    if not name.startswith("VLLM_"):
        return f"export {name}={value}"
    flag = name.removeprefix("VLLM_").lower().replace("_", "-")
    if flag in _WITH_VALUE and flag != "attention-backend":
        return f"--{flag} {value}"
    return f"export {name}={_NUMBERS.get(value.lower(), value)}"


def _flag_of(text: str) -> str | None:
    """Return the server flag for a keyword argument: `TP=1`, `enforce_eager=True`."""
    match = _KEYWORD.search(text)
    if match is None:
        return None
    name = match.group(1).lower().replace("_", "-")
    name, value = _ALIASES.get(name, name), match.group(2)
    if name in _SWITCHES:
        return f"--{name}" if value == "True" else None
    return f"--{name} {value}" if name in _WITH_VALUE else None
