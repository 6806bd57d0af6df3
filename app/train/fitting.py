"""Logistic regression whose coefficients must have a given sign, as few examples would otherwise overfit."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


def fit_signed(
    table: np.ndarray,
    labels: np.ndarray,
    weights: Sequence[float] | np.ndarray,
    signs: np.ndarray,
    penalty: float,
    *,
    scaled_by: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """Return coefficients and intercept of maximum likelihood with an L2 penalty.

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
