"""Decide whether two issues may be told as reports of one failure, whatever their score.

In: the features of two issues. Out: whether they name one failure, and what keeps them apart. Reports of the
same week, form or model have a high score, too: only a title or message in common shows that they are the
same failure, and only if nothing contradicts it.
"""

from app.extract.log.signature import mask
from app.match.pairs.features import COMMON, MESSAGE, MODEL, TITLE, VAGUE_AXES, WORDS, Bag, PairFeatures
from app.match.pairs.slots import differ_in_names, differ_in_words, differ_within

CLAIM_LEAST = 0.75
"""Minimum similarity of specific titles, or of a title and a message, that name one failure."""
MESSAGE_LEAST = 0.75
"""Minimum similarity of specific messages that do."""
TITLE_LEAST = 0.9
"""Minimum similarity of specific titles that do although the messages differ in part."""
CONTAINED_FROM = 0.95
"""Share of a specific message from which on another one contains it."""
COMMON_FROM = 2.1
"""Commonness of a message from which on unrelated failures may share it: eight issues have it."""
TEXTS_AGREE = 0.4
"""Similarity of the whole texts that counts as a condition in common, if a message is only common."""
TEXTS_NEAR = 0.2
"""Similarity of the whole texts below which specific titles alone must be alike in full."""
FAR_DAYS = 365
"""Maximum number of days between reports of one failure."""
MANY_RELEASES_DAYS = 180
"""Days after which the code behind a message is another one, unless model or feature are the same."""
RELEASE_DAYS = 14
"""Days within which reports may be of one release: a fault in it reaches many models and set-ups at once."""


def is_one_failure(one: PairFeatures, two: PairFeatures) -> bool:
    """True if both issues name the same failure, and nothing keeps them apart."""
    return _name_one_failure(one, two) and not are_apart(one, two) and not _are_of_other_times(one, two)


def _name_one_failure(one: PairFeatures, two: PairFeatures) -> bool:
    """True if both name it by message or by title, or one by its title and the other by its message."""
    both = one.specific & two.specific
    mine, theirs = one.said, two.said
    titles = similarity(one, two, TITLE, TITLE) if TITLE in both else 0.0
    if titles and (differ_in_names(mine[TITLE], theirs[TITLE]) or differ_within(mine[TITLE], theirs[TITLE])):
        titles = 0.0
    if MODEL in one.axes | two.axes and one.families.isdisjoint(two.families) and titles < TITLE_LEAST:
        return False
    words = similarity(one, two, WORDS, WORDS)
    is_common = COMMON in one.axes | two.axes and words < TEXTS_AGREE
    if one.bags[MESSAGE] and two.bags[MESSAGE]:
        same_message = similarity(one, two, MESSAGE, MESSAGE) >= MESSAGE_LEAST or _is_contained(one, two)
        if same_message and differ_in_words(mine[MESSAGE], theirs[MESSAGE]):
            return False
        is_specific = (MESSAGE in both and not is_common) or titles >= CLAIM_LEAST
        return (is_specific and same_message) or titles >= TITLE_LEAST
    crossed = ((TITLE, MESSAGE, two.specific), (MESSAGE, TITLE, one.specific))
    claims = [
        similarity(one, two, a, b)
        for a, b, specific in crossed
        if MESSAGE in specific and not is_common and not differ_within(mask(mine[a]), mask(theirs[b]))
    ]
    least = CLAIM_LEAST if words >= TEXTS_NEAR else TITLE_LEAST
    return titles >= least or max(claims, default=0.0) >= CLAIM_LEAST


def are_apart(one: PairFeatures, two: PairFeatures) -> bool:
    """True if something keeps two issues from being one failure."""
    return (
        are_disjoint(one.subjects, two.subjects)
        or are_disjoint(one.title_conditions, two.title_conditions)
        or _days_between(one, two) > FAR_DAYS
        or _lack_conditions(one, two)
    )


def _are_of_other_times(one: PairFeatures, two: PairFeatures) -> bool:
    """True if many releases lie between two reports of neither one model family nor one feature."""
    is_shared = one.families & two.families or one.title_conditions & two.title_conditions
    return _days_between(one, two) > MANY_RELEASES_DAYS and not is_shared


def _lack_conditions(one: PairFeatures, two: PairFeatures) -> bool:
    """True if unlike failures share the message, and too few of the conditions agree."""
    axes = one.axes | two.axes
    same_family = not one.families.isdisjoint(two.families)
    is_of_one_release = _days_between(one, two) <= RELEASE_DAYS
    is_elsewhere = are_disjoint(one.families, two.families) or not is_of_one_release
    if MODEL in axes and is_elsewhere and not same_family:
        return True
    is_vague = bool(axes & VAGUE_AXES)
    if not is_vague and (
        not _is_common(one, two) or is_of_one_release or similarity(one, two, WORDS, WORDS) >= TEXTS_AGREE
    ):
        return False
    return not same_family and one.title_conditions.isdisjoint(two.title_conditions)


def _days_between(one: PairFeatures, two: PairFeatures) -> int:
    return abs(one.day - two.day) if one.day and two.day else 0


def _is_contained(one: PairFeatures, two: PairFeatures) -> bool:
    """True if one of two messages contains the other."""
    mine, theirs = one.bags[MESSAGE], two.bags[MESSAGE]
    shared = mine.keys() & theirs.keys()
    return any(
        sum(bag[key] ** 2 for key in shared) >= CONTAINED_FROM * dot(bag, bag) > 0 for bag in (mine, theirs)
    )


def _is_common(one: PairFeatures, two: PairFeatures) -> bool:
    return min(one.commonness, two.commonness) >= COMMON_FROM


def are_disjoint(one: frozenset[str], two: frozenset[str]) -> bool:
    """True if both name something, and nothing in common."""
    return bool(one and two and not one & two)


def similarity(one: PairFeatures, two: PairFeatures, mine: str, theirs: str) -> float:
    """Return the cosine similarity of a bag of one issue and a bag of the other."""
    return round(dot(one.bags[mine], two.bags[theirs]), 6)


def dot(one: Bag, two: Bag) -> float:
    """Return the dot product of two bags."""
    return sum(one[key] * two[key] for key in one.keys() & two.keys())
