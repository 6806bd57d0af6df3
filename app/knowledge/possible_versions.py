"""Validation of requested vLLM versions, for all routes, tools and commands.

Commits, build names and untagged builds cannot be ordered and are always accepted. Otherwise a version must
be a release (including its candidates, post releases and builds); a version reported in a stored issue that
is not newer than all releases; a dev build towards the successor of a release; or the next patch, minor or
major release. If no releases are stored, versions reported in several issues count as releases, and newer
ones are accepted up to `NEWEST_READ`.
"""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from sqlalchemy.orm import Session

from app.errors import UnknownVersionError
from app.extract.versions import Version, check_version, ordered
from app.store.derived.facts import known_values, often_stated
from app.store.github.releases import tags_of

Release = tuple[int, int, int]
REPORTED = "versions.vllm"
"""Fact with the vLLM version an issue is reported for."""
NEWEST_READ: Release = (0, 33, 0)
"""The newest release of vLLM covered by `gone_settings.toml`."""
REPORTS_MIN = 5
"""Fewest reports for a version to count as a release."""


def check_possible(
    session: Session, repo_id: int, name: str, version: str | None, *, may_be_newer: bool = False
) -> None:
    """Reject a version that is neither a known nor a possible next release.

    Args:
        name: of the argument, for the message.
        may_be_newer: accept one newer than all releases: the caller may run it, and the data may be old.

    Raises:
        UnknownVersionError: names the nearest known release.
    """
    if version is None:
        return
    try:
        check_version(version)
    except ValueError as error:
        raise UnknownVersionError(f"{name}: {version[:40]} {error}.") from None
    tags = known_releases(session, repo_id)
    asked, newest = ordered(version), max(_ordered(tags), default=None)
    if asked is None or newest is None or can_be(version, numbers_of(tags)):
        return
    wanted = _release(asked)
    is_newer = _release(newest) < wanted
    if is_newer and (may_be_newer or (wanted <= NEWEST_READ and not tags_of(session, repo_id))):
        return
    if wanted <= _release(newest):
        reported = known_values(session, REPORTED)
        if any(_release(found) == wanted for text in reported if (found := ordered(text))):
            return
    raise UnknownVersionError(
        f"{name}: {version[:40]} is no known release of vLLM; the nearest is {nearest(version, tags)}, "
        f"the newest {newest}."
    )


def known_releases(session: Session, repo_id: int) -> Collection[str]:
    """Return the stored releases, or where there are none the versions that many issues are reported on."""
    return tags_of(session, repo_id) or often_stated(session, repo_id, REPORTED, REPORTS_MIN)


def numbers_of(releases: Iterable[str]) -> frozenset[Release]:
    """Return the release numbers of these versions, without dev builds and what cannot be ordered."""
    return frozenset(map(_release, _ordered(releases)))


def can_be(version: str, known: Collection[Release]) -> bool:
    """True if a version is a release, a build of one, or a next release; True if no release is known."""
    asked = ordered(version)
    if asked is None or not known:
        return True
    wanted, newest = _release(asked), max(known)
    if wanted in known or wanted in _next(newest):
        return True
    return asked.is_devrelease and wanted < newest and any(wanted in _next(one) for one in known)


def nearest(version: str, releases: Iterable[str]) -> str:
    """Return the full release with the most similar text, or the newest for a version newer than all."""
    full = {str(found): found for found in _ordered(releases) if not found.is_prerelease}
    asked, newest = ordered(version), max(full, key=full.__getitem__, default="")
    is_ahead = asked is not None and newest and asked > full[newest] and len(str(asked)) <= len(newest)
    like = [] if is_ahead else get_close_matches(str(asked), [*full], n=1, cutoff=0.7)
    return like[0] if like else newest


def _ordered(releases: Iterable[str]) -> list[Version]:
    """Return the versions that can be ordered, without dev builds."""
    found = map(ordered, releases)
    return [version for version in found if version is not None and not version.is_devrelease]


def _release(version: Version) -> Release:
    return version.major, version.minor, version.micro


def _next(release: Release) -> tuple[Release, ...]:
    major, minor, micro = release
    return (major, minor, micro + 1), (major, minor + 1, 0), (major + 1, 0, 0)
