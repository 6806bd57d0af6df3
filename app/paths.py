"""Paths of the templates, migrations and data files.

In a checkout they are at the top level beside `app`; an installed wheel has them inside `app`.
"""

from pathlib import Path

_APP = Path(__file__).resolve().parent


def _beside_or_inside(name: str) -> Path:
    inside = _APP / "_data" / name
    return inside if inside.exists() else _APP.parent / name


def templates_dir() -> Path:
    """Folder of the Jinja templates."""
    return _beside_or_inside("templates")


def migrations_dir() -> Path:
    """Folder of Alembic's `env.py` and `versions/`."""
    return _beside_or_inside("migrations")


def static_dir() -> Path:
    """Folder of the style sheet and scripts."""
    return _APP / "web" / "static"


def guide_dir() -> Path:
    """Folder of the guide's pages."""
    return _APP / "guide"


def changelog() -> Path:
    """The changelog."""
    return _beside_or_inside("CHANGELOG.md")


def cards_dir() -> Path:
    """Folder of the starter cards."""
    return _APP / "starter" / "cards"


def release_table() -> Path:
    """File with the first release of each pull request."""
    return _APP / "starter" / "releases.toml"
