"""The NumPy twins of the kernels whose D products make one distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf.engines import BothOrders, GivenState, State, Step, Tick, require
from bemf.engines.ranking import RanksByForecasts

if TYPE_CHECKING:
    from bemf.engines.reference import ReferenceEngine

Floats = NDArray[np.float64]
KERNELS = frozenset(
    f"{family}.{name}" for family in ("softmax", "dirichlet") for name in ("look", "gradient", "forecast", "rank")
)
log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


class ReferenceSimplexRun(RanksByForecasts):
    """U and V, (scores, rows, columns)."""

    def __init__(self, engine: ReferenceEngine, family: str, state: GivenState, ratings: BothOrders | None) -> None:
        self._engine, self._ratings, self._dirichlet = engine, ratings, family == "dirichlet"
        self._dtype = np.asarray(state["U"]).dtype
        self._factors = {name: np.array(state[name], dtype=np.float64) for name in ("U", "V")}

    def step(self, step: Step, tick: Tick | None = None) -> Floats:
        require(step.kernel, self._engine)
        assert self._ratings is not None, "placed without ratings"
        rows = self._ratings.by_user if step.side == "user" else self._ratings.by_item
        this, other = (self._factors[name] for name in (("U", "V") if step.side == "user" else ("V", "U")))
        row, rated = rows.row_of_each(), rows.counts > 0
        x = np.einsum("dpk,dpk->pd", this[:, row], other[:, rows.indices])
        likelihood = dirichlet_likelihood if self._dirichlet else softmax_likelihood
        value, error = likelihood(x, rows.score_index, step.parameters.get("hit", 1.0))
        totals = np.array([value, np.sum(this[:, rated] ** 2)])
        if step.kernel.endswith("gradient"):
            gradient = np.zeros_like(this)
            for mine, errors, others in zip(gradient, error.T, other, strict=True):  # of each score
                np.add.at(mine, row, errors[:, None] * others[rows.indices])
            move = step.parameters["learning_rate"] * (gradient - step.parameters["regularization"] * this)
            this[:, rated] += move[:, rated]
        if tick:
            tick(1.0)
        return totals

    def forecast(
        self,
        kernel: str,
        users: NDArray[np.int32],
        items: NDArray[np.int32],
        parameters: Mapping[str, Any],  # noqa: ARG002
    ) -> Floats:
        require(kernel, self._engine)
        known = (users >= 0) & (items >= 0)
        x = np.einsum("dpk,dpk->pd", self._factors["U"][:, users], self._factors["V"][:, items])
        weights = 1 / (1 + np.exp(-x)) if self._dirichlet else np.exp(x - x.max(axis=1, keepdims=True, initial=0))
        return np.where(known[:, None], weights / weights.sum(axis=1, keepdims=True), np.nan)

    def fetch(self) -> State:
        return {name: block.astype(self._dtype) for name, block in self._factors.items()}

    def close(self) -> None:
        self._factors = {}


def softmax_likelihood(x: Floats, score: NDArray[np.uint8], hit: float) -> tuple[float, Floats]:  # noqa: ARG001
    """The log-likelihood of ratings by the softmax of products, and its derivatives."""
    weights = np.exp(x - x.max(axis=1, keepdims=True, initial=0))
    p = weights / weights.sum(axis=1, keepdims=True)
    came = np.arange(x.shape[1]) == score[:, None]
    return float(np.log(p[came]).sum()), came - p


def dirichlet_likelihood(x: Floats, score: NDArray[np.uint8], hit: float) -> tuple[float, Floats]:
    """The log-density of a Dirichlet distribution at distributions that give the rating's score most."""
    alpha, n_scores = 1 / (1 + np.exp(-x)), x.shape[1]
    with np.errstate(divide="ignore"):  # a scale of one score
        target = np.log(np.where(np.arange(n_scores) == score[:, None], hit, (1 - hit) / max(n_scores - 1, 1)))
    total = alpha.sum(axis=1, keepdims=True)
    value = log_gamma(total).sum() - log_gamma(alpha).sum() + ((alpha - 1) * target).sum()
    return float(value), alpha * (1 - alpha) * (digamma(total) - digamma(alpha) + target)


def digamma(x: Floats) -> Floats:
    """The derivative of log gamma, by going up to where its series converges."""
    x, out = np.array(x, dtype=np.float64), np.zeros(np.shape(x))
    for _ in range(10):
        out -= 1 / x
        x += 1
    series = 1 / 12 - (1 / 120 - (1 / 252 - (1 / 240 - 1 / 132 / x**2) / x**2) / x**2) / x**2
    return out + np.log(x) - 0.5 / x - series / x**2
