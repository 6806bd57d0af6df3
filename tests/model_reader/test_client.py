from __future__ import annotations

import httpx
import pytest

from app.errors import ReaderError
from app.model_reader.connection import BODY_LIMIT_BYTES
from tests.model_reader.replies import NOTHING, a_client, answered, models


class Served:
    """Answers in turn; the last one again and again."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def ask(served: Served, **options: object):
    with a_client(served, **options) as client:
        return client.ask(client.served_model(), "REPORT")


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.Response(429, headers={"Retry-After": "0"}),
        httpx.Response(503),
        httpx.Response(500, text="boom"),
        httpx.Response(408),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, text="[1]"),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut"),
        httpx.Response(200, content=b" " * (BODY_LIMIT_BYTES + 1)),
    ],
)
def test_what_passes_is_asked_again(trouble: httpx.Response | Exception) -> None:
    served = Served(trouble, trouble, answered(NOTHING))
    assert ask(served).kind == "complete"
    assert len(served.requests) == 3


def test_a_server_that_stays_away_is_given_up() -> None:
    served = Served(httpx.ConnectError("refused"))
    with pytest.raises(ReaderError, match="does not answer: ConnectError"):
        ask(served, attempts=4)
    assert len(served.requests) == 4


@pytest.mark.parametrize("status", [401, 403, 404, 302])
def test_a_server_that_is_of_no_use_is_asked_once(status: int) -> None:
    served = Served(httpx.Response(status, headers={"Location": "http://evil.test/"}))
    with pytest.raises(ReaderError, match="TRIAGE_READER_URL"):
        ask(served)
    assert len(served.requests) == 1


def test_replies_are_told_apart() -> None:
    long = httpx.Response(400, json={"error": {"message": "exceeds the maximum context length of 8192"}})
    refused = httpx.Response(400, json={"error": {"message": "bad\nrequest"}})
    assert ask(Served(answered("{", cut=True))).kind == "cut"
    assert ask(Served(long)).kind == "too_long"
    assert ask(Served(refused)).text == "400: bad request"
    assert ask(Served(httpx.Response(200, json={"choices": []}))).text == ""
    assert ask(Served(answered(NOTHING, model="another"))).kind == "other_model"


def test_another_model_under_the_same_name_is_noticed_after_the_server_was_away() -> None:
    roots = iter(["weights-1", "weights-2"])
    served = Served(httpx.ConnectError("restarting"), answered(NOTHING))
    with a_client(served, lambda: models(root=next(roots))) as client:
        assert client.ask(client.served_model(), "REPORT").kind == "other_model"


def test_a_model_that_is_not_served_is_named_with_those_that_are() -> None:
    with (
        a_client(Served(answered(NOTHING)), model="mine") as client,
        pytest.raises(ReaderError, match="'mine'; it lists reader"),
    ):
        client.served_model()


def test_it_asks_by_the_schema_without_chance_and_with_the_key() -> None:
    served = Served(answered(NOTHING))
    ask(served, key="s3cret")
    request = served.requests[0]
    body = __import__("json").loads(request.content)
    assert request.headers["Authorization"] == "Bearer s3cret"
    assert (body["temperature"], body["seed"], body["model"]) == (0, 0, "reader")
    assert body["response_format"]["json_schema"]["schema"]["required"][0] == "kind"
