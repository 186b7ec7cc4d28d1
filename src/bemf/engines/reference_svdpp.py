"""The NumPy twin of SVD++, as Koren writes it: each rating's step goes through all that its user has rated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf.engines import BothOrders, GivenState, State, Step, Tick, require
from bemf.engines.reference_points import ReferencePointRun

if TYPE_CHECKING:
    from bemf.engines.reference import ReferenceEngine

Floats = NDArray[np.float64]
KERNELS = frozenset({"svdpp.look", "svdpp.descent", "svdpp.users", "svdpp.forecast", "svdpp.rank"})


class ReferenceSvdppRun(ReferencePointRun):
    """U and V as in "biased"; Y, the implicit rows of items, and Z, their sums of each user."""

    def __init__(self, engine: ReferenceEngine, family: str, state: GivenState, ratings: BothOrders | None) -> None:
        super().__init__(engine, family, state, ratings)
        self._rest = {name: block for name, block in self._rest.items() if name not in ("Y", "Z")}
        self._implicit = np.array(state["Y"], dtype=np.float64)[0]

    def step(self, step: Step, tick: Tick | None = None) -> Floats:
        require(step.kernel, self._engine)
        assert self._ratings is not None, "placed without ratings"
        rows, penalty, errors = self._ratings.by_user, self._penalty() if step.measured else 0.0, 0.0
        for user in np.flatnonzero(rows.counts > 0).tolist():
            mine = slice(*rows.indptr[user : user + 2])
            targets = step.parameters["targets"][rows.score_index[mine]]
            for item, target in zip(rows.indices[mine], targets, strict=True):
                errors += self._rating(user, item, rows.of(user), target, step) ** 2
        if tick:
            tick(1.0)
        return np.array([-0.5 * errors, penalty])

    def _rating(self, user: Any, item: Any, seen: NDArray[np.int32], target: float, step: Step) -> float:
        """One rating's step; the error before it."""
        u, v, y = self._factors["U"][user], self._factors["V"][item], self._implicit
        w = u[1:] + y[seen].sum(axis=0) / np.sqrt(len(seen))
        error = float(target - (u[0] + v[0] + w @ v[1:]))
        if step.kernel == "svdpp.look":
            return error
        rate, penalty = step.parameters["learning_rate"], step.parameters["regularization"]
        before = v.copy()
        if step.kernel == "svdpp.descent":
            v += rate * (error * np.append(1.0, w) - penalty * v)
            y[seen] += rate * (error * before[1:] / np.sqrt(len(seen)) - penalty * y[seen])
        u += rate * (error * np.append(1.0, before[1:]) - penalty * u)
        return error

    def _penalty(self) -> float:
        """Squares of all rows that a rating's step moves, once for each rating."""
        assert self._ratings is not None
        rows = self._ratings.by_user
        U, V = self._factors["U"], self._factors["V"]
        total = sum(
            np.sum(U[user] ** 2) + np.sum(V[item] ** 2)
            for user, item in zip(rows.row_of_each(), rows.indices, strict=True)
        )
        for user, count in enumerate(rows.counts):
            total += count * np.sum(self._implicit[rows.of(user)] ** 2)
        return float(total)

    def fetch(self) -> State:
        state = super().fetch() | {"Y": self._implicit.astype(self._dtype)[None]}
        if self._ratings is None:
            return state
        rows = self._ratings.by_user
        sums = [
            self._implicit[rows.of(user)].sum(axis=0) / max(np.sqrt(rows.counts[user]), 1) for user in range(len(rows))
        ]
        return state | {"Z": np.array(sums, dtype=self._dtype)[None]}
