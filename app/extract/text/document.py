"""The data model of an issue's texts: `IssueText` as given, `Document` split into blocks.

Each block is prose, code (including logs), a heading or a quote, and an exact span of its source:
`block.text == source[block.start:block.end]`.

`text/blocks.py` builds documents. It copes with CRLF, unclosed fences, `<details>`, HTML, and flattened
texts: these are split at form headings, log prefixes and traceback marks, so that every block has `lines`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["heading", "prose", "code", "quote"]
"""`code` is anything fenced, and unfenced program output."""


Span = tuple[str, int, int]
"""Source name, start and end in code points."""


@dataclass(frozen=True, slots=True)
class CommentText:
    """One comment. `id` is GitHub's, or None for a text without one."""

    body: str
    id: int | None = None
    user: str | None = None
    author_association: str = "NONE"
    created_at: str | None = None


@dataclass(frozen=True, slots=True)
class IssueText:
    """The input of `read_issue`."""

    number: int
    title: str
    body: str
    repo: str = "vllm-project/vllm"
    labels: tuple[str, ...] = ()
    state: str | None = None
    user: str | None = None
    created_at: str | None = None
    comments: tuple[CommentText, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One line, possibly restored from flattened text: `text == source[start:end]`, no line terminator."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """A run of text of one kind. `heading` is the nearest heading above, as written."""

    kind: Kind
    source: str
    start: int
    end: int
    text: str
    heading: str = ""
    language: str = ""
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """All sources of an issue and their blocks, in reading order.

    Compared by identity, so that readers can cache results by document.
    `sources` maps "title", "body", "comment:<id>" to the untouched text; `speaker` maps a source to
    "reporter", "maintainer" or "other"; `is_flattened`: the body's line breaks were lost.
    """

    issue: IssueText
    sources: dict[str, str]
    blocks: tuple[Block, ...]
    speaker: dict[str, str] = field(default_factory=dict)
    is_flattened: bool = False

    def of_kind(self, *kinds: Kind) -> Iterator[Block]:
        return (block for block in self.blocks if block.kind in kinds)

    def of_source(self, source: str) -> Iterator[Block]:
        return (block for block in self.blocks if block.source == source)
