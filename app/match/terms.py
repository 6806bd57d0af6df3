"""Which terms a failure is found by: of a stored issue and of a pasted log alike.

In: the lines of a text and the errors in it. Out: `{(channel, term): count}`. Four channels, because they
tell differently much: the words of the whole text, the masked words of the error lines, the frames, and
whole signatures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise

from app.extract.loglines import LogLine
from app.extract.normalise import mask
from app.extract.patterns import pattern
from app.extract.rootcause import Cause, CauseChain, is_plumbing, wrapper_rule

TEXT, ERROR, FRAME, SIGNATURE = 1, 2, 3, 4
CHANNELS = (TEXT, ERROR, FRAME, SIGNATURE)

MAX_TOKENS = 3_000
"""Tokens of one text; a longer one keeps its head and its tail, where start-up and failure stand."""
MAX_TOKEN_CHARS = 60
MIN_TOKEN_CHARS = 3

TELLING_WORDS_LEAST = 30
"""Distinct words that must remain before a log's common lines are left out."""

LONG_LOG_LINES, EDGE_LINES, NEAR_LINES = 400, 50, 150
"""A longer log is searched by its first and last lines and by those near its cause."""

_ON_THE_WAY = pattern(
    r"vllm/v1/engine/(?:core|core_client|utils|async_llm|llm_engine)\.py|vllm/v1/executor/"
    r"|vllm/entrypoints/(?:cli|openai/api_server|launcher)|/bin/vllm|uvloop|contextlib\.py|asyncio/"
    r"|multiprocessing/|concurrent/|runpy\.py|<frozen"
)
_WORD = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}

Terms = Mapping[tuple[int, str], int]


def terms_of(texts: Iterable[str], errors: CauseChain) -> Terms:
    """The terms of a failure.

    Args:
        texts: titles and lines, without log prefixes.
        errors: the cause, wrappers and other errors found in them.
    """
    words = Counter(_grams(_tokens(texts)))
    found = Counter({(TEXT, term): count for term, count in words.items()})
    causes = [errors.cause, *errors.other] if errors.cause else []
    for cause in causes:
        for term in error_terms(cause):
            found[ERROR, term] += 1
        for term in frame_terms(cause):
            found[FRAME, term] += 1
        found[SIGNATURE, message_key(cause)] += 1
    return found


def texts_of_log(lines: Sequence[LogLine], errors: CauseChain | None = None) -> Iterable[str]:
    """The words of a log, line by line; where code stands on disk is left out.

    Args:
        errors: what was found in a pasted log. Where it holds wrappers only, the lines that every failing
            server prints would drown the few others; so they are left out, if enough words remain.
    """
    if errors is not None and errors.cause is None and errors.wrappers:
        telling = [_without_path(line.text) for line in _beside_wrappers(lines)]
        if len(set(_tokens(telling))) >= TELLING_WORDS_LEAST:
            return telling
    return [_without_path(line.text) for line in _around_cause(lines, errors)]


def _around_cause(lines: Sequence[LogLine], errors: CauseChain | None) -> Sequence[LogLine]:
    """Of a long log its first lines, its last, and those around the cause: noise would drown the rest."""
    if errors is None or errors.cause is None or len(lines) <= LONG_LOG_LINES:
        return lines
    hot = errors.cause.line.number
    near = [line for line in lines[EDGE_LINES:-EDGE_LINES] if abs(line.number - hot) <= NEAR_LINES]
    return [*lines[:EDGE_LINES], *near, *lines[-EDGE_LINES:]]


def _beside_wrappers(lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """Lines that are neither wrappers nor frames on the way from a server to its engine."""
    leads = False
    for line in lines:
        if 'File "' in line.text:
            leads = _ON_THE_WAY.search(line.text) is not None
        elif not line.text.startswith("    "):
            leads = False
        if not leads and wrapper_rule(line.text) is None:
            yield line


def error_terms(cause: Cause) -> Iterable[str]:
    """Masked words of an error line, alone and in pairs, and its type."""
    words = _tokens([mask(cause.message)])
    yield from _grams(words)
    if cause.type:
        yield f"type:{cause.type}"


def frame_terms(cause: Cause) -> Iterable[str]:
    """The telling frames as file:function, alone and in pairs of neighbours."""
    places = [frame.place for frame in cause.frames if not is_plumbing(frame)]
    if not places and cause.frame:
        places = [cause.frame]
    yield from dict.fromkeys(places)
    yield from dict.fromkeys(f"{one} > {two}" for one, two in pairwise(places))


def message_key(cause: Cause) -> str:
    """Type and masked message as one term."""
    return f"{cause.type or 'error'} | {mask(cause.message)}"[:300]


def words_of(text: str) -> list[str]:
    """The words of a text as the index holds them, in order."""
    return _tokens([text])


def _without_path(text: str) -> str:
    """A traceback's File line as file and function; any other line as it is."""
    at = text.find('File "')
    if at < 0:
        return text
    end = text.find('"', at + 6)
    path = text[at + 6 : end].replace("\\", "/")
    for mark in ("-packages/", "/lib/python"):
        if mark in path:
            path = path.rsplit(mark, 1)[1]
    return f"{text[:at]}{path}{text[end + 1 :]}"


def _tokens(texts: Iterable[str]) -> list[str]:
    words = "\n".join(texts).lower().translate(_WORD).split()
    tokens = [
        word for word in words if MIN_TOKEN_CHARS <= len(word) <= MAX_TOKEN_CHARS and not word[0].isdigit()
    ]
    if len(tokens) > MAX_TOKENS:
        half = MAX_TOKENS // 2
        return tokens[:half] + tokens[-half:]
    return tokens


def _grams(tokens: Sequence[str]) -> Iterable[str]:
    return chain(tokens, map(" ".join, pairwise(tokens)))
