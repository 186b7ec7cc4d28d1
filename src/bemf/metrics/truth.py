"""What is true of each pair: the rating that came, or how likely each rating was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bemf.errors import DataError
from bemf.forecast import Forecast
from bemf.ratings import Ratings
from bemf.words import counted

Floats = NDArray[np.float64]
Truth = Ratings | Forecast | ArrayLike
Loss = Callable[[Any], NDArray[Any]]
"""What each pair loses if the rating is this: one for all pairs, or one of each."""


def expected(actual: Truth, pairs: int, loss: Loss) -> Floats:
    """What each pair loses by the rating that came, or on average over those that might have come.

    >>> expected([4, 5], 2, lambda rating: (rating - 4) ** 2)
    array([0., 1.])
    """
    if not isinstance(actual, Forecast):
        truth = true_values(actual)
        check_size(len(truth), pairs)
        return np.asarray(loss(truth), dtype=np.float64)
    check_size(len(actual), pairs)
    _refuse_missing(np.isnan(actual.probabilities[:, 0]), "true forecast")
    total = np.zeros(pairs)
    for d, score in enumerate(actual.scores):
        total += actual.probabilities[:, d] * loss(score)
    return total


def true_values(actual: Truth) -> Floats:
    """The ratings that came, as an array; missing ones, and probabilities in their place, are refused."""
    if isinstance(actual, Forecast):
        raise DataError("this needs the ratings that came; probabilities of ratings do not say which came")
    truth = actual.values if isinstance(actual, Ratings) else one_column(actual, "ratings")
    _refuse_missing(~np.isfinite(truth), "true rating")
    return truth


def one_column(given: ArrayLike, what: str) -> Floats:
    """Numbers as an array of one column."""
    column = np.asarray(given, dtype=np.float64)
    if column.ndim != 1:
        raise DataError(f"{what} must be one column; got shape {column.shape}")
    return column


def n_pairs(actual: Truth) -> int:
    """How many pairs there is a truth of."""
    return len(actual if isinstance(actual, Forecast) else true_values(actual))


def check_size(n: int, pairs: int) -> None:
    """Refuses a truth of more or fewer pairs than there are predictions."""
    if n != pairs:
        raise DataError(f"{counted(n, 'rating')} but {counted(pairs, 'prediction')}")


def _refuse_missing(missing: NDArray[np.bool_], what: str) -> None:
    if missing.any():
        n, first = int(np.count_nonzero(missing)), int(np.argmax(missing))
        raise DataError(f"{counted(n, what)} missing or infinite; first at row {first:,}. Drop these rows")
