"""How much a reliability is worth: whether the predictions it trusts are the better ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bemf.errors import DataError, ParameterError
from bemf.forecast import Forecast
from bemf.metrics.prediction import losses, predictions
from bemf.metrics.truth import Floats, Truth, n_pairs, true_values
from bemf.words import counted

THRESHOLDS = tuple(round(0.1 * step, 1) for step in range(10))
SHARES = (1.0, 0.75, 0.5, 0.25, 0.1)


@dataclass(frozen=True, eq=False)
class Curve:
    """Error and coverage as ever less reliable predictions are left out; one entry for each cut.

    `cut` is the threshold of reliability, or the share that is kept.
    """

    cut: Floats
    mae: Floats
    coverage: Floats


def rpi(
    actual: Truth,
    predicted: Forecast | ArrayLike,
    reliability: ArrayLike | None = None,
    *,
    spread: str = "std",
) -> float:
    """The reliability prediction index: how well high reliabilities go with small errors.

    The mean of e (e − ē)(l̄ − l) / (ē σ_e σ_l) over errors e and reliabilities l; σ is the standard
    deviation, or with spread="mad" the mean absolute deviation. A `Forecast` has its own reliability.

    >>> round(rpi([1, 2, 3, 4], [1, 2, 3, 2], [0.9, 0.8, 0.7, 0.1]), 4)
    2.9216
    """
    if spread not in ("std", "mad"):
        raise ParameterError(f"spread must be 'std' or 'mad'; got {spread!r}")
    e, trust = _errors_and_reliability(true_values(actual), predicted, reliability)
    if len(e) == 0:
        return float("nan")
    d_e, d_l = e - e.mean(), trust.mean() - trust
    sigma_e, sigma_l = (float(np.sqrt(np.mean(d**2)) if spread == "std" else np.mean(np.abs(d))) for d in (d_e, d_l))
    if e.mean() == 0 or sigma_e == 0 or sigma_l == 0:
        return float("nan")
    return float(np.mean(e * d_e * d_l) / (e.mean() * sigma_e * sigma_l))


def by_threshold(
    actual: Truth,
    predicted: Forecast | ArrayLike,
    reliability: ArrayLike | None = None,
    *,
    thresholds: Sequence[float] = THRESHOLDS,
) -> Curve:
    """Error and coverage of the predictions with at least each reliability: the paper's curves.

    >>> curve = by_threshold([1, 2, 3], [1, 2, 1], [0.9, 0.6, 0.3], thresholds=[0, 0.5])
    >>> curve.mae.round(4), curve.coverage.round(4)
    (array([0.6667, 0.    ]), array([1.    , 0.6667]))
    """
    e, trust, n = *_errors_and_reliability(actual, predicted, reliability), n_pairs(actual)
    kept = [trust >= threshold for threshold in thresholds]
    return Curve(
        np.asarray(thresholds, dtype=np.float64),
        np.array([e[keep].mean() if keep.any() else np.nan for keep in kept]),
        np.array([keep.sum() / n for keep in kept]),
    )


def by_coverage(
    actual: Truth,
    predicted: Forecast | ArrayLike,
    reliability: ArrayLike | None = None,
    *,
    shares: Sequence[float] = SHARES,
) -> Curve:
    """Error of the most reliable share of the predictions; of equal reliabilities each counts in part.

    >>> by_coverage([1, 2, 3, 4], [1, 2, 1, 1], [0.9, 0.6, 0.3, 0.1], shares=[1, 0.5]).mae
    array([1.25, 0.  ])
    """
    if any(not 0 < share <= 1 for share in shares):
        raise ParameterError(f"shares must be above 0 and at most 1; got {list(shares)}")
    e, trust, n = *_errors_and_reliability(actual, predicted, reliability), n_pairs(actual)
    if len(e) == 0:
        raise DataError("there is no prediction to measure")
    order = np.argsort(-trust, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(_tied_mean(e[order], trust[order]))])
    kept = np.asarray(shares, dtype=np.float64) * len(e)
    return Curve(np.asarray(shares, dtype=np.float64), np.interp(kept, np.arange(len(e) + 1), total) / kept, kept / n)


def _tied_mean(e: Floats, trust: Floats) -> Floats:
    """Each error replaced by the mean of those with the same reliability, so that their order is nothing."""
    starts = np.flatnonzero(np.concatenate([[True], trust[1:] != trust[:-1]]))
    sizes = np.diff(np.append(starts, len(e)))
    return np.repeat(np.add.reduceat(e, starts) / sizes, sizes)


def _errors_and_reliability(
    actual: Truth, predicted: Forecast | ArrayLike, reliability: ArrayLike | None
) -> tuple[Floats, Floats]:
    e = losses(actual, predicted, lambda truth, answer: np.abs(truth - answer))
    trust = reliabilities(predicted, reliability)
    there = ~np.isnan(e) & ~np.isnan(trust)
    return e[there], trust[there]


def reliabilities(predicted: Forecast | ArrayLike, reliability: ArrayLike | None) -> Floats:
    """The reliability of each prediction: the one given, or that of a `Forecast`."""
    if reliability is None:
        if not isinstance(predicted, Forecast):
            raise DataError("predictions alone have no reliability; give it as the third argument")
        return predicted.reliability
    trust = np.asarray(reliability, dtype=np.float64)
    n = len(predictions(predicted))
    if trust.shape != (n,):
        raise DataError(f"{counted(n, 'prediction')} but reliabilities of shape {trust.shape}")
    return trust
