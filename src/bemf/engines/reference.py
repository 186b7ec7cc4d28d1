"""The engine to check the others by: plain NumPy, float64, any activation. Slow, short, and right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf.activations import Activation, activation
from bemf.engines import (
    Block,
    BothOrders,
    GivenState,
    Run,
    State,
    Step,
    Tick,
    reference_points,
    reference_simplex,
    reference_svdpp,
    require,
)
from bemf.engines.ranking import RanksByForecasts
from bemf.engines.reference_points import ReferencePointRun
from bemf.engines.reference_simplex import ReferenceSimplexRun
from bemf.engines.reference_svdpp import ReferenceSvdppRun

if TYPE_CHECKING:
    from bemf.rows import Rows

Floats = NDArray[np.float64]


RUNS: dict[str, Callable[..., Run]] = {
    "points": ReferencePointRun,
    "biased": ReferencePointRun,
    "svdpp": ReferenceSvdppRun,
    "softmax": ReferenceSimplexRun,
    "dirichlet": ReferenceSimplexRun,
}


class ReferenceEngine:
    """Half-sweeps in NumPy. `n_threads` is taken and means nothing here: there is one."""

    name = "reference"
    kernels = (
        reference_points.KERNELS
        | reference_svdpp.KERNELS
        | reference_simplex.KERNELS
        | {*("bernoulli.look", "bernoulli.gradient", "bernoulli.bound", "bernoulli.forecast", "bernoulli.rank")}
    )

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads

    def zeros(self, family: str, shape: tuple[int, int, int], dtype: str) -> Block:  # noqa: ARG002
        return np.zeros(shape, dtype)

    def place(self, family: str, state: GivenState, ratings: BothOrders | None = None) -> Run:
        require(f"{family}.forecast", self)
        if family == "bernoulli":
            return ReferenceRun(self, state, ratings)
        return RUNS[family](self, family, state, ratings)


class ReferenceRun(RanksByForecasts):
    """Bernoulli factorizations, one for each score: blocks U and V, and `offset` where there are biases."""

    def __init__(self, engine: ReferenceEngine, state: GivenState, ratings: BothOrders | None) -> None:
        self._engine = engine
        self._dtypes = {name: np.asarray(block).dtype for name, block in state.items()}
        self._state = {name: np.array(block, dtype=np.float64) for name, block in state.items()}
        self._ratings = ratings

    def step(self, step: Step, tick: Tick | None = None) -> Floats:
        require(step.kernel, self._engine)
        assert self._ratings is not None, "placed without ratings"
        rows = self._ratings.by_user if step.side == "user" else self._ratings.by_item
        this, other = ("U", "V") if step.side == "user" else ("V", "U")
        psi = activation(step.parameters["activation"])
        sums = bernoulli_sums(self._state[this], self._state[other], rows, psi, self._state.get("offset"))
        rated = rows.counts > 0
        squares = float(np.sum(self._state[this][:, rated] ** 2))
        if step.kernel == "bernoulli.gradient":
            bernoulli_gradient(self._state[this], sums, rated, step.parameters)
        elif step.kernel == "bernoulli.bound":
            bernoulli_bound(self._state[this], sums, rated, step.parameters)
        if tick:
            tick(1.0)
        return np.array([sums.log_likelihood if step.measured else 0.0, squares])

    def forecast(
        self, kernel: str, users: NDArray[np.int32], items: NDArray[np.int32], parameters: Mapping[str, Any]
    ) -> Floats:
        require(kernel, self._engine)
        psi = activation(parameters["activation"])
        known = (users >= 0) & (items >= 0)
        out = np.full((len(users), len(self._state["U"])), np.nan)
        product = _product(self._state["U"], self._state["V"], users[known], items[known], self._state.get("offset"))
        values = psi.value(product)
        total = values.sum(axis=0)
        out[known] = np.where(total > 0, values / np.where(total > 0, total, 1), 1 / len(values)).T
        return out

    def fetch(self) -> State:
        return {name: block.astype(self._dtypes[name]) for name, block in self._state.items()}

    def close(self) -> None:
        self._state = {}


class BernoulliSums:
    """What a half-sweep adds up for each row, and the absolute terms of the same, by which to judge rounding."""

    def __init__(self, gradient: Floats, curvature: Floats, absolute: Floats, log_likelihood: float) -> None:
        self.gradient = gradient  # (scores, rows, columns)
        self.curvature = curvature  # (scores, rows, columns, columns)
        self.absolute = absolute  # of the gradient's terms
        self.log_likelihood = log_likelihood


def bernoulli_sums(this: Floats, other: Floats, rows: Rows, psi: Activation, offset: Floats | None) -> BernoulliSums:
    """Gradient and curvature of every row's log-likelihood at the current factors."""
    row, column = rows.row_of_each(), rows.indices
    hit = np.arange(len(this))[:, None] == rows.score_index[None, :]
    x = _product(this, other, row, column, offset)
    value, complement, slope = psi.value(x), psi.complement(x), psi.derivative(x)
    error = np.where(hit, slope / value, -slope / complement)
    features = other[:, column].copy()
    if offset is not None:
        features[:, :, 0] = 1
    terms = error[:, :, None] * features
    with np.errstate(invalid="ignore", divide="ignore"):
        weight = np.where(np.abs(x) < 1e-4, 0.25 - x**2 / 48, np.tanh(x / 2) / (2 * x))
    outer = weight[:, :, None, None] * features[:, :, :, None] * features[:, :, None, :]
    return BernoulliSums(
        _by_row(terms, rows),
        _by_row(outer, rows),
        _by_row(np.abs(terms), rows),
        float(np.sum(np.log(np.where(hit, value, complement)))),
    )


def bernoulli_gradient(this: Floats, sums: BernoulliSums, rated: NDArray[np.bool_], p: Mapping[str, Any]) -> None:
    """One full-gradient step (Algorithm 1)."""
    step = p["learning_rate"] * (sums.gradient - p["regularization"] * this)
    this[:, rated] += step[:, rated]


def bernoulli_bound(this: Floats, sums: BernoulliSums, rated: NDArray[np.bool_], p: Mapping[str, Any]) -> None:
    """To the top of the quadratic that touches every row's objective from below."""
    eta = p["regularization"]
    hessian = sums.curvature[:, rated] + eta * np.eye(this.shape[2])
    uphill = sums.gradient[:, rated] - eta * this[:, rated]
    this[:, rated] += np.linalg.solve(hessian, uphill[..., None])[..., 0]


def _product(this: Floats, other: Floats, row: NDArray[Any], column: NDArray[Any], offset: Floats | None) -> Floats:
    """The argument of ψ for pairs of rows, (scores, pairs); with biases they are column 0."""
    mine, theirs = this[:, row], other[:, column]
    if offset is None:
        return np.asarray(np.einsum("dpk,dpk->dp", mine, theirs))
    products = np.einsum("dpk,dpk->dp", mine[..., 1:], theirs[..., 1:])
    return np.asarray(offset[:, None] + mine[:, :, 0] + theirs[:, :, 0] + products)


def _by_row(terms: Floats, rows: Rows) -> Floats:
    """Sums of (scores, ratings, …) over each row's ratings."""
    out = np.zeros((len(terms), len(rows), *terms.shape[2:]))
    rated = rows.counts > 0
    out[:, rated] = np.add.reduceat(terms, rows.indptr[:-1][rated], axis=1)
    return out
