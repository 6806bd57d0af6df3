"""Replies and servers of a model reader, for tests: quotes are found in the prompt, requests are answered in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import httpx

from app.model_reader.client import ReaderClient

NOTHING: dict[str, Any] = {
    "kind": {"value": "exception", "line": 1, "quote": "…"},
    "error": None,
    "models": [],
    "backends": [],
    "versions": [],
    "remedies": [],
    "causes": [],
}
Handler = Callable[[httpx.Request], httpx.Response]


def line_of(content: str, words: str) -> int:
    """The number of the first line of a prompt that holds these words; 1 where none does."""
    for match in re.finditer(r"(?m)^(\d+)\| (.*)$", content):
        if words in match[2]:
            return int(match[1])
    return 1


def a_remedy(
    content: str, action: str, proof: str, outcome: str = "works", kind: str = "flag"
) -> dict[str, Any]:
    """A remedy as a model names it that finds both in the prompt."""
    return {
        "action": action,
        "line": line_of(content, action),
        "kind": kind,
        "outcome": outcome,
        "proof": proof,
        "proof_line": line_of(content, proof),
        "conditions": [],
    }


def a_version(content: str, role: str, value: str, quote: str) -> dict[str, Any]:
    return {"role": role, "value": value, "line": line_of(content, quote), "quote": quote}


def content_of(request: httpx.Request) -> str:
    """What a request asks about."""
    content: str = json.loads(request.content)["messages"][1]["content"]
    return content


def answered(reply: Any, *, cut: bool = False, model: str = "reader", tokens: int = 10) -> httpx.Response:
    """A server's answer that holds a reply, as text or as JSON."""
    text = reply if isinstance(reply, str) else json.dumps(reply)
    choice = {"message": {"content": text}, "finish_reason": "length" if cut else "stop"}
    usage = {"prompt_tokens": tokens, "completion_tokens": tokens}
    return httpx.Response(200, json={"model": model, "choices": [choice], "usage": usage})


def models(name: str = "reader", root: str = "weights-1", tokens: int = 32_768) -> httpx.Response:
    return httpx.Response(200, json={"data": [{"id": name, "root": root, "max_model_len": tokens}]})


def a_client(reply: Handler, listed: Callable[[], httpx.Response] = models, **options: Any) -> ReaderClient:
    """A client of a server in memory."""

    def serve(request: httpx.Request) -> httpx.Response:
        return listed() if request.url.path == "/v1/models" else reply(request)

    options = {"wait_initial_s": 0.001, **options}
    return ReaderClient("http://reader.test", transport=httpx.MockTransport(serve), **options)
