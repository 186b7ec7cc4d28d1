"""Metrics in the form in which scikit-learn's searches and cross-validations take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from bemf.errors import DataError, ParameterError
from bemf.metrics.prediction import accuracy, coverage, mae, r2, rmse
from bemf.metrics.probability import brier, log_loss
from bemf.ratings import Ratings

if TYPE_CHECKING:
    from bemf.recommender import Recommender

GAINS: dict[str, Callable[..., float]] = {"accuracy": accuracy, "coverage": coverage, "r2": r2}
LOSSES: dict[str, Callable[..., float]] = {"brier": brier, "log_loss": log_loss, "mae": mae, "rmse": rmse}
NAMES = sorted(GAINS | LOSSES)


@dataclass(frozen=True, repr=False)
class Scorer:
    """A metric of a fitted model on pairs and their ratings, turned so that more is better."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ParameterError(f"no scorer is called {self.name!r}; there are {', '.join(NAMES)}")

    def __call__(self, estimator: Recommender, X: Any, y: ArrayLike | None = None) -> float:  # noqa: N803
        """How good the model's answers for the pairs `X` are; `y` is what they rated, unless `X` is Ratings."""
        if y is None and not isinstance(X, Ratings):
            raise DataError("the ratings of the pairs are needed: give y, or Ratings alone")
        truth = X if y is None else y
        if self.name == "coverage":
            return coverage(truth, estimator.forecast(X))
        forecast = estimator.forecast(X, unknown="prior")
        return GAINS[self.name](truth, forecast) if self.name in GAINS else -LOSSES[self.name](truth, forecast)

    def __repr__(self) -> str:
        return f"scorer({self.name!r})"


def scorer(name: str) -> Scorer:
    """A metric for scikit-learn's `scoring=…`: accuracy, brier, coverage, log_loss, mae, r2 or rmse.

    Of losses it gives the negative, so that more is better. Pairs of unknown users or items are answered
    with the frequencies of training, as in `predict`, except that they count as not covered. It takes any
    scale; scikit-learn's own classification scorers refuse half stars.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [0.5, 1, 0.5, 1])
    >>> scorer("mae")(bemf.BeMF(random_state=0).fit(ratings), [(1, 1), (1, 2)], [0.5, 0.5])
    -0.25
    """
    return Scorer(name)
