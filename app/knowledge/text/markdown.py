"""Markdown and plain text out of the templates of `templates/*.md` and `*.txt`.

A template passes every foreign text through one of the filters `code`, `escape`, `fenced` and `quotation`;
what it writes without one must be ours. The tables of `app.knowledge.labels` are there by their names.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jinja2 import Environment

from app.knowledge import labels
from app.knowledge.text import quoting
from app.render import make_environment


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return make_environment(
        filters={
            "code": quoting.code,
            "escape": quoting.escape,
            "fenced": lambda lines: "\n".join(quoting.fenced(lines)),
            "inert": quoting.inert,
            "quotation": lambda text, source: "\n".join(quoting.quotation(text, source)),
            "count": labels.count,
            "plural": labels.plural,
            "label": labels.label,
            "day": "{:%Y-%m-%d}".format,
        },
        names=vars(labels) | {"NOTICE": quoting.NOTICE},
    )


def render_markdown(template: str, **context: Any) -> str:
    """The Markdown, or text, of a template of `templates/` for what it is to show; ends with one line end."""
    return _environment().get_template(template).render(**context).rstrip() + "\n"
