"""The architecture of an accelerator: cards of one architecture fail alike more often than cards of one size.

In: a canonical name of `lists/gpus.toml`. Out: a name of `lists/architecture.toml`, or None.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from app.extract.rules import load_rules


@lru_cache(maxsize=2048)
def architecture_of(gpu: str) -> str | None:
    """The architecture of one accelerator; None where it is not known."""
    for rule in load_rules("architecture"):
        if rule.pattern.search(gpu.strip()):
            return str(rule["value"])
    return None


def architectures_of(gpus: Iterable[str]) -> frozenset[str]:
    """The known architectures among these."""
    return frozenset(found for gpu in gpus if (found := architecture_of(gpu)) is not None)
