"""Engines run models: they place the data once and run half-sweeps over it.

A model gives named blocks of factors, for each score an array (rows, columns), and the steps of one
iteration. An engine knows kernels and how blocks lie in memory; what a step is for is the model's business.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bemf.errors import EngineError, ParameterError

if TYPE_CHECKING:
    from bemf.rows import Rows

Block = NDArray[Any] | list[NDArray[Any]]  # an array (scores, rows, columns), or as many arrays (rows, columns)
State = dict[str, Block]
GivenState = Mapping[str, Block]
Side = Literal["user", "item"]
Tick = Callable[[float], object]


class BothOrders(Protocol):
    """Ratings as far as engines see them."""

    @property
    def by_user(self) -> Rows: ...
    @property
    def by_item(self) -> Rows: ...


@dataclass(frozen=True, slots=True)
class Step:
    """One half-sweep: the rows of `side` change by `kernel`, those of the other side are only read.

    Its totals are of the factors before the step: log-likelihood (0 unless `measured`), squares.
    """

    kernel: str
    side: Side
    parameters: Mapping[str, Any] = field(default_factory=dict)
    measured: bool = True


@dataclass(frozen=True, slots=True)
class Wish:
    """Which candidates of a user are wanted: the n of most worth, that is of Σ worths · Φ.

    Candidates are inner indexes of items, ascending; those that `seen` has in the user's row are left out.
    """

    n: int
    candidates: NDArray[np.int32]
    worths: NDArray[np.float64]
    min_reliability: float = 0.0
    min_worth: float = -np.inf
    seen: Rows | None = None


@runtime_checkable
class Run(Protocol):
    """Data and factors, placed."""

    def step(self, step: Step, tick: Tick | None = None) -> NDArray[np.float64]:
        """Runs one half-sweep; returns its totals, summed in a fixed order.

        `tick` is called now and then with the share that is done.
        """

    def forecast(
        self, kernel: str, users: NDArray[np.int32], items: NDArray[np.int32], parameters: Mapping[str, Any]
    ) -> NDArray[Any]:
        """The probabilities of pairs, (pairs, scores); NaN where an index is −1."""

    def rank(
        self,
        kernel: str,
        users: NDArray[np.int32],
        wish: Wish,
        parameters: Mapping[str, Any],
        tick: Tick | None = None,
    ) -> NDArray[np.int32]:
        """The candidates of each user, (users, n), best first; −1 where there are no more.

        Of equal worth the lower index comes first.
        """

    def fetch(self) -> State:
        """The factors as they are now; the next step may change these very arrays."""

    def close(self) -> None:
        """Lets go of everything."""


@runtime_checkable
class Engine(Protocol):
    """Something that can run the kernels it names."""

    name: str
    kernels: frozenset[str]

    def zeros(self, family: str, shape: tuple[int, int, int], dtype: str) -> Block:
        """A block of factors for (scores, rows, columns), laid out in memory as the engine likes it best."""

    def place(self, family: str, state: GivenState, ratings: BothOrders | None = None) -> Run:
        """Places factors, and ratings if they are to be swept over, for one family of kernels.

        Blocks made by `zeros` are taken as they are and changed in place, others are copied.
        """


_HOME = {"native": ("bemf.engines.native", "NativeEngine"), "reference": ("bemf.engines.reference", "ReferenceEngine")}


def engine(given: str | Engine = "native", n_threads: int | None = None) -> Engine:
    """The engine of a name, or the one given.

    >>> engine("reference").name
    'reference'
    """
    if isinstance(given, Engine):
        return given
    if not isinstance(given, str) or given not in _HOME:
        raise ParameterError(f"engine must be one of {', '.join(_HOME)}; got {given!r}")
    module, name = _HOME[given]
    made: Engine = getattr(importlib.import_module(module), name)(n_threads=n_threads)
    return made


def require(kernel: str, there: Engine) -> None:
    """Refuses a kernel that the engine lacks, naming the engines that have it."""
    if kernel not in there.kernels:
        others = [name for name in _HOME if kernel in engine(name).kernels]
        remedy = f"use engine={' or '.join(map(repr, others))}" if others else "no engine has it"
        raise EngineError(f"the {there.name} engine has no kernel {kernel!r}; {remedy}")


def available_threads(n_threads: int | None) -> int:
    """How many threads to use: as many as said, or as this process may run on."""
    if n_threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_threads < 1:
        raise ParameterError(f"n_threads must be at least 1; got {n_threads}")
    return n_threads
