"""Post a weekly digest to a chat channel: Slack, Microsoft Teams, Discord, or any webhook.

Each service has its own format, markup and limits. Issue texts are escaped and cannot add mentions or links.
"""

import re
from collections.abc import Callable, Iterator
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
TITLE_CHARS = 150
SLACK_CHARS, TEAMS_CHARS, DISCORD_CHARS, WEBHOOK_CHARS = 3000, 2200, 4096, 8000
"""Maximum lengths of a message's text; Teams limits the whole message, to 28 KiB of JSON."""


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
    return _cut(f"{digest.repo}, week {digest.week}", TITLE_CHARS)


def _lines(digest: Digest) -> Iterator[tuple[str, str]]:
    """Yield the message's lines as (text, URL); a line without URL is a title, or stands at the top."""
    before = f"{digest.failures_before:,} the week before"
    yield digest.headline, ""
    yield f"{digest.failures:,} failures reported ({before}), {digest.issues:,} issues in all", ""
    advice = [
        (f"{item.whom}: {item.action} {item.command} ({item.title})", item.url) for item in digest.advice
    ]
    new = [
        (
            f"{item.title} ({item.reports} reports)",
            f"https://github.com/{digest.repo}/issues/{item.canonical}",
        )
        for item in digest.clusters
        if item.is_new
    ]
    fixed = [(item.title, item.url) for item in digest.fixed]
    for title, lines in (("Do this week", advice), ("New failures", new), ("Fixed", fixed)):
        if lines:
            yield title, ""
            yield from lines[:LISTED]


def _text(digest: Digest, write: Callable[[str, str], str], chars: int, *, strong: str = "") -> str:
    """Format the lines with `write`, up to the first that exceeds `chars`; `strong` marks bold titles."""
    found = ""
    for words, url in _lines(digest):
        text = write(_cut(words, LINE_CHARS), url)
        line = f"• {text}\n" if url else f"\n{strong}{text}{strong}\n"
        if len(found) + len(line) > chars:
            break
        found += line
    return found.strip()


def _cut(text: str, chars: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= chars else flat[: chars - 1].rstrip() + "…"


def _slack(digest: Digest) -> Message:
    """Return blocks for Slack's incoming webhooks, where `&`, `<` and `>` must be escaped."""

    def write(text: str, url: str) -> str:
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return f"{text} <{url}|issue>" if url else text

    header = {"type": "plain_text", "text": _title(digest)}
    section = {"type": "mrkdwn", "text": _text(digest, write, SLACK_CHARS, strong="*")}
    return {
        "text": write(_title(digest), ""),
        "blocks": [{"type": "header", "text": header}, {"type": "section", "text": section}],
    }


def _markdown(text: str, url: str) -> str:
    plain = re.sub(r"([\\`*_~|<>\[\]()#@])", r"\\\1", text)
    return f"{plain} [issue]({url})" if url else plain


def _teams(digest: Digest) -> Message:
    """Return an Adaptive Card for a webhook of Teams' workflows."""
    text = _text(digest, _markdown, TEAMS_CHARS, strong="**").replace("\n", "\n\n")
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {"type": "TextBlock", "size": "Large", "weight": "Bolder", "text": _title(digest), "wrap": True},
            {"type": "TextBlock", "text": text, "wrap": True},
        ],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


def _discord(digest: Digest) -> Message:
    text = _text(digest, _markdown, DISCORD_CHARS, strong="**")
    return {"embeds": [{"title": _title(digest), "description": text}], "allowed_mentions": {"parse": []}}


def _webhook(digest: Digest) -> Message:
    """Return a generic message: plain text for display, and the whole digest as JSON for programs."""
    text = _text(digest, lambda text, url: f"{text} {url}".strip(), WEBHOOK_CHARS)
    return {"text": f"{_title(digest)}\n\n{text}", "digest": digest.model_dump(mode="json")}


_SHAPES: dict[Service, Callable[[Digest], Message]] = {
    "slack": _slack,
    "teams": _teams,
    "discord": _discord,
    "webhook": _webhook,
}
