"""How near predictions are to what was rated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bemf.forecast import Forecast
from bemf.metrics.truth import Floats, Truth, check_size, expected, n_pairs, one_column


def mae(actual: Truth, predicted: Forecast | ArrayLike) -> float:
    """The mean absolute error of the predictions there are; NaN if there are none.

    >>> mae([4, 5, 3], [4, 3, np.nan])
    1.0
    """
    return mean(losses(actual, predicted, lambda truth, answer: np.abs(truth - answer)))


def rmse(actual: Truth, predicted: Forecast | ArrayLike) -> float:
    """The root of the mean squared error of the predictions there are.

    >>> round(rmse([4, 5], [4, 3]), 4)
    1.4142
    """
    return float(np.sqrt(mean(losses(actual, predicted, lambda truth, answer: (truth - answer) ** 2))))


def r2(actual: Truth, predicted: Forecast | ArrayLike) -> float:
    """The share of the ratings' variance that the predictions there are explain; NaN if they do not vary.

    >>> r2([3, 4, 5], [3, 4, 4])
    0.5
    """
    answer = predictions(predicted)
    squares = mean(losses(actual, predicted, lambda truth, answer: (truth - answer) ** 2))
    middle = mean(losses(actual, predicted, lambda truth, _: truth + 0 * answer))
    variance = mean(losses(actual, predicted, lambda truth, _: (truth - middle) ** 2 + 0 * answer))
    return 1 - squares / variance if variance else float("nan")


def accuracy(actual: Truth, predicted: Forecast | ArrayLike) -> float:
    """The share of the predictions that are exactly right, among those there are.

    >>> accuracy([4, 5, 3], [4, 3, np.nan])
    0.5
    """
    return mean(losses(actual, predicted, lambda truth, answer: truth == answer))


def coverage(actual: Truth, predicted: Forecast | ArrayLike) -> float:
    """The share of the ratings that have a prediction.

    >>> round(coverage([4, 5, 3], [4, 3, np.nan]), 4)
    0.6667
    """
    answer = predictions(predicted)
    check_size(n_pairs(actual), len(answer))
    return mean(~np.isnan(answer) + 0.0)


def losses(actual: Truth, predicted: Forecast | ArrayLike, loss: Callable[[Any, Floats], NDArray[Any]]) -> Floats:
    """What each prediction loses; NaN where there is none."""
    answer = predictions(predicted)
    return np.where(np.isnan(answer), np.nan, expected(actual, len(answer), lambda truth: loss(truth, answer)))


def predictions(predicted: Forecast | ArrayLike) -> Floats:
    """Predicted ratings as an array; NaN where there is none."""
    return predicted.prediction if isinstance(predicted, Forecast) else one_column(predicted, "predictions")


def mean(values: Floats) -> float:
    """The mean of those that are not NaN; NaN if there are none."""
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else float("nan")
