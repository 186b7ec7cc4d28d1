"""How near predictions are to what was rated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bemf.errors import DataError
from bemf.forecast import Forecast
from bemf.ratings import Ratings

Truth = Ratings | ArrayLike
Floats = NDArray[np.float64]


def mae(actual: Truth, predicted: Forecast | ArrayLike) -> float:
    """The mean absolute error of the predictions there are; NaN if there are none.

    >>> mae([4, 5, 3], [4, 3, np.nan])
    1.0
    """
    return _mean(np.abs(errors(actual, predicted)))


def rmse(actual: Truth, predicted: Forecast | ArrayLike) -> float:
    """The root of the mean squared error of the predictions there are.

    >>> round(rmse([4, 5], [4, 3]), 4)
    1.4142
    """
    return float(np.sqrt(_mean(errors(actual, predicted) ** 2)))


def accuracy(actual: Truth, predicted: Forecast | ArrayLike) -> float:
    """The share of the predictions that are exactly right, among those there are.

    >>> accuracy([4, 5, 3], [4, 3, np.nan])
    0.5
    """
    return _mean((errors(actual, predicted) == 0).astype(np.float64))


def coverage(actual: Truth, predicted: Forecast | ArrayLike) -> float:
    """The share of the ratings that have a prediction.

    >>> round(coverage([4, 5, 3], [4, 3, np.nan]), 4)
    0.6667
    """
    truth, answer = aligned(actual, predicted)
    return float(np.mean(~np.isnan(answer))) if len(truth) else float("nan")


def log_loss(actual: Truth, forecast: Forecast, *, floor: float = 1e-15) -> float:
    """Minus the mean logarithm of the probability that was given to the rating that came, of known pairs.

    Probabilities below `floor`, and ratings off the forecast's scale, count as `floor`.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
    >>> log_loss(ratings, bemf.BeMF(random_state=0).fit(ratings).forecast(ratings)) < 0.69
    True
    """
    truth = true_values(actual)
    if len(truth) != len(forecast):
        raise DataError(f"{len(truth):,} ratings but {len(forecast):,} forecasts")
    place = np.searchsorted(forecast.scores, truth).clip(0, len(forecast.scores) - 1)
    probability = np.take_along_axis(forecast.probabilities, place[:, None], axis=1)[:, 0].astype(np.float64)
    probability[forecast.scores[place] != truth] = 0
    return _mean(-np.log(np.maximum(probability[~np.isnan(forecast.probabilities[:, 0])], floor)))


def errors(actual: Truth, predicted: Forecast | ArrayLike) -> Floats:
    """True less predicted, where there is a prediction."""
    truth, answer = aligned(actual, predicted)
    return (truth - answer)[~np.isnan(answer)]


def aligned(actual: Truth, predicted: Forecast | ArrayLike) -> tuple[Floats, Floats]:
    """True and predicted ratings as arrays of one length, the true ones all finite."""
    truth = true_values(actual)
    answer = predicted.prediction if isinstance(predicted, Forecast) else np.asarray(predicted, dtype=np.float64)
    if truth.shape != answer.shape:
        raise DataError(f"{_shape(truth)} ratings but {_shape(answer)} predictions")
    return truth, answer


def true_values(actual: Truth) -> Floats:
    """The true ratings as an array; missing ones are refused."""
    truth = actual.values if isinstance(actual, Ratings) else np.asarray(actual, dtype=np.float64)
    if truth.ndim != 1:
        raise DataError(f"ratings must be one column; got shape {truth.shape}")
    if not np.isfinite(truth).all():
        missing = np.flatnonzero(~np.isfinite(truth))
        raise DataError(f"{len(missing):,} true ratings are missing or infinite (first at row {missing[0]:,})")
    return truth


def _mean(values: NDArray[Any]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _shape(array: NDArray[Any]) -> str:
    return f"{len(array):,}" if array.ndim == 1 else str(array.shape)
