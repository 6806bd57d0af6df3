"""Extract workarounds: what people say avoids the failure, helps in part, or did not help.

In: a `Document`. Out: `Workaround`s with their quotes. Two forms are read: a sentence ("--moe-backend triton
serves normally"), and a line below a heading or label "Workaround". Later comments confirm or refute earlier
remedies.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, cast

from app.extract.evidence import cite
from app.extract.facts import Evidence, Outcome, Speaker, Workaround
from app.extract.lists import load
from app.extract.remedies.changes import grammar, rules_of
from app.extract.remedies.sentences import RemedyStatement, read_remedies, read_section_line
from app.extract.remedies.stated import find_stated
from app.extract.remedies.typed import command_of, is_part
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rules
from app.extract.text.claims import versions_in
from app.extract.text.document import Document, Span
from app.extract.text.sentences import Sentence, is_request, read_sentences

MAX_WORKAROUNDS = 12
MAX_REPEATS = 4
REPORTER = "reporter"
MAX_QUOTE_CHARS = 300
MAX_JUDGED_SENTENCES = 200
"""Only the grammar reads the sentences after these, to bound the time for long threads."""

SURE = 0.95
"""Minimum probability to offer a command; below it a remedy is only quoted.

Of 14 with a probability between .9 and this, 8 were right beside their text.
"""

_SIZES = ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size")
"""A size at which it works tells where the failure is. Who needs the other size has no way out by it."""

MAX_HEADING_CHARS = 60
"""A longer heading is a sentence in bold type and opens no section."""

_INSTALLED, _IMAGE_NAME = "pip install vllm==", "vllm-openai:"
_IMAGE = f"vllm/{_IMAGE_NAME}v"

_NAME = pattern(r"--?([A-Za-z][\w.-]*\w)|\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b|\b([a-z]+(?:_[a-z0-9]+)+)\b")


@dataclass(slots=True)
class _Kept:
    """A remedy, its repetitions, and the people who confirm or refute it."""

    remedy: RemedyStatement
    repeats: list[RemedyStatement] = field(default_factory=list)
    confirmed: set[str] = field(default_factory=set)
    refuted: set[str] = field(default_factory=set)


def find_workarounds(document: Document) -> tuple[tuple[Workaround, Evidence], ...]:
    """Return all remedies in reading order, without duplicates, with the quote of each action."""
    return tuple(_as_workaround(document, item) for item in _find_kept(document))


def find_repeats(document: Document) -> Iterator[Evidence]:
    """Yield the repetitions of the remedies, as evidence."""
    for item in _find_kept(document):
        action = _without_open_brackets(item.remedy.action)
        for again in item.repeats[:MAX_REPEATS]:
            place = again.source, again.start, again.end
            yield cite(document, "workarounds", action, place, again.rule, again.chance)


@lru_cache(maxsize=2)
def _find_kept(document: Document) -> tuple[_Kept, ...]:
    remedies = _of_sentences(document, own_only=is_request(document))
    rank = {source: position for position, source in enumerate(document.sources)}
    kept: dict[frozenset[str], _Kept] = {}
    people = _people(document)
    for remedy in sorted(remedies, key=lambda r: (rank[r.source], r.start)):
        _keep(kept, remedy, people)
    _count_comments(document, rank, list(kept.values()), people)
    return tuple(list(kept.values())[:MAX_WORKAROUNDS])


def _of_sentences(document: Document, *, own_only: bool) -> Iterator[RemedyStatement]:
    """Yield the remedies of all sentences; in proposals and requests only what the authors did themselves."""
    title = document.issue.title
    is_guide = bool(grammar("guide").search(title))
    previous: Sentence | None = None
    label: Outcome | None = None
    sentences = read_sentences(document)
    for at, sentence in enumerate(sentences):
        label = _label_outcome(title, sentence, previous, label, own_only=own_only)
        section = None if sentence.is_heading or own_only else _section_outcome(title, sentence.heading)
        section = section or label
        if section is None and is_guide and grammar("advice").search(sentence.text):
            section = "works"
        remedies: tuple[RemedyStatement, ...] = ()
        if not (own_only or sentence.is_proposal) or grammar("own").search(sentence.text):
            is_judged = at < MAX_JUDGED_SENTENCES
            remedies = (
                find_stated(document, sentences, at) if is_judged else read_remedies(sentence, previous)
            )
        if not remedies and section and not sentence.low.endswith("?"):
            remedies = read_section_line(sentence, section)
        yield from remedies
        previous = sentence


def _label_outcome(
    title: str, sentence: Sentence, previous: Sentence | None, label: Outcome | None, *, own_only: bool
) -> Outcome | None:
    """Return the outcome announced by a label "Workaround:" for the next line or the list that follows."""
    if previous is None or previous.source != sentence.source or sentence.is_heading:
        return None
    if grammar("label").search(previous.text):
        is_meant = not own_only or grammar("own").search(previous.text)
        return _section_outcome(title, previous.text) if is_meant else None
    if label is None or grammar("item").search(sentence.text) or grammar("item_mark").search(previous.text):
        return label
    return None


@lru_cache(maxsize=512)
def _section_outcome(title: str, heading: str) -> Outcome | None:
    """Return the outcome that a heading, or a label on its own line, announces for the lines below."""
    if not heading or len(heading) > MAX_HEADING_CHARS:
        return None
    low, words = heading.lower(), load("workaround_sections")
    if any(word in low for word in words["no_section"]):
        return None
    if not any(word in low for word in words["headings"]):
        is_solved = grammar("solved").search(title) or grammar("solved").search(heading)
        return "works" if is_solved and grammar("solution").search(heading) else None
    return "fails" if any(word in low for word in words["failed"]) else "works"


def change_key(action: str) -> frozenset[str]:
    """Return a spelling-independent key for an action: a rule id, the setting names, or its words."""
    if same := next((rule.id for rule in load_rules("same_change") if rule.pattern.search(action)), None):
        return frozenset({same})
    found = ((m.group(1) or m.group(2) or m.group(3)) for m in _NAME.finditer(action))
    names = (name.lower().replace("-", "_") for name in found)
    kept = {name.removeprefix("no_") for name in names if "_" in name or action.startswith("-")}
    return frozenset(kept or {" ".join(action.lower().split())})


def _keep(kept: dict[frozenset[str], _Kept], remedy: RemedyStatement, people: dict[str, str]) -> None:
    """Keep one entry per change, the first; comments by other people confirm or refute it."""
    key = change_key(remedy.action)
    item = kept.get(key)
    if item is None:
        kept[key] = _Kept(remedy)
        return
    first, fails = item.remedy, remedy.outcome == "fails"
    is_same = fails == (first.outcome == "fails")
    is_others = people[remedy.source] not in (REPORTER, people[first.source])
    if is_same:
        item.repeats.append(remedy)
    if is_others and not fails and is_same:
        item.confirmed.add(people[remedy.source])
    elif is_others and fails and not is_same:
        item.refuted.add(people[remedy.source])
    elif not is_same and (fails or is_others or first.source == "title"):
        kept[key] = _Kept(remedy)


def _people(document: Document) -> dict[str, str]:
    """Return the author of each source; a comment without a user counts as a separate person."""
    users = {f"comment:{comment.id}": comment.user for comment in document.issue.comments}
    return {
        source: REPORTER if speaker == REPORTER else users.get(source) or source
        for source, speaker in document.speaker.items()
    }


def _count_comments(
    document: Document, rank: dict[str, int], kept: list[_Kept], people: dict[str, str]
) -> None:
    """Count later comments by other people that confirm or refute an earlier remedy."""
    helpful = [item for item in kept if item.remedy.outcome != "fails"]
    own = {item.remedy.source for item in kept}
    for source, text in document.sources.items() if helpful else ():
        verdict = _verdict(text) if source.startswith("comment") else None
        if verdict is None or (people[source] == REPORTER and verdict == "confirm"):
            continue
        earlier = [item for item in helpful if rank[item.remedy.source] < rank[source]]
        named = [item for item in earlier if _mentions_setting(item, text)]
        for item in named or ([] if source in own else earlier[-1:]):
            if people[source] != people[item.remedy.source]:
                (item.refuted if verdict == "refute" else item.confirmed).add(people[source])


def _verdict(text: str) -> Literal["refute", "confirm"] | None:
    """Return whether a comment confirms ("works for me") or refutes ("didn't help")."""
    if rules_of("refute").meeting(text):
        return "refute"
    return "confirm" if rules_of("confirm").meeting(text) else None


def _mentions_setting(item: _Kept, text: str) -> bool:
    """True if a comment names the setting of a remedy, in any spelling."""
    key = change_key(item.remedy.action)
    if same := next((rule for rule in load_rules("same_change") if rule.id in key), None):
        return bool(same.pattern.search(text))
    low = text.lower().replace("-", "_")
    return any(name.replace("-", "_") in low for name in key)


def _as_workaround(document: Document, item: _Kept) -> tuple[Workaround, Evidence]:
    remedy = item.remedy
    action = _without_open_brackets(remedy.action)
    span = (remedy.source, remedy.start, remedy.start + len(action))
    sentence = _sentence_at(document, span)
    quote = sentence.text if sentence else document.sources[span[0]][span[1] : span[2]]
    workaround = Workaround(
        action=action,
        kind=remedy.kind,
        outcome=remedy.outcome,
        source=remedy.source,
        by=cast("Speaker", document.speaker.get(remedy.source, "other")),
        confirmed_by=len(item.confirmed - item.refuted),
        refuted_by=len(item.refuted),
        confidence=remedy.chance,
        without=remedy.without,
        command=_command(document, remedy, action, sentence) if _is_sure(remedy) else None,
        quote=" ".join(quote.split())[:MAX_QUOTE_CHARS],
    )
    return workaround, cite(document, "workarounds", action, span, remedy.rule, remedy.chance)


def _is_sure(remedy: RemedyStatement) -> bool:
    return remedy.outcome == "works" and remedy.chance >= SURE and not remedy.without


def _command(
    document: Document, remedy: RemedyStatement, action: str, sentence: Sentence | None
) -> str | None:
    """Return the line to type, or the image to run.

    None for a parallel size, if it is only a part of what was changed, and if the outcome is in doubt.
    """
    ours = False
    if sentence is not None:
        start = remedy.start - sentence.start
        named = [start <= version.start < start + len(action) for version in versions_in(sentence)]
        ours = any(named)
        before, after = sentence.text[:start], sentence.text[start + len(action) :]
        is_less = is_part(before, action, after) or grammar("doubt").search(f"{before} _ {after}")
        if is_less or (named and not ours):  # it belongs to the version that is named elsewhere
            return None
    command = command_of(action, is_ours=ours)
    if command is None or command.startswith(_SIZES):
        return None
    release = command.removeprefix(_INSTALLED)
    return f"{_IMAGE}{release}" if release != command and _runs_image(document) else command


def _runs_image(document: Document) -> bool:
    """True if the report names vLLM's image and no installation."""
    texts = document.sources.values()
    return any(_IMAGE_NAME in text for text in texts) and not any("pip install" in text for text in texts)


def _sentence_at(document: Document, span: Span) -> Sentence | None:
    """Return the sentence that contains a span; None for code."""
    source, start, _ = span
    inside = (s for s in read_sentences(document) if s.source == source and s.start <= start < s.end)
    return next(inside, None)


def _without_open_brackets(action: str) -> str:
    """Return an action without trailing opening brackets, backticks and punctuation."""
    text = action.rstrip()
    while text and (text[-1] in "([{,;:" or (text[-1] == "`" and text.count("`") % 2)):
        text = text[:-1].rstrip()
    return text or action
