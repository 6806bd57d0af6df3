"""Extract stated causes, and the commands that reproduce the failure.

In: a `Document`. Out: causes, as fact or hypothesis; commands that fail and that work.
"""

from typing import Literal

from app.extract.evidence import cite
from app.extract.facts import Cause, Evidence, Reproduction
from app.extract.lists import load
from app.extract.remedies.commands import Attempt, read_attempts
from app.extract.rules.rules import Rule, load_rule_set
from app.extract.text.document import Document
from app.extract.text.sentences import Sentence, is_request, read_sentences

MAX_CAUSES = 4
MAX_REPRODUCTIONS = 8
MAX_CAUSE_CHARS = 400
MIN_CAUSE_CHARS = 20
MIN_ANNOUNCING_WORDS = 12
"""A shorter text that ends with a colon only introduces the cause."""

_LIST = load("cause")
_HEADINGS: tuple[str, ...] = tuple(_LIST["headings"])
_GUESSES: tuple[str, ...] = tuple(_LIST["guesses"])
_DENIALS: tuple[str, ...] = tuple(_LIST["denials"])
_FAILING_SECTIONS: tuple[str, ...] = tuple(_LIST["failing_sections"])


def find_causes(document: Document) -> tuple[tuple[Cause, Evidence], ...]:
    """Return the causes that people name, in reading order, at most `MAX_CAUSES`.

    A sentence that expresses doubt, or is below a heading "hypothesis", is a `hypothesis`, else `stated`.
    """
    if is_request(document):
        return ()
    found: dict[str, tuple[Cause, Evidence]] = {}
    section = ""
    for sentence in read_sentences(document):
        if sentence.is_heading or len(sentence.text) < MIN_CAUSE_CHARS or sentence.low.endswith(("?", "？")):
            continue
        head = sentence.heading.lower()
        opens = any(word in head for word in _HEADINGS) and head != section and not sentence.is_proposal
        rule = _rule_of(sentence)
        if (rule is None and not opens) or _announces(sentence.text):
            continue
        section = head if opens else section
        certainty = _certainty(sentence, head if opens else "")
        text = sentence.text[:MAX_CAUSE_CHARS]
        span = sentence.span(0, len(text))
        rule_id = rule.id if rule else "cause.section"
        confidence = 0.8 if certainty == "stated" else 0.6
        evidence = cite(document, "cause", text, span, rule_id, confidence)
        found.setdefault(text, (Cause(text=text, certainty=certainty), evidence))
        if len(found) >= MAX_CAUSES:
            break
    return tuple(found.values())


def find_reproductions(document: Document) -> tuple[tuple[Reproduction, Evidence], ...]:
    """Return the commands that were run with their outcome, according to the text above them."""
    if is_request(document):
        return ()
    found: dict[str, tuple[Reproduction, Evidence]] = {}
    for attempt in read_attempts(document):
        outcome = _outcome_of(document, attempt)
        if outcome is None or attempt.command in found or len(found) >= MAX_REPRODUCTIONS:
            continue
        span = (attempt.source, attempt.start, attempt.end)
        rule = "reproduction.label" if attempt.result else "reproduction.section"
        evidence = cite(document, "reproduction", attempt.command, span, rule, 0.8 if attempt.result else 0.6)
        found[attempt.command] = (Reproduction(command=attempt.command, outcome=outcome), evidence)
    return tuple(found.values())


def _rule_of(sentence: Sentence) -> Rule | None:
    met = load_rule_set("cause").meeting(sentence.text)
    if not met or any(word in sentence.low for word in _DENIALS):
        return None
    return met[0]


def _announces(text: str) -> bool:
    """True if the text only introduces a cause: a few words and a colon."""
    return text.rstrip(" *_").endswith((":", "：")) and len(text.split()) < MIN_ANNOUNCING_WORDS


def _certainty(sentence: Sentence, heading: str) -> Literal["stated", "hypothesis"]:
    padded = f" {sentence.low} {heading} "
    return "hypothesis" if any(word in padded for word in _GUESSES) else "stated"


def _outcome_of(document: Document, attempt: Attempt) -> Literal["fails", "works"] | None:
    """Return a command's outcome, from its label or the heading of its section."""
    if attempt.result is not None:
        return attempt.result
    if "vllm" not in attempt.command:
        return None
    block = next((b for b in document.of_source(attempt.source) if b.start <= attempt.start < b.end), None)
    head = f"{block.heading if block else ''} {attempt.label}".lower()
    return "fails" if any(word in head for word in _FAILING_SECTIONS) else None
