"""Post a weekly digest to a chat channel: Slack, Microsoft Teams, Discord, or any webhook.

Each service has its own format, markup and limits. Issue texts are escaped and cannot add mentions or links.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx

from app import __version__
from app.errors import ConfigError, ServerError
from app.knowledge.digest.digest import Digest

Service = Literal["slack", "teams", "discord", "webhook"]
Message = dict[str, Any]

TIMEOUT_S = 20.0
LISTED = 5
LINE_CHARS = 300
HOSTS: dict[str, Service] = {
    "slack.com": "slack",
    "webhook.office.com": "teams",
    "logic.azure.com": "teams",
    "powerplatform.com": "teams",
    "powerautomate.com": "teams",
    "discord.com": "discord",
    "discordapp.com": "discord",
}
SLACK_HEADER_CHARS, SLACK_SECTION_CHARS = 150, 3000
DISCORD_TITLE_CHARS, DISCORD_TEXT_CHARS = 256, 4096
TEAMS_BYTES = 28 * 1024
"""Maximum lengths per service; for Teams, of the whole message."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the message: its title, and lines as (text, URL or "")."""

    title: str
    lines: tuple[tuple[str, str], ...]


def post_digest(digest: Digest, url: str, *, transport: httpx.BaseTransport | None = None) -> Service:
    """Post a digest to a webhook in the format of its service, which its host determines.

    Raises:
        ConfigError: not an http(s) URL.
        ServerError: no response, or an error status. The message omits the URL, which is a secret.
    """
    host = urlsplit(url).hostname
    if not url.startswith(("https://", "http://")) or not host:
        raise ConfigError("the webhook's address must be an http:// or https:// address")
    service = service_at(host)
    agent = {"User-Agent": f"vllm-triage/{__version__}"}
    try:
        with httpx.Client(timeout=TIMEOUT_S, transport=transport, headers=agent) as client:
            reply = client.post(url, json=message_for(service, digest))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ServerError(f"the webhook at {host} does not answer: {type(error).__name__}") from None
    if not reply.is_success:
        raise ServerError(f"the webhook at {host} refused with {reply.status_code}")
    return service


def service_at(host: str) -> Service:
    """Return the service of a webhook's host."""
    return next((HOSTS[name] for name in HOSTS if host == name or host.endswith(f".{name}")), "webhook")


def message_for(service: Service, digest: Digest) -> Message:
    """Return the message in the format of a service, within its limits."""
    return _SHAPES[service](digest)


def _title(digest: Digest) -> str:
    return f"{digest.repo}, week {digest.week}"


def _sections(digest: Digest) -> list[Section]:
    counts = (
        f"{digest.failures:,} failures reported ({digest.failures_before:,} the week before), "
        f"{digest.issues:,} issues in all"
    )
    news = (cluster for cluster in digest.clusters if cluster.is_new)
    found = [
        Section("", ((digest.headline, ""), (counts, ""))),
        Section(
            "Do this week",
            tuple(
                (f"{item.whom}: {item.action} {item.command} ({item.title})", item.url)
                for item in digest.advice[:LISTED]
            ),
        ),
        Section(
            "New failures",
            tuple(
                (f"{item.title} ({item.reports} reports)", _issue_url(digest, item.canonical))
                for item in islice(news, LISTED)
            ),
        ),
        Section("Fixed", tuple((item.title, item.url) for item in digest.fixed[:LISTED])),
    ]
    return [section for section in found if section.lines]


def _issue_url(digest: Digest, number: int) -> str:
    return f"https://github.com/{digest.repo}/issues/{number}"


def _text(digest: Digest, write: Callable[[str, str], str], strong: str) -> list[str]:
    """Format each section; `write` formats a line from a text and a URL, `strong` marks bold titles."""
    parts = []
    for section in _sections(digest):
        bullet = "• " if section.title else ""
        lines = [bullet + write(_cut(text, LINE_CHARS), url) for text, url in section.lines]
        parts.append("\n".join([f"{strong}{section.title}{strong}", *lines] if section.title else lines))
    return parts


def _cut(text: str, chars: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= chars else flat[: chars - 1].rstrip() + "…"


def _fitting(parts: Sequence[str], size: int) -> str:
    """Join the parts, stopping before the first line that exceeds `size` characters; lines are never cut."""
    kept, left = list[str](), size
    for line in "\n\n".join(parts).split("\n"):
        if len(line) + 1 > left:
            break
        kept.append(line)
        left -= len(line) + 1
    return "\n".join(kept).strip()


def _slack(digest: Digest) -> Message:
    """Return blocks for Slack's incoming webhooks, where `&`, `<` and `>` must be escaped."""

    def escaped(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    def write(text: str, url: str) -> str:
        return f"{escaped(text)} <{url}|issue>" if url else escaped(text)

    header = {"type": "plain_text", "text": _cut(_title(digest), SLACK_HEADER_CHARS)}
    sections = [
        {"type": "section", "text": {"type": "mrkdwn", "text": _fitting([part], SLACK_SECTION_CHARS)}}
        for part in _text(digest, write, "*")
    ]
    return {"text": escaped(_title(digest)), "blocks": [{"type": "header", "text": header}, *sections]}


def _markdown(text: str, url: str) -> str:
    plain = re.sub(r"([\\`*_~|<>\[\]()#@])", r"\\\1", text)
    return f"{plain} [issue]({url})" if url else plain


def _teams(digest: Digest) -> Message:
    """Return an Adaptive Card for a webhook of Teams' workflows."""
    title = {"type": "TextBlock", "size": "Large", "weight": "Bolder", "text": _title(digest), "wrap": True}
    body = [title]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    kind = "application/vnd.microsoft.card.adaptive"
    message = {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
    for part in _text(digest, _markdown, "**"):
        body.append({"type": "TextBlock", "text": part.replace("\n", "\n\n"), "wrap": True})
        if len(json.dumps(message)) > TEAMS_BYTES:
            body.pop()
            break
    return message


def _discord(digest: Digest) -> Message:
    text = _fitting(_text(digest, _markdown, "**"), DISCORD_TEXT_CHARS)
    embed = {"title": _cut(_title(digest), DISCORD_TITLE_CHARS), "description": text}
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def _webhook(digest: Digest) -> Message:
    """Return a generic message: plain text for display, and the whole digest as JSON for programs."""
    text = "\n\n".join([_title(digest), *_text(digest, lambda text, url: f"{text} {url}".strip(), "")])
    return {"text": text, "digest": digest.model_dump(mode="json")}


_SHAPES: dict[Service, Callable[[Digest], Message]] = {
    "slack": _slack,
    "teams": _teams,
    "discord": _discord,
    "webhook": _webhook,
}
