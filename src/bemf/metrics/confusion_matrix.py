"""Which ratings were taken for which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bemf.errors import DataError
from bemf.forecast import Forecast
from bemf.metrics.prediction import predictions
from bemf.metrics.truth import Floats, check_size, true_values
from bemf.ratings import Ratings
from bemf.scale import MOST_SCORES


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each rating was predicted as which.

    Attributes
    ----------
    scores : array
        What rows and columns stand for, ascending.
    counts : array (scores, scores) of int64
        Rows are true ratings, columns predicted ones.
    withheld : array of int64
        How many ratings of each true score have no prediction, unknown or withheld.
    """

    scores: Floats
    counts: NDArray[np.int64]
    withheld: NDArray[np.int64]

    def shares(self) -> Floats:
        """Of the predictions for each true rating, the share of each predicted one; NaN where there are none.

        >>> confusion([4, 4, 5], [4, 5, 5]).shares()
        array([[0.5, 0.5],
               [0. , 1. ]])
        """
        totals = self.counts.sum(axis=1, keepdims=True)
        return np.where(totals > 0, self.counts / np.maximum(totals, 1), np.nan)


def confusion(actual: Ratings | ArrayLike, predicted: Forecast | ArrayLike) -> Confusion:
    """How often each rating was predicted as which, and how often there was no prediction.

    >>> matrix = confusion([4, 4, 5, 3], [4, 5, 5, np.nan])
    >>> matrix.scores, matrix.withheld
    (array([3., 4., 5.]), array([1, 0, 0]))
    >>> matrix.counts
    array([[0, 0, 0],
           [0, 1, 1],
           [0, 0, 1]])
    """
    truth, answer = true_values(actual), predictions(predicted)
    check_size(len(truth), len(answer))
    scores = _scale(actual, truth, predicted, answer)
    n, there = len(scores), ~np.isnan(answer)
    row = np.searchsorted(scores, truth)
    cell = row[there] * n + np.searchsorted(scores, answer[there])
    counts = np.bincount(cell, minlength=n * n).reshape(n, n)
    return Confusion(scores, counts, np.bincount(row[~there], minlength=n))


def _scale(actual: Any, truth: Floats, predicted: Any, answer: Floats) -> Floats:
    """All scores there are on either side."""
    if isinstance(predicted, Forecast) and predicted.point == "mean":
        raise DataError("means lie between the scores; count modes or medians: forecast.by('mode')")
    known = [each.scores for each in (actual, predicted) if isinstance(each, Ratings | Forecast)]
    scores = np.unique(np.concatenate([truth, answer[~np.isnan(answer)], *known]))
    if len(scores) > MOST_SCORES:
        raise DataError(f"{len(scores):,} different ratings are too many to count apart; round them to a scale")
    return scores
