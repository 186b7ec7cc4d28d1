"""The engine for one machine: compiled kernels, all its cores."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bemf import _native
from bemf.activations import Activation
from bemf.engines import State, Step, Tick, available_threads, require
from bemf.errors import EngineError, ParameterError

if TYPE_CHECKING:
    from bemf.ratings import Ratings

SOLVERS = {"bernoulli.look": 0, "bernoulli.gradient": 1, "bernoulli.bound": 2}
ACTIVATIONS = {"logistic": 0, "probit": 1, "cauchit": 2}
ALIGNMENT = 64
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
        self._lanes = _native.lanes(engine.isa, self._n_scores, self._dtype == np.float64)
        self._biased = "offset" in state
        self._factors = {name: self._pack(state[name]) for name in ("U", "V")}
        self._offset = self._pack_offset(state.get("offset"))
        self._plain_offset = state.get("offset")
        self._one_hot = self._pack(np.eye(self._n_scores, dtype=self._dtype)[:, :, None])[..., 0, :]

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
            n_threads=self._engine.n_threads,
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
            n_threads=self._engine.n_threads,
            progress=None,
        )
        return out

    def fetch(self) -> State:
        state = {name: self._unpack(block) for name, block in self._factors.items()}
        if self._plain_offset is not None:
            state["offset"] = self._plain_offset.copy()
        return state

    def close(self) -> None:
        self._factors = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _pack(self, plain: NDArray[Any]) -> NDArray[Any]:
        """(scores, rows, columns) → (blocks, rows, columns, lanes), the last lanes of the last block empty."""
        n_scores, n_rows, n_columns = plain.shape
        n_blocks = -(-n_scores // self._lanes)
        packed = _aligned_zeros((n_blocks, n_rows, n_columns, self._lanes), self._dtype)
        for block, lanes in enumerate(self._score_ranges()):
            packed[block, ..., : lanes.stop - lanes.start] = plain[lanes].transpose(1, 2, 0)
        return packed

    def _unpack(self, packed: NDArray[Any]) -> NDArray[Any]:
        plain = np.empty((self._n_scores, *packed.shape[1:3]), dtype=self._dtype)
        for block, lanes in enumerate(self._score_ranges()):
            plain[lanes] = packed[block, ..., : lanes.stop - lanes.start].transpose(2, 0, 1)
        return plain

    def _pack_offset(self, offset: NDArray[Any] | None) -> NDArray[Any]:
        packed = _aligned_zeros((-(-self._n_scores // self._lanes), self._lanes), self._dtype)
        packed[:] = FARTHEST
        packed.reshape(-1)[: self._n_scores] = 0 if offset is None else offset
        return packed

    def _score_ranges(self) -> list[slice]:
        starts = range(0, self._n_scores, self._lanes)
        return [slice(start, min(start + self._lanes, self._n_scores)) for start in starts]


def _aligned_zeros(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(n_bytes + ALIGNMENT, dtype=np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return np.asarray(memory[start : start + n_bytes].view(dtype).reshape(shape))


def _code(given: str | Activation) -> int:
    name = given.name if isinstance(given, Activation) else given
    if name not in ACTIVATIONS:
        raise EngineError(
            f"the native engine knows the activations {', '.join(ACTIVATIONS)}; "
            "one of your own runs on engine='reference'"
        )
    return ACTIVATIONS[name]
