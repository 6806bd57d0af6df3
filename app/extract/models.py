"""Which models are being served when it fails.

In: a `Document` and its settings. Out: evidence of field `models`, one per model, named as written
(`org/name`, or the last telling part of a path).

A command or a `LLM(model=…)` is believed before the log's dump of its configuration, and both before
names in the title or in prose, which also mention models that work. Draft models of speculative
decoding are loaded too and count beside the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from app.extract.commands import Origin, Setting
from app.extract.document import Document
from app.extract.environment import Span
from app.extract.evidence import cite
from app.extract.facts import Evidence
from app.extract.lists import load
from app.extract.patterns import pattern
from app.extract.sections import windows

MAX_MODELS = 6
MAX_OUTPUT_CHARS = 20_000
"""Program output longer than this is not searched for names that nobody set."""

_LIST = load("models")
_PLACEHOLDERS = frozenset(name.lower() for name in _LIST["placeholders"])
_GENERIC = frozenset(_LIST["generic"])
_ORGS = "|".join(name.replace(".", r"\.") for name in _LIST["orgs"])
_WORDS = "|".join(_LIST["word_families"])
_FAMILIES = "|".join(_LIST["families"])
_ID = pattern(
    rf"(?:^|[^\w/.\-@]|huggingface\.co/|hf\.co/)((?:{_ORGS})/ ?[A-Za-z0-9][\w.\-]*[A-Za-z0-9])",
    ignore_case=True,
)
_NAME = pattern(
    rf"(?:^|[^\w/.\-])((?:(?:{_FAMILIES})[\-_ ]?|(?:{_WORDS})-)"
    rf"(?:[A-Za-z]{{1,12}}[\-_]?)?\d[\w.]*(?:-[A-Za-z0-9][\w.]*)*)",
    ignore_case=True,
)
_STATED = pattern(
    r"(?mi)^[ \t]*(?:[-*•+|]|\d[.)])?[ \t|]*[*`_]*models?"
    r"(?: name| id| used| path)?[*`_]*[ \t]*[:|：=][ \t*`]*([^\s`*|,(（]+)"
)
_LOADED = pattern(
    r"(?:Starting to load model|Loading model(?: weights)? from|Loading weights from) "
    r"([^\s,]+?)(?:\.\.\.|,|\s|$)"
)
_HASH = pattern(r"^[0-9a-f]{12,64}$")
_CLASS = pattern(r"\d[A-Z][a-z]{2,}|^[A-Za-z]+ (?:NV|MX)?FP\d$")
_SIZE = pattern(r"\d+(?:\.\d+)?[bBmM]\b|\d")
_PATH_VERSION = pattern(r"^(?:checkpoint|epoch|step|global_step)[-_]?\d+$")


def find_models(document: Document, settings: Sequence[Setting]) -> tuple[Evidence, ...]:
    """Evidence of field `models`, in the order of the text."""
    weak: list[tuple[str, Span]] = []
    served = {s.value.rstrip("/") for s in settings if s.name == "served-model-name"}
    for rule, origins, confidence in _ORIGINS:
        chosen = list(_from_settings(settings, origins, served if origins == ("keyword",) else set()))
        if any(not is_draft and any(c.isdigit() for c in name) for name, _, is_draft in chosen):
            return _cite(document, ((name, span) for name, span, _ in chosen), rule, confidence)
        weak += [(name, span) for name, span, _ in chosen]
    for rule, named, confidence in (
        ("models.title", _fuller(document, list(_in_title(document))), 0.85),
        ("models.served_name", _served_names(settings), 0.75),
        ("models.stated", _stated(document), 0.85),
        ("models.prose", _in_prose(document), 0.7),
        ("models.path", weak, 0.6),
    ):
        if found := _cite(document, named, rule, confidence):
            return found
    return ()


_ORIGINS: tuple[tuple[str, tuple[Origin, ...], float], ...] = (
    ("models.command", ("command",), 0.97),
    ("models.keyword", ("keyword",), 0.95),
    ("models.log", ("nondefault", "config", "namespace"), 0.95),
)


def name_in(value: str) -> tuple[str, int] | None:
    """The name a value of `--model` gives, and where in the value it begins; None if it names nothing.

    `org/name` stays; of a path the last telling component is taken; of a Hugging Face cache its
    `models--org--name` part.
    """
    bare = value.rstrip("/").rstrip("\\")
    if not bare or bare.lower() in _PLACEHOLDERS or bare[0] in "$<{[(%-" or "path/to" in bare.lower():
        return None
    if bare.startswith(("http://", "https://")):
        parts = bare.split("/")
        if len(parts) < 5:
            return None
        name = "/".join(parts[3:5])
        return name, bare.find(name)
    if bare.count("/") == 1 and bare[0] not in "/.~":
        return (bare, 0) if len(bare) > 4 else None
    start = len(bare)
    for component in reversed(bare.split("/")):
        start -= len(component)
        if _names_something(component):
            return component, start
        start -= 1
    return None


def _names_something(component: str) -> bool:
    low = component.lower()
    if low in _GENERIC or low in _PLACEHOLDERS or len(low) < 3 or low[0] in ".~$<{":
        return False
    return not _HASH.match(low) and not _PATH_VERSION.match(low) and any(c.isalpha() for c in low)


def _from_settings(
    settings: Sequence[Setting], origins: tuple[Origin, ...], served: set[str]
) -> Iterator[tuple[str, Span, bool]]:
    """Models of these origins: name, span, whether it is a draft model."""
    drafts = [s.span for s in settings if s.name == "speculative-config"]
    for setting in settings:
        is_nested = any(source == setting.span[0] and a <= setting.span[1] < b for source, a, b in drafts)
        if setting.name == "model" and setting.origin in origins and not is_nested:
            is_draft = False
        elif setting.name in ("speculative-model", "draft-model"):
            if not setting.is_chosen:
                continue
            is_draft = True
        elif setting.name == "model" and is_nested:
            is_draft = True
        else:
            continue
        if setting.value.rstrip("/") in served or setting.value.startswith("["):
            continue
        named = name_in(setting.value)
        if named is not None and _is_model(named[0], setting):
            source, start, _ = setting.span
            begin = start + named[1]
            yield named[0], (source, begin, begin + len(named[0])), is_draft


def _is_model(name: str, setting: Setting) -> bool:
    """Whether a keyword's value can be a model's name: code uses `model=` for much else."""
    if any(char in name for char in "(){}$=<>\"'"):
        return False
    return setting.origin != "keyword" or "/" in setting.value or bool(_SIZE.search(name))


def _in_title(document: Document) -> Iterator[tuple[str, Span]]:
    title = document.sources["title"]
    found = [*_ID.finditer(title)] or [*_NAME.finditer(title)]
    for match in found:
        if _is_full(match.group(1)):
            yield match.group(1), ("title", match.start(1), match.end(1))


def _fuller(document: Document, named: list[tuple[str, Span]]) -> Iterator[tuple[str, Span]]:
    """Names of the title, each replaced by a longer spelling of it that the body has with its org."""
    for name, span in named:
        key = name.rsplit("/", 1)[-1].lower().replace(" ", "-")
        best = (name, span)
        for source, offset, text in windows(document) if "/" not in name else ():
            for match in _ID.finditer(text):
                if match.group(1).rsplit("/", 1)[-1].lower().startswith(key):
                    best = (match.group(1), (source, offset + match.start(1), offset + match.end(1)))
                    break
        yield best


def _is_full(name: str) -> bool:
    """Whether it is a model rather than a family, or a class named after one (`Phi3ForCausalLM`)."""
    has_size = any(char.isdigit() for char in name)
    return has_size and len(name) > 3 and not name.endswith(".py") and not _CLASS.search(name)


def _served_names(settings: Sequence[Setting]) -> Iterator[tuple[str, Span]]:
    for setting in settings:
        if setting.name == "served-model-name" and _SIZE.search(setting.value):
            named = name_in(setting.value)
            if named and _is_model(named[0], setting):
                source, start, _ = setting.span
                yield named[0], (source, start + named[1], start + named[1] + len(named[0]))


def _stated(document: Document) -> Iterator[tuple[str, Span]]:
    """A line "Model: X", and what the log says it loads."""
    for block in document.blocks:
        text = block.text[:200_000]
        if block.source == "title":
            continue
        if block.kind != "code" and "odel" in text:
            matches = list(_STATED.finditer(text))
        elif (block.kind == "code" and "oading " in text) or "to load model" in text:
            matches = list(_LOADED.finditer(text))
        else:
            continue
        for match in matches:
            named = name_in(match.group(1).strip("\"'"))
            if named and any(char.isdigit() for char in named[0]):
                at = block.text.find(named[0], match.start(1))
                yield named[0], (block.source, block.start + at, block.start + at + len(named[0]))


def _in_prose(document: Document) -> Iterator[tuple[str, Span]]:
    """The first model the author names: an id if there is one, else a family with a size."""
    for rule in (_ID, _NAME):
        for block in document.of_kind("prose", "heading", "code"):
            is_output = block.kind == "code" and (rule is _NAME or len(block.text) > MAX_OUTPUT_CHARS)
            if block.source == "title" or is_output or (rule is _NAME and block.source != "body"):
                continue
            for match in rule.finditer(block.text):
                if _is_full(match.group(1)):
                    start = block.start + match.start(1)
                    yield match.group(1), (block.source, start, start + len(match.group(1)))
                    return


def _cite(
    document: Document, named: Iterable[tuple[str, Span]], rule: str, confidence: float
) -> tuple[Evidence, ...]:
    """One evidence per model; two spellings that end in the same component are one model."""
    first: dict[str, tuple[str, Span]] = {}
    for name, span in named:
        key = name.rstrip("/").rsplit("/", 1)[-1].lower()
        if key not in first or ("/" in name and "/" not in first[key][0]):
            first[key] = (name, span)
    return tuple(
        cite(document, "models", name, span, rule, confidence)
        for name, span in list(first.values())[:MAX_MODELS]
    )
