"""Which versions of vLLM can be asked for: one place for all routes, tools and commands.

A commit, the name of a build and an untagged build have no place in the order and always can be. Else a
version is that of a release (its candidates, post releases and builds too), one that a stored issue is about
and that is no newer than all releases, the build on the way to the release after one of them, or the next
release of all: patch, minor or major. In a base without releases those are the versions of several issues,
and what is ahead of them up to the newest release that this software's own lists were read from.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from sqlalchemy.orm import Session

from app.errors import UnknownVersionError
from app.extract.versions import Version, ordered
from app.store.derived.facts import known_values, often_stated
from app.store.github.releases import tags_of

Release = tuple[int, int, int]
REPORTED = "versions.vllm"
"""The field of the version that an issue is about."""
NEWEST_READ: Release = (0, 33, 0)
"""The newest release of vLLM that this software's lists were read from (`gone_settings.toml`)."""
REPORTS_MIN = 5
"""Issues that are about a version which is taken for a release."""


def check_possible(session: Session, repo_id: int, name: str, version: str | None) -> None:
    """Refuse a version that no release has and that is none to come; `name`: of the argument.

    Raises:
        UnknownVersionError: with the nearest known release.
    """
    if version is None:
        return
    releases = tags_of(session, repo_id)
    tags = releases or often_stated(session, repo_id, REPORTED, REPORTS_MIN)
    asked, newest = ordered(version), max(_placed(tags), default=None)
    if asked is None or newest is None or can_be(version, tags):
        return
    wanted = _release(asked)
    if not releases and _release(newest) < wanted <= NEWEST_READ:
        return
    if wanted <= _release(newest):
        reported = known_values(session, REPORTED)
        if any(_release(found) == wanted for text in reported if (found := ordered(text))):
            return
    raise UnknownVersionError(
        f"{name}: {version[:40]} is no known release of vLLM; the nearest is {nearest(version, tags)}, "
        f"the newest {newest}."
    )


def can_be(version: str, releases: Iterable[str]) -> bool:
    """Whether a version is a release, a build of one, or the next to come; true where no release is known."""
    asked = ordered(version)
    known = {_release(found) for found in _placed(releases)}
    if asked is None or not known:
        return True
    wanted, newest = _release(asked), max(known)
    if wanted in known or wanted in _next(newest):
        return True
    return asked.is_devrelease and wanted < newest and any(wanted in _next(one) for one in known)


def nearest(version: str, releases: Iterable[str]) -> str:
    """The full release whose text is most like a version's; of one that is merely ahead of all the newest."""
    full = {str(found): found for found in _placed(releases) if not found.is_prerelease}
    asked, newest = ordered(version), max(full, key=full.__getitem__, default="")
    is_ahead = asked is not None and newest and asked > full[newest] and len(str(asked)) <= len(newest)
    like = [] if is_ahead else get_close_matches(str(asked), [*full], n=1, cutoff=0.7)
    return like[0] if like else newest


def _placed(releases: Iterable[str]) -> list[Version]:
    """Those with a place in the order, without builds that somebody made between two."""
    found = map(ordered, releases)
    return [version for version in found if version is not None and not version.is_devrelease]


def _release(version: Version) -> Release:
    return version.major, version.minor, version.micro


def _next(release: Release) -> tuple[Release, ...]:
    major, minor, micro = release
    return (major, minor, micro + 1), (major, minor + 1, 0), (major + 1, 0, 0)
