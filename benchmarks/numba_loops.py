"""The same half-sweeps in numba, one thread: four ways to write Algorithm 1, from the plainest to the fastest.

They leave out the objective.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bemf.engines import Block, State
from bemf.ratings import Ratings
from bemf.rows import Rows

Floats = NDArray[np.float32]
FAST: dict[str, Any] = {"fastmath": True, "error_model": "numpy"}
TOGETHER = 80  # ratings that the last loop takes side by side

zero, one = np.float32(0), np.float32(1)
log2e, farthest, to_nearest = np.float32(1.44269504), np.float32(87), np.float32(126.5)
c0, c1, c2 = np.float32(1.3276472e-3), np.float32(9.6755413e-3), np.float32(5.5507133e-2)
c3, c4, c5 = np.float32(2.4022120e-1), np.float32(6.9314697e-1), np.float32(1.0000000717)


@dataclass(frozen=True)
class Loop:
    """A half-sweep and the order of its factors' axes: (scores, rows, factors) permuted."""

    name: str
    axes: tuple[int, int, int]
    lanes: int
    sweep: Callable[..., None]

    def pack(self, plain: Block) -> Floats:
        """The factors in this loop's order, its score axis filled up with zeros."""
        wide = np.zeros((self.lanes, *plain[0].shape), dtype=np.float32)
        wide[: len(plain)] = plain
        return np.ascontiguousarray(wide.transpose(self.axes))

    def unpack(self, packed: Floats, n_scores: int) -> Floats:
        return packed.transpose(np.argsort(self.axes))[:n_scores]

    def run(self, rows: Rows, this: Floats, other: Floats, rate: float, eta: float) -> None:
        """One half-sweep, in place."""
        self.sweep(rows.indptr, rows.indices, rows.score_index, this, other, np.float32(rate), np.float32(eta))

    def iterate(self, n: int, ratings: Ratings, state: State, rate: float, eta: float) -> State:
        """The factors after n iterations."""
        n_scores, u, v = len(state["U"]), self.pack(state["U"]), self.pack(state["V"])
        for _ in range(n):
            self.run(ratings.by_user, u, v, rate, eta)
            self.run(ratings.by_item, v, u, rate, eta)
        return {"U": self.unpack(u, n_scores), "V": self.unpack(v, n_scores)}


@cache
def loops(n_scores: int, k: int) -> tuple[Loop, ...]:
    """All of them, for sizes that the compiler may take for granted."""
    lanes = 1 << (n_scores - 1).bit_length()
    innermost = (1, 2, 0)
    return (
        Loop("obvious", (0, 1, 2), n_scores, obvious(n_scores, k)),
        Loop("scores innermost", innermost, n_scores, scores_innermost(n_scores, k, library_psi)),
        Loop("scores innermost, polynomial exp", innermost, lanes, scores_innermost(lanes, k, polynomial_psi)),
        Loop("ratings innermost, polynomial exp", innermost, n_scores, ratings_innermost(n_scores, k)),
    )


def _library_psi(x: Any) -> Any:
    return one / (one + math.exp(-x))


def _polynomial_psi(x: Any) -> Any:
    """1 / (1 + 2^n p(f)), n the nearest integer to -x log2(e) and f what is left."""
    t = min(max(-x, -farthest), farthest) * log2e
    n = np.int32(t + to_nearest) - np.int32(126)
    f = t - np.float32(n)
    p = ((((c0 * f + c1) * f + c2) * f + c3) * f + c4) * f + c5
    bits = np.float32(p).view(np.int32) + (n << np.int32(23))
    return one / (one + np.int32(bits).view(np.float32))


library_psi = njit(**FAST, inline="always")(_library_psi)
polynomial_psi = njit(**FAST, inline="always")(_polynomial_psi)


def obvious(n_scores: int, k: int) -> Any:
    def sweep(indptr: Any, indices: Any, score: Any, this: Any, other: Any, rate: Any, eta: Any) -> None:
        for row in range(len(indptr) - 1):
            if indptr[row] == indptr[row + 1]:
                continue
            for d in range(n_scores):
                gradient = np.zeros(k, np.float32)
                for j in range(indptr[row], indptr[row + 1]):
                    x = zero
                    for c in range(k):
                        x += this[d, row, c] * other[d, indices[j], c]
                    error = np.float32(score[j] == d) - library_psi(x)
                    for c in range(k):
                        gradient[c] += error * other[d, indices[j], c]
                for c in range(k):
                    this[d, row, c] += rate * (gradient[c] - eta * this[d, row, c])

    return njit(**FAST)(sweep)


def scores_innermost(lanes: int, k: int, psi: Any) -> Any:
    def add(score: Any, own: Any, v: Any, gradient: Any, hit: Any) -> None:
        for d in range(lanes):
            x = zero
            for c in range(k):
                x += own[c, d] * v[c, d]
            error = hit[score, d] - psi(x)
            for c in range(k):
                gradient[c, d] += error * v[c, d]

    add = njit(**FAST, inline="always")(add)

    def sweep(indptr: Any, indices: Any, score: Any, this: Any, other: Any, rate: Any, eta: Any) -> None:
        gradient, own = np.zeros((k, lanes), np.float32), np.zeros((k, lanes), np.float32)
        hit = np.eye(lanes).astype(np.float32)
        for row in range(len(indptr) - 1):
            if indptr[row] == indptr[row + 1]:
                continue
            gradient[:] = zero
            own[:] = this[row]
            for j in range(indptr[row], indptr[row + 1]):
                add(score[j], own, other[indices[j]], gradient, hit)
            this[row] += rate * (gradient - eta * own)

    return njit(**FAST)(sweep)


def ratings_innermost(n_scores: int, k: int) -> Any:  # noqa: C901 (its parts need the sizes as constants)
    """Turns the other side's rows of some ratings around, so that every loop over ratings is contiguous."""
    columns = k * n_scores

    def turn(indices: Any, other: Any, turned: Any) -> None:
        for j in range(len(indices)):
            row = np.uint32(indices[j])
            for c in range(columns):
                turned[c, j] = other[row, c]

    def errors(score: Any, own: Any, turned: Any, error: Any) -> None:
        for d in range(n_scores):
            for j in range(len(score)):
                x = zero
                for c in range(k):
                    x += own[c * n_scores + d] * turned[c * n_scores + d, j]
                error[d, j] = -polynomial_psi(x)
        for j in range(len(score)):
            error[score[j], j] += one

    def add(n: Any, error: Any, turned: Any, gradient: Any) -> None:
        for d in range(n_scores):
            for c in range(d, columns, n_scores):
                total = zero
                for j in range(n):
                    total += error[d, j] * turned[c, j]
                gradient[c] += total

    turn, errors, add = (njit(**FAST, inline="always")(each) for each in (turn, errors, add))

    def sweep(indptr: Any, indices: Any, score: Any, this: Any, other: Any, rate: Any, eta: Any) -> None:
        turned, error = np.empty((columns, TOGETHER), np.float32), np.empty((n_scores, TOGETHER), np.float32)
        gradient, own = np.empty(columns, np.float32), np.empty(columns, np.float32)
        these, others = this.reshape(len(this), columns), other.reshape(len(other), columns)
        for row in range(len(indptr) - 1):
            if indptr[row] == indptr[row + 1]:
                continue
            gradient[:] = zero
            own[:] = these[row]
            for first in range(indptr[row], indptr[row + 1], TOGETHER):
                last = min(first + TOGETHER, indptr[row + 1])
                turn(indices[first:last], others, turned)
                errors(score[first:last], own, turned, error)
                add(last - first, error, turned, gradient)
            for c in range(columns):
                these[row, c] += rate * (gradient[c] - eta * own[c])

    return njit(**FAST)(sweep)
