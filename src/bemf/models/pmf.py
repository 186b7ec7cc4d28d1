"""PMF, BiasedMF and NMF: factorizations with squared errors, which predict points."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bemf.engines import Side, State, Step
from bemf.errors import DataError
from bemf.factorization import Factorization, Facts
from bemf.hyperparameters import number, whole
from bemf.ratings import Ratings
from bemf.recommender import Sizes

SPREAD = 0.1  # of the initial factors
MOST_MULTIPLICATIONS = 100  # to learn new rows


class PointFactorization(Factorization):
    """What they share: targets for each score, products of rows, the scale as limits."""

    gives = "points"
    biases: ClassVar[bool] = False
    n_factors: int

    @property
    def user_factors_(self) -> NDArray[Any]:
        """(users, factors)."""
        return self._factors("U")

    @property
    def item_factors_(self) -> NDArray[Any]:
        """(items, factors)."""
        return self._factors("V")

    def _factors(self, name: str) -> NDArray[Any]:
        self._require_fit()
        return np.asarray(self.state_[name][0])[:, self.biases :]

    def answer(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[Any]:
        products = super().answer(users, items).astype(np.float64)
        return np.clip(products + self.mean_, self.classes_[0], self.classes_[-1])

    @property
    def mean_(self) -> float:
        """What is added to the product of two rows."""
        return float(self.classes_[0] - np.asarray(self.state_["targets"])[0])

    def block_shapes(self, sizes: Sizes) -> dict[str, tuple[int, int, int]]:
        columns = self.n_factors + self.biases
        return {"U": (1, sizes.users, columns), "V": (1, sizes.items, columns)}

    def facts(self, ratings: Ratings) -> Facts:
        return {"targets": (ratings.scores - self._mean_of(ratings)).astype(self.dtype)}

    def fact_shapes(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        return {"targets": (sizes.scores,)}

    def _mean_of(self, ratings: Ratings) -> float:
        return float(ratings.score_counts @ ratings.scores / len(ratings))

    def forecast_parameters(self) -> dict[str, Any]:
        return {}


class PMF(PointFactorization):
    """Probabilistic matrix factorization (Salakhutdinov and Mnih, 2008): r̂ = μ + P·Q.

    Fitted by gradient steps, one for each rating: first of all users' rows against the items' as they are,
    then of all items' against the users' new ones. Predictions are points, clipped to the scale.

    Parameters
    ----------
    n_factors : k, up to 64.
    n_iterations : sweeps over users and items.
    learning_rate : γ, the step.
    regularization : λ, applied at each rating.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
    >>> bool(1 <= bemf.PMF(random_state=0).fit(ratings).forecast([(1, 2)]).prediction[0] <= 2)
    True
    """

    n_factors: int = whole(default=10, low=1, high=64)
    n_iterations: int = whole(default=50, low=1)
    learning_rate: float = number(default=0.01, above=0)
    regularization: float = number(default=0.05, low=0)

    family = "points"

    def draw(self, state: State, rng: np.random.Generator) -> None:
        """Small and around 0; biases 0."""
        for factors in (*state["U"], *state["V"]):
            factors[...] = rng.normal(0, SPREAD, factors.shape)
            factors[:, : self.biases] = 0

    def iterations(self) -> int:
        return self.n_iterations

    def steps(self, facts: Facts) -> Iterable[Step]:
        return self._sweep("descent", facts)

    def looks(self, facts: Facts) -> Iterable[Step]:
        return self._sweep("look", facts)

    def fold_steps(self, side: Side, facts: Facts) -> Iterable[Step]:
        return itertools.repeat(self._step("descent", side, facts), self.n_iterations)

    def _sweep(self, kernel: str, facts: Facts) -> Iterable[Step]:
        yield self._step(kernel, "user", facts)
        yield replace(self._step(kernel, "item", facts), measured=False)  # the errors are those of the users' half

    def _step(self, kernel: str, side: Side, facts: Facts) -> Step:
        parameters = {"learning_rate": self.learning_rate, "regularization": self.regularization} | facts
        return Step(f"{self.family}.{kernel}", side, parameters)

    def objective(self, totals: list[NDArray[np.float64]]) -> float:
        """Minus half the squared errors and the penalty of all rows."""
        by_users, by_items = totals
        return self.side_objective("user", by_users) + self.side_objective("item", by_items)

    def side_objective(self, side: Side, totals: NDArray[np.float64]) -> float:  # noqa: ARG002
        errors, squares = totals
        return float(errors - 0.5 * self.regularization * squares)

    def remedy(self) -> str:
        return "lower learning_rate"


class BiasedMF(PMF):
    """Matrix factorization with biases (Koren, Bell and Volinsky, 2009): r̂ = μ + b_u + b_i + P·Q.

    Fitted as `PMF`, biases with the same steps.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
    >>> model = bemf.BiasedMF(random_state=0).fit(ratings)
    >>> bool(model.item_biases_[1] > model.item_biases_[0])
    True
    """

    family = "biased"
    biases = True

    @property
    def user_biases_(self) -> NDArray[Any]:
        """How much higher than others each user rates."""
        self._require_fit()
        return np.asarray(self.state_["U"][0])[:, 0]

    @property
    def item_biases_(self) -> NDArray[Any]:
        """How much higher than others each item is rated."""
        self._require_fit()
        return np.asarray(self.state_["V"][0])[:, 0]


class NMF(PointFactorization):
    """Non-negative matrix factorization of the ratings there are (Lee and Seung, 2000): r̂ = W·H.

    Fitted by multiplications that never raise the squared error. Predictions are points, clipped to the scale.

    Parameters
    ----------
    n_factors : k, up to 64.
    n_iterations : sweeps over users and items.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
    >>> model = bemf.NMF(random_state=0).fit(ratings)
    >>> bool((model.user_factors_ > 0).all()), model.forecast([(1, 2)]).prediction.round(2)
    (True, array([2.]))
    """

    n_factors: int = whole(default=2, low=1, high=64)
    n_iterations: int = whole(default=50, low=1)

    family = "points"

    def _mean_of(self, ratings: Ratings) -> float:  # noqa: ARG002
        return 0.0

    def draw(self, state: State, rng: np.random.Generator) -> None:
        """Uniform on (0, 1]."""
        for factors in (*state["U"], *state["V"]):
            factors[...] = 1 - rng.random(factors.shape)

    def facts(self, ratings: Ratings) -> Facts:
        if ratings.scores[0] < 0:
            raise DataError(f"NMF needs ratings that are not negative; the lowest score is {ratings.scores[0]:g}")
        return super().facts(ratings)

    def iterations(self) -> int:
        return self.n_iterations

    def steps(self, facts: Facts) -> Iterable[Step]:
        return self._sweep("multiplication", facts)

    def looks(self, facts: Facts) -> Iterable[Step]:
        return self._sweep("look", facts)

    def fold_steps(self, side: Side, facts: Facts) -> Iterable[Step]:
        return itertools.repeat(Step("points.multiplication", side, facts), MOST_MULTIPLICATIONS)

    def _sweep(self, kernel: str, facts: Facts) -> Iterable[Step]:
        yield Step(f"points.{kernel}", "user", facts)
        yield Step(f"points.{kernel}", "item", facts, measured=False)

    def objective(self, totals: list[NDArray[np.float64]]) -> float:
        """Minus half the squared errors."""
        return self.side_objective("user", totals[0])

    def side_objective(self, side: Side, totals: NDArray[np.float64]) -> float:  # noqa: ARG002
        return float(totals[0])
