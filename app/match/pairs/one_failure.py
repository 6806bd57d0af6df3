"""Decide whether two issues may be told as reports of one failure, whatever their score.

In: the features of two issues. Out: whether they name one failure, and what keeps them apart. Reports of the
same week, form or model have a high score, too: only a title or message in common shows that they are the
same failure, and only if nothing contradicts it.
"""

from app.match.pairs.features import ARCHITECTURE_ENDINGS, MESSAGE, TITLE, WORDS, Bag, PairFeatures
from app.match.search.agreement import DISTINCTIVE_BACKENDS

CLAIM_LEAST = 0.75
"""Minimum similarity of specific titles, or of a title and a message, that name one failure."""
MESSAGE_LEAST = 0.75
"""Minimum similarity of specific messages that do."""
TITLE_LEAST = 0.9
"""Minimum similarity of specific titles that do although the messages differ in part."""
CONTAINED_FROM = 0.95
"""Share of a specific message from which on another one contains it."""
ERRORS_APART = 0.3
"""Below this similarity of their messages, two issues report different errors."""
COMMON_FROM = 2.1
"""Commonness of a message from which on unrelated failures may share it: eight issues have it."""
TEXTS_AGREE = 0.4
"""Similarity of the whole texts that counts as a condition in common, if a message is only common."""
NEAR_DAYS = 180
FAR_DAYS = 365
"""Maximum number of days between reports of one failure; `NEAR_DAYS` if unlike failures share the message."""
RELEASE_DAYS = 14
"""Days within which reports may be of one release: a fault in it reaches many models and set-ups at once."""
LATE_AGREEMENTS = 2
"""Conditions that asynchronous device errors need in common: their messages do not say what failed."""
_VAGUE = frozenset({"generic", "late"})


def is_one_failure(one: PairFeatures, two: PairFeatures) -> bool:
    """True if both issues name the same failure, and nothing keeps them apart."""
    return _name_one_failure(one, two) and why_apart(one, two) is None


def _name_one_failure(one: PairFeatures, two: PairFeatures) -> bool:
    """True if both name it by message, by title, or, without messages, by class and frame of the error."""
    both = one.specific & two.specific
    titles = similarity(one, two, TITLE, TITLE) if TITLE in both else 0.0
    if one.bags[MESSAGE] and two.bags[MESSAGE]:
        same_message = similarity(one, two, MESSAGE, MESSAGE) >= MESSAGE_LEAST or _is_contained(one, two)
        is_specific = MESSAGE in both or titles >= CLAIM_LEAST
        return (is_specific and same_message) or titles >= TITLE_LEAST
    crossed = ((TITLE, MESSAGE, two.specific), (MESSAGE, TITLE, one.specific))
    claims = [similarity(one, two, a, b) for a, b, specific in crossed if MESSAGE in specific]
    return max([titles, *claims]) >= CLAIM_LEAST or not one.places.isdisjoint(two.places)


def why_apart(one: PairFeatures, two: PairFeatures) -> str | None:
    """Return what keeps two issues from being one failure, or None."""
    return _other_failure(one, two) or _other_conditions(one, two) or _other_era(one, two)


def _other_failure(one: PairFeatures, two: PairFeatures) -> str | None:
    reasons = {
        "they failed on other platforms": one.platforms.isdisjoint(two.platforms),
        "they report other errors": _report_other_errors(one, two),
        "their errors name other models": are_disjoint(_architectures(one), _architectures(two)),
        "their errors name other code": are_disjoint(one.subjects, two.subjects),
        "their titles name other features": are_disjoint(one.title_conditions, two.title_conditions),
        "other changes broke them": are_disjoint(one.culprits, two.culprits),
    }
    return next((reason for reason, is_met in reasons.items() if is_met), None)


def _report_other_errors(one: PairFeatures, two: PairFeatures) -> bool:
    if not (one.bags[MESSAGE] and two.bags[MESSAGE]) or _is_contained(one, two):
        return False
    return similarity(one, two, MESSAGE, MESSAGE) < ERRORS_APART


def _other_conditions(one: PairFeatures, two: PairFeatures) -> str | None:
    axes = one.axes | two.axes
    is_of_one_release = _days_between(one, two) <= RELEASE_DAYS
    is_elsewhere = are_disjoint(one.families, two.families) or not is_of_one_release
    if "model" in axes and is_elsewhere and one.families.isdisjoint(two.families):
        return "every model can have this error, and no model family agrees"
    is_vague = bool(axes & _VAGUE)
    if not is_vague and (
        not _is_common(one, two) or is_of_one_release or similarity(one, two, WORDS, WORDS) >= TEXTS_AGREE
    ):
        return None
    agreed = agreements(one, two)
    if len(agreed) >= (LATE_AGREEMENTS if "late" in axes else 1):
        return None
    found = f"only their {agreed[0]}" if agreed else "no condition"
    return f"many unlike failures have this line, and {found} agrees"


def _days_between(one: PairFeatures, two: PairFeatures) -> int:
    return abs(one.day - two.day) if one.day and two.day else 0


def _other_era(one: PairFeatures, two: PairFeatures) -> str | None:
    days = _days_between(one, two)
    is_shared = bool((one.axes | two.axes) & _VAGUE) or _is_common(one, two)
    return f"{days} days lie between them" if days > (NEAR_DAYS if is_shared else FAR_DAYS) else None


def agreements(one: PairFeatures, two: PairFeatures) -> list[str]:
    """Return the kinds of condition that agree: model family, backend, frame, conditions in titles."""
    # Conditions named in the error line come with the line and are no independent evidence.
    in_error = one.in_error | two.in_error
    found = {
        "family": (one.families & two.families) - in_error,
        "backend": {
            name for name in one.backends & two.backends if name.split("=")[0] in DISTINCTIVE_BACKENDS
        },
        "frame": one.places & two.places,
        "title": (one.title_conditions & two.title_conditions) - in_error,
    }
    return [name for name, shared in found.items() if shared]


def _is_contained(one: PairFeatures, two: PairFeatures) -> bool:
    """True if one of two messages contains the other."""
    mine, theirs = one.bags[MESSAGE], two.bags[MESSAGE]
    shared = mine.keys() & theirs.keys()
    return any(
        sum(bag[key] ** 2 for key in shared) >= CONTAINED_FROM * dot(bag, bag) > 0 for bag in (mine, theirs)
    )


def _is_common(one: PairFeatures, two: PairFeatures) -> bool:
    return min(one.commonness, two.commonness) >= COMMON_FROM


def _architectures(features: PairFeatures) -> frozenset[str]:
    return frozenset(name for name in features.subjects if name.endswith(ARCHITECTURE_ENDINGS))


def are_disjoint(one: frozenset[str], two: frozenset[str]) -> bool:
    """True if both name something, and nothing in common."""
    return bool(one and two and not one & two)


def similarity(one: PairFeatures, two: PairFeatures, mine: str, theirs: str) -> float:
    """Return the cosine similarity of a bag of one issue and a bag of the other."""
    return round(dot(one.bags[mine], two.bags[theirs]), 6)


def dot(one: Bag, two: Bag) -> float:
    """Return the dot product of two bags."""
    return sum(one[key] * two[key] for key in one.keys() & two.keys())
