"""The engine for one machine: compiled kernels, all its cores."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf import _native
from bemf.activations import Activation
from bemf.engines import State, Step, Tick, available_threads, require
from bemf.errors import DataError, EngineError, ParameterError

if TYPE_CHECKING:
    from bemf.ratings import Ratings

SOLVERS = {"bernoulli.look": 0, "bernoulli.gradient": 1, "bernoulli.bound": 2}
ACTIVATIONS = {"logistic": 0, "probit": 1, "cauchit": 2}
FARTHEST = -60.0  # the offset of lanes that are no score: their probability is nothing, so they stay put


class NativeEngine:
    """Compiled half-sweeps. `$BEMF_ISA` names an instruction set to use instead of the machine's best."""

    name = "native"
    kernels = frozenset({*SOLVERS, "bernoulli.forecast"})

    def __init__(self, n_threads: int | None = None, isa: str | None = None) -> None:
        self.n_threads = available_threads(n_threads)
        self.isa = isa or os.environ.get("BEMF_ISA") or _native.instruction_sets()[0]
        if self.isa not in _native.instruction_sets():
            there = ", ".join(_native.instruction_sets())
            raise ParameterError(f"this machine has no instruction set {self.isa!r}; it has {there}")

    def zeros(self, family: str, shape: tuple[int, int, int], dtype: str) -> NDArray[Any]:
        require(f"{family}.forecast", self)
        packed = _packed_zeros(self.isa, shape, dtype)
        return _plain(packed, shape[0]) if len(packed) == 1 else np.zeros(shape, dtype)

    def place(self, family: str, state: State, ratings: Ratings | None = None) -> NativeBernoulliRun:
        require(f"{family}.forecast", self)
        return NativeBernoulliRun(self, state, ratings)


class NativeBernoulliRun:
    """Bernoulli factorizations with the scores in lanes: (blocks of scores, rows, columns, lanes)."""

    def __init__(self, engine: NativeEngine, state: State, ratings: Ratings | None) -> None:
        self._engine = engine
        self._ratings = ratings
        self._n_scores = len(state["U"])
        self._dtype = state["U"].dtype
        self._biased = "offset" in state
        self._threads = _native.Threads(engine.n_threads)
        if ratings is not None:
            self._check(ratings, state)
        self._factors = {name: self._packed(state[name]) for name in ("U", "V")}
        self._offset = self._pack_offset(state.get("offset"))
        self._plain_offset = state.get("offset")
        self._one_hot = self._packed(np.eye(self._n_scores, dtype=self._dtype)[:, :, None])[:, :, 0]

    def _check(self, ratings: Ratings, state: State) -> None:
        """The kernels trust the rows: they are checked here, once."""
        for rows, this, other in ((ratings.by_user, "U", "V"), (ratings.by_item, "V", "U")):
            if len(rows) != state[this].shape[1]:
                raise DataError(f"{len(rows):,} rows of ratings but {state[this].shape[1]:,} of factors")
            _native.check_rows(rows.indptr, rows.indices, rows.score_index, state[other].shape[1], self._n_scores)

    def step(self, step: Step, tick: Tick | None = None) -> NDArray[np.float64]:
        require(step.kernel, self._engine)
        assert self._ratings is not None, "placed without ratings"
        rows = self._ratings.by_user if step.side == "user" else self._ratings.by_item
        this, other = ("U", "V") if step.side == "user" else ("V", "U")
        totals = _native.bernoulli_sweep(
            isa=self._engine.isa,
            solver=SOLVERS[step.kernel],
            activation=_code(step.parameters["activation"]),
            biased=self._biased,
            indptr=rows.indptr,
            indices=rows.indices,
            scores=rows.score_index,
            self=self._factors[this],
            other=self._factors[other],
            offset=self._offset,
            one_hot=self._one_hot,
            learning_rate=step.parameters.get("learning_rate", 0.0),
            regularization=step.parameters.get("regularization", 0.0),
            threads=self._threads,
            progress=tick,
        )
        return np.array(totals)

    def forecast(
        self, kernel: str, users: NDArray[np.int32], items: NDArray[np.int32], parameters: Mapping[str, Any]
    ) -> NDArray[Any]:
        require(kernel, self._engine)
        out = np.empty((len(users), self._n_scores), dtype=self._dtype)
        _native.bernoulli_forecast(
            isa=self._engine.isa,
            activation=_code(parameters["activation"]),
            biased=self._biased,
            users=np.ascontiguousarray(users, dtype=np.int32),
            items=np.ascontiguousarray(items, dtype=np.int32),
            user_factors=self._factors["U"],
            item_factors=self._factors["V"],
            offset=self._offset,
            probabilities=out,
            threads=_native.Threads(self._engine.n_threads),
            progress=None,
        )
        return out

    def fetch(self) -> State:
        state = {name: _plain(packed, self._n_scores) for name, packed in self._factors.items()}
        if self._plain_offset is not None:
            state["offset"] = self._plain_offset
        return state

    def close(self) -> None:
        self._factors = {}
        self._threads = _native.Threads(1)

    def _packed(self, block: NDArray[Any]) -> NDArray[Any]:
        """The block with scores in lanes: itself, if it was made so, or a copy."""
        shape = _packed_shape(self._engine.isa, block.shape, self._dtype)
        under = block.base
        if shape[0] == 1 and isinstance(under, np.ndarray) and (under.shape, under.dtype) == (shape, block.dtype):
            return under
        packed = _packed_zeros(self._engine.isa, block.shape, self._dtype)
        for number, lanes in enumerate(packed):
            scores = block[number * lanes.shape[-1] : (number + 1) * lanes.shape[-1]]
            lanes[..., : len(scores)] = scores.transpose(1, 2, 0)
        return packed

    def _pack_offset(self, offset: NDArray[Any] | None) -> NDArray[Any]:
        packed = _packed_zeros(self._engine.isa, (self._n_scores, 1, 1), self._dtype)[:, 0, 0]
        packed[:] = FARTHEST
        packed.reshape(-1)[: self._n_scores] = 0 if offset is None else offset
        return packed


def _packed_shape(isa: str, shape: tuple[int, ...], dtype: Any) -> tuple[int, int, int, int]:
    """(scores, rows, columns) as (blocks of scores, rows, columns, lanes)."""
    n_scores, n_rows, n_columns = shape
    lanes = _native.lanes(isa, n_scores, np.dtype(dtype) == np.float64)
    return -(-n_scores // lanes), n_rows, n_columns, lanes


def _packed_zeros(isa: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    return _native.factors(*_packed_shape(isa, shape, dtype), np.dtype(dtype) == np.float64)


def _plain(packed: NDArray[Any], n_scores: int) -> NDArray[Any]:
    """A packed block as (scores, rows, columns): a view of it, if all scores are in one block of lanes."""
    n_blocks, n_rows, n_columns, lanes = packed.shape
    return packed.transpose(0, 3, 1, 2).reshape(n_blocks * lanes, n_rows, n_columns)[:n_scores]


def _code(given: str | Activation) -> int:
    name = given.name if isinstance(given, Activation) else given
    if name not in ACTIVATIONS:
        raise EngineError(
            f"the native engine knows the activations {', '.join(ACTIVATIONS)}; "
            "one of your own runs on engine='reference'"
        )
    return ACTIVATIONS[name]
