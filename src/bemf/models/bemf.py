"""BeMF: one Bernoulli factorization for each score."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bemf.activations import Activation, activation
from bemf.engines import Side, State, Step
from bemf.errors import ParameterError
from bemf.factorization import Factorization, Facts
from bemf.hyperparameters import anything, choice, number, whole
from bemf.ratings import Ratings
from bemf.recommender import Sizes

KERNELS = {"gd": "bernoulli.gradient", "mm": "bernoulli.bound"}
DEFAULTS: dict[str, dict[str, Any]] = {
    "gd": {"n_factors": 2, "n_iterations": 150, "learning_rate": 0.002, "regularization": 0.16, "biases": False},
    "mm": {"n_factors": 2, "n_iterations": 30, "regularization": 5.0, "biases": True},
}
MOST_BOUND_STEPS = 100  # to learn new rows
SPREAD = 0.1  # of the initial factors where there are biases


class BeMF(Factorization):
    """Bernoulli matrix factorization (Ortega, Lara-Cabrera, González-Prieto and Bobadilla, 2021).

    For each score s it learns the probability that a user's rating of an item is exactly s, ψ(U·V); the
    D probabilities, made to sum to one, are the forecast.

    Of `n_factors`, `n_iterations`, `regularization` and `biases`, None is the solver's default: for "mm"
    2, 30, 5 and True, for "gd" 2, 150, 0.16 and False; `learning_rate` is then 0.002.

    Parameters
    ----------
    n_factors : k, up to 64.
    n_iterations : m, sweeps over users and items.
    learning_rate : γ, the step of "gd".
    regularization : η, of both sides, or a pair (η_U, η_V).
    solver : "gd" is gradient ascent with a fixed step, the paper's Algorithm 1. "mm" climbs a quadratic
        bound of the likelihood; it has no learning rate, never goes down, and needs far fewer iterations.
        By default "gd" if a learning rate is given, else "mm".
    activation : ψ, "logistic", "probit", "cauchit" or an `Activation`.
    biases : whether scores, users and items have biases of their own beside the factors.

    Attributes
    ----------
    user_factors_, item_factors_ : arrays (scores, rows, factors)
        The paper's U and V.
    history_ : dict of lists
        "objective" from before the first iteration to after the last, "validation" after each.
    n_iter_ : int
        How many iterations the last fit had.
    classes_ : array
        The scale, ascending.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
    >>> model = bemf.BeMF(n_factors=2, random_state=0).fit(ratings)
    >>> model.user_factors_.shape
    (2, 2, 2)
    """

    n_factors: int | None = whole(default=None, low=1, high=64)
    n_iterations: int | None = whole(default=None, low=1)
    learning_rate: float | None = number(default=None, above=0)
    regularization: float | tuple[float, float] | None = anything(default=None)
    solver: str = choice("auto", "gd", "mm", default="auto")
    activation: str | Activation = anything(default="logistic")
    biases: bool | None = choice(None, False, True, default=None)

    family = "bernoulli"

    @property
    def user_factors_(self) -> NDArray[Any]:
        """U, (scores, users, factors)."""
        return self._factors("U")

    @property
    def item_factors_(self) -> NDArray[Any]:
        """V, (scores, items, factors)."""
        return self._factors("V")

    def _factors(self, name: str) -> NDArray[Any]:
        self._require_fit()
        return np.asarray(self.state_[name])[..., 1 if "offset" in self.state_ else 0 :]

    # -- hyperparameters ---------------------------------------------------------------------------

    def check_parameters(self) -> None:
        super().check_parameters()
        if self._solver() == "mm":
            if self.learning_rate is not None:
                raise ParameterError("solver='mm' has no learning_rate; leave it out, or use solver='gd'")
            if getattr(self.activation, "name", self.activation) != "logistic":
                raise ParameterError("solver='mm' needs activation='logistic', whose bound it climbs; or use 'gd'")
        activation(self.activation)
        least = "above 0 for solver='mm'" if self._solver() == "mm" else "at least 0"
        etas = self._regularization().values()
        if not all(math.isfinite(eta) and (eta > 0 or (eta == 0 and self._solver() == "gd")) for eta in etas):
            raise ParameterError(f"regularization must be finite and {least}; got {self.regularization!r}")

    def _solver(self) -> str:
        if self.solver != "auto":
            return self.solver
        plain = activation(self.activation).name == "logistic"
        return "gd" if self.learning_rate is not None or not plain else "mm"

    def _setting(self, name: str) -> Any:
        given = getattr(self, name)
        return DEFAULTS[self._solver()][name] if given is None else given

    def _regularization(self) -> dict[Side, float]:
        eta = self._setting("regularization")
        pair = tuple(eta) if isinstance(eta, tuple | list) else (eta, eta)
        if len(pair) != 2 or any(isinstance(each, bool) or not isinstance(each, Real) for each in pair):
            raise ParameterError(f"regularization must be a number or a pair of them; got {eta!r}")
        return {"user": float(pair[0]), "item": float(pair[1])}

    # -- what a model says of itself ---------------------------------------------------------------

    def block_shapes(self, sizes: Sizes) -> dict[str, tuple[int, int, int]]:
        columns = self._setting("n_factors") + bool(self._setting("biases"))
        return {"U": (sizes.scores, sizes.users, columns), "V": (sizes.scores, sizes.items, columns)}

    def fact_shapes(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        return {"offset": (sizes.scores,)}

    def facts(self, ratings: Ratings) -> Facts:
        """With biases, the log-odds of each score; the single score of a scale of one is as good as certain."""
        if not self._setting("biases"):
            return {}
        share = (ratings.score_counts + 0.5) / (len(ratings) + 0.5 * max(ratings.n_scores, 2))
        return {"offset": np.log(share / (1 - share)).astype(self.dtype)}

    def draw(self, state: State, rng: np.random.Generator) -> None:
        """Uniform on (0, 1) as in the paper; with biases small and around 0, the biases 0."""
        biased = bool(self._setting("biases"))
        for factors in (*state["U"], *state["V"]):  # one score at a time: the draws are float64 and large
            factors[...] = rng.normal(0, SPREAD, factors.shape) if biased else rng.random(factors.shape)
            if biased:
                factors[:, 0] = 0

    def iterations(self) -> int:
        return int(self._setting("n_iterations"))

    def steps(self, facts: Facts) -> Iterable[Step]:  # noqa: ARG002
        return self._sweep(KERNELS[self._solver()])

    def looks(self, facts: Facts) -> Iterable[Step]:  # noqa: ARG002
        return self._sweep("bernoulli.look")

    def fold_steps(self, side: Side, facts: Facts) -> Iterable[Step]:  # noqa: ARG002
        """Bound steps until nothing changes; of gradient steps as many as `fit` makes, which ends them early."""
        solver = self._solver()
        step = self._step(KERNELS[solver], side)
        return itertools.repeat(step, MOST_BOUND_STEPS if solver == "mm" else self.iterations())

    def _sweep(self, kernel: str) -> Iterable[Step]:
        yield self._step(kernel, "user")
        yield replace(self._step(kernel, "item"), measured=False)  # the likelihood is that of the users' half

    def _step(self, kernel: str, side: Side) -> Step:
        parameters = {"activation": self.activation, "regularization": self._regularization()[side]}
        if kernel == "bernoulli.gradient":
            parameters["learning_rate"] = self._setting("learning_rate")
        return Step(kernel, side, parameters)

    def objective(self, totals: list[NDArray[np.float64]]) -> float:
        """The log of the posterior, up to a constant: the paper's cost with the sign turned."""
        by_users, by_items = totals
        return self.side_objective("user", by_users) + self.side_objective("item", by_items)

    def side_objective(self, side: Side, totals: NDArray[np.float64]) -> float:
        log_likelihood, squares = totals
        return float(log_likelihood - 0.5 * self._regularization()[side] * squares)

    def forecast_parameters(self) -> dict[str, Any]:
        return {"activation": self.activation}

    def remedy(self) -> str:
        if self._solver() == "gd":
            return "lower learning_rate (it is multiplied by the length of a row), or use solver='mm', which has none"
        return super().remedy()
