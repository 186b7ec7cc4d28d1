"""How good probabilities are: losses that are least, on average, for the true ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bemf.forecast import Forecast
from bemf.metrics.prediction import mean
from bemf.metrics.truth import Loss, Truth, expected


def log_loss(actual: Truth, forecast: Forecast, *, floor: float = 1e-15) -> float:
    """Minus the mean logarithm of the probability that was given to the rating that came, of known pairs.

    Probabilities below `floor`, and ratings off the forecast's scale, count as `floor`.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
    >>> log_loss(ratings, bemf.BeMF(random_state=0).fit(ratings).forecast(ratings)) < 0.69
    True
    """

    def loss(rating: Any) -> NDArray[Any]:
        given = np.where(np.equal.outer(rating, forecast.scores), forecast.probabilities, 0)
        return np.asarray(-np.log(np.maximum(given.sum(axis=1, dtype=np.float64), floor)))

    return _of_known(actual, forecast, loss)


def brier(actual: Truth, forecast: Forecast) -> float:
    """The mean squared distance of the probabilities from the rating that came, of known pairs: Σ (Φ_s − [r = s])².

    From 0 to 2; a rating off the forecast's scale counts as a score that was given no probability.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
    >>> brier(ratings, bemf.BeMF(random_state=0).fit(ratings).forecast(ratings)) < 0.5
    True
    """

    def loss(rating: Any) -> NDArray[Any]:
        came = np.equal.outer(rating, forecast.scores)
        distance = np.square(forecast.probabilities - came).sum(axis=1, dtype=np.float64)
        return np.asarray(distance + ~came.any(axis=-1))

    return _of_known(actual, forecast, loss)


def _of_known(actual: Truth, forecast: Forecast, loss: Loss) -> float:
    unknown = np.isnan(forecast.probabilities[:, 0])
    return mean(np.where(unknown, np.nan, expected(actual, len(forecast), loss)))
