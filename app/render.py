"""Jinja environments over `templates/`, for HTML and Markdown; the only module that imports jinja2."""

from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from app.paths import templates_dir


def make_environment(
    filters: Mapping[str, Callable[..., Any]], names: Mapping[str, Any] | None = None
) -> Environment:
    """Return an environment with these filters and global names.

    HTML templates are autoescaped; Markdown templates must pass all untrusted text through a filter.
    """
    environment = Environment(
        loader=FileSystemLoader(templates_dir()),
        auto_reload=False,  # avoids checking the template files for each page
        autoescape=select_autoescape(("html",), default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    environment.globals.update(names or {})
    return environment
