"""Ask a language model about a report, with a reply constrained by a JSON schema.

The outcome distinguishes prompts that are too long, refused prompts, and replies of another model.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from app.config import Settings
from app.model_reader.connection import ModelServer, ServedModel, fault_of
from app.model_reader.reply import instructions, schema

REPLY_TOKENS_MAX = 2_500
"""A full reply has about 400 tokens; this leaves room for reasoning tokens, and ends runaway replies."""
SEED = 0
_TOO_LONG = ("context length", "maximum context", "max_model_len", "too long", "too large", "context window")

AnswerKind = Literal["complete", "cut", "too_long", "refused", "failed", "other_model"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a request; `text` is the reply, or the reason why there is none."""

    kind: AnswerKind
    text: str
    prompt_tokens: int = 0
    reply_tokens: int = 0


class ReaderClient(ModelServer):
    """Client of the server whose model reads reports."""

    name: ClassVar[str] = "the model reader's server"
    variables: ClassVar[str] = "TRIAGE_READER_URL, TRIAGE_READER_MODEL and TRIAGE_READER_KEY"
    reply_tokens_max: ClassVar[int] = REPLY_TOKENS_MAX
    """Maximum length of a reply, in tokens."""

    def ask(self, model: ServedModel, content: str) -> Answer:
        """Return the model's reply on a report.

        Raises:
            ReaderError: the server does not answer, or rejects all requests.
        """
        shape = {"name": "report", "schema": schema(), "strict": True}
        status, found = self._request(
            "chat/completions",
            {
                "model": model.name,
                "messages": [
                    {"role": "system", "content": instructions()},
                    {"role": "user", "content": content},
                ],
                "temperature": 0,
                "seed": SEED,
                "max_tokens": self.reply_tokens_max,
                "response_format": {"type": "json_schema", "json_schema": shape},
            },
            attempts=self._attempts,
        )
        if status >= 400:
            fault = fault_of(found)
            is_too_long = status == 413 or any(words in fault.lower() for words in _TOO_LONG)
            return Answer("too_long" if is_too_long else "refused", f"{status}: {fault}")
        if found.get("model") not in (None, model.name) or self._is_other(model):
            return Answer("other_model", "the server answers as another model than the run began with")
        return _answer_of(found)


def reader_client(settings: Settings, **options: Any) -> ReaderClient:
    """Return a client for the configured server, which must exist. Options are those of `ModelServer`."""
    key = settings.reader_key.get_secret_value() if settings.reader_key else None
    return ReaderClient(settings.reader_url or "", settings.reader_model, key, **options)


def _answer_of(found: dict[str, Any]) -> Answer:
    usage = found.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    tokens = [counts.get(key) for key in ("prompt_tokens", "completion_tokens")]
    prompt, reply = (item if isinstance(item, int) and item >= 0 else 0 for item in tokens)
    try:
        choice = found["choices"][0]
        text = choice["message"]["content"] or ""
    except (KeyError, IndexError, TypeError):
        return Answer("complete", "", prompt, reply)  # will be rejected as an invalid reply
    is_cut = choice.get("finish_reason") == "length"
    return Answer("cut" if is_cut else "complete", str(text), prompt, reply)
