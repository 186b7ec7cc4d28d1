"""The counting sort behind the orders, chosen ratings, and dates, which follow the order of `by_user`."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bemf import DataError, Ratings, Vocabulary, _native
from strategies import Table, tables

# -- the counting sort -------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 12), max_size=200), st.integers(13, 20))
def test_group_is_a_stable_sort(keys: list[int], n_keys: int) -> None:
    array = np.array(keys, dtype=np.int32)
    indptr, order = _native.group(array, n_keys)
    np.testing.assert_array_equal(order, np.argsort(array, kind="stable"))
    np.testing.assert_array_equal(np.diff(indptr), np.bincount(array, minlength=n_keys))
    assert indptr[0] == 0
    assert {str(indptr.dtype), str(order.dtype)} == {"int64"}


def test_group_is_a_stable_sort_of_many() -> None:
    keys = np.random.default_rng(0).geometric(0.001, 1_000_000).astype(np.int32)
    indptr, order = _native.group(keys, int(keys.max()) + 1)
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))
    np.testing.assert_array_equal(np.diff(indptr), np.bincount(keys))


@pytest.mark.parametrize("keys", [[-1], [0, 1, 3], [2**31 - 1], [-(2**31)]])
def test_keys_out_of_range_are_refused(keys: list[int]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        _native.group(np.array(keys, dtype=np.int32), 3)


# -- indexes -----------------------------------------------------------------------------------------


def test_vocabularies_may_hold_more_than_is_rated() -> None:
    users, items = Vocabulary(["ann", "bob", "eve"], "user"), Vocabulary([7, 8, 9, 10], "item")
    ratings = Ratings.from_indexes(users, items, np.array([2, 0]), np.array([1, 3]), np.array([5.0, 4.0]))
    assert ratings.users is users
    assert ratings.by_user.counts.tolist() == [1, 0, 1]
    assert ratings.by_item.counts.tolist() == [0, 1, 0, 1]
    assert ratings.to_frame("pyarrow").to_pylist() == [
        {"user": "ann", "item": 10, "rating": 4.0},
        {"user": "eve", "item": 8, "rating": 5.0},
    ]
    assert repr(ratings) == "Ratings(2 ratings by 2 users of 2 items, scores 4, 5)"


@pytest.mark.parametrize(
    ("user", "item", "words"),
    [
        ([0, 1], [0], "equally long; got 2, 1, 1"),
        ([2], [0], "user indexes must be from 0 to 1"),
        ([0], [-1], "item indexes must be from 0 to 2"),
        ([2**32], [0], "user indexes must be from 0 to 1"),
    ],
)
def test_indexes_must_fit_the_vocabularies(user: list[int], item: list[int], words: str) -> None:
    with pytest.raises(DataError, match=words):
        Ratings.from_indexes(
            Vocabulary([1, 2], "user"), Vocabulary([1, 2, 3], "item"), np.array(user), np.array(item), np.ones(1)
        )


# -- some of the ratings -----------------------------------------------------------------------------


@given(tables(), st.data())
def test_chosen_ratings_are_those_of_the_frame(table: Table, data: st.DataObject) -> None:
    ratings = Ratings.from_frame(pd.DataFrame(table.columns()))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table))))
    chosen = ratings.select(mask)
    wanted = ratings.to_frame()[mask]
    assert chosen.to_frame().equals(wanted.reset_index(drop=True))
    assert (chosen.users, chosen.items) == (ratings.users, ratings.items)
    np.testing.assert_array_equal(chosen.scores, ratings.scores)
    assert chosen.by_user.counts.tolist() == [(wanted["user"] == user).sum() for user in ratings.users]
    by_item = chosen.by_item
    listed = [
        (ratings.items[item], ratings.users[user], ratings.scores[score])
        for item, user, score in zip(by_item.row_of_each(), by_item.indices, by_item.score_index, strict=True)
    ]
    positions = data.draw(st.permutations([place for place, taken in enumerate(mask) if taken]))
    by_position = ratings.select(np.array(positions, dtype=int))
    assert listed == [tuple(row) for row in wanted.sort_values(["item", "user"])[["item", "user", "rating"]].to_numpy()]
    assert by_position.fingerprint == chosen.fingerprint
    np.testing.assert_array_equal(by_position.dates, chosen.dates)


def test_choosing_leaves_what_was_chosen_from() -> None:
    ratings = Ratings.from_arrays([1, 1, 2], [7, 8, 7], [1, 2, 2])
    before = ratings.fingerprint
    assert ratings.select(np.array([0])).values.tolist() == [1]
    assert ratings.select(np.array([False] * 3)).to_frame("pyarrow").num_rows == 0
    assert Ratings.from_frame(ratings.to_frame()).fingerprint == before


# -- dates -------------------------------------------------------------------------------------------

DAYS = [datetime.date(2020, 3, 1), datetime.date(1969, 12, 31), datetime.date(2020, 2, 29)]
TIMES = [datetime.datetime(2020, 3, 1, 12), datetime.datetime(1969, 12, 31), datetime.datetime(2020, 2, 29, 23, 59, 59)]


@pytest.mark.parametrize(
    "dates",
    [
        [30, -1, 29],
        np.array([30.0, -1, 29]),
        np.array([30, 1, 29], dtype=np.uint16),
        pa.array(DAYS),
        pa.array(DAYS).cast(pa.date64()),
        pa.array(TIMES),
        pa.array(TIMES).cast(pa.timestamp("ns", "Europe/Madrid")),
        pa.chunked_array([[30], [-1, 29]]),
        np.array(TIMES, dtype="datetime64[s]"),
        np.array(DAYS, dtype="datetime64[D]"),
        pd.Series(pd.to_datetime(TIMES)),
        pl.Series(TIMES),
        pl.Series(DAYS),
    ],
    ids=lambda dates: f"{type(dates).__module__.split('.')[0]} {getattr(dates, 'dtype', getattr(dates, 'type', ''))}",
)
def test_dates_of_every_kind_keep_their_order(dates: Any) -> None:
    ratings = Ratings.from_arrays(["bob", "ann", "ann"], [1, 2, 1], [1, 2, 3], dates=dates)
    assert ratings.dates is not None
    assert ratings.dates.dtype == np.int64
    assert np.argsort(ratings.dates).tolist() == [1, 0, 2]  # ann's of 1, ann's of 2, bob's


@pytest.mark.parametrize(
    ("dates", "numbers"),
    [
        (pa.array([1_500, 1_501], pa.timestamp("ms")), [1_500, 1_501]),
        (pa.array(DAYS[:2]), [1_583_020_800, -86_400]),
        (np.array(DAYS[:2], dtype="datetime64[D]"), [1_583_020_800, -86_400]),
    ],
)
def test_timestamps_keep_their_unit_and_days_are_seconds(dates: Any, numbers: list[int]) -> None:
    ratings = Ratings.from_arrays([1, 2], [1, 1], [1, 2], dates=dates)
    assert ratings.dates is not None
    assert ratings.dates.tolist() == numbers


@pytest.mark.parametrize(
    ("dates", "words"),
    [
        (pa.array([1, None, None]), "2 dates are missing;drop these rows or the date column"),
        (pa.array([TIMES[0], None, None]), "2 dates are missing"),
        ([1, np.nan, 3], "1 dates are missing or infinite"),
        ([1, np.inf, 3], "1 dates are missing or infinite"),
        (["monday", "tuesday", "friday"], "must be numbers or timestamps"),
        (pa.array(["monday", "tuesday", "friday"]), "must be numbers or timestamps"),
        ([True, False, True], "must be numbers or timestamps"),
        ([1, 2], "equally long;'date': 2"),
    ],
)
def test_bad_dates_are_refused(dates: Any, words: str) -> None:
    with pytest.raises(DataError) as error:
        Ratings.from_arrays([1, 2, 3], [1, 1, 1], [1, 2, 3], dates=dates)
    for word in words.split(";"):
        assert word in str(error.value)
