"""Synthetic sentences about changes, versions and outcomes, in phrasings that are rare in real labels.

In: the templates and words of `labels/phrasings.toml`. Out: issues with one such sentence between real ones,
and its label. They are used for training, with a low weight, and never for evaluation.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app.extract.statements.features import Surroundings
from app.extract.text.document import IssueText

FRAMES = Path(__file__).parent / "labels" / "phrasings.toml"
SHARES = {
    "works": 0.24,
    "without": 0.08,
    "partial": 0.04,
    "fails": 0.08,
    "nothing": 0.16,
    "last_working": 0.08,
    "first_failing": 0.07,
    "still_failing": 0.07,
    "fixed_in": 0.03,
    "culprit": 0.06,
    "mixed": 0.10,
    "no_role": 0.10,
}
"""Share of templates drawn for each outcome, similar to its share of the real labels."""

_CHANCES = np.array(list(SHARES.values())) / sum(SHARES.values())
SHORT_SHARE = 0.15
"""Share of versions without a patch number."""

FIRST_NUMBER = 10_000_000
"""Numbers of synthetic issues start here, above all real ones."""

_OUTCOMES = ("works", "without", "partial", "fails")
_SLOT = re.compile(r"\{(\w+)(?:(!)(\w*))?\}")
_WORDS = {"G": "good", "B": "bad", "F": "fixing", "W": "good_verbs", "L": "left", "leave": "leave"}
_DOUBLED = frozenset(["set", "run", "pin", "drop"])
_IRREGULAR = {
    "set": "set",
    "run": "run",
    "go": "gone",
    "copy": "copied",
    "pin": "pinned",
    "rebuild": "rebuilt",
}


def make_issues(count: int, around: Sequence[Surroundings]) -> Iterator[tuple[IssueText, dict[str, Any]]]:
    """Yield issues with randomly filled templates (fixed seed), with their labels."""
    words = tomllib.loads(FRAMES.read_text(encoding="utf-8"))
    rng = np.random.default_rng(0)
    for number in range(FIRST_NUMBER, FIRST_NUMBER + count):
        outcome = str(rng.choice(list(SHARES), p=_CHANCES))
        text, stated = _fill_template(rng, words, outcome)
        real = around[int(rng.integers(len(around)))]
        before = f"{real.previous}\n\n" if real.previous else ""
        shift = len(before)
        label: dict[str, Any] = {
            "number": number,
            "source": "body",
            "use": "made",
            "remedies": [],
            "versions": [],
        }
        label |= {"start": shift, "end": shift + len(text)}
        for start, end, meant in stated:
            place = [shift + start, shift + end, meant]
            if meant in _OUTCOMES:
                label["remedies"].append([*place, int(meant == "without")])
            else:
                label["versions"].append(place)
        yield IssueText(number, real.title, f"{before}{text}\n\n{real.next}"), label


def _fill_template(
    rng: np.random.Generator, words: dict[str, Any], outcome: str
) -> tuple[str, list[tuple[int, int, str]]]:
    text = _pick(rng, words["openers"])
    frame = _pick(rng, words[outcome])
    stated: list[tuple[int, int, str]] = []
    versions = dict(zip("vw", _versions(rng), strict=True))
    at = 0
    for slot in _SLOT.finditer(frame):
        text += frame[at : slot.start()]
        at = slot.end()
        word = versions.get(slot.group(1)) or _word(rng, words, slot.group(1))
        if slot.group(2):
            stated.append((len(text), len(text) + len(word), slot.group(3) or outcome))
        text += word
    text += frame[at:]
    return text[:1].upper() + text[1:], stated


def _pick(rng: np.random.Generator, words: Sequence[str]) -> str:
    return words[int(rng.integers(len(words)))]


def _versions(rng: np.random.Generator) -> tuple[str, str]:
    """Return two vLLM releases, the older one first."""
    minor, patch = rng.integers(2, 23), rng.integers(0, 6)
    older = f"0.{minor}.{patch}"
    newer = f"0.{minor}.{patch + 1}" if rng.random() < 0.5 else f"0.{minor + 1}.{rng.integers(0, 3)}"
    if rng.random() < SHORT_SHARE:
        older, newer = f"0.{minor}", f"0.{minor + 1}"
    sign = _pick(rng, ["", "", "v"])
    return sign + older, sign + newer


def _word(rng: np.random.Generator, words: dict[str, Any], slot: str) -> str:
    if slot in _WORDS:
        return _pick(rng, words[_WORDS[slot]])
    if slot == "c":
        return f"{rng.integers(1 << 36):09x}"
    if slot == "p":
        number = rng.integers(2000, 44000)
        forms = [f"#{number}", f"PR #{number}", f"https://github.com/vllm-project/vllm/pull/{number}"]
        return str(rng.choice(forms))
    if slot == "o":
        return f"{rng.integers(2, 14)}.{rng.integers(10)}"
    name = _pick(rng, words["names"])
    if slot == "N":
        return name
    verb, _, rest = _pick(rng, words["deeds"]).partition(" ")
    form = {"Ving": _with_ing, "Ved": _with_ed}.get(slot, str)
    return f"{form(verb)} {rest}".replace("{N}", name)


def _with_ing(verb: str) -> str:
    return f"{verb}{verb[-1]}ing" if verb in _DOUBLED else f"{verb.removesuffix('e')}ing"


def _with_ed(verb: str) -> str:
    return _IRREGULAR.get(verb, f"{verb.removesuffix('e')}ed")
