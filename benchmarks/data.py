"""Made-up ratings with the sizes and the skew of real ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bemf.ratings import Ratings
from bemf.vocabulary import Vocabulary


@dataclass(frozen=True)
class Size:
    """The size of a data set, of the model it is given, and how unequal its users and items are."""

    name: str
    n_users: int
    n_items: int
    n_ratings: int
    n_scores: int
    n_factors: int
    spread_of_users: float  # of the logarithm of their activity
    spread_of_items: float


MOVIELENS = Size("MovieLens 1M", 6_040, 3_706, 911_031, 5, 2, 1.0, 1.5)
MYANIMELIST = Size("MyAnimeList", 69_600, 9_927, 5_788_207, 10, 4, 1.2, 1.8)


def made_up(size: Size, seed: int = 0) -> Ratings:
    """Users choose items by how popular they are, and rate them by taste and quality."""
    rng = np.random.default_rng(seed)
    users, items = distinct_pairs(size, rng)
    quality, generosity = rng.normal(0, 0.5, size.n_items), rng.normal(0, 0.5, size.n_users)
    opinion = quality[items] + generosity[users] + rng.normal(0, 0.8, len(users))
    middle = 0.6 * size.n_scores
    values = np.clip(np.round(middle + 0.25 * size.n_scores * opinion), 1, size.n_scores)
    scale = np.arange(1, size.n_scores + 1)
    user_ids, item_ids = Vocabulary(np.arange(size.n_users), "user"), Vocabulary(np.arange(size.n_items), "item")
    return Ratings.from_indexes(user_ids, item_ids, users, items, values, scores=scale)


def distinct_pairs(size: Size, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of a user and an item, none twice."""
    activity = np.exp(rng.normal(0, size.spread_of_users, size.n_users))
    popularity = np.exp(rng.normal(0, size.spread_of_items, size.n_items))
    pairs = np.empty(0, dtype=np.int64)
    while len(pairs) < size.n_ratings:
        n_more = (size.n_ratings - len(pairs)) * 5 // 4
        more = drawn(activity, n_more, rng) * size.n_items + rng.permutation(drawn(popularity, n_more, rng))
        pairs = np.sort(np.concatenate([pairs, more]))
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
    pairs = rng.permutation(pairs)[: size.n_ratings]
    return pairs // size.n_items, pairs % size.n_items


def drawn(weights: NDArray[np.float64], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Indexes in ascending order, each as often as its weight makes likely."""
    return np.repeat(np.arange(len(weights)), rng.multinomial(n, weights / weights.sum()))
