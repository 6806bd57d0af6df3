"""Parse an issue address pasted by a user: a number, `owner/name#1` or a GitHub URL."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from app.errors import AddressError

ADDRESS_CHARS = 400
NUMBER_MAX = 2**31 - 1

_NUMBER = re.compile(r"#?([0-9]{1,10})")
_NAMED = re.compile(r"([A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100})#([0-9]{1,10})")
_GITHUB = re.compile(
    r"(?:https?://)?(?:(?:www\.)?github\.com|api\.github\.com/repos)/"
    r"([A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100})/(issues|pulls?)/([0-9]{1,10})(?:[/?#].*)?",
    re.IGNORECASE | re.ASCII,  # ASCII, or a dotless i would match in "github"
)


class IssueAddress(NamedTuple):
    repo: str
    number: int


def parse_issue_address(text: str, repos: Sequence[str]) -> IssueAddress:
    """Parse an address; a bare number belongs to the first repository.

    Raises:
        AddressError: not an address, a pull request's, or an issue of another repository.
    """
    text = text.strip()
    example = f"https://github.com/{repos[0]}/issues/1"
    if not text:
        raise AddressError(f"Give an issue's number, or its address on GitHub, such as {example}.")
    if len(text) > ADDRESS_CHARS:
        raise AddressError(f"This is too long for an address: at most {ADDRESS_CHARS} characters.")
    if found := _NUMBER.fullmatch(text):
        return IssueAddress(repos[0], _number(found.group(1)))
    if found := _NAMED.fullmatch(text):
        repo, kind, digits = found.group(1), "issues", found.group(2)
    elif found := _GITHUB.fullmatch(text):
        repo, kind, digits = found.groups()
    else:
        raise AddressError(f"This is not the address of a GitHub issue. Give a number, or {example}.")
    known = next((name for name in repos if name.lower() == repo.lower()), None)
    if known is None:
        raise AddressError(f"Only issues of {', '.join(repos)} are known here; TRIAGE_REPO names them.")
    if kind.lower() != "issues":
        raise AddressError(
            "This is the address of a pull request. Reports are made of issues: give an issue's address."
        )
    return IssueAddress(known, _number(digits))


def _number(digits: str) -> int:
    number = int(digits)
    if not 0 < number <= NUMBER_MAX:
        raise AddressError("No issue has this number.")
    return number
