"""The feed, as Atom (RFC 4287). Titles and summaries are plain text: nothing in them is markup.

An entry's id is a `tag:` URI (RFC 4151) made of the repository and what the entry tells, so that it stays the
same under another host name and after the data was loaded anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote
from xml.etree import ElementTree

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app import __version__
from app.knowledge.digest.feed import FeedEntry, feed_entries
from app.web.deps import ServicesDep
from app.web.views.filters import rfc3339
from app.web.views.links import base_address

ATOM = "http://www.w3.org/2005/Atom"
ATOM_TYPE = "application/atom+xml"
NO_DATA = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of a feed without entries, which must have one."""

router = APIRouter()


@router.api_route("/feed.atom", methods=["GET", "HEAD"], include_in_schema=False)
def feed(request: Request, services: ServicesDep) -> Response:
    """The newest weeks, failures and fixes of the default repository."""
    repo = services.default_repo
    entries = services.cached(feed_entries, repo)
    return Response(atom(entries, repo, base_address(request)), media_type=ATOM_TYPE)


def atom(entries: Sequence[FeedEntry], repo: str, base: str) -> bytes:
    """The feed's document.

    Args:
        entries: the newest first.
        base: the public address of this server, with a slash at the end.
    """
    root = ElementTree.Element("feed", {"xmlns": ATOM, "xml:lang": "en"})
    _text(root, "title", f"{repo}: weekly digests, new failures, fixes")
    _text(root, "subtitle", "From the issues and pull requests stored by vLLM Triage.")
    _text(root, "id", tag(repo, "feed"))
    _text(root, "updated", rfc3339(max((entry.updated for entry in entries), default=NO_DATA)))
    _link(root, "self", f"{base}feed.atom", ATOM_TYPE)
    _link(root, "alternate", f"{base}digest", "text/html")
    author = ElementTree.SubElement(root, "author")
    _text(author, "name", "vLLM Triage")
    generator = ElementTree.SubElement(root, "generator", {"version": __version__})
    generator.text = "vLLM Triage"
    for entry in entries:
        _entry(root, entry, repo, base)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def tag(repo: str, key: str) -> str:
    """The id of an entry: what it tells, never where it is served."""
    return f"tag:vllm-triage,2026:{quote(repo, safe='/')}/{quote(key, safe='/')}"


def _entry(root: ElementTree.Element, entry: FeedEntry, repo: str, base: str) -> None:
    element = ElementTree.SubElement(root, "entry")
    _text(element, "title", entry.title)
    _text(element, "id", tag(repo, entry.key))
    _text(element, "updated", rfc3339(entry.updated))
    _link(element, "alternate", f"{base}{quote(entry.path.lstrip('/'), safe='/')}", "text/html")
    ElementTree.SubElement(element, "category", {"term": entry.kind})
    _text(element, "summary", entry.summary)


def _text(parent: ElementTree.Element, name: str, text: str) -> None:
    attributes = {"type": "text"} if name in {"title", "subtitle", "summary"} else {}
    ElementTree.SubElement(parent, name, attributes).text = _allowed(text)


def _link(parent: ElementTree.Element, relation: str, address: str, kind: str) -> None:
    ElementTree.SubElement(parent, "link", {"rel": relation, "type": kind, "href": address})


def _allowed(text: str) -> str:
    """The text without the characters that XML 1.0 has no way to write."""
    return "".join(
        char
        for char in text
        if char in "\t\n\r" or " " <= char <= "\ud7ff" or "\ue000" <= char <= "\ufffd" or char >= "\U00010000"
    )
