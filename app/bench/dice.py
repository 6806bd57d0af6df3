"""Chance that falls alike on every machine and Python version: numbers out of a hash of seed and count."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Dice:
    """A stream of numbers that its seed decides."""

    def __init__(self, *seed: object) -> None:
        self._seed = "/".join(map(str, seed))
        self._thrown = 0

    def below(self, limit: int) -> int:
        """A number from 0 to `limit` - 1."""
        self._thrown += 1
        digest = hashlib.blake2b(f"{self._seed}#{self._thrown}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % limit

    def between(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[self.below(len(items))]

    def hexadecimal(self, digits: int) -> str:
        """So many hex digits."""
        return "".join(self.pick("0123456789abcdef") for _ in range(digits))


def same_dice(seed: int, kind: str, value: str) -> Dice:
    """Dice that fall alike wherever this value stands in a log, so that equals stay equal."""
    return Dice(seed, kind, value)
