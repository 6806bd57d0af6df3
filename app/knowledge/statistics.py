"""Statistical tests for counts, computed from log-factorials, so that the server needs no statistics library.

Poisson tail: is a count too large for its mean? Fisher's exact test (The logic of inductive inference, 1935):
does a share in a part differ from that in the whole? Benjamini-Hochberg (Controlling the false discovery
rate, 1995): correction for multiple testing.
"""

from collections.abc import Sequence
from math import exp, fsum, lgamma, log

_TIE = 1 + 1e-7
"""Rounding tolerance, so that tables as likely as the observed one are included."""


def poisson_tail(count: int, mean: float) -> float:
    """Return the probability of `count` or more at this mean."""
    if count <= 0:
        return 1.0
    if mean <= 0:
        return 0.0
    if count <= mean:
        return max(0.0, 1.0 - fsum(_poisson(k, mean) for k in range(count)))
    term, total = _poisson(count, mean), 0.0
    while term > total * 1e-17:
        total += term
        count += 1
        term *= mean / count
    return min(total, 1.0)


def _poisson(count: int, mean: float) -> float:
    return exp(count * log(mean) - mean - lgamma(count + 1))


def fisher_two_sided(here: int, of: int, everywhere: int, total: int) -> float:
    """Return the probability, under independence, of a table at most as likely as this one.

    Args:
        here: items of the kind in the part; `of`: all items in the part.
        everywhere: items of the kind in the whole; `total`: all items, including the part.

    Raises:
        ValueError: the numbers do not form a contingency table.
    """
    low, high = max(0, of + everywhere - total), min(of, everywhere)
    if not low <= here <= high:
        raise ValueError(f"no table: {here} of {of} in the part, {everywhere} of {total} in all")
    fixed = _log_choose(total, of)
    chances = [
        exp(_log_choose(everywhere, k) + _log_choose(total - everywhere, of - k) - fixed)
        for k in range(low, high + 1)
    ]
    observed = chances[here - low] * _TIE
    return min(1.0, sum(chance for chance in chances if chance <= observed))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def benjamini_hochberg(chances: Sequence[float]) -> list[float]:
    """Return the adjusted p-values in the given order: the false discovery rate if each is the threshold."""
    order = sorted(range(len(chances)), key=lambda at: chances[at], reverse=True)
    adjusted = [1.0] * len(chances)
    least = 1.0
    for place, at in enumerate(order):
        least = min(least, chances[at] * len(chances) / (len(chances) - place))
        adjusted[at] = least
    return adjusted
