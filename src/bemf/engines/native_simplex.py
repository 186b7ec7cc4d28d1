"""The native engine's runs for factorizations whose D products make one distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf import _native
from bemf.engines import BothOrders, GivenState, State, Step, Tick, require
from bemf.engines.ranking import RanksByForecasts
from bemf.errors import DataError

if TYPE_CHECKING:
    from bemf.engines.native import NativeEngine

KERNELS = frozenset(
    f"{family}.{name}" for family in ("softmax", "dirichlet") for name in ("look", "gradient", "forecast", "rank")
)


class NativeSimplexRun(RanksByForecasts):
    """U and V with rows as (columns, scores), the scores padded to whole vectors."""

    def __init__(self, engine: NativeEngine, family: str, state: GivenState, ratings: BothOrders | None) -> None:
        self._engine, self._ratings, self._dirichlet = engine, ratings, family == "dirichlet"
        self._n_scores = len(state["U"])
        self._dtype = state["U"][0].dtype
        self._threads = _native.Threads(engine.n_threads)
        if ratings is not None:
            self._check(ratings, state)
        self._factors = {name: self._packed(state[name]) for name in ("U", "V")}

    def _check(self, ratings: BothOrders, state: GivenState) -> None:
        for rows, this, other in ((ratings.by_user, "U", "V"), (ratings.by_item, "V", "U")):
            if len(rows) != len(state[this][0]):
                raise DataError(f"{len(rows):,} rows of ratings but {len(state[this][0]):,} of factors")
            _native.check_rows(rows.indptr, rows.indices, rows.score_index, len(state[other][0]), self._n_scores)

    def step(self, step: Step, tick: Tick | None = None) -> NDArray[np.float64]:
        require(step.kernel, self._engine)
        assert self._ratings is not None, "placed without ratings"
        rows = self._ratings.by_user if step.side == "user" else self._ratings.by_item
        this, other = ("U", "V") if step.side == "user" else ("V", "U")
        hit = step.parameters.get("hit", 1.0)
        totals = _native.simplex_sweep(
            isa=self._engine.isa,
            dirichlet=self._dirichlet,
            moves=step.kernel.endswith("gradient"),
            n_scores=self._n_scores,
            indptr=rows.indptr,
            indices=rows.indices,
            scores=rows.score_index,
            self=self._factors[this],
            other=self._factors[other],
            learning_rate=step.parameters.get("learning_rate", 0.0),
            regularization=step.parameters.get("regularization", 0.0),
            log_hit=float(np.log(hit)),
            log_miss=float(np.log((1 - hit) / max(self._n_scores - 1, 1))) if self._dirichlet else 0.0,
            threads=self._threads,
            progress=tick,
        )
        return np.array(totals)

    def forecast(
        self,
        kernel: str,
        users: NDArray[np.int32],
        items: NDArray[np.int32],
        parameters: Mapping[str, Any],  # noqa: ARG002
    ) -> NDArray[Any]:
        require(kernel, self._engine)
        out = np.empty((len(users), self._n_scores), dtype=self._dtype)
        _native.simplex_forecast(
            isa=self._engine.isa,
            dirichlet=self._dirichlet,
            users=np.ascontiguousarray(users, dtype=np.int32),
            items=np.ascontiguousarray(items, dtype=np.int32),
            user_factors=self._factors["U"],
            item_factors=self._factors["V"],
            probabilities=out,
            threads=_native.Threads(self._engine.n_threads),
            progress=None,
        )
        return out

    def fetch(self) -> State:
        return {
            name: [packed[:, :, score] for score in range(self._n_scores)] for name, packed in self._factors.items()
        }

    def close(self) -> None:
        self._factors = {}
        self._threads = _native.Threads(1)

    def _packed(self, block: Any) -> NDArray[Any]:
        exact = self._dtype == np.float64
        lanes = _native.point_lanes(self._engine.isa, self._n_scores, exact)
        n_rows, n_columns = block[0].shape
        packed = _native.factors(n_rows, n_columns, -(-self._n_scores // lanes) * lanes, exact)
        for score, rows in enumerate(block):
            packed[:, :, score] = rows
        return packed
