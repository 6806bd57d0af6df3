"""Extract the regression range: which versions work, which fail, and which change is blamed.

In: a `Document`. Out: one `Regression` merged from everything people say, and the quotes. A version that is
only part of the environment is no regression: there must be one that works, or a word of change ("since",
"from … on", "still", "fixed in"). The day of a nightly build stands for its version. A change is a pull
request, an issue's number or a commit.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from app.extract.evidence import cite
from app.extract.facts import Evidence, Regression
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set
from app.extract.statements.features import Hint, Mention, surroundings_of
from app.extract.statements.model import LocatedMention, decide_roles, locate_mentions
from app.extract.text.claims import VersionMention, names_other, versions_in
from app.extract.text.document import Document
from app.extract.text.sentences import Sentence, is_request, lower, read_sentences
from app.extract.versions import is_before, is_same, newest, oldest, ordered, sort_key

MAX_SENTENCES = 300
"""Maximum number of sentences read that name versions or changes; more are never needed."""

MAX_VERSIONS = 16
MAX_MENTIONS = 16
"""A sentence with more is a list, not a report."""

MIN_CHANCE = 0.6
"""On unseen mentions, 88 % of the roles above this or confirmed by a rule were right; half were found."""

MIN_BLAMED = 0.75
"""Stricter, because a wrongly blamed change does the most harm."""

MIN_AGREED = 0.3
"""Minimum probability of a role that a rule also finds."""

UPGRADED_CHARS = 40
"""Maximum distance between the name of another package and its version."""

NO_BLAME_CHARS = 24
"""Maximum distance between the blaming words and a negation before them."""

_LIST = load("regression")
_VERSION_FIELDS = {
    "works": "last_working",
    "fails": "first_failing",
    "changed": "first_failing",
    "still": "still_failing",
    "fixed": "fixed_in",
}
_COMMIT_FIELDS = {"commit_works": "last_working", "commit_still": "still_failing"}
_TOKEN = pattern(
    r"#(\d{3,6})\b|/(?:pull|issues)/(\d{1,6})|\b[Pp][Rr] ?(\d{4,6})\b"
    r"|\b([0-9a-f]{7,40})\b|/commit/([0-9a-f]{7,40})"
)

_PARTS = {
    "last_working": "works",
    "first_failing": "fails",
    "still_failing": "still",
    "fixed_in": "fixed",
    "culprit": "culprit",
}
_MENTION = pattern(
    r"(?:\b|(?i:vllm)[_-]?)([vV]?\.?\d{1,3}\.\d{1,3}(?:\.\d+)*(?:[._+-]?(?:post|rc|dev|a|b|g)(?:[\w.]*\w)?)*)"
    r"|#(\d{3,6})\b|/(?:pull|issues)/(\d{1,6})|\b[Pp][Rr] ?(\d{4,6})\b"
    r"|\b([0-9a-f]{7,40})\b"
)
_DAY = pattern(r"(?:\b|_)(20\d\d-[01]\d-[0-3]\d|20\d\d[01]\d[0-3]\d)(?:[^\w:-]|$)")
"""A day, which names a build in a sentence about nightly ones."""

_ALSO = pattern(
    r"(?i)\b(?:still|also|too|as well|same|again|even|neither|other|different|several|multiple|various"
    r"|(?:down|up)grad\w*|latest|newest|newer|nightly|main|master|persist\w*|remain\w*|reproduc\w*|exists?)\b"
    r"|仍|也|还|都|依然|最新"
)
"""Words that say of a failing version that it is one more; without them it is the reporter's own."""
SEVERAL = 3
"""So many versions in a sentence were tried one after the other."""

_REPOSITORY = pattern(r"github\.com/[\w.-]+/([\w.-]+)(?:/commits?/)?$")
"""Before a change in an address: its repository."""
MAX_REPOSITORY_CHARS = 90

_Claim = tuple[str, Evidence]
"""A version or a change, and its evidence."""
_Claims = defaultdict[str, list[_Claim]]
"""All claims by the rules' `part`, in reading order."""
_Place = tuple[int, int]
"""Start and end of a span in its sentence, in characters."""
_Decided = tuple[Mention, str, float]
"""A mention, its likeliest role and the probability of that role."""


def find_regression(document: Document) -> tuple[Regression | None, tuple[Evidence, ...]]:
    """Return the regression range that people state; None if there is none."""
    if is_request(document):
        return None, ()
    claims: _Claims = defaultdict(list)
    sentences, mentions = read_mentions(document)
    decided: dict[int, list[_Decided]] = defaultdict(list)
    for one, (role, chance) in zip(mentions, decide_roles(mentions), strict=True):
        decided[one.sentence].append((one.mention, role, chance))
    for at, (sentence, by_rules) in sentences.items():
        agreed = list(_confirmed(sentence, by_rules, decided[at]))
        ruled = [_place_in(sentence, quote) for _, (_, quote) in agreed]
        for part, claim in (*agreed, *_likely(document, sentence, decided[at], ruled)):
            claims[part].append(claim)
    _read_title(document, claims)
    return _assemble(claims)


def read_mentions(
    document: Document, *, with_others: bool = False
) -> tuple[dict[int, tuple[Sentence, _Claims]], list[LocatedMention]]:
    """Return the sentences that name versions or changes with the rules' claims, and the mentions.

    Args:
        with_others: return the versions of other packages, too, as `locate_mentions` does.
    """
    sentences = read_sentences(document)
    naming = (at for at, s in enumerate(sentences) if not s.is_proposal and _names_build(s))
    read: dict[int, tuple[Sentence, _Claims]] = {}
    mentions: list[LocatedMention] = []
    for at in islice(naming, MAX_SENTENCES):
        sentence = sentences[at]
        claims = _by_rules(document, sentence)
        read[at] = sentence, claims
        around, hints = surroundings_of(document, sentences, at), _as_hints(sentence, claims)
        found = mentions_in(sentence)
        mentions += locate_mentions(sentence.text, found, around, hints, at, with_others=with_others)
    return read, mentions


def _names_build(sentence: Sentence) -> bool:
    return bool(_MENTION.search(sentence.text)) or bool(_days_in(sentence))


def mentions_in(sentence: Sentence) -> tuple[Mention, ...]:
    """Return the versions, commits and changes in a sentence; none if it is a long list."""
    found: list[Mention] = []
    ours = {version.end - len(version.text): version for version in versions_in(sentence)}
    for match in _MENTION.finditer(sentence.text):
        number, commit = match.group(2) or match.group(3) or match.group(4), match.group(5)
        if commit and (commit.isdigit() or commit.isalpha()):
            continue
        start, end = match.start(1) if match.group(1) else match.start(), match.end()
        if sentence.text[start - 1 : start] == ".":
            continue
        if number:
            found.append(Mention(f"#{number}", start, end, "change"))
        elif commit:
            found.append(Mention(commit, start, end, "commit"))
        else:
            value = match.group(1).lstrip("vV.")
            version = ours.get(end - len(value))
            if version and not names_other(sentence.low[max(0, start - UPGRADED_CHARS) : start]):
                found.append(Mention(version.text, end - len(value), version.end, "ours"))
            else:
                found.append(Mention(value, start, end, "other"))
    found += [Mention(day.text, day.start, day.end, "ours") for day in _days_in(sentence)]
    return tuple(sorted(found, key=lambda one: one.start)) if len(found) <= MAX_MENTIONS else ()


def _days_in(sentence: Sentence) -> list[VersionMention]:
    days = _DAY.finditer(sentence.text) if "nightly" in sentence.low else ()
    return [VersionMention(day.group(1), day.start(1), day.end(1)) for day in days]


def _by_rules(document: Document, sentence: Sentence) -> _Claims:
    claims: _Claims = defaultdict(list)
    if _holds(sentence.low, "marks"):
        _read_versions(document, sentence, claims)
        _read_culprit(document, sentence, claims)
        _read_commits(document, sentence, claims)
    return claims


def _place_in(sentence: Sentence, quote: Evidence) -> _Place:
    return quote.start - sentence.start, quote.end - sentence.start


def _overlaps(mention: Mention, place: _Place) -> bool:
    start, end = place
    return mention.start < end and start < mention.end


def _as_hints(sentence: Sentence, claims: _Claims) -> tuple[Hint, ...]:
    hints: list[Hint] = []
    for _, quote in (claim for part in claims.values() for claim in part):
        place = _place_in(sentence, quote)
        hints += [Hint(*place, quote.field.partition(".")[2]), Hint(*place, quote.rule)]
    return tuple(hints)


def _confirmed(
    sentence: Sentence, by_rules: _Claims, decided: Sequence[_Decided]
) -> Iterator[tuple[str, _Claim]]:
    """Yield the rules' claims that the decided roles do not contradict.

    If the role is likely that of one more failing version, a rule's change is none; its failure is both.
    """
    for part, claims in by_rules.items():
        for value, quote in claims:
            place, role = _place_in(sentence, quote), quote.field.partition(".")[2]
            same = [item for item in decided if _overlaps(item[0], place)]
            if all(
                chance >= MIN_AGREED if _roles_agree(label, role) else chance < MIN_CHANCE
                for _, label, chance in same
            ):
                is_later = any(label == "still_failing" and chance >= MIN_CHANCE for _, label, chance in same)
                if not (is_later and part == "changed"):
                    yield part, (value, quote)
                if is_later:
                    yield _part_of_later(sentence), (value, quote)


def _part_of_later(sentence: Sentence) -> str:
    """Return the part of one more failing version; `beside`: it counts only beside other claims."""
    return "still" if _ALSO.search(sentence.text) or len(mentions_in(sentence)) >= SEVERAL else "beside"


def _roles_agree(one: str, other: str) -> bool:
    return one == other or {one, other} == {"first_failing", "still_failing"}


def _likely(
    document: Document, sentence: Sentence, decided: Sequence[_Decided], ruled: Sequence[_Place]
) -> Iterator[tuple[str, _Claim]]:
    """Yield roles that are likely enough without a rule; `ruled`: places that a rule covers."""
    for mention, role, chance in decided:
        if any(_overlaps(mention, place) for place in ruled):
            continue
        part, is_change = _PARTS[role], mention.sort in ("change", "commit")
        is_fit = part in _parts_of_change(mention.value) if is_change else mention.sort == "ours"
        least = MIN_BLAMED if part == "culprit" else MIN_CHANCE
        if chance < least or not is_fit or mention.value == f"#{document.issue.number}":
            continue
        if part == "culprit" and _holds(
            sentence.low[max(0, mention.start - NO_BLAME_CHARS) : mention.start], "no_blame"
        ):
            continue
        if is_change and _is_elsewhere(sentence, mention.start):
            continue
        span = sentence.span(mention.start, mention.end)
        quote = cite(document, f"regression.{role}", mention.value, span, "regression.role", round(chance, 2))
        if part == "still" and not is_change:
            part = _part_of_later(sentence)
        yield (f"commit_{part}" if is_change and part != "culprit" else part), (mention.value, quote)


def _is_elsewhere(sentence: Sentence, start: int) -> bool:
    """True if a change is given by an address in a repository other than vLLM's."""
    found = _REPOSITORY.search(sentence.low[max(0, start - MAX_REPOSITORY_CHARS) : start])
    return found is not None and "vllm" not in found.group(1)


def _parts_of_change(value: str) -> tuple[str, ...]:
    """Return the claims possible for a change: a commit may work or fail, others can only be blamed."""
    return ("culprit",) if value.startswith("#") else ("culprit", "works", "fails", "still")


def _holds(low: str, name: str) -> bool:
    """True if a lower-case text contains a word of the named list."""
    return any(word in low for word in _LIST[name])


def _states_failure(low: str) -> bool:
    """True if a lower-case sentence names a failure and no remedy for it."""
    return _holds(low, "failure_words") and not _holds(low, "cured_words")


def _read_versions(document: Document, sentence: Sentence, claims: _Claims) -> None:
    versions = sorted([*versions_in(sentence), *_days_in(sentence)], key=lambda one: one.start)
    if not versions or len(versions) > MAX_VERSIONS:
        return
    taken: set[int] = set()
    for rule in load_rule_set("regression", "part", *_VERSION_FIELDS).meeting(sentence.text):
        if rule.extra.get("needs_failure") and (
            not _states_failure(sentence.low) or _holds(sentence.low, "required_words")
        ):
            continue
        part = rule["part"]
        for match in rule.pattern.finditer(sentence.text):
            for at, version in _versions_at_cue(sentence, versions, rule, match.start(), match.end()):
                if at not in taken:
                    taken.add(at)
                    span = sentence.span(version.start, version.end)
                    field = f"regression.{_VERSION_FIELDS[part]}"
                    claims[part].append(
                        (version.text, cite(document, field, version.text, span, rule.id, 0.8))
                    )


def _read_culprit(document: Document, sentence: Sentence, claims: _Claims) -> None:
    """Read the changes that a sentence blames, at most one per rule."""
    low = sentence.low
    for rule in load_rule_set("regression", "part", "culprit").meeting(sentence.text):
        match = rule.pattern.search(sentence.text)
        if match is None or _holds(low[max(0, match.start() - NO_BLAME_CHARS) : match.end()], "no_blame"):
            continue
        if rule.extra.get("needs_failure") and not _states_failure(low):
            continue
        if rule.extra.get("needs_subject") and not _holds(low[: match.end()], "subjects"):
            continue
        for token in _TOKEN.finditer(match.group(0)):
            value = _change_in(token.groups(), document.issue.number)
            if value is not None:
                span = sentence.span(match.start() + token.start(), match.start() + token.end())
                quote = cite(document, "regression.culprit", value, span, rule.id, 0.8)
                claims["culprit"].append((value, quote))
                break


def _read_commits(document: Document, sentence: Sentence, claims: _Claims) -> None:
    """Read the commits that, according to a sentence, work, fail or still fail."""
    for rule in load_rule_set("regression", "part", *_COMMIT_FIELDS).meeting(sentence.text):
        match = rule.pattern.search(sentence.text)
        if match is None:
            continue
        group = next(g for g in range(1, rule.pattern.groups + 1) if match.group(g))
        sha = match.group(group)
        if not sha.isdigit() and not sha.isalpha():
            field = f"regression.{_COMMIT_FIELDS[rule['part']]}"
            quote = cite(document, field, sha, sentence.span(*match.span(group)), rule.id, 0.75)
            claims[rule["part"]].append((sha, quote))


def _change_in(groups: tuple[str | None, ...], own: int) -> str | None:
    """Return the change that a token names; None for the issue itself and for lookalikes of a commit."""
    number = groups[0] or groups[1] or groups[2]
    sha = groups[4] or groups[3]
    if number:
        return f"#{number}" if int(number) != own else None
    return None if sha is None or sha.isdigit() or sha.isalpha() else sha


def _read_title(document: Document, claims: _Claims) -> None:
    """Use the title: a version in it that is newer than the working version fails."""
    title = document.issue.title
    versions = versions_in(Sentence(title, lower(title), "title", 0, len(title), ""))
    if not claims["works"] or claims["fails"] or claims["changed"]:
        return
    best = newest(version for version, _ in claims["works"])
    for version in versions:
        if not is_before(best, version.text):
            continue
        span = ("title", version.start, version.end)
        quote = cite(document, "regression.first_failing", version.text, span, "regression.title", 0.7)
        claims["fails"].append((version.text, quote))


def _versions_at_cue(
    sentence: Sentence, versions: list[VersionMention], rule: Rule, start: int, end: int
) -> Iterator[tuple[int, VersionMention]]:
    """Yield the versions that a cue refers to: the adjacent one, and those enumerated with it."""
    reach = int(rule.extra.get("reach", 24))
    if rule["side"] == "after":
        first = next((i for i, v in enumerate(versions) if 0 <= v.start - end + 2 <= reach + 2), None)
    else:
        before = [i for i, v in enumerate(versions) if v.end <= end and start - v.end <= reach]
        first = before[-1] if before else None
    if first is None:
        return
    if rule.extra.get("upgrade") and names_other(
        sentence.low[max(0, start - UPGRADED_CHARS) : versions[first].start]
    ):
        return
    yield first, versions[first]
    step = 1 if rule["side"] == "after" else -1
    last, at = first, first + step
    while 0 <= at < len(versions) and rule.extra.get("many", True):
        low, high = (versions[last], versions[at]) if step > 0 else (versions[at], versions[last])
        between = sentence.low[low.end : high.start].replace("vllm", "").replace("version", "").strip(" v*`=")
        if between not in _LIST["joiners"]:
            return
        yield at, versions[at]
        last, at = at, at + step


def merge_claims(quotes: Iterable[Evidence]) -> tuple[Regression | None, tuple[Evidence, ...]]:
    """Return the regression range that these quotes state, and those that it is made of."""
    claims: _Claims = defaultdict(list)
    for quote in quotes:
        part = _PARTS[quote.field.partition(".")[2]]
        is_commit = part not in ("culprit", "fixed") and ordered(quote.value) is None
        claims[f"commit_{part}" if is_commit else part].append((quote.value, quote))
    return _assemble(claims)


def _assemble(claims: _Claims) -> tuple[Regression | None, tuple[Evidence, ...]]:
    """Merge claims: the newest working version, the oldest failing one after it, and the rest."""
    fixed = claims["fixed"][0] if claims["fixed"] else None
    culprit = claims["culprit"][0] if claims["culprit"] else None
    last, bad = _range(claims)
    first = min(
        bad, key=lambda item: (ordered(item[0]) is None, sort_key(item[0]), -len(item[0])), default=None
    )
    if first is None and claims["commit_fails"]:
        first = claims["commit_fails"][0]
    known = {item[0] for item in (last, first) if item}
    rest = [*claims["still"], *claims["commit_still"]]
    if last or first or culprit or fixed or rest:
        rest += claims["beside"]
    if first is not None:
        rest.extend(item for item in bad if not _is_up_to(item[0], first[0]))
    still: dict[str, Evidence] = {}
    for version, quote in rest:
        if version not in known and version not in still and (fixed is None or version != fixed[0]):
            still[version] = quote.model_copy(update={"field": "regression.still_failing"})
    if last is None and first is None and culprit is None and fixed is None and not still:
        return None, ()
    evidence = [item[1] for item in (last, first, fixed, culprit) if item]
    regression = Regression(
        last_working=last[0] if last else None,
        first_failing=first[0] if first else None,
        still_failing=tuple(sorted(still, key=sort_key)),
        fixed_in=fixed[0] if fixed else None,
        culprit=culprit[0] if culprit else None,
    )
    evidence += still.values()
    return regression, (*evidence, *_repeats(claims, evidence))


def without_earlier_fix(
    regression: Regression | None, evidence: tuple[Evidence, ...], reported: str | None
) -> tuple[Regression | None, tuple[Evidence, ...]]:
    """Leave out a fix in a release before the reported version, which fails: it fixed another failure."""
    if regression is None or not is_before(regression.fixed_in, reported):
        return regression, evidence
    left = regression.model_copy(update={"fixed_in": None})
    kept = tuple(item for item in evidence if item.field != "regression.fixed_in")
    return (left if kept else None), kept


def _repeats(claims: _Claims, evidence: Sequence[Evidence]) -> Iterator[Evidence]:
    """Yield the evidence that repeats a claim about the same version or change."""
    known = {(quote.field, quote.value) for quote in evidence}
    places = {(quote.source, quote.start) for quote in evidence}
    for _, quote in (claim for part in claims.values() for claim in part):
        place = quote.source, quote.start
        if (quote.field, quote.value) in known and place not in places:
            places.add(place)
            yield quote


def _range(claims: _Claims) -> tuple[_Claim | None, list[_Claim]]:
    """Return the last working version, and those that fail after it."""
    bad = [*claims["fails"], *claims["changed"]]
    worst = oldest(version for version, _ in bad)
    good = [item for item in claims["works"] if worst is None or is_before(item[0], worst)] or claims["works"]
    if good:
        last = max(good, key=lambda item: (sort_key(item[0]), len(item[0])))
        return last, [item for item in bad if not _is_up_to(item[0], last[0])]
    return (claims["commit_works"][0] if claims["commit_works"] else None), claims["changed"]


def _is_up_to(version: str, last: str) -> bool:
    """True if a version is known to equal or precede `last`."""
    return is_same(version, last) or is_before(version, last)
