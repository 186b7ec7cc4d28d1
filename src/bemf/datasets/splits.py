"""Training and test parts. Both keep all ids, so that their inner indexes agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bemf.errors import DataError, ParameterError
from bemf.paper.published.generator import JavaRandom
from bemf.ratings import Ratings
from bemf.vocabulary import Vocabulary, index_ids

Split = tuple[Ratings, Ratings]


def holdout(ratings: Ratings, test_size: float = 0.1, *, random_state: int | None = None) -> Split:
    """A random share of the ratings as the test part.

    >>> ratings = Ratings.from_arrays([1] * 10, range(10), [1, 2] * 5)
    >>> [len(part) for part in holdout(ratings, 0.2, random_state=0)]
    [8, 2]
    """
    n_test = _part(test_size, len(ratings))
    test = np.random.default_rng(random_state).permutation(len(ratings))[:n_test]
    return _divided(ratings, test)


def by_time(ratings: Ratings, test_size: float = 0.1) -> Split:
    """The latest share of the ratings as the test part; of equal dates all or none.

    >>> ratings = Ratings.from_arrays([1, 1, 1], [1, 2, 3], [1, 2, 2], dates=[30, 10, 20])
    >>> by_time(ratings, 0.34)[1].dates
    array([30])
    """
    if ratings.dates is None:
        raise DataError("these ratings have no dates; name their column when reading: date=…")
    latest = np.sort(ratings.dates)[len(ratings) - _part(test_size, len(ratings))]
    test = ratings.dates >= latest
    if test.all():
        raise DataError(f"no rating is older than the test part, which begins at {latest}; choose a smaller test_size")
    return _divided(ratings, test)


def leave_n_out(ratings: Ratings, n: int = 1, *, random_state: int | None = None) -> Split:
    """N random ratings of each user with more than n as the test part.

    >>> ratings = Ratings.from_arrays([1, 1, 1, 2], [1, 2, 3, 1], [1, 2, 2, 1])
    >>> leave_n_out(ratings, random_state=0)[1].by_user.counts
    array([1, 0])
    """
    if n < 1:
        raise ParameterError(f"n must be at least 1; got {n}")
    rows = ratings.by_user
    user = rows.row_of_each()
    shuffled = np.lexsort((np.random.default_rng(random_state).random(len(ratings)), user))
    place = np.arange(len(ratings)) - rows.indptr[:-1][user]
    return _divided(ratings, shuffled[(place < n) & (rows.counts[user] > n)])


def k_fold(ratings: Ratings, k: int = 5, *, random_state: int | None = None) -> Iterator[Split]:
    """K splits; every rating is in the test part of one of them.

    >>> ratings = Ratings.from_arrays([1] * 10, range(10), [1, 2] * 5)
    >>> [len(test) for train, test in k_fold(ratings, 3, random_state=0)]
    [4, 3, 3]
    """
    if not 2 <= k <= len(ratings):
        raise ParameterError(f"k must be from 2 to the number of ratings, {len(ratings):,}; got {k}")
    folds = np.array_split(np.random.default_rng(random_state).permutation(len(ratings)), k)
    return (_divided(ratings, fold) for fold in folds)


def cf4j(
    users: Any,
    items: Any,
    ratings: NDArray[np.float64],
    *,
    seed: int = 43,
    test_users: float = 0.3,
    test_items: float = 0.3,
    scores: NDArray[np.float64] | None = None,
) -> Split:
    """The split of the paper: a rating is a test rating if its user and its item both are.

    The columns are in the order of the original file, which the random draws follow: a user is drawn when
    it is first seen, then the item if it is new. Users and items are numbered by first appearance over
    the test ratings first and then the training ratings.

    >>> train, test = cf4j([1, 1, 2, 2], ["a", "b", "a", "b"], np.array([1.0, 2, 1, 2]), seed=2)
    >>> len(train), len(test)
    (3, 1)
    """
    user, user_names = index_ids(users, "user")
    item, item_names = index_ids(items, "item")
    user_is_test, item_is_test = _draws(user, item, seed, test_users, test_items)
    test = user_is_test[user] & item_is_test[item]
    order = np.concatenate([np.flatnonzero(test), np.flatnonzero(~test)])
    user_index, user_vocabulary = _renumbered(user, order, user_names)
    item_index, item_vocabulary = _renumbered(item, order, item_names)
    scale = np.unique(ratings) if scores is None else scores
    parts = (
        Ratings.from_indexes(
            user_vocabulary, item_vocabulary, user_index[part], item_index[part], ratings[part], scores=scale
        )
        for part in (~test, test)
    )
    train, tested = parts
    return train, tested


def _draws(
    user: NDArray[np.int32], item: NDArray[np.int32], seed: int, test_users: float, test_items: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Who and what is drawn for the test: users and items take their numbers in order of first appearance."""
    seen = [np.unique(index, return_index=True)[1] for index in (user, item)]
    kind = np.repeat([0, 1], [len(seen[0]), len(seen[1])])
    order = np.lexsort((kind, np.concatenate(seen)))  # by row, the user before the item
    drawn = np.empty(len(order), dtype=np.float32)
    drawn[order] = JavaRandom(seed).floats(len(order))
    # as Java compares: a float with a double
    return drawn[kind == 0] <= np.float64(test_users), drawn[kind == 1] <= np.float64(test_items)


def _renumbered(
    index: NDArray[np.int32], order: NDArray[np.int64], names: Vocabulary
) -> tuple[NDArray[np.int32], Vocabulary]:
    """New numbers by first appearance in another order of the rows."""
    old, first = np.unique(index[order], return_index=True)
    by_appearance = old[np.argsort(first)]
    new = np.empty(len(old), dtype=np.int32)
    new[by_appearance] = np.arange(len(old), dtype=np.int32)
    return new[index], Vocabulary(names.take(by_appearance), names.what)


def _divided(ratings: Ratings, test: NDArray[Any]) -> Split:
    mask = np.zeros(len(ratings), dtype=bool)
    mask[test] = True
    return ratings.select(~mask), ratings.select(mask)


def _part(test_size: float, n: int) -> int:
    if not 0 < test_size < 1:
        raise ParameterError(f"test_size must be between 0 and 1; got {test_size}")
    n_test = round(test_size * n)
    if not 0 < n_test < n:
        raise DataError(f"a test part of {test_size:g} of {n:,} ratings leaves one part empty")
    return n_test
