"""Splits: what is in which part, the paper's split row by row, and Java's random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bemf import DataError, ParameterError, Ratings
from bemf.datasets import by_time, cf4j, holdout, k_fold, leave_n_out
from bemf.paper.published.generator import JavaRandom
from strategies import Table, tables

Rows = set[tuple[Any, ...]]


def rows_of(ratings: Ratings) -> Rows:
    return set(zip(*ratings.to_frame("pyarrow").to_pydict().values(), strict=True))


def assert_divides(ratings: Ratings, train: Ratings, test: Ratings) -> None:
    """Both parts together are the whole, with the same vocabularies and scale."""
    assert len(train) + len(test) == len(ratings)
    assert rows_of(train) | rows_of(test) == rows_of(ratings)
    for part in (train, test):
        assert (part.users, part.items) == (ratings.users, ratings.items)
        np.testing.assert_array_equal(part.scores, ratings.scores)
        assert part.by_item.counts.tolist() == np.bincount(part.item_index, minlength=len(part.items)).tolist()


def some(n_users: int = 20, n_items: int = 10) -> Ratings:
    user, item = np.divmod(np.arange(n_users * n_items), n_items)
    return Ratings.from_arrays(user, item, (user + item) % 5 + 1, dates=(user * 37 + item * 11) % 101)


# -- at random ---------------------------------------------------------------------------------------


@given(tables(), st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_holdout_has_the_size_asked_for(table: Table, test_size: float, seed: int) -> None:
    ratings = Ratings.from_frame(pd.DataFrame(table.columns()))
    n_test = round(test_size * len(ratings))
    if n_test in (0, len(ratings)):
        with pytest.raises(DataError, match="leaves one part empty"):
            holdout(ratings, test_size, random_state=seed)
        return
    train, test = holdout(ratings, test_size, random_state=seed)
    assert len(test) == n_test
    assert_divides(ratings, train, test)


@given(tables(), st.integers(2, 6), st.integers(0, 2**32))
def test_every_rating_is_tested_in_one_fold(table: Table, k: int, seed: int) -> None:
    ratings = Ratings.from_frame(pd.DataFrame(table.columns()))
    if k > len(ratings):
        with pytest.raises(ParameterError, match=f"from 2 to the number of ratings, {len(ratings)}; got {k}"):
            k_fold(ratings, k, random_state=seed)
        return
    folds = list(k_fold(ratings, k, random_state=seed))
    assert [len(test) for _, test in folds] == [len(ratings) // k + (n < len(ratings) % k) for n in range(k)]
    assert set().union(*(rows_of(test) for _, test in folds)) == rows_of(ratings)
    for train, test in folds:
        assert_divides(ratings, train, test)


@given(tables(), st.integers(1, 4), st.integers(0, 2**32))
def test_n_of_each_user_with_more_are_left_out(table: Table, n: int, seed: int) -> None:
    ratings = Ratings.from_frame(pd.DataFrame(table.columns()))
    train, test = leave_n_out(ratings, n, random_state=seed)
    assert test.by_user.counts.tolist() == [n if count > n else 0 for count in ratings.by_user.counts]
    assert_divides(ratings, train, test)


RANDOM: dict[str, Callable[[Ratings, int | None], Any]] = {
    "holdout": lambda ratings, seed: [holdout(ratings, 0.3, random_state=seed)],
    "leave_n_out": lambda ratings, seed: [leave_n_out(ratings, 2, random_state=seed)],
    "k_fold": lambda ratings, seed: list(k_fold(ratings, 4, random_state=seed)),
}


@pytest.mark.parametrize("split", RANDOM.values(), ids=RANDOM)
def test_random_state_decides(split: Callable[[Ratings, int | None], Any]) -> None:
    def tests(seed: int | None) -> list[str]:
        return [test.fingerprint for _, test in split(some(), seed)]

    assert tests(1) == tests(1)
    assert len({str(tests(seed)) for seed in (0, 1, 2, None, None)}) == 5


@pytest.mark.parametrize("split", [holdout, leave_n_out])
def test_every_rating_can_be_drawn(split: Any) -> None:
    ratings = some(3, 4)
    drawn = set().union(*(rows_of(split(ratings, random_state=seed)[1]) for seed in range(60)))
    assert drawn == rows_of(ratings)


# -- by time -----------------------------------------------------------------------------------------


@given(tables(), st.floats(0.01, 0.99), st.booleans())
def test_the_latest_are_tested_and_equal_dates_stay_together(table: Table, test_size: float, coarse: bool) -> None:
    dates = [date % 5 for date in table.date] if coarse else table.date
    ratings = Ratings.from_frame(pd.DataFrame(table.columns() | {"date": dates}))
    n_test = round(test_size * len(ratings))
    first = sorted(dates)[-n_test]
    if n_test in (0, len(ratings)) or first == min(dates):
        with pytest.raises(DataError, match=r"test_size|one part empty"):
            by_time(ratings, test_size)
        return
    train, test = by_time(ratings, test_size)
    assert train.dates is not None
    assert test.dates is not None
    assert train.dates.max() < test.dates.min() == first
    assert len(test) >= n_test > (test.dates > first).sum()
    assert_divides(ratings, train, test)


def test_time_needs_dates() -> None:
    with pytest.raises(DataError, match=r"no dates.*date=…"):
        by_time(Ratings.from_arrays([1, 1], [1, 2], [1, 2]), 0.5)


# -- bad arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("test_size", [0, 1, -0.1, 1.5, 20, float("nan")])
@pytest.mark.parametrize("split", [holdout, by_time])
def test_a_share_is_between_none_and_all(split: Any, test_size: float) -> None:
    with pytest.raises(ParameterError, match=f"between 0 and 1; got {test_size}"):
        split(some(), test_size)


@pytest.mark.parametrize("test_size", [0.002, 0.998])
@pytest.mark.parametrize("split", [holdout, by_time])
def test_no_part_may_be_empty(split: Any, test_size: float) -> None:
    with pytest.raises(DataError, match=f"{test_size:g} of 200 ratings leaves one part empty"):
        split(some(), test_size)


@pytest.mark.parametrize("k", [-1, 0, 1, 201])
def test_folds_are_two_or_more(k: int) -> None:
    with pytest.raises(ParameterError, match=f"from 2 to the number of ratings, 200; got {k}"):
        k_fold(some(), k)


@pytest.mark.parametrize("n", [0, -1])
def test_at_least_one_is_left_out(n: int) -> None:
    with pytest.raises(ParameterError, match=f"at least 1; got {n}"):
        leave_n_out(some(), n)


# -- the paper's split -------------------------------------------------------------------------------


def java(seed: int) -> Iterator[int]:
    """The states of java.util.Random, one by one."""
    state = (seed ^ 0x5DEECE66D) % 2**48
    while True:
        state = (state * 0x5DEECE66D + 0xB) % 2**48
        yield state


def row_by_row(table: Table, seed: int, test_users: float, test_items: float) -> tuple[list[Any], list[Any]]:
    """The recipe of `cf4j`, a row at a time: training and test rows with their numbers, sorted by them."""
    states = java(seed)
    drawn: tuple[dict[Any, bool], dict[Any, bool]] = ({}, {})
    parts: dict[bool, list[tuple[Any, Any, float]]] = {True: [], False: []}
    for user, item, rating, _ in zip(*table.columns().values(), strict=True):
        for known, one, share in zip(drawn, (user, item), (test_users, test_items), strict=True):
            if one not in known:
                known[one] = (next(states) >> 24) / 2**24 <= share
        parts[drawn[0][user] and drawn[1][item]].append((user, item, rating))
    users: dict[Any, int] = {}
    items: dict[Any, int] = {}
    for user, item, _ in parts[True] + parts[False]:
        users.setdefault(user, len(users))
        items.setdefault(item, len(items))
    train, test = (sorted((users[u], items[i], u, i, rating) for u, i, rating in parts[each]) for each in (False, True))
    return train, test


def numbered(part: Ratings) -> list[Any]:
    frame = part.to_frame("pyarrow").to_pydict()
    return list(zip(part.user_index.tolist(), part.item_index.tolist(), *frame.values(), strict=True))


SHARES = st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0])


@given(tables(), st.integers(-(2**47), 2**47), SHARES, SHARES)
def test_the_paper_s_split_is_that_of_going_row_by_row(table: Table, seed: int, users: float, items: float) -> None:
    parts = cf4j(table.user, table.item, np.array(table.rating), seed=seed, test_users=users, test_items=items)
    for part, wanted in zip(parts, row_by_row(table, seed, users, items), strict=True):
        assert numbered(part) == wanted
        assert part.scores.tolist() == sorted(set(table.rating))
    assert (parts[0].users, parts[0].items) == (parts[1].users, parts[1].items)
    assert set(parts[0].users) == set(table.user)


def test_the_paper_s_seed_and_shares_are_used_unless_others_are_given() -> None:
    rng = np.random.default_rng(0)
    user, item = np.divmod(rng.permutation(2000), 40)
    table = Table(user.tolist(), item.tolist(), (rng.integers(1, 6, 2000) * 1.0).tolist(), [0] * 2000)
    parts = cf4j(table.user, table.item, np.array(table.rating), scores=np.arange(7.0))
    assert [numbered(part) for part in parts] == list(row_by_row(table, 43, 0.3, 0.3))
    assert 0 < len(parts[1]) < len(parts[0])
    assert [part.scores.tolist() for part in parts] == [list(range(7))] * 2


def test_the_paper_s_split_refuses_repeated_pairs() -> None:
    with pytest.raises(DataError, match=r"1 repeated.*user 1 and item 2"):
        cf4j([1, 1, 1], [2, 3, 2], np.array([1.0, 2, 1]), test_users=0, test_items=0)


# -- java.util.Random --------------------------------------------------------------------------------


def test_numbers_are_those_of_a_jvm() -> None:
    np.testing.assert_array_equal(JavaRandom(43).floats(2), np.array([0.7274741, 0.32369745], dtype=np.float32))
    assert JavaRandom(43).doubles(3).tolist() == [0.7274741131618243, 0.8527678824817223, 0.8790168712922686]
    random = JavaRandom(-5)
    assert random.floats(1)[0] == np.float32(0.26930094)
    assert random.doubles(1)[0] == 0.3634331425144135


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.lists(st.tuples(st.sampled_from(["floats", "doubles"]), st.integers(0, 40)), max_size=6),
)
def test_numbers_are_those_of_the_generator_written_out(seed: int, calls: list[tuple[str, int]]) -> None:
    random, states = JavaRandom(seed), java(seed)
    for kind, n in calls:
        if kind == "floats":
            wanted = [(next(states) >> 24) / 2**24 for _ in range(n)]
        else:
            wanted = [(((next(states) >> 22) << 27) + (next(states) >> 21)) / 2**53 for _ in range(n)]
        numbers = getattr(random, kind)(n)
        assert numbers.tolist() == wanted
        assert numbers.dtype == {"floats": np.float32, "doubles": np.float64}[kind]


def test_doubles_fill_arrays_row_by_row() -> None:
    np.testing.assert_array_equal(JavaRandom(1).doubles(2, 3, 4), JavaRandom(1).doubles(24).reshape(2, 3, 4))
