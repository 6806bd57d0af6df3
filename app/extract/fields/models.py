"""Models being served when the failure occurs.

In: a `Document` and its settings. Out: evidence of field `models`, one per model, named as written
(`org/name`, or the last distinctive part of a path).

A command or `LLM(model=…)` is trusted over the configuration in the log, and both over names in the title
or prose, which also mention models that work. Draft models are loaded too and are listed with the main model.
Organisations, families and suffixes are data: `lists/models.toml`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from app.extract.evidence import cite
from app.extract.facts import Evidence
from app.extract.fields.failure_kind import is_feature_request, is_proposal
from app.extract.fields.settings import KNOWN_OPTIONS, Origin, Setting
from app.extract.lists import load
from app.extract.rules.patterns import escape, pattern
from app.extract.text.blocks import Places, windows
from app.extract.text.document import Document, Span

MAX_MODELS = 8
MAX_NAMES = 400
"""Names read per text; texts with more are tables of something else."""

_LIST = load("models")
_CONFIDENCE: dict[str, float] = _LIST["confidence"]
_PLACEHOLDERS = frozenset(name.lower() for name in _LIST["placeholders"])
_GENERIC = frozenset(_LIST["generic"])
_ORGS = "|".join(name.replace(".", r"\.") for name in _LIST["orgs"])
_WORDS = "|".join(_LIST["word_families"])
_FAMILIES = "|".join(_LIST["families"])
_PARTS = "|".join(_LIST["parts"])
_SIZE_TEXT = r"\d+(?:\.\d+)?(?:x\d+(?:\.\d+)?)? ?[bBmM]\b"
_ID = pattern(
    rf"(?:^|[^\w/.\-@])((?:{_ORGS})/ ?[A-Za-z0-9][\w.\-]*[A-Za-z0-9])"
    rf"|(?:^|[^\w/.\-@])([A-Za-z][\w\-]{{1,40}}/(?:{_FAMILIES})[\w.\-]*[A-Za-z0-9])"
    r"|(?:huggingface\.co|hf\.co|modelscope\.cn/models)/"
    r"([A-Za-z0-9][\w.\-]*/[A-Za-z0-9][\w.\-]*[A-Za-z0-9])"
    r"|\bmodels?[ :]{1,2}[`\"']([A-Za-z0-9][\w.\-]*/[A-Za-z0-9][\w.\-]*[A-Za-z0-9])[`\"']",
    ignore_case=True,
)
_NAME = pattern(
    rf"(?:^|[^\w/.\-@])((?:"
    rf"(?:{_FAMILIES})(?:[\-_ ]?v?\d[\w.]*"
    r"|(?:[\-_]?[A-Za-z]\w*)?(?:[\-_][A-Za-z]\w*){0,3}[\-_]?v?\d[\w.]*)?"
    rf"|(?:{_WORDS})(?:[\-]v?\d[\w.]*|-[A-Za-z]\w*-v?\d[\w.]*)?"
    rf")(?:-[A-Za-z0-9][\w.]*|[ \-](?:{_SIZE_TEXT}|(?-i:{_PARTS})\b)){{0,9}})",
    ignore_case=True,
)
_KNOWN = pattern(
    r"(?:^|[^\w/.\-@])(" + "|".join(_LIST["known"]) + r")(?:[^\w.\-/]|$|[.,:] )", ignore_case=True
)
_GLUED_OPTION = pattern(r"--(?:" + "|".join(KNOWN_OPTIONS) + r")$")
"""The next option, where the blank before it is missing."""
_OPENAI = pattern(r"^gpt-(?:3\.5|4)", ignore_case=True)
_HASH = pattern(r"^[0-9a-f]{12,64}$")
_NO_MODEL = pattern(_LIST["no_model"]["pattern"])
_SIZE = pattern(_SIZE_TEXT)
_BARE = pattern(_LIST["bare"]["pattern"], ignore_case=True)
_MODULE = pattern(r"^[a-z0-9]+(?:_[a-z0-9]+)+$")
_ENUMERATED = frozenset([",", "and", "or", "&", "/", "、", "和", ", and"])
"""What stands between models that are named together."""
_BETWEEN = r"[_-]?(?:(?:\d[\w.]*|it|chat)[_-])?"
"""Allowed between two words of a name in its longer spelling: a size or a date."""
_NO_ORGS = frozenset(_LIST["no_orgs"])
_STATED = pattern(
    r"(?mi)^[ \t]*(?:[-*•+|]|\d[.)])?[ \t|]*[*`_]*(?:base |draft |target |served )?models?"
    r"(?: name| id| used| path)?[*`_]*[ \t]*[:|：=][ \t*`\[]*([^\s`*|,(（\]]+)"
)
_LOADED = pattern(
    r"(?:Starting to load model|Loading model(?: weights)? from|Loading weights from) "
    r"([^\s,]+?)(?:\.\.\.|,|\s|$)"
)
_PROCESSOR = pattern(r"^(?:\d+(?:st|nd|rd|th)?$|Intel|AMD|Neoverse|EPYC|Xeon)", ignore_case=True)
_Named = tuple[str, Span]
_Chosen = tuple[str, Span, bool]
"""Name, span, and whether the model is secondary: a draft model, an adapter, or in a path that is made up."""
_ORIGINS: tuple[tuple[str, tuple[Origin, ...]], ...] = (
    ("command", ("command",)),
    ("keyword", ("keyword",)),
    ("log", ("nondefault", "config", "namespace")),
)


@lru_cache(maxsize=2)
def find_models(document: Document, settings: Sequence[Setting]) -> tuple[Evidence, ...]:
    """Return evidence of `models` from the most trusted source, in text order; a proposal's are examples."""
    if is_proposal(document):
        return ()
    weak: list[_Named] = []
    for rule, origins in _ORIGINS:
        chosen = list(_from_settings(settings, origins))
        if any(not is_secondary and _is_distinctive(name) for name, _, is_secondary in chosen):
            return _cite(document, ((name, span) for name, span, _ in chosen), rule)
        weak += [(name, span) for name, span, _ in chosen]
    if is_feature_request(document):
        return _cite(document, weak, "path")
    titled = list(_in_title(document, settings))
    asked: tuple[tuple[str, Callable[[], Iterable[_Named]]], ...] = (
        ("title", lambda: (item for item in titled if not is_bare(item[0]))),
        ("stated", lambda: _from_lines(document)),
        ("prose", lambda: _with_a_size(_in_prose(document))),
        ("path", lambda: weak),
        ("title", lambda: titled),
        ("prose", lambda: _in_prose(document)),
        ("title", lambda: _known_in_title(document)),
    )
    for rule, named in asked:
        if found := _cite(document, named(), rule):
            return found
    return ()


def _is_distinctive(name: str) -> bool:
    return any(char.isdigit() for char in name)


def _from_settings(settings: Sequence[Setting], origins: tuple[Origin, ...]) -> Iterator[_Chosen]:
    drafts = [s.span for s in settings if s.name == "speculative-config"]
    for setting in settings:
        is_nested = any(source == setting.span[0] and a <= setting.span[1] < b for source, a, b in drafts)
        if setting.name == "model" and setting.origin in origins and not is_nested:
            is_draft = False
        elif setting.name in ("speculative-model", "draft-model", "speculative-config.model"):
            if not setting.is_chosen:
                continue
            is_draft = True
        elif setting.name == "model" and is_nested:
            is_draft = True
        else:
            continue
        named = name_in(setting.value)
        if named is not None and _is_value(named[0], setting):
            source, start, _ = setting.span
            begin = start + named[1]
            is_secondary = is_draft or _is_made_up(setting.value)
            yield named[0], (source, begin, begin + len(named[0])), is_secondary


def _is_value(name: str, setting: Setting) -> bool:
    """True if a value may be a model's name: `model=` and "vllm serve" also precede other words."""
    if any(char in name for char in "(){}$=<>\"'\n*"):
        return False
    if "/" in setting.value or any(c.isdigit() for c in name):
        return True
    word = name.rstrip(".,;:!?")
    return setting.origin != "keyword" and not (word.isalpha() and word.islower())


def _in_title(document: Document, settings: Sequence[Setting]) -> Iterator[_Named]:
    """Yield the names in the title, each in the longer spelling found in the settings or text."""
    title = document.sources["title"]
    named = list(find_ids(title)) or [item for item in find_names(title) if is_model(item[0])]
    for name, start in named:
        yield _as_served(name, settings) or _as_in_text(document, name, ("title", start, start + len(name)))


def _known_in_title(document: Document) -> Iterator[_Named]:
    """Yield the models in the title whose whole name has no number."""
    for match in _KNOWN.finditer(document.sources["title"]):
        yield match.group(1), ("title", *match.span(1))


def _as_served(name: str, settings: Sequence[Setting]) -> _Named | None:
    """Return the served model name that equals this one but for dashes and spaces; None if there is none."""
    same = (item for item in _served_names(settings) if _folded(item[0]) == _folded(name))
    return next(same, None)


def _folded(name: str) -> str:
    return "".join(sign for sign in name.lower() if sign.isalnum() or sign == ".")


def _as_in_text(document: Document, name: str, span: Span) -> _Named:
    if "/" not in name:
        for source, offset, text in windows(document):
            if longer := longer_spelling(name, text):
                start = offset + longer[1]
                return longer[0], (source, start, start + len(longer[0]))
    return name, span


def _served_names(settings: Sequence[Setting]) -> Iterator[_Named]:
    for setting in settings:
        if setting.name == "served-model-name" and any(c.isdigit() for c in setting.value):
            named = name_in(setting.value)
            if named and _is_value(named[0], setting):
                source, start, _ = setting.span
                yield named[0], (source, start + named[1], start + named[1] + len(named[0]))


def _from_lines(document: Document) -> Iterator[_Named]:
    """Yield models from lines such as "Model: X" and from "Loading model …" in logs."""
    for block in document.blocks:
        text = block.text[:200_000]
        if block.kind != "code" and "odel" in text:
            matches = list(_STATED.finditer(text))
        elif (block.kind == "code" and "oading " in text) or "to load model" in text:
            matches = list(_LOADED.finditer(text))
        else:
            continue
        for match in matches:
            value = match.group(1).strip("\"'")
            named = None if _PROCESSOR.match(value) else name_in(value)
            if named and any(char.isdigit() for char in named[0]):
                at = block.start + block.text.find(named[0], match.start(1))
                yield named[0], (block.source, at, at + len(named[0]))


@lru_cache(maxsize=2)
def _in_prose(document: Document) -> tuple[_Named, ...]:
    """Return the first model in the text, with those enumerated behind it.

    It is an id if there is one, else a family with a number.
    """
    places = Places(document)
    for find, is_id in ((find_ids, True), (find_names, False)):
        for source, offset, text in windows(document):
            found: list[_Named] = []
            for name, start in islice(find(text), MAX_NAMES):
                begin = offset + start
                if found and text[found[-1][1][2] - offset : start].strip(" `*[]()") not in _ENUMERATED:
                    break
                block = places.block_at(source, begin)
                is_theirs = is_id or block is None or block.kind in ("prose", "heading")
                if is_theirs and is_model(name):
                    found.append((name, (source, begin, begin + len(name))))
            if found:
                return tuple(found)
    return ()


def _with_a_size(named: tuple[_Named, ...]) -> tuple[_Named, ...]:
    """Return the models if any of them has a size."""
    return named if any(has_size(name) for name, _ in named) else ()


def _cite(document: Document, named: Iterable[_Named], rule: str) -> tuple[Evidence, ...]:
    """Return one evidence per model; names with the same last path component are one model."""
    first: dict[str, _Named] = {}
    for name, span in named:
        key = name.rstrip("/").rsplit("/", 1)[-1].lower()
        if key not in first or ("/" in name and "/" not in first[key][0]):
            first[key] = (name, span)
    return tuple(
        cite(document, "models", name, span, f"models.{rule}", _CONFIDENCE[rule])
        for name, span in list(first.values())[:MAX_MODELS]
    )


def name_in(value: str) -> tuple[str, int] | None:
    """Return the model's name in a value of `--model` and its offset there; None if there is none.

    `org/name` is kept; a path or an address gives its last distinctive component.
    """
    bare = _GLUED_OPTION.sub("", value).rstrip("/").rstrip("\\")
    if not bare or bare[0] in "$<{[(%-" or _is_placeholder(bare.lower()):
        return None
    if bare.count("/") == 1 and bare[0] not in "/.~" and bare.partition("/")[0].lower() not in _GENERIC:
        return (bare, 0) if len(bare) > 4 and bare[-1].isalnum() else None
    start = len(bare)
    is_made_up = _is_made_up(bare)
    for component in reversed(bare.replace("\\", "/").split("/")):
        start -= len(component)
        if _is_distinctive_component(component) and (not is_made_up or any(find_names(component))):
            return component, start
        start -= 1
    return None


def _is_made_up(path: str) -> bool:
    """True if a path stands for the reader's own; its last part may still name a model."""
    return "path/to" in path.lower()


def _is_placeholder(low: str) -> bool:
    return low in _PLACEHOLDERS or bool(_OPENAI.match(low))


def _is_distinctive_component(component: str) -> bool:
    low = component.lower()
    if low in _GENERIC or low in _PLACEHOLDERS or len(low) < 3 or low[0] in ".~$<{" or low[-1] == ":":
        return False
    return not _HASH.match(low) and any(c.isalpha() for c in low)


def find_ids(text: str) -> Iterator[tuple[str, int]]:
    """Yield `org/name` and its offset: of a known organisation, a family with a size, or a model hub's URL.

    A name without a digit counts only in a URL.
    """
    for match in _ID.finditer(text):
        group = next(g for g in (1, 2, 3, 4) if match.group(g))
        name = match.group(group)
        org, _, rest = name.partition("/")
        is_telling = group == 3 or any(c.isdigit() for c in rest)
        if group == 2 and (org.lower() in _GENERIC or not _SIZE.search(rest)):
            continue
        if is_telling and org.lower() not in _NO_ORGS and not _is_file(name):
            yield name, match.start(group)


def find_names(text: str) -> Iterator[tuple[str, int]]:
    """Yield model families with a number, as written, and their offset."""
    for match in _NAME.finditer(text):
        name = match.group(1).rstrip("-_. ")
        if any(c.isdigit() for c in name):
            yield name, match.start(1)


def is_model(name: str) -> bool:
    """True if it names a model rather than a class, module or file named after one."""
    if _MODULE.match(name) and not has_size(name):
        return False
    return len(name) > 3 and not _is_file(name) and not _NO_MODEL.search(name)


def has_size(name: str) -> bool:
    """True if the name is specific within its family: it has a size or is an id."""
    return "/" in name or bool(_SIZE.search(name))


def is_bare(name: str) -> bool:
    """True if the name is only a family and its generation: "Llama 3", "gemma3"."""
    return "/" not in name and bool(_BARE.match(name))


def _is_file(name: str) -> bool:
    return name.lower().endswith((".py", ".json", ".md", ".sh", ".jinja", ".so", ".git", ".html"))


def longer_spelling(name: str, text: str) -> tuple[str, int] | None:
    """Return the first id in a text that contains this name from a word's start, and its offset.

    If there is none and the name has no size, return the first name with a size that does.
    """
    begins = _name_pattern(name)
    for found, start in find_ids(text):
        if begins.search(found.rsplit("/", 1)[-1]):
            return found, start
    for found, start in () if has_size(name) else islice(find_names(text), MAX_NAMES):
        if has_size(found) and begins.search(found):
            return found, start
    return None


@lru_cache(maxsize=256)
def _name_pattern(name: str) -> Any:
    words = name.lower().replace("_", "-").replace(" ", "-").split("-")
    joined = _BETWEEN.join("[_-]?".join(escape(char) for char in word) for word in words if word)
    return pattern(rf"(?:^|[-_]){joined}(?:$|[^.\d])", ignore_case=True)
