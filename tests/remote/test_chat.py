"""The digest as messages of chat services: their shapes, their limits, no mention and no foreign link."""

from __future__ import annotations

import json

import httpx
import jsonschema_rs
import pytest

from app.errors import ConfigError, ServerError
from app.knowledge.digest.digest import Digest
from app.remote.chat import Message, Service, message_for, post_digest, service_at
from app.web.answers.openapi import answer_examples

DIGEST = Digest.model_validate(answer_examples()["Digest"])
HOSTILE = (
    "<!channel> @everyone [here](https://evil.example.org) *b* & <https://evil.example.org|x> " + "w" * 900
)

TEXT = {"type": "string", "minLength": 1}
SCHEMAS = {
    # docs.slack.dev: blocks at most 50, a header 150 characters, a section's text 3,000
    "slack": {
        "required": ["text", "blocks"],
        "properties": {
            "text": TEXT,
            "blocks": {
                "maxItems": 50,
                "items": {
                    "oneOf": [
                        {
                            "properties": {
                                "type": {"const": "header"},
                                "text": {
                                    "properties": {
                                        "type": {"const": "plain_text"},
                                        "text": {**TEXT, "maxLength": 150},
                                    },
                                    "required": ["type", "text"],
                                    "additionalProperties": False,
                                },
                            }
                        },
                        {
                            "properties": {
                                "type": {"const": "section"},
                                "text": {
                                    "properties": {
                                        "type": {"const": "mrkdwn"},
                                        "text": {**TEXT, "maxLength": 3000},
                                    },
                                    "required": ["type", "text"],
                                    "additionalProperties": False,
                                },
                            }
                        },
                    ],
                    "required": ["type", "text"],
                },
            },
        },
        "additionalProperties": False,
    },
    # learn.microsoft.com: a workflow's webhook takes a message with one adaptive card
    "teams": {
        "required": ["type", "attachments"],
        "properties": {
            "type": {"const": "message"},
            "attachments": {
                "minItems": 1,
                "maxItems": 1,
                "items": {
                    "required": ["contentType", "content"],
                    "properties": {
                        "contentType": {"const": "application/vnd.microsoft.card.adaptive"},
                        "content": {
                            "required": ["type", "version", "body"],
                            "properties": {
                                "type": {"const": "AdaptiveCard"},
                                "body": {
                                    "items": {
                                        "required": ["type", "text"],
                                        "properties": {"type": {"const": "TextBlock"}, "text": TEXT},
                                    }
                                },
                            },
                        },
                    },
                },
            },
        },
        "additionalProperties": False,
    },
    # discord.com/developers: at most 10 embeds, title 256, description 4,096, all together 6,000
    "discord": {
        "required": ["embeds", "allowed_mentions"],
        "properties": {
            "embeds": {
                "maxItems": 10,
                "items": {
                    "properties": {
                        "title": {**TEXT, "maxLength": 256},
                        "description": {**TEXT, "maxLength": 4096},
                    },
                    "additionalProperties": False,
                },
            },
            "allowed_mentions": {"const": {"parse": []}},
        },
        "additionalProperties": False,
    },
    "webhook": {"required": ["text", "digest"], "properties": {"text": TEXT}},
}


def hostile(text: str = HOSTILE) -> Digest:
    found = DIGEST.model_dump(mode="json")
    found["repo"] = f"{'o' * 39}/{'n' * 100}"
    found["headline"] = text
    found["advice"] = [{**item, "action": text, "whom": text} for item in found["advice"] * 20]
    found["clusters"] = [{**item, "title": text, "is_new": True} for item in found["clusters"] * 20]
    found["fixed"] = [{**item, "title": text} for item in found["fixed"] * 20]
    return Digest.model_validate(found)


# Signs that take several characters where they are escaped: "&lt;", "\\ud83d\\ude80".
LONGEST = {"example": DIGEST, "words": hostile(), "marks": hostile("<" * 900), "wide": hostile("🚀" * 900)}


@pytest.mark.parametrize("digest", LONGEST.values(), ids=LONGEST)
@pytest.mark.parametrize("service", SCHEMAS)
def test_messages_are_of_the_services_shape_and_within_its_limits(service: Service, digest: Digest) -> None:
    message = message_for(service, digest)

    assert jsonschema_rs.is_valid(SCHEMAS[service], message), message
    if service == "teams":  # the other limits are counted in characters, and stand in the schemas
        assert len(json.dumps(message)) <= 28 * 1024


def test_no_text_mentions_anybody_or_links_elsewhere() -> None:
    slack, teams, discord = (
        json.dumps(message_for(name, hostile())) for name in ("slack", "teams", "discord")
    )

    assert "<!channel>" not in slack
    assert "<https://evil" not in slack
    assert "[here](https://evil" not in teams + discord


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("hooks.slack.com", "slack"),
        ("x.webhook.office.com", "teams"),
        ("prod-1.westus.logic.azure.com", "teams"),
        ("discord.com", "discord"),
        ("notslack.com", "webhook"),
    ],
)
def test_the_service_is_told_by_the_host(host: str, service: str) -> None:
    assert service_at(host) == service


def test_a_digest_is_posted_and_a_refusal_is_one_line_without_the_address() -> None:
    seen: list[Message] = []

    def take(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content))
        return httpx.Response(204 if len(seen) == 1 else 404)

    url = "https://hooks.slack.com/services/T0/B0/secretsecret"
    assert post_digest(DIGEST, url, transport=httpx.MockTransport(take)) == "slack"
    with pytest.raises(ServerError) as refused:
        post_digest(DIGEST, url, transport=httpx.MockTransport(take))
    with pytest.raises(ConfigError):
        post_digest(DIGEST, "ftp://x/y")

    assert refused.value.message == "the webhook at hooks.slack.com refused with 404"
    assert seen[0]["blocks"][0]["type"] == "header"
