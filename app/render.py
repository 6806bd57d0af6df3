"""The one module that knows jinja2: an environment over `templates/`, for pages and for Markdown."""

from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from app.paths import templates_dir


def make_environment(
    filters: Mapping[str, Callable[..., Any]], names: Mapping[str, Any] | None = None
) -> Environment:
    """An environment whose templates know these filters and names.

    HTML escapes all that is put in; templates of Markdown pass every foreign text through a filter.
    """
    environment = Environment(
        loader=FileSystemLoader(templates_dir()),
        auto_reload=False,  # else every page looks at each of its templates' files once more
        autoescape=select_autoescape(("html",), default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    environment.globals.update(names or {})
    return environment
