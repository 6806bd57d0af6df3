"""What to type for a remedy: the flag, the variable or the installation that an action names.

In: an action's words. Out: one line, or None where the words name nothing that can be typed as it stands.
"""

from __future__ import annotations

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.statements.tokens import Token, tokenise

_LEAVING = pattern(r"(?i)\b(?:without|remov\w*|drop\w*|unset\w*|omit\w*|disabl\w*|not|no|off|instead of)\b")
_MOVE = pattern(r"(?i)\b(?:install|downgrad|upgrad|updat|roll|revert|back to|pin|switch)\w*")
_ASSIGNED = pattern(r"^(?:export )?([A-Z][A-Z0-9]*_[A-Z0-9_]+) ?= ?([^\s`'\"]+|'[^']*'|\"[^\"]*\")$")
_VALUED = pattern(r"^--[a-z][\w-]*[= ]\S+$")
_SWITCH_STARTS = ("--no-", "--disable-", "--enable-", "--skip-")
_SWITCHES = frozenset(load("commands")["switches"]["names"])


def command_of(action: str) -> str | None:
    """The line to type; None for what is left out, said in words, or made of several changes."""
    whole = action.strip("` ")
    if _VALUED.search(whole):
        return whole
    tokens = tokenise(action)
    if _LEAVING.search(_words(tokens)):
        return None
    lines = [line for line in (_line(token, action) for token in tokens) if line]
    return lines[0] if len(lines) == 1 else None


def _is_switch(flag: str) -> bool:
    """Whether a flag needs no value."""
    return flag.startswith(_SWITCH_STARTS) or flag.lstrip("-").replace("_", "-") in _SWITCHES


def _words(tokens: tuple[Token, ...]) -> str:
    """The plain words: `--no-enable-x` is a flag to add, not one to leave out."""
    return " ".join(token.text for token in tokens if token.text[0].isalpha())


def _line(token: Token, action: str) -> str | None:
    text = token.text.strip("`")
    if token.kind == "FLAG":
        return text if _VALUED.search(text) or _is_switch(text) else None
    if token.kind == "ENV" and (match := _ASSIGNED.search(text)):
        return f"export {match.group(1)}={match.group(2)}"
    if token.kind == "PIN":
        return f"pip install {text}"
    if token.kind == "VERSION" and _MOVE.search(action) and "vllm" in action.lower():
        return f"pip install vllm=={text.lower().removeprefix('v')}"
    return None
