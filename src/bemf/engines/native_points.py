"""The native engine's runs for factorizations that predict points: rows padded to whole vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf import _native
from bemf.engines import BothOrders, GivenState, Side, State, Step, Tick, require
from bemf.engines.ranking import RanksByForecasts
from bemf.errors import DataError

if TYPE_CHECKING:
    from bemf.engines.native import NativeEngine

SOLVERS = {"look": 0, "descent": 1, "multiplication": 2}
KERNELS = frozenset({
    *("points.look", "points.descent", "points.multiplication", "points.forecast", "points.rank"),
    *("biased.look", "biased.descent", "biased.forecast", "biased.rank"),
})  # fmt: skip
ONES: dict[Side, int] = {"user": 1, "item": 0}  # where a side's ones are, if there are biases: opposite the other's


class NativePointRun(RanksByForecasts):
    """U and V as (1, rows, columns). The family "biased" has biases in column 0."""

    def __init__(self, engine: NativeEngine, family: str, state: GivenState, ratings: BothOrders | None) -> None:
        self._engine, self._ratings = engine, ratings
        self._biased = family != "points"
        self._dtype = state["U"][0].dtype
        self._threads = _native.Threads(engine.n_threads)
        self._n_columns = state["U"][0].shape[1] + self._biased
        self._n_targets = 0  # that the ratings need
        if ratings is not None:
            self._check(ratings, state)
        self._factors = {"U": self._packed(state["U"][0], "user"), "V": self._packed(state["V"][0], "item")}
        self._rest = {name: block for name, block in state.items() if name not in self._factors}

    def _check(self, ratings: BothOrders, state: GivenState) -> None:
        for rows, this, other in ((ratings.by_user, "U", "V"), (ratings.by_item, "V", "U")):
            if len(rows) != len(state[this][0]):
                raise DataError(f"{len(rows):,} rows of ratings but {len(state[this][0]):,} of factors")
            _native.check_rows(rows.indptr, rows.indices, rows.score_index, len(state[other][0]), 256)
            self._n_targets = max(self._n_targets, int(rows.score_index.max(initial=0)) + 1)

    def step(self, step: Step, tick: Tick | None = None) -> NDArray[np.float64]:
        require(step.kernel, self._engine)
        assert self._ratings is not None, "placed without ratings"
        rows = self._ratings.by_user if step.side == "user" else self._ratings.by_item
        this, other = ("U", "V") if step.side == "user" else ("V", "U")
        totals = _native.point_sweep(
            isa=self._engine.isa,
            solver=SOLVERS[step.kernel.partition(".")[2]],
            measured=step.measured,
            indptr=rows.indptr,
            indices=rows.indices,
            scores=rows.score_index,
            self=self._factors[this],
            other=self._factors[other],
            targets=self._targets(step),
            rates=self._rates(step.side, step.parameters.get("learning_rate", 1.0)),
            regularization=step.parameters.get("regularization", 0.0),
            threads=self._threads,
            progress=tick,
        )
        return np.array(totals)

    def _targets(self, step: Step) -> NDArray[Any]:
        targets = step.parameters["targets"]
        if len(targets) < self._n_targets:
            raise DataError(f"{len(targets):,} targets but ratings of {self._n_targets:,} scores")
        return np.asarray(targets, dtype=self._dtype)

    def _rates(self, side: Side, learning_rate: float) -> NDArray[Any]:
        """The learning rate of each column; ones and padding stay as they are."""
        _, n_vectors, lanes = self._factors["U"].shape
        rates = np.zeros(n_vectors * lanes, dtype=self._dtype)
        rates[: self._n_columns] = learning_rate
        if self._biased:
            rates[ONES[side]] = 0
        return rates

    def forecast(
        self,
        kernel: str,
        users: NDArray[np.int32],
        items: NDArray[np.int32],
        parameters: Mapping[str, Any],  # noqa: ARG002
    ) -> NDArray[Any]:
        require(kernel, self._engine)
        out = np.empty(len(users), dtype=self._dtype)
        _native.point_forecast(
            isa=self._engine.isa,
            users=np.ascontiguousarray(users, dtype=np.int32),
            items=np.ascontiguousarray(items, dtype=np.int32),
            user_factors=self._factors["U"],
            item_factors=self._factors["V"],
            predictions=out,
            threads=_native.Threads(self._engine.n_threads),
            progress=None,
        )
        return out

    def fetch(self) -> State:
        sides: dict[str, Side] = {"U": "user", "V": "item"}
        return {name: [self._plain(self._factors[name], side)] for name, side in sides.items()} | self._rest

    def close(self) -> None:
        self._factors = {}
        self._threads = _native.Threads(1)

    def _packed(self, rows: NDArray[Any], side: Side) -> NDArray[Any]:
        exact = self._dtype == np.float64
        lanes = _native.point_lanes(self._engine.isa, self._n_columns, exact)
        packed = _native.factors(len(rows), -(-self._n_columns // lanes), lanes, exact)
        flat = packed.reshape(len(rows), -1)
        flat[:, self._places(side)] = rows
        if self._biased:
            flat[:, ONES[side]] = 1
        return packed

    def _plain(self, packed: NDArray[Any], side: Side) -> NDArray[Any]:
        return packed.reshape(len(packed), packed.shape[1] * packed.shape[2])[:, self._places(side)]

    def _places(self, side: Side) -> NDArray[np.intp]:
        """Where the columns are in a padded row: not where the ones are."""
        places = np.arange(self._n_columns)
        return places[places != ONES[side]] if self._biased else places
