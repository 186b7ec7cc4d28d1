"""SVD++: biases, factors, and what users have rated at all."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bemf.engines import Run, Side, State, Step, engine
from bemf.errors import DataError
from bemf.factorization import Facts
from bemf.hyperparameters import number, whole
from bemf.models.pmf import PointFactorization
from bemf.ratings import Ratings
from bemf.recommender import Sizes
from bemf.words import counted

SPREAD = 0.1  # of the initial factors


class SVDpp(PointFactorization):
    """SVD++ (Koren, 2008): r̂ = μ + b_u + b_i + q_i·(p_u + |N(u)|^-½ Σ y_j), j over all that u has rated.

    Fitted by a gradient step for each rating, user after user; a step moves every y_j of its user. Predictions are
    points, clipped to the scale. New users are taken in, new items are not.

    Parameters
    ----------
    n_factors : k, up to 64.
    n_iterations : passes over the ratings.
    learning_rate : γ, the step.
    regularization : λ, applied at each rating.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
    >>> bemf.SVDpp(random_state=0).fit(ratings).implicit_factors_.shape
    (2, 10)
    """

    n_factors: int = whole(default=10, low=1, high=64)
    n_iterations: int = whole(default=20, low=1)
    learning_rate: float = number(default=0.007, above=0)
    regularization: float = number(default=0.05, low=0)

    family = "svdpp"
    biases = True
    block_sides: ClassVar[dict[str, Side]] = {"U": "user", "V": "item", "Y": "item", "Z": "user"}

    @property
    def implicit_factors_(self) -> NDArray[Any]:
        """What having rated an item tells, (items, factors): Koren's y."""
        self._require_fit()
        return np.asarray(self.state_["Y"][0])

    def _placed(self) -> Run:
        """Users with what they have rated added: so a forecast is that of biases and factors."""
        if getattr(self, "_scorer", None) is None:
            users = np.array(self.state_["U"][0])
            users[:, 1:] += self.state_["Z"][0]
            made = engine(self.engine, self.n_threads)
            self._scorer = made.place("biased", {"U": users[None], "V": self.state_["V"]})
        return self._scorer  # type: ignore[return-value]

    def take_in(self, new: Ratings) -> None:
        """Users by their ratings of items that are known."""
        known = self.items_.index(new.items.arrow)[new.item_index] >= 0
        if not known.any():
            raise DataError(
                f"SVDpp takes in users, not items; it knows none of the {counted(len(known), 'rating')}' items"
            )
        super().take_in(new.select(known))

    def block_shapes(self, sizes: Sizes) -> dict[str, tuple[int, int, int]]:
        implicit = {"Y": (1, sizes.items, self.n_factors), "Z": (1, sizes.users, self.n_factors)}
        return super().block_shapes(sizes) | implicit

    def draw(self, state: State, rng: np.random.Generator) -> None:
        """Small and around 0; biases, and sums that nobody has made yet, 0."""
        for name in ("U", "V", "Y"):
            for factors in state.get(name, []):
                factors[...] = rng.normal(0, SPREAD, factors.shape)
                factors[:, : name != "Y"] = 0

    def iterations(self) -> int:
        return self.n_iterations

    def steps(self, facts: Facts) -> Iterable[Step]:
        yield from self.looks(facts)
        yield self._step("svdpp.descent", facts)

    def looks(self, facts: Facts) -> Iterable[Step]:
        yield self._step("svdpp.look", facts)

    def fold_steps(self, side: Side, facts: Facts) -> Iterable[Step]:  # noqa: ARG002
        return itertools.repeat(self._step("svdpp.users", facts), self.n_iterations)

    def _step(self, kernel: str, facts: Facts) -> Step:
        parameters = {"learning_rate": self.learning_rate, "regularization": self.regularization} | facts
        return Step(kernel, "user", parameters, measured=kernel != "svdpp.descent")

    def objective(self, totals: list[NDArray[np.float64]]) -> float:
        """Minus half the squared errors, and half the penalty of all rows that the ratings' steps move."""
        return self.side_objective("user", totals[0])

    def side_objective(self, side: Side, totals: NDArray[np.float64]) -> float:  # noqa: ARG002
        errors, squares = totals
        return float(errors - 0.5 * self.regularization * squares)

    def remedy(self) -> str:
        return "lower learning_rate"
