"""What to type for a remedy: the flag, the variable or the installation that an action names.

In: an action's words and the words before it. Out: one line, or None where the words name nothing that can be
typed as it stands.
"""

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.statements.candidates import BAD, NEGATIONS
from app.extract.statements.tokens import NAMED, Token, tokenise

_LEAVE = r"(?:without|remov\w*|drop(?:s|ped|ping)?|unset\w*|omit\w*|disabl\w*|not|no|off|instead of)"
_LEAVING = pattern(rf"(?i)\b{_LEAVE}\b")
_LEFT_OUT = pattern(
    rf"(?i)\b{_LEAVE}\s(?:[\w`*\"'=./-]+\s(?:[\w`*\"'=./-]+\s){{0,2}}(?:or|and)\s)?"
    r"(?:the |using |setting |passing |flag |option )*[`*\"']*$"
)
_CONDITION = pattern(
    r"(?i)(?:^|[^\w'])(?:occurs?|happens?|fails?|crash(?:es)?|hangs?|breaks|errors?|appears?|arises?)\s(?:only\s)?"
    r"(?:when|with|if)\s(?:(?:using|setting|running with|passing|adding|the flag|export)\s){0,2}[`*\"']*$"
)
_DENIED = pattern(r"(?i)(?:\b(?:not?|never|no longer)|n['’]?t)\s(?:\w+\s){0,3}(?:when|with|if)\s[^,;.]*$")
_UNSET = pattern(
    r"(?i)^[`*\"']*\s(?:flag |option |parameter |argument )?(?:(?:is|are|was|were|has been)(?: not|n['’]t)"
    r" (?:set|used|enabled|passed|given|present|specified|provided|added|on|there)"
    r"|(?:is|are|was|were|has been) (?:disabled|removed|(?:turned )?off|omitted|unset|dropped|left out))\b"
)
_LEADING = pattern(r"(?i)\b(?:with|by|via|if|when|once|after)\b|\sto\s")
"""Words behind which another change begins: "disabling TP with `--tensor-parallel-size 1`"."""

_MOVE = pattern(r"(?i)\b(?:install|downgrad|upgrad|updat|roll|revert|back to|pin|switch)\w*")
_ASSIGNED = pattern(r"^(?:export )?([A-Z][A-Z0-9]*_[A-Z0-9_]+) ?= ?([^\s`'\"]+|'[^']*'|\"[^\"]*\")$")
_LISTED = pattern(r"^(?:,\w|\s*[*+/]\s*\w)")
"""What goes on behind a value that is a list or a product: "set CUDA_VISIBLE_DEVICES=2,1"."""

_JOINERS = frozenset([",", "and", "+", "&", "plus"])
_CONTRASTS = NEGATIONS | {"or", "but", "however", "instead", "while", "whereas"}
_SETTINGS = frozenset(["FLAG", "ENV", "SETTING"])
MAX_NEAR_CHARS = 80
_MARKS = "`*\"' "

_KEYWORD = pattern(r"^([A-Za-z][\w.-]*) ?= ?([\w./-]+)$")
_VALUED = pattern(r"^--[a-z][\w-]*[= ]\S+$")
_SWITCH_STARTS = ("--no-", "--disable-", "--enable-", "--skip-")
_COMMANDS = load("commands")
_OWN = frozenset(_COMMANDS["own"]["names"])
_NUMBERS = {"true": "1", "false": "0"}
_SWITCHES = frozenset(_COMMANDS["switches"]["names"])
_WITH_VALUE = frozenset(_COMMANDS["valued"]["names"])
_ALIASES: dict[str, str] = _COMMANDS["aliases"]


def command_of(action: str, *, is_ours: bool = False) -> str | None:
    """The line to type; None for what is left out, said in words, or made of several changes.

    Args:
        action: the words of the change.
        is_ours: a version that the action names is one of vLLM.
    """
    whole = action.strip("` ")
    if _VALUED.search(whole):
        return whole
    if match := _ASSIGNED.search(whole):
        return _export(match.group(1), match.group(2))
    tokens = tokenise(action)
    if _LEAVING.search(_words(tokens)) or sum(token.kind in NAMED for token in tokens) > 1:
        return None
    is_ours = is_ours or "vllm" in action.lower()
    lines = [line for line in (_line(token, action, is_ours=is_ours) for token in tokens) if line]
    return lines[0] if len(lines) == 1 else None


def is_left_out(before: str) -> bool:
    """Whether the words before a change take it away: "either removing `--a` or", "it crashes when using"."""
    if _CONDITION.search(before) and not _DENIED.search(before):
        return True
    match = _LEFT_OUT.search(before)
    return match is not None and not _LEADING.search(match.group(0))


def is_unset(behind: str) -> bool:
    """Whether the words behind a change take it away: "it works when `--a` is not set"."""
    return _UNSET.search(behind) is not None


def is_part(before: str, action: str, behind: str) -> bool:
    """Whether a change is less than what was done: "with tp=2, pp=2", "`--a` and `--b`", "0.9.*".

    Another setting that is named before it, and not in contrast to it, was done too: "I set --a, which works
    with --b".
    """
    if behind.startswith((".*", ".x")):
        return True
    own = {_setting(token) for token in tokenise(action) if token.kind in _SETTINGS}
    told = tokenise(before) if own else ()
    if any(token.kind in _SETTINGS for token in told) and not any(
        token.low in _CONTRASTS or token.kind in BAD or _setting(token) in own for token in told
    ):
        return True
    left, right = before.rstrip(_MARKS)[-MAX_NEAR_CHARS:], behind.lstrip(_MARKS)[:MAX_NEAR_CHARS]
    near = tokenise(left)[-2:], tokenise(right)[:2]
    pairs = (near[0][::-1], near[1])
    return any(len(pair) > 1 and pair[0].low in _JOINERS and pair[1].kind in _SETTINGS for pair in pairs)


def _setting(token: Token) -> str:
    """What a token sets, without its value."""
    name = token.low.strip(_MARKS).removeprefix("export ").partition("=")[0].partition(" ")[0]
    return name.strip(_MARKS + "-").replace("_", "-").removeprefix("no-")


def _is_switch(flag: str) -> bool:
    """Whether a flag needs no value."""
    return flag.startswith(_SWITCH_STARTS) or flag.lstrip("-").replace("_", "-") in _SWITCHES


def _words(tokens: tuple[Token, ...]) -> str:
    """The plain words: `--no-enable-x` is a flag to add, not one to leave out."""
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
    """The line for a variable. vLLM reads its own switches as numbers, and its flags from no variable."""
    if name in _OWN:
        return None
    if not name.startswith("VLLM_"):
        return f"export {name}={value}"
    flag = name.removeprefix("VLLM_").lower().replace("_", "-")
    if flag in _WITH_VALUE and flag != "attention-backend":
        return f"--{flag} {value}"
    return f"export {name}={_NUMBERS.get(value.lower(), value)}"


def _flag_of(text: str) -> str | None:
    """A server's flag for a keyword argument: `TP=1`, `enforce_eager=True`."""
    match = _KEYWORD.search(text)
    if match is None:
        return None
    name = match.group(1).lower().replace("_", "-")
    name, value = _ALIASES.get(name, name), match.group(2)
    if name in _SWITCHES:
        return f"--{name}" if value == "True" else None
    return f"--{name} {value}" if name in _WITH_VALUE else None
