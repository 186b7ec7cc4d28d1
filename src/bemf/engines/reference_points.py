"""The NumPy twins of the kernels that predict points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf.engines import BothOrders, GivenState, State, Step, Tick, require
from bemf.engines.ranking import RanksByForecasts

if TYPE_CHECKING:
    from bemf.engines.reference import ReferenceEngine

Floats = NDArray[np.float64]
KERNELS = frozenset({
    *("points.look", "points.descent", "points.multiplication", "points.forecast", "points.rank"),
    *("biased.look", "biased.descent", "biased.forecast", "biased.rank"),
})  # fmt: skip


class ReferencePointRun(RanksByForecasts):
    """U and V as (1, rows, columns). The family "biased" has biases in column 0."""

    def __init__(self, engine: ReferenceEngine, family: str, state: GivenState, ratings: BothOrders | None) -> None:
        self._engine, self._ratings, self._biased = engine, ratings, family == "biased"
        self._dtype = np.asarray(state["U"]).dtype
        self._factors = {name: np.array(state[name], dtype=np.float64)[0] for name in ("U", "V")}
        self._rest = {name: block for name, block in state.items() if name not in self._factors}

    def step(self, step: Step, tick: Tick | None = None) -> Floats:
        require(step.kernel, self._engine)
        assert self._ratings is not None, "placed without ratings"
        rows = self._ratings.by_user if step.side == "user" else self._ratings.by_item
        this, other = (self._factors[name] for name in (("U", "V") if step.side == "user" else ("V", "U")))
        target, rated = step.parameters["targets"][rows.score_index], rows.counts > 0
        error = target - point_products(this[rows.row_of_each()], other[rows.indices], self._biased)
        totals = np.array([-0.5 * np.sum(error**2) * step.measured, np.sum(this[rated] ** 2)])
        for row in np.flatnonzero(rated):
            mine = slice(*rows.indptr[row : row + 2])
            if step.kernel.endswith("descent"):
                self._descend(this[row], other[rows.indices[mine]], target[mine], step.parameters)
            elif step.kernel.endswith("multiplication"):
                others = other[rows.indices[mine]]
                this[row] *= (target[mine] @ others) / (others @ this[row] @ others + 1e-10)
        if tick:
            tick(1.0)
        return totals

    def _descend(self, row: Floats, others: Floats, targets: Floats, parameters: Mapping[str, Any]) -> None:
        """A step for each rating, one after the other, all columns with the same error."""
        for other, target in zip(others, targets, strict=True):
            error = target - point_products(row, other, self._biased)
            gradient = error * (np.append(1.0, other[1:]) if self._biased else other)
            row += parameters["learning_rate"] * (gradient - parameters["regularization"] * row)

    def forecast(
        self,
        kernel: str,
        users: NDArray[np.int32],
        items: NDArray[np.int32],
        parameters: Mapping[str, Any],  # noqa: ARG002
    ) -> Floats:
        require(kernel, self._engine)
        known = (users >= 0) & (items >= 0)
        products = point_products(self._factors["U"][users], self._factors["V"][items], self._biased)
        return np.where(known, products, np.nan)

    def fetch(self) -> State:
        return {name: block.astype(self._dtype)[None] for name, block in self._factors.items()} | self._rest

    def close(self) -> None:
        self._factors = {}


def point_products(this: Floats, other: Floats, biased: bool) -> Any:
    """What rows of both sides predict together; with biases they are column 0."""
    if not biased:
        return np.sum(this * other, axis=-1)
    return this[..., 0] + other[..., 0] + np.sum(this[..., 1:] * other[..., 1:], axis=-1)
