"""The verdict in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from app.knowledge.answers import Band, Match, RootCause


def issue_name(repo: str, number: int, default_repo: str) -> str:
    """`#1`, or `owner/name#1` for an issue of another repository than the default one, where that is told."""
    return f"#{number}" if not default_repo or repo == default_repo else f"{repo}#{number}"


def headline(
    verdict: Band, matches: Sequence[Match], cause: RootCause | None, *, is_question: bool = False,
    repo: str = "",
) -> str:  # fmt: skip
    """What is said first: which issue this is, or why that cannot be told.

    Args:
        repo: the default repository, whose issues are told by their bare numbers.
    """
    if is_question:
        return _to_question(verdict, matches, repo)
    if verdict in {"same", "likely"}:
        best = matches[0]
        name = issue_name(best.repo, best.number, repo)
        opening = f"You hit {name}" if verdict == "same" else f"Probably {name}"
        sentence = f"{opening}: {_plain(best.title)}"
        if verdict == "likely" and best.why.differs:
            sentence += f" It differs: {best.why.differs[0]}."
        return sentence
    if verdict == "related":
        best = matches[0]
        shared = best.why.shared[0] if best.why.shared else "some of its words"
        name = issue_name(best.repo, best.number, repo)
        return f"No known same failure; closest is {name}, which shares {shared}."
    if cause is None:
        return "No stored issue is known to be this failure: the text holds no error line."
    if not matches:
        return "No stored issue is known to be this failure: nothing stored shares its error or its frames."
    return "No stored issue is known to be this failure: what it shares with others is too common to tell."


def _to_question(verdict: Band, matches: Sequence[Match], repo: str) -> str:
    """What words alone allow: which issue speaks of the same, never that it is the same failure."""
    if verdict == "unknown":
        return (
            "No stored issue is known to answer this: the question's words are too few or too common, "
            "and there is no log to read."
        )
    best = matches[0]
    name = issue_name(best.repo, best.number, repo)
    if verdict == "likely":
        return f"By your words, probably {name}: {_plain(best.title)} No log was read."
    shared = best.why.shared[0] if best.why.shared else "some of its words"
    return f"By your words alone, closest is {name}, which shares {shared}. No log was read."


def _plain(title: str) -> str:
    """A title without its form's prefix, as a sentence."""
    text = title.strip()
    while text.startswith("[") and "]" in text:
        text = text.split("]", 1)[1].lstrip(" :")
    return (text or title).rstrip(".") + "."
