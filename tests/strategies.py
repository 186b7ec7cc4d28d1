"""Random data for property tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bemf import Ratings, Vocabulary


@dataclass(frozen=True)
class Problem:
    """Ratings and factors of random shapes."""

    ratings: Ratings
    U: NDArray[Any]
    V: NDArray[Any]
    offset: NDArray[Any] | None

    def state(self, dtype: str) -> dict[str, NDArray[Any]]:
        blocks = {"U": self.U, "V": self.V}
        if self.offset is not None:
            blocks["offset"] = self.offset
        return {name: block.astype(dtype) for name, block in blocks.items()}


def random_ratings(
    rng: np.random.Generator, n_users: int, n_items: int, n_scores: int, density: float, long_row: bool = False
) -> Ratings:
    """Each pair rated or not; rows may be empty, and one may hold nearly all ratings."""
    chance = np.full((n_users, n_items), density)
    if long_row:
        chance[n_users // 2] = 0.95
    rated = rng.random((n_users, n_items)) < chance
    rated.flat[rng.integers(rated.size)] = True
    user, item = np.nonzero(rated)
    return Ratings.from_indexes(
        Vocabulary(np.arange(n_users), "user"),
        Vocabulary(np.arange(n_items), "item"),
        user,
        item,
        rng.integers(0, n_scores, len(user)).astype(float),
        scores=np.arange(n_scores),
    )


@st.composite
def problems(
    draw: st.DrawFn, scores: tuple[int, ...] = (1, 2, 3, 5, 8, 10, 17, 40), factors: tuple[int, ...] = (1, 2, 3, 4, 7)
) -> Problem:
    """Shapes that meet every path of the kernels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_users, n_items = draw(st.integers(1, 30)), draw(st.integers(1, 30))
    n_scores, k = draw(st.sampled_from(scores)), draw(st.sampled_from(factors))
    long_row = draw(st.booleans())
    ratings = random_ratings(rng, n_users, n_items, n_scores, draw(st.sampled_from([0.02, 0.3, 0.9])), long_row)
    biased = draw(st.booleans())
    columns = k + biased
    spread = draw(st.sampled_from([0.1, 1.0]))
    U, V = (rng.normal(0, spread, (n_scores, n, columns)) for n in (n_users, n_items))
    return Problem(ratings, U, V, rng.normal(0, 1, n_scores) if biased else None)


# -- columns of ratings ------------------------------------------------------------------------------

WHOLE = st.integers(-(2**63), 2**63 - 1)
WORDS = st.text(st.characters(codec="utf-8"), max_size=6)
NAMES = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters='":,;|'), max_size=6).map("x{}".format)
SCALES = (
    [1.0, 2.0, 3.0, 4.0, 5.0],
    [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0],
    [0.0, 1.0],
    [-10.0, 0.0, 2.5, 7.0],
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0],
)


@dataclass(frozen=True)
class Table:
    """Columns of ratings."""

    user: list[Any]
    item: list[Any]
    rating: list[float]
    date: list[int]

    def columns(self, *but: str) -> dict[str, list[Any]]:
        return {name: column for name, column in vars(self).items() if name not in but}

    def __len__(self) -> int:
        return len(self.user)


@st.composite
def tables(draw: st.DrawFn, ids: tuple[st.SearchStrategy[Any], ...] = (WHOLE, WORDS), repeats: bool = False) -> Table:
    """Ratings by few users of few items, whose ids are of one of the kinds; with or without repeated pairs."""
    users, items = (draw(st.lists(draw(st.sampled_from(ids)), min_size=1, max_size=7, unique=True)) for _ in range(2))
    pair = st.tuples(st.sampled_from(users), st.sampled_from(items))
    pairs = draw(st.lists(pair, min_size=1, max_size=40, unique=not repeats))
    n = len(pairs)
    ratings = draw(st.lists(st.sampled_from(draw(st.sampled_from(SCALES))), min_size=n, max_size=n))
    dates = draw(st.lists(st.integers(-(2**40), 2**40), min_size=n, max_size=n))
    return Table([user for user, _ in pairs], [item for _, item in pairs], ratings, dates)
