"""Ratings from memory: every source alike, both orders against NumPy, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bemf import DataError, Ratings, Vocabulary
from bemf.rows import Rows
from strategies import Table, tables

# -- every source alike ------------------------------------------------------------------------------

SOURCES: dict[str, Callable[[Table], Ratings]] = {
    "pandas": lambda table: Ratings.from_frame(pd.DataFrame(table.columns())),
    "pandas objects": lambda table: Ratings.from_frame(pd.DataFrame(table.columns(), dtype=object)),
    "pandas by Arrow": lambda table: Ratings.from_frame(
        pa.table(table.columns()).to_pandas(types_mapper=pd.ArrowDtype)
    ),
    "pandas Series": lambda table: Ratings.from_arrays(
        pd.Series(table.user), pd.Series(table.item), pd.Series(table.rating), dates=pd.Series(table.date)
    ),
    "polars": lambda table: Ratings.from_frame(pl.DataFrame(table.columns())),
    "polars, lazy": lambda table: Ratings.from_frame(pl.LazyFrame(table.columns())),
    "polars Series": lambda table: Ratings.from_arrays(
        pl.Series(table.user), pl.Series(table.item), pl.Series(table.rating), dates=pl.Series(table.date)
    ),
    "pyarrow": lambda table: Ratings.from_frame(pa.table(table.columns())),
    "pyarrow in pieces": lambda table: Ratings.from_frame(
        pa.concat_tables([pa.table(table.columns())[:1], pa.table(table.columns())[1:]])
    ),
    "pyarrow dictionaries": lambda table: Ratings.from_arrays(
        pa.array(table.user).dictionary_encode(),
        pa.array(table.item).dictionary_encode(),
        pa.array(table.rating),
        dates=pa.array(table.date),
    ),
    "NumPy": lambda table: Ratings.from_arrays(
        np.array(table.user, dtype=object),
        np.array(table.item, dtype=object),
        np.array(table.rating),
        dates=np.array(table.date),
    ),
    "lists": lambda table: Ratings.from_arrays(table.user, table.item, table.rating, dates=table.date),
    "other order": lambda table: Ratings.from_arrays(
        table.user[::-1], table.item[::-1], table.rating[::-1], dates=table.date[::-1]
    ),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@settings(max_examples=30)
@given(table=tables())
def test_ratings_are_the_same_from_every_source(source: Callable[[Table], Ratings], table: Table) -> None:
    ratings = source(table)
    assert ratings.fingerprint == from_oracle(table).fingerprint
    np.testing.assert_array_equal(ratings.dates, from_oracle(table).dates)


def from_oracle(table: Table) -> Ratings:
    """Indexes by Python's sorting, orders by NumPy's."""
    users, items, scores = sorted(set(table.user)), sorted(set(table.item)), sorted(set(table.rating))
    user = np.array([users.index(each) for each in table.user])
    item = np.array([items.index(each) for each in table.item])
    score = np.array([scores.index(each) for each in table.rating])
    by_user, order = rows_by_sorting(user, item, score, len(users))
    by_item, _ = rows_by_sorting(item, user, score, len(items))
    dates = np.array(table.date)[order]
    return Ratings(Vocabulary(users), Vocabulary(items), np.array(scores), by_user, by_item, dates)


def rows_by_sorting(
    row: NDArray[Any], column: NDArray[Any], score: NDArray[Any], n_rows: int
) -> tuple[Rows, NDArray[np.int64]]:
    order = np.lexsort((column, row))
    indptr = np.searchsorted(row[order], np.arange(n_rows + 1))
    return Rows(indptr, column[order].astype(np.int32), score[order].astype(np.uint8)), order


def assert_same_rows(given: Rows, wanted: Rows) -> None:
    for name in ("indptr", "indices", "score_index"):
        array = getattr(given, name)
        np.testing.assert_array_equal(array, getattr(wanted, name))
        assert array.dtype == getattr(wanted, name).dtype


@given(tables())
def test_both_orders_are_those_of_sorting(table: Table) -> None:
    ratings = Ratings.from_frame(pd.DataFrame(table.columns()))
    oracle = from_oracle(table)
    assert list(ratings.users) == list(oracle.users)
    assert list(ratings.items) == list(oracle.items)
    assert_same_rows(ratings.by_user, oracle.by_user)
    assert_same_rows(ratings.by_item, oracle.by_item)
    assert len(ratings) == len(table)
    assert len(ratings.by_item) == len(set(table.item))


@given(tables())
def test_what_ratings_say_of_themselves(table: Table) -> None:
    ratings = Ratings.from_arrays(table.user, table.item, table.rating)
    frame = pd.DataFrame(table.columns()).sort_values(["user", "item"])
    assert [ratings.users[each] for each in ratings.user_index] == frame["user"].tolist()
    assert [ratings.items[each] for each in ratings.item_index] == frame["item"].tolist()
    assert ratings.values.tolist() == frame["rating"].tolist()
    assert ratings.scores[ratings.score_index].tolist() == frame["rating"].tolist()
    assert ratings.score_counts.tolist() == frame["rating"].value_counts().sort_index().tolist()
    assert ratings.n_scores == frame["rating"].nunique()
    assert ratings.by_item.counts.tolist() == frame["item"].value_counts().loc[list(ratings.items)].tolist()
    assert ratings.dates is None


@given(tables(), st.sampled_from(["pandas", "polars", "pyarrow"]), st.booleans())
def test_frames_come_back_as_they_went(table: Table, kind: Any, dated: bool) -> None:
    ratings = Ratings.from_frame(pa.table(table.columns(*([] if dated else ["date"]))))
    frame = ratings.to_frame(kind)
    assert type(frame).__module__.split(".")[0] == kind
    again = Ratings.from_frame(frame)
    assert again.fingerprint == ratings.fingerprint
    assert list(pd.DataFrame(frame).columns if kind == "pandas" else pa.table(frame).column_names) == [
        *("user", "item", "rating"),
        *(["date"] if dated else []),
    ]
    np.testing.assert_array_equal(again.dates, ratings.dates)


def test_a_frame_of_another_library_is_not_to_be_had() -> None:
    with pytest.raises(DataError, match="'pandas', 'polars' or 'pyarrow'; got 'numpy'"):
        some().to_frame("numpy")  # type: ignore[arg-type]


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(DataError, match=r"polars is not installed; .*'pyarrow'"):
        some().to_frame("polars")


@given(tables(), st.data())
def test_a_change_changes_the_fingerprint(table: Table, data: st.DataObject) -> None:
    scores = [-10, *np.arange(0, 10.5, 0.5), 11]
    row = data.draw(st.integers(0, len(table) - 1))
    changed = list(table.rating)
    changed[row] = 11.0
    fingerprint = Ratings.from_arrays(table.user, table.item, table.rating, scores=scores).fingerprint
    assert Ratings.from_arrays(table.user, table.item, changed, scores=scores).fingerprint != fingerprint
    assert Ratings.from_arrays(table.user, table.item, table.rating, scores=scores[:-1]).fingerprint != fingerprint


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, f"{kind}_{name}") for kind in ("csr", "csc", "coo") for name in ("array", "matrix")]
)
def test_stored_entries_of_a_sparse_matrix_are_the_ratings(kind: str, name: str) -> None:
    stored = ([4, 0, 2, 4, 1], ([2, 0, 0, 2, 4], [1, 0, 3, 0, 3]))
    matrix = getattr(scipy.sparse, name)(scipy.sparse.coo_array(stored, shape=(6, 4)))
    assert matrix.format == kind
    ratings = Ratings.from_sparse(matrix)
    assert ratings.to_frame().to_numpy().tolist() == [[0, 0, 0], [0, 3, 2], [2, 0, 4], [2, 1, 4], [4, 3, 1]]
    assert (list(ratings.users), list(ratings.items)) == (list(range(6)), list(range(4)))
    assert ratings.by_item.counts.tolist() == [2, 1, 0, 2]
    assert repr(ratings) == "Ratings(5 ratings by 3 users of 3 items, scores 0, 1, 2, 4)"


def test_a_dense_matrix_is_no_sparse_one() -> None:
    with pytest.raises(DataError, match=r"scipy\.sparse matrix; got ndarray"):
        Ratings.from_sparse(np.eye(3))


def test_repeated_entries_of_a_sparse_matrix_are_refused() -> None:
    with pytest.raises(DataError, match=r"1 repeated .*user 0 and item 1"):
        Ratings.from_sparse(scipy.sparse.coo_array(([1, 2], ([0, 0], [1, 1])), shape=(1, 2)))


# -- scores ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scale",
    [np.arange(0.5, 5.5, 0.5), np.arange(1, 11), np.array([0, 1]), np.array([False, True]), np.arange(32), np.ones(1)],
    ids=["half stars", "one to ten", "zero and one", "booleans", "the most", "one score"],
)
def test_scores_are_inferred(scale: NDArray[Any]) -> None:
    values = np.random.default_rng(0).permutation(np.tile(scale, 3))
    ratings = Ratings.from_arrays(np.arange(len(values)), np.zeros(len(values), int), values)
    np.testing.assert_array_equal(ratings.scores, scale.astype(float))
    np.testing.assert_array_equal(ratings.values, values)
    assert ratings.score_counts.tolist() == [3] * len(scale)


@pytest.mark.parametrize("n_rows", [11, 500], ids=["hardly any repeats", "more than 32"])
def test_what_looks_continuous_is_refused(n_rows: int) -> None:
    values = np.arange(n_rows) % 33 / 7
    with pytest.raises(DataError, match=rf"^{min(n_rows, 33)} different ratings \(0, .*scores=…"):
        Ratings.from_arrays(np.arange(n_rows), np.ones(n_rows, int), values)
    assert Ratings.from_arrays(np.arange(n_rows), np.ones(n_rows, int), values, scores=values).n_scores == min(
        n_rows, 33
    )


def test_scores_may_be_given_in_any_order_and_more_than_are_used() -> None:
    ratings = Ratings.from_arrays([1, 2], [1, 1], [4, 2], scores=[5, 4, 3, 2, 1, 1])
    assert ratings.scores.tolist() == [1, 2, 3, 4, 5]
    assert ratings.score_index.tolist() == [3, 1]
    assert ratings.score_counts.tolist() == [0, 1, 0, 1, 0]
    assert Ratings.from_arrays([1], [1], [255], scores=range(256)).score_index.tolist() == [255]


@pytest.mark.parametrize(
    ("scores", "words"),
    [(scores, "1 to 256 finite") for scores in ([], range(257), [1, np.nan], [1, np.inf])]
    + [(["a"], "must be numbers")],
)
def test_a_scale_must_be_finite_and_not_too_long(scores: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Ratings.from_arrays([1], [1], [1], scores=scores)


@given(tables(), st.sets(st.integers(0, 39), min_size=1))
def test_ratings_off_the_scale_are_counted_and_shown(table: Table, rows: set[int]) -> None:
    off = sorted({row % len(table) for row in rows})
    values = [2.25 if row in off else rating for row, rating in enumerate(table.rating)]
    with pytest.raises(DataError, match="off the scale") as error:
        Ratings.from_arrays(table.user, table.item, values, scores=[-10, *np.arange(0, 10.5, 0.5)])
    message = str(error.value)
    assert message.startswith(f"{len(off)} rating")
    assert message.endswith("Correct or drop them, or give all scores with scores=…")
    for row in off[:3]:
        assert f"2.25 by user {table.user[row]!r} for item {table.item[row]!r} (row {row})" in message
    assert message.count("(row ") == min(len(off), 3)


def test_rows_beyond_a_million_are_found() -> None:
    n = (1 << 20) + 10
    values = np.ones(n)
    values[[5, n - 1]] = 3
    with pytest.raises(DataError, match=r"^2 ratings off .*\(row 5\), .*\(row 1,048,585\)"):
        Ratings.from_arrays(np.arange(n), np.zeros(n, int), values, scores=[1, 2])


# -- repeated pairs ----------------------------------------------------------------------------------


@given(tables(repeats=True), st.sampled_from(["first", "last"]))
def test_one_of_repeated_pairs_is_kept_with_its_date(table: Table, keep: Any) -> None:
    ratings = Ratings.from_frame(pd.DataFrame(table.columns()), scores=sorted(set(table.rating)), duplicates=keep)
    kept = pd.DataFrame(table.columns()).drop_duplicates(["user", "item"], keep=keep).sort_values(["user", "item"])
    assert ratings.to_frame("pyarrow").to_pydict() == kept.to_dict("list")
    assert_same_rows(ratings.by_item, Ratings.from_frame(kept, scores=ratings.scores).by_item)


@given(tables(repeats=True))
def test_repeated_pairs_are_counted_and_shown(table: Table) -> None:
    rows: dict[tuple[Any, Any], list[int]] = {}
    for row, pair in enumerate(zip(table.user, table.item, strict=True)):
        rows.setdefault(pair, []).append(row)
    repeats = [
        f"user {user!r} and item {item!r} (rows {before} and {after})"
        for (user, item), places in sorted(rows.items())
        for before, after in pairwise(places)
    ]
    if not repeats:
        Ratings.from_arrays(table.user, table.item, table.rating)
        return
    with pytest.raises(DataError, match="repeated") as error:
        Ratings.from_arrays(table.user, table.item, table.rating)
    assert str(error.value).startswith(f"{len(repeats)} repeated (user, item) pair")
    assert ", ".join(repeats[:3]) + ". " in str(error.value)
    assert 'duplicates="last" or "first"' in str(error.value)


def test_repeats_are_to_be_dealt_with_in_a_known_way() -> None:
    with pytest.raises(DataError, match="'error', 'first' or 'last'; got 'mean'"):
        Ratings.from_arrays([1], [1], [1], duplicates="mean")  # type: ignore[arg-type]


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            ([1, 2, 3], [1, 1, 1], [1, np.nan, np.inf]),
            "2 ratings missing;(1 missing, 1 infinite);row 1, 2;Drop",
        ),
        (([1, 2], [1, 1], [None, -np.inf]), "2 ratings;1 missing, 1 infinite;row 0, 1"),
        (([1] * 5, range(5), [np.nan] * 5), "5 ratings;row 0, 1, 2. Drop"),
        (([1, 2], [1, 1], pa.array([4, None])), "1 rating missing;1 missing, 0 infinite;row 1"),
        (([1, 2], [1, 1], pa.chunked_array([[4.5], [None]])), "1 rating missing;row 1"),
        (([1, 2], [1, 1], ["4", "good"]), "must be numbers;'good'"),
        (([1, 2], [1, 1], pa.array(["4", "good"])), "must be numbers;'good'"),
        (([1, 2], [1, 1], [[4], [5]]), "one column;(2, 1)"),
        (([1, 2], [1], [4, 5]), "equally long;'user': 2;'item': 1;'rating': 2"),
        (([], [], []), "no ratings"),
        (([1, None], [1, 1], [4, 5]), "1 user ids are missing;row 1;drop or fill"),
        (([1, 1], ["a", None], [4, 5]), "1 item ids are missing;row 1"),
        (([1, 2], [1, np.nan], [4, 5]), "1 item ids are missing;row 1"),
        (([1.5, 2, 3.25], [1, 1, 1], [4, 5, 4]), "2 user ids are not whole numbers;1.5;row 0;integers or strings"),
        (([1, "a"], [1, 1], [4, 5]), "user ids must be all integers or all strings"),
        (([1, 2], [True, False], [4, 5]), "item ids must be integers or strings;bool"),
    ],
)
def test_bad_columns_are_refused(columns: tuple[Any, Any, Any], words: str) -> None:
    with pytest.raises(DataError) as error:
        Ratings.from_arrays(*columns)
    for word in words.split(";"):
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("frame", "chosen", "words"),
    [
        ({"user": [1], "item": [1]}, {}, "no rating column among 'user', 'item';rating=…"),
        ({"who": [1], "item": [1], "rating": [1]}, {}, "no user column among 'who';user=…"),
        ({"user": [1], "uid": [1], "item": [1], "rating": [1]}, {}, "'user' and 'uid';user=…"),
        ({"user": [1], "item": [1], "rating": [1]}, {"rating": "stars"}, "no column 'stars' for rating;'user', 'item'"),
        ({"user": [1], "item": [1], "rating": [1]}, {"date": "when"}, "no column 'when' for date"),
    ],
)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_missing_columns_are_refused(library: Any, frame: Any, chosen: Any, words: str) -> None:
    with pytest.raises(DataError) as error:
        Ratings.from_frame(library(frame), **chosen)
    for word in words.split(";"):
        assert word in str(error.value)


@pytest.mark.parametrize("frame", [[1, 2], {"user": [1], "item": [1], "rating": [1]}, np.eye(3)])
def test_what_is_no_frame_is_refused(frame: Any) -> None:
    with pytest.raises(DataError, match=f"pandas, polars or pyarrow is needed; got {type(frame).__name__}"):
        Ratings.from_frame(frame)


def test_columns_are_found_by_any_usual_or_given_name() -> None:
    usual = pd.DataFrame({"Rating": [4, 5], " movieId": [7, 8], "USER_ID": [1, 2], "Timestamp": [10, 20]})
    other = pl.DataFrame({"rating": ["good", "bad"], "who": [1, 2], "what": [7, 8], "stars": [4, 5], "when": [10, 20]})
    ratings = Ratings.from_frame(other, user="who", item="what", rating="stars", date="when")
    assert Ratings.from_frame(usual).fingerprint == ratings.fingerprint == some().fingerprint
    assert ratings.dates is not None
    assert ratings.dates.tolist() == [10, 20]


def some() -> Ratings:
    return Ratings.from_arrays([1, 2], [7, 8], [4, 5])
