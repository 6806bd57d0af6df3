"""Shared by the training commands: arguments, JSON Lines in, JSON out, signed logistic regression."""

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


def make_parser(doc: str | None, *, database: bool = False) -> argparse.ArgumentParser:
    """Create a parser with the module's docstring as help; `database` adds a required `--database`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if database:
        parser.add_argument("--database", required=True)
    return parser


def read_rows(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON Lines files, gzipped if they end with `.gz`."""
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open() as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def write_json(path: Path, data: Any, indent: int = 2) -> None:
    path.write_text(json.dumps(data, indent=indent, ensure_ascii=False) + "\n", encoding="utf-8")


def fit_signed(
    table: np.ndarray,
    labels: np.ndarray,
    weights: Sequence[float] | np.ndarray,
    signs: np.ndarray,
    penalty: float,
    *,
    scaled_by: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """Return coefficients and intercept of a logistic regression of maximum likelihood with an L2 penalty.

    Each coefficient has a given sign, as few examples would otherwise overfit.

    Args:
        signs: 1 or -1 for each column, the only sign that its coefficient may have.
        scaled_by: rows by whose mean and spread the columns are standardised; by default those of the table.
    """
    typical = table if scaled_by is None else scaled_by
    mean, spread = typical.mean(axis=0), typical.std(axis=0) + 1e-9
    rows = np.column_stack([(table - mean) / spread * signs, np.ones(len(table))])
    strength = np.array([penalty] * len(signs) + [0.0])
    wanted, counted = np.asarray(labels, dtype=float), np.asarray(weights, dtype=float)

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        sums = rows @ point
        value = counted @ (np.logaddexp(0, sums) - wanted * sums) + strength @ point**2 / 2
        return float(value), rows.T @ (counted * (expit(sums) - wanted)) + strength * point

    bounds = [(0.0, None)] * len(signs) + [(None, None)]
    options = {"maxiter": 5000, "ftol": 1e-12, "gtol": 1e-8}
    found = minimize(
        loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    coefficients = found.x[:-1] * signs / spread
    return coefficients, float(found.x[-1] - (coefficients * mean).sum())
