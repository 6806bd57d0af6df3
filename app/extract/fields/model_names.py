"""What names of models look like: Hugging Face ids, families with a size, parts of paths.

In: any text. Out: names as written with their place. Organisations, families and what may follow them
are data: `lists/models.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from app.extract.lists import load
from app.extract.rules.patterns import escape, pattern

_LIST = load("models")
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
_OPENAI = pattern(r"^gpt-(?:3\.5|4)", ignore_case=True)
_HASH = pattern(r"^[0-9a-f]{12,64}$")
_NO_MODEL = pattern(_LIST["no_model"]["pattern"])
_SIZE = pattern(_SIZE_TEXT)
_BARE = pattern(_LIST["bare"]["pattern"], ignore_case=True)
_MODULE = pattern(r"^[a-z0-9]+(?:_[a-z0-9]+)+$")
_PATH_VERSION = pattern(r"^(?:(?:checkpoint|epoch|step|global_step)[-_]?\d+|\d+(?:\.\d+)?b)$")
_BETWEEN = r"[_-]?(?:(?:\d[\w.]*|it|chat)[_-])?"
"""Between two words of a name that its longer spelling also has: a size or a date may stand there."""
_NO_ORGS = frozenset(_LIST["no_orgs"])


def name_in(value: str) -> tuple[str, int] | None:
    """The name a value of `--model` gives, and where in the value it begins; None if it names nothing.

    `org/name` stays; of a path the last telling component is taken; of a Hugging Face cache its
    `models--org--name` part.
    """
    bare = value.rstrip("/").rstrip("\\")
    if not bare or bare[0] in "$<{[(%-" or _is_placeholder(bare.lower()):
        return None
    if bare.startswith(("http://", "https://")):
        parts = bare.split("/")
        if len(parts) < 5:
            return None
        name = "/".join(parts[3:5])
        return name, bare.find(name)
    if bare.count("/") == 1 and bare[0] not in "/.~":
        return (bare, 0) if len(bare) > 4 and bare[-1].isalnum() else None
    start = len(bare)
    for component in reversed(bare.split("/")):
        start -= len(component)
        if _names_something(component):
            return component, start
        start -= 1
    return None


def _is_placeholder(low: str) -> bool:
    return low in _PLACEHOLDERS or "path/to" in low or bool(_OPENAI.match(low))


def _names_something(component: str) -> bool:
    low = component.lower()
    if low in _GENERIC or low in _PLACEHOLDERS or len(low) < 3 or low[0] in ".~$<{":
        return False
    return not _HASH.match(low) and not _PATH_VERSION.match(low) and any(c.isalpha() for c in low)


def find_ids(text: str, *, is_lone: bool = False) -> Iterator[tuple[str, int]]:
    """`org/name` with its place: a known organisation, a family with a size, or an address of a model hub.

    A name without any digit is given only from an address, or with `is_lone`, where the text is short and to
    the point.
    """
    for match in _ID.finditer(text):
        group = next(g for g in (1, 2, 3, 4) if match.group(g))
        name = match.group(group)
        org, _, rest = name.partition("/")
        is_telling = group == 3 or any(c.isdigit() for c in rest) or (is_lone and "-" in rest)
        if group == 2 and (org.lower() in _GENERIC or not _SIZE.search(rest)):
            continue
        if is_telling and org.lower() not in _NO_ORGS and not _is_file(name):
            yield name, match.start(group)


def find_names(text: str) -> Iterator[tuple[str, int]]:
    """Families with a number, as written, with their place."""
    for match in _NAME.finditer(text):
        name = match.group(1).rstrip("-_. ")
        if any(c.isdigit() for c in name):
            yield name, match.start(1)


def is_model(name: str) -> bool:
    """Whether it is a model rather than a class, a module or a file named after one."""
    if _MODULE.match(name) and not has_size(name):
        return False
    return len(name) > 3 and not _is_file(name) and not _NO_MODEL.search(name)


def has_size(name: str) -> bool:
    """Whether a name tells one model from its family: by a size, or because it is an id."""
    return "/" in name or bool(_SIZE.search(name))


def is_bare(name: str) -> bool:
    """Whether it is only a family and its generation: "Llama 3", "gemma3"."""
    return "/" not in name and bool(_BARE.match(name))


def _is_file(name: str) -> bool:
    return name.lower().endswith((".py", ".json", ".md", ".sh", ".jinja", ".so", ".git", ".html"))


def longer_spelling(name: str, text: str) -> tuple[str, int] | None:
    """The first id in a text whose name has this one at a word's beginning, dashes and blanks aside."""
    begins = _beginning(name)
    for found, start in find_ids(text):
        if begins.search(found.rsplit("/", 1)[-1]):
            return found, start
    return None


@lru_cache(maxsize=256)
def _beginning(name: str) -> Any:
    words = name.lower().replace("_", "-").replace(" ", "-").split("-")
    joined = _BETWEEN.join("[_-]?".join(escape(char) for char in word) for word in words if word)
    return pattern(rf"(?:^|[-_]){joined}(?:$|[^.\d])", ignore_case=True)
