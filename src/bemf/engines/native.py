"""The engine for one machine: compiled kernels, all its cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bemf import _native
from bemf.activations import Activation
from bemf.engines import (
    Block,
    BothOrders,
    GivenState,
    Run,
    State,
    Step,
    Tick,
    Wish,
    available_threads,
    native_points,
    native_simplex,
    native_svdpp,
    require,
)
from bemf.engines.native_points import NativePointRun
from bemf.engines.native_simplex import NativeSimplexRun
from bemf.engines.native_svdpp import NativeSvdppRun
from bemf.errors import DataError, EngineError, ParameterError

SOLVERS = {"bernoulli.look": 0, "bernoulli.gradient": 1, "bernoulli.bound": 2}
ACTIVATIONS = {"logistic": 0, "probit": 1, "cauchit": 2}


RUNS: dict[str, Callable[..., Run]] = {
    "points": NativePointRun,
    "biased": NativePointRun,
    "svdpp": NativeSvdppRun,
    "softmax": NativeSimplexRun,
    "dirichlet": NativeSimplexRun,
}


class NativeEngine:
    """Compiled half-sweeps. `$BEMF_ISA` names an instruction set to use instead of the machine's best."""

    name = "native"
    kernels = (
        native_points.KERNELS
        | native_svdpp.KERNELS
        | native_simplex.KERNELS
        | {*SOLVERS, "bernoulli.forecast", "bernoulli.rank"}
    )

    def __init__(self, n_threads: int | None = None, isa: str | None = None) -> None:
        self.n_threads = available_threads(n_threads)
        self.isa = isa or os.environ.get("BEMF_ISA") or _native.instruction_sets()[0]
        if self.isa not in _native.instruction_sets():
            there = ", ".join(_native.instruction_sets())
            raise ParameterError(f"this machine has no instruction set {self.isa!r}; it has {there}")

    def zeros(self, family: str, shape: tuple[int, int, int], dtype: str) -> Block:
        require(f"{family}.forecast", self)
        if family != "bernoulli":
            return np.zeros(shape, dtype)
        return _plain(_packed_zeros(self.isa, shape, dtype), shape[0])

    def place(self, family: str, state: GivenState, ratings: BothOrders | None = None) -> Run:
        require(f"{family}.forecast", self)
        if family == "bernoulli":
            return NativeBernoulliRun(self, state, ratings)
        return RUNS[family](self, family, state, ratings)


class NativeBernoulliRun:
    """Bernoulli factorizations with the scores in lanes: a (rows, columns, lanes) array for each block of scores."""

    def __init__(self, engine: NativeEngine, state: GivenState, ratings: BothOrders | None) -> None:
        self._engine = engine
        self._ratings = ratings
        self._n_scores = len(state["U"])
        self._dtype = state["U"][0].dtype
        self._threads = _native.Threads(engine.n_threads)
        if ratings is not None:
            self._check(ratings, state)
        self._factors = {name: self._packed(state[name]) for name in ("U", "V")}
        self._offset = np.ascontiguousarray(state["offset"]) if "offset" in state else None

    def _check(self, ratings: BothOrders, state: GivenState) -> None:
        """The kernels trust the rows: they are checked here, once."""
        for rows, this, other in ((ratings.by_user, "U", "V"), (ratings.by_item, "V", "U")):
            n_this, n_other = len(state[this][0]), len(state[other][0])
            if len(rows) != n_this:
                raise DataError(f"{len(rows):,} rows of ratings but {n_this:,} of factors")
            _native.check_rows(rows.indptr, rows.indices, rows.score_index, n_other, self._n_scores)

    def step(self, step: Step, tick: Tick | None = None) -> NDArray[np.float64]:
        require(step.kernel, self._engine)
        assert self._ratings is not None, "placed without ratings"
        rows = self._ratings.by_user if step.side == "user" else self._ratings.by_item
        this, other = ("U", "V") if step.side == "user" else ("V", "U")
        totals = _native.bernoulli_sweep(
            isa=self._engine.isa,
            solver=SOLVERS[step.kernel],
            activation=_code(step.parameters["activation"]),
            measured=step.measured,
            n_scores=self._n_scores,
            indptr=rows.indptr,
            indices=rows.indices,
            scores=rows.score_index,
            self=self._factors[this],
            other=self._factors[other],
            offset=self._offset,
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

    def rank(
        self,
        kernel: str,
        users: NDArray[np.int32],
        wish: Wish,
        parameters: Mapping[str, Any],
        tick: Tick | None = None,
    ) -> NDArray[np.int32]:
        require(kernel, self._engine)
        out = np.empty((len(users), wish.n), dtype=np.int32)
        _native.bernoulli_rank(
            isa=self._engine.isa,
            activation=_code(parameters["activation"]),
            users=np.ascontiguousarray(users, dtype=np.int32),
            candidates=np.ascontiguousarray(wish.candidates, dtype=np.int32),
            user_factors=self._factors["U"],
            item_factors=self._factors["V"],
            offset=self._offset,
            worths=wish.worths.astype(self._dtype),
            seen_indptr=wish.seen.indptr if wish.seen else None,
            seen=wish.seen.indices if wish.seen else None,
            min_reliability=wish.min_reliability,
            min_worth=wish.min_worth,
            out=out,
            threads=_native.Threads(self._engine.n_threads),
            progress=tick,
        )
        return out

    def fetch(self) -> State:
        state: State = {name: _plain(packed, self._n_scores) for name, packed in self._factors.items()}
        return state if self._offset is None else state | {"offset": self._offset}

    def close(self) -> None:
        self._factors = {}
        self._threads = _native.Threads(1)

    def _packed(self, block: Block) -> list[NDArray[Any]]:
        """The block with scores in lanes: the arrays under it, if it was made so, or a copy."""
        shape = (self._n_scores, *block[0].shape)
        under = _under(block, _native.blocks(self._engine.isa, self._n_scores, self._dtype == np.float64))
        if under is not None:
            return under
        packed = _packed_zeros(self._engine.isa, shape, self._dtype)
        for plain, given in zip(_plain(packed, self._n_scores), block, strict=True):
            plain[...] = given
        return packed


def _packed_zeros(isa: str, shape: tuple[int, int, int], dtype: Any) -> list[NDArray[Any]]:
    n_scores, n_rows, n_columns = shape
    exact = np.dtype(dtype) == np.float64
    return [_native.factors(n_rows, n_columns, lanes, exact) for lanes in _native.blocks(isa, n_scores, exact)]


def _plain(packed: list[NDArray[Any]], n_scores: int) -> list[NDArray[Any]]:
    """Each score's (rows, columns), as views."""
    return [block[..., lane] for block in packed for lane in range(block.shape[-1])][:n_scores]


def _under(block: Block, widths: list[int]) -> list[NDArray[Any]] | None:
    """The arrays of lanes that a block's scores are views of, if it is so."""
    packed, first = [], 0
    for lanes in widths:
        base = block[first].base
        if not isinstance(base, np.ndarray) or base.shape != (*block[0].shape, lanes):
            return None
        packed.append(base)
        first += lanes
    ours = _plain(packed, len(block))
    same = all(a.ctypes.data == b.ctypes.data and a.strides == b.strides for a, b in zip(ours, block, strict=True))
    return packed if same else None


def _code(given: str | Activation) -> int:
    name = given.name if isinstance(given, Activation) else given
    if name not in ACTIVATIONS:
        raise EngineError(
            f"the native engine knows the activations {', '.join(ACTIVATIONS)}; "
            "one of your own runs on engine='reference'"
        )
    return ACTIVATIONS[name]
