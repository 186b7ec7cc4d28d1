"""The native engine's runs for SVD++: users one after the other, each moving the rows of all it has rated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf import _native
from bemf.engines import BothOrders, GivenState, State, Step, Tick, require
from bemf.engines.native_points import NativePointRun

if TYPE_CHECKING:
    from bemf.engines.native import NativeEngine

KERNELS = frozenset({"svdpp.look", "svdpp.descent", "svdpp.users", "svdpp.forecast", "svdpp.rank"})
MOVING = {"svdpp.look": (0, 0, 0), "svdpp.descent": (1, 1, 1), "svdpp.users": (1, 0, 0)}  # users, items, implicit


class NativeSvdppRun(NativePointRun):
    """U and V as in "biased"; Y, the implicit rows of items, and Z, their sums of each user, without biases."""

    def __init__(self, engine: NativeEngine, family: str, state: GivenState, ratings: BothOrders | None) -> None:
        super().__init__(engine, family, state, ratings)
        self._rest = {name: block for name, block in self._rest.items() if name not in ("Y", "Z")}
        self._implicit = self._padded(state["Y"][0])

    def step(self, step: Step, tick: Tick | None = None) -> NDArray[np.float64]:
        require(step.kernel, self._engine)
        assert self._ratings is not None, "placed without ratings"
        rate = step.parameters.get("learning_rate", 0.0)
        user_rates, item_rates = (self._rates(side, rate) for side in ("user", "item"))
        implicit_rates = np.where(np.arange(len(user_rates)) < 2, 0, user_rates).astype(self._dtype)
        moving = MOVING[step.kernel]
        penalty = self._penalty() if step.measured else 0.0
        errors = self._pass(
            targets=self._targets(step),
            user_rates=user_rates * moving[0],
            item_rates=item_rates * moving[1],
            implicit_rates=implicit_rates * moving[2],
            regularization=step.parameters.get("regularization", 0.0),
            moves_implicit=bool(moving[2]),
            sums=None,
            progress=tick,
        )
        return np.array([errors, penalty])

    def _pass(self, **how: Any) -> float:
        assert self._ratings is not None
        rows = self._ratings.by_user
        return _native.svdpp_sweep(
            isa=self._engine.isa,
            indptr=rows.indptr,
            indices=rows.indices,
            scores=rows.score_index,
            users=self._factors["U"],
            items=self._factors["V"],
            implicit=self._implicit,
            threads=self._threads,
            **how,
        )

    def _penalty(self) -> float:
        """Squares of all rows that a rating's step moves, once for each rating."""
        assert self._ratings is not None
        rows = self._ratings.by_user
        each = np.bincount(rows.indices, minlength=len(self._implicit))
        of_implicit = np.bincount(rows.indices, weights=np.repeat(rows.counts, rows.counts), minlength=len(each))
        blocks = {"U": rows.counts, "V": each}
        squares = sum(weights @ _squares(self.fetch_rows(name)) for name, weights in blocks.items())
        return float(squares + of_implicit @ _squares(self._implicit.reshape(len(each), -1)))

    def fetch_rows(self, name: str) -> NDArray[Any]:
        """One side's rows of biases and factors."""
        return self._plain(self._factors[name], "user" if name == "U" else "item")

    def fetch(self) -> State:
        sums = self._padded(np.zeros((len(self._factors["U"]), self._n_columns - 2)))
        if self._ratings is not None:
            nothing = np.zeros(self._implicit[0].size, dtype=self._dtype)
            rates = dict.fromkeys(("user_rates", "item_rates", "implicit_rates"), nothing)
            targets = np.zeros(256, dtype=self._dtype)
            self._pass(sums=sums, targets=targets, regularization=0.0, moves_implicit=False, progress=None, **rates)
        return super().fetch() | {"Y": [self._unpadded(self._implicit)], "Z": [self._unpadded(sums)]}

    def _padded(self, rows: NDArray[Any]) -> NDArray[Any]:
        _, n_vectors, lanes = self._factors["V"].shape
        padded = _native.factors(len(rows), n_vectors, lanes, self._dtype == np.float64)
        padded.reshape(len(rows), -1)[:, 2 : self._n_columns] = rows
        return padded

    def _unpadded(self, padded: NDArray[Any]) -> NDArray[Any]:
        return padded.reshape(len(padded), padded.shape[1] * padded.shape[2])[:, 2 : self._n_columns]


def _squares(rows: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(np.sum(rows.astype(np.float64) ** 2, axis=1))
