"""ResBeMF and DirMF: relatives of BeMF whose D products make one distribution together."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bemf.engines import Side, State, Step
from bemf.errors import ParameterError
from bemf.factorization import Factorization, Facts
from bemf.hyperparameters import number, whole
from bemf.recommender import Sizes


class SimplexFactorization(Factorization):
    """What they share: gradient steps of whole rows."""

    n_factors: int = whole(default=4, low=1, high=64)
    n_iterations: int = whole(default=100, low=1)
    learning_rate: float = number(default=0.005, above=0)
    regularization: float = number(default=0.5, low=0)

    @property
    def user_factors_(self) -> NDArray[Any]:
        """(scores, users, factors)."""
        self._require_fit()
        return np.asarray(self.state_["U"])

    @property
    def item_factors_(self) -> NDArray[Any]:
        """(scores, items, factors)."""
        self._require_fit()
        return np.asarray(self.state_["V"])

    def block_shapes(self, sizes: Sizes) -> dict[str, tuple[int, int, int]]:
        return {"U": (sizes.scores, sizes.users, self.n_factors), "V": (sizes.scores, sizes.items, self.n_factors)}

    def draw(self, state: State, rng: np.random.Generator) -> None:
        """Uniform on (0, 1)."""
        for factors in (*state["U"], *state["V"]):
            factors[...] = rng.random(factors.shape)

    def iterations(self) -> int:
        return self.n_iterations

    def steps(self, facts: Facts) -> Iterable[Step]:  # noqa: ARG002
        return self._sweep("gradient")

    def looks(self, facts: Facts) -> Iterable[Step]:  # noqa: ARG002
        return self._sweep("look")

    def fold_steps(self, side: Side, facts: Facts) -> Iterable[Step]:  # noqa: ARG002
        return itertools.repeat(self._step("gradient", side), self.n_iterations)

    def _sweep(self, kernel: str) -> Iterable[Step]:
        yield self._step(kernel, "user")
        yield replace(self._step(kernel, "item"), measured=False)  # the likelihood is that of the users' half

    def _step(self, kernel: str, side: Side) -> Step:
        parameters = {"learning_rate": self.learning_rate, "regularization": self.regularization}
        return Step(f"{self.family}.{kernel}", side, parameters | self.forecast_parameters())

    def objective(self, totals: list[NDArray[np.float64]]) -> float:
        """The log of the posterior, up to a constant."""
        (log_likelihood, of_users), (_, of_items) = totals
        return float(log_likelihood - 0.5 * self.regularization * (of_users + of_items))

    def side_objective(self, side: Side, totals: NDArray[np.float64]) -> float:  # noqa: ARG002
        log_likelihood, squares = totals
        return float(log_likelihood - 0.5 * self.regularization * squares)

    def remedy(self) -> str:
        return "lower learning_rate (it is multiplied by the length of a row)"

    @abstractmethod
    def forecast_parameters(self) -> dict[str, Any]: ...


class ResBeMF(SimplexFactorization):
    """Restricted Bernoulli matrix factorization (González-Prieto et al., 2022): Φ = softmax(U·V), over the scores.

    Fitted by ascending the gradient of the log-likelihood, all users and then all items.

    Parameters
    ----------
    n_factors : k, up to 64.
    n_iterations : sweeps over users and items.
    learning_rate : γ, the step.
    regularization : η, of both sides.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
    >>> bemf.ResBeMF(learning_rate=0.1, random_state=0).fit(ratings).forecast([(1, 2)]).prediction
    array([2.])
    """

    family = "softmax"

    def forecast_parameters(self) -> dict[str, Any]:
        return {}


class DirMF(SimplexFactorization):
    """Dirichlet matrix factorization (Lara-Cabrera et al., 2022): Φ is the mean of Dirichlet(ψ(U·V)).

    A rating stands for a distribution that gives its score the share `hit` and the others equal shares of the
    rest; fitted by ascending the gradient of the log-density of these.

    Parameters
    ----------
    n_factors : k, up to 64.
    n_iterations : sweeps over users and items.
    learning_rate : γ, the step.
    regularization : η, of both sides.
    hit : the share of the rating's score, above 1 / D and below 1.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
    >>> bemf.DirMF(learning_rate=0.1, random_state=0).fit(ratings).forecast([(1, 2)]).prediction
    array([2.])
    """

    hit: float = number(default=0.9, above=0)

    family = "dirichlet"

    def check_parameters(self) -> None:
        super().check_parameters()
        if not self.hit < 1:
            raise ParameterError(f"hit must be below 1; got {self.hit}")

    def forecast_parameters(self) -> dict[str, Any]:
        return {"hit": self.hit}
