"""Ids of every kind, their indexes and their arrays; pairs of them to be forecast."""

from __future__ import annotations

import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bemf import DataError, Ratings, Vocabulary
from bemf.pairs import Pairs
from bemf.vocabulary import as_ids
from strategies import WHOLE, WORDS, Table, tables

SOME_IDS = st.one_of(*(st.lists(kind, min_size=1, unique=True) for kind in (WHOLE, WORDS)))

# -- vocabularies ------------------------------------------------------------------------------------


@given(SOME_IDS, st.data())
def test_indexes_are_places(ids: list[Any], data: st.DataObject) -> None:
    vocabulary = Vocabulary(ids)
    others = data.draw(st.lists(WORDS if isinstance(ids[0], str) else WHOLE))
    asked = data.draw(st.permutations(ids + others))
    wanted = [ids.index(each) if each in ids else -1 for each in asked]
    index = vocabulary.index(asked)
    assert index.tolist() == wanted
    assert index.dtype == np.int32
    assert [each in vocabulary for each in asked] == [place >= 0 for place in wanted]


@given(SOME_IDS, st.data())
def test_a_vocabulary_is_a_sequence_of_its_ids(ids: list[Any], data: st.DataObject) -> None:
    vocabulary = Vocabulary(ids, "user")
    assert len(vocabulary) == len(ids)
    assert list(vocabulary) == [vocabulary[place] for place in range(len(ids))] == vocabulary.ids.tolist() == ids
    assert vocabulary.arrow.to_pylist() == ids
    places = data.draw(st.lists(st.integers(0, len(ids) - 1)))
    assert vocabulary.take(np.array(places, dtype=np.int32)).to_pylist() == [ids[place] for place in places]
    assert vocabulary == Vocabulary(np.array(ids, dtype=object), "item")
    assert vocabulary != Vocabulary(ids[1:])
    assert vocabulary != ids


@given(SOME_IDS, st.integers(0, 3), st.integers(0, 3))
def test_arrays_come_back_as_the_same_vocabulary(ids: list[Any], before: int, after: int) -> None:
    kind = pa.large_string() if isinstance(ids[0], str) else pa.int64()
    longer = pa.array(ids[:1] * before + ids + ids[:1] * after, kind)
    vocabulary = Vocabulary(longer[before : before + len(ids)], "user")
    arrays = vocabulary.to_arrays()
    again = Vocabulary.from_arrays({name: array.copy() for name, array in arrays.items()}, "user")
    assert again == vocabulary
    assert list(again) == ids
    assert again.what == "user"
    if isinstance(ids[0], str):
        assert arrays["bytes"].tobytes() == "".join(ids).encode()
        assert arrays["offsets"].tolist() == [len("".join(ids[:n]).encode()) for n in range(len(ids) + 1)]
    else:
        assert arrays["ids"].tolist() == ids


@pytest.mark.parametrize("ids", [[], pa.array([], pa.string())])
def test_an_empty_vocabulary_knows_nothing(ids: Any) -> None:
    vocabulary = Vocabulary(ids)
    assert len(vocabulary) == 0
    assert vocabulary.index([]).tolist() == []
    assert Vocabulary.from_arrays(vocabulary.to_arrays()) == vocabulary
    assert repr(vocabulary) == "Vocabulary(0 ids: )"


@given(st.lists(st.integers(-3, 9), max_size=6), st.text(st.characters(codec="ascii"), max_size=6))
def test_offsets_that_do_not_fit_are_refused(offsets: list[int], text: str) -> None:
    arrays: dict[str, Any] = {
        "offsets": np.array(offsets, dtype=np.int64),
        "bytes": np.frombuffer(text.encode(), np.uint8),
    }
    fit = offsets == sorted(offsets) and offsets[:1] == [0] and offsets[-1:] == [len(text)]
    if fit:
        texts = [text[first:last] for first, last in pairwise(offsets)]
        assert list(Vocabulary.from_arrays(arrays)) == texts
        return
    with pytest.raises(DataError, match="user ids' offsets"):
        Vocabulary.from_arrays(arrays, "user")


@pytest.mark.parametrize("offsets", [[0, 1, 4], [1, 3], [0, 2], [0, 5, 3], [0, 3, 2, 3], [0, -1, 3], [], [3]])
def test_wrong_offsets_are_refused(offsets: list[int]) -> None:
    with pytest.raises(DataError, match="offsets do not fit"):
        Vocabulary.from_arrays({"offsets": np.array(offsets, np.int64), "bytes": np.frombuffer(b"abc", np.uint8)})


def test_bytes_that_are_no_text_are_refused() -> None:
    arrays: dict[str, Any] = {"offsets": np.array([0, 1, 2]), "bytes": np.frombuffer("é".encode(), np.uint8)}
    with pytest.raises(ValueError, match="UTF8"):
        Vocabulary.from_arrays(arrays)


def test_a_vocabulary_shows_its_first_ids() -> None:
    assert repr(Vocabulary(range(1, 1235), "item")) == "Vocabulary(1,234 items: 1, 2, 3, …)"
    assert repr(Vocabulary(["ann"], "user")) == "Vocabulary(1 users: 'ann')"


def test_the_other_kind_of_ids_is_refused() -> None:
    with pytest.raises(DataError, match="user ids are integers here, but strings were given"):
        Vocabulary([1, 2], "user").index(["1"])
    with pytest.raises(DataError, match="item ids are strings here, but integers were given"):
        Vocabulary(["a"], "item").index([1])


# -- ids ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ids",
    [
        [3, 1, 3],
        (3, 1, 3),
        np.array([3, 1, 3], dtype=np.uint8),
        np.array([3.0, 1.0, 3.0]),
        np.array([3, 1, 3], dtype=object),
        np.array([0, 3, 1, 3])[1:],
        np.array([3, 0, 1, 0, 3])[::2],
        pd.Series([3, 1, 3], dtype="Int32"),
        pd.Series([3, 1, 3], dtype="category"),
        pl.Series([3, 1, 3], dtype=pl.UInt64),
        pa.array([3, 1, 3], pa.int8()),
        pa.chunked_array([[3], [1, 3]]),
        pa.chunked_array([[3], [1, 3]]).dictionary_encode(),
        range(3, 0, -1),
    ],
    ids=lambda ids: f"{type(ids).__module__.split('.')[0]} {getattr(ids, 'dtype', '')}",
)
def test_integers_come_from_everything(ids: Any) -> None:
    column = as_ids(ids, "user")
    assert column.type == pa.int64()
    assert column.to_pylist() == ([3, 2, 1] if isinstance(ids, range) else [3, 1, 3])


@pytest.mark.parametrize(
    "ids",
    [
        ["ñandú", "", "007"],
        np.array(["ñandú", "", "007"]),
        np.array(["ñandú", "", "007"], dtype=object),
        pd.Series(["ñandú", "", "007"]),
        pd.Series(["ñandú", "", "007"], dtype=object),
        pd.Series(["ñandú", "", "007"], dtype="category"),
        pl.Series(["ñandú", "", "007"]),
        pl.Series(["ñandú", "", "007"], dtype=pl.Categorical),
        pa.array(["ñandú", "", "007"], pa.string_view()),
        pa.chunked_array([["ñandú"], ["", "007"]]),
        [each.encode() for each in ("ñandú", "", "007")],
    ],
    ids=lambda ids: f"{type(ids).__module__.split('.')[0]} {getattr(ids, 'dtype', '')}",
)
def test_strings_come_from_everything(ids: Any) -> None:
    column = as_ids(ids, "user")
    assert column.type == pa.large_string()
    assert column.to_pylist() == ["ñandú", "", "007"]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([1, None, 2, None, None, None], "4 user ids are missing;row 1, 3, 4, …;drop or fill"),
        (["a", None], "1 user ids are missing;row 1)"),
        ([None], "1 user ids are missing;row 0)"),
        (np.array([1, np.nan]), "1 user ids are missing;row 1)"),
        (pd.Series(["a", None]), "1 user ids are missing;row 1)"),
        (pl.Series([1, None]), "1 user ids are missing;row 1)"),
        (pa.array(["a", None]).dictionary_encode(), "1 user ids are missing;row 1)"),
        ([1, 1.5, 2.25], "2 user ids are not whole;1.5;row 1;use integers or strings"),
        ([1, float("inf")], "1 user ids are not whole;inf;row 1"),
        ([1.0, 2.0**60], "1 user ids are not whole;row 1"),
        ([1, "a"], "user ids must be all integers or all strings"),
        (["a", 1], "user ids must be all integers or all strings"),
        ([1.5, "a"], "user ids must be all integers or all strings"),
        (np.array([1, "a"], dtype=object), "user ids must be all integers or all strings"),
        ([2**70], "user ids must be all integers or all strings"),
        (np.array([2**63], dtype=np.uint64), "64-bit integers or strings"),
        ([b"\xff"], "64-bit integers or strings;UTF8"),
        ([True, False], "must be integers or strings;bool"),
        ([datetime.date(2020, 1, 1)], "must be integers or strings;date32"),
        (np.array(["2020-01-01"], dtype="datetime64[s]"), "must be integers or strings;timestamp"),
        ([(1, 2)], "must be integers or strings;list"),
        ([{"a": 1}], "must be integers or strings;struct"),
        (np.zeros((2, 1)), "must be one column;(2, 1)"),
        ([object()], "user ids must be"),
    ],
)
def test_what_is_no_id_is_refused(ids: Any, words: str) -> None:
    with pytest.raises(DataError) as error:
        as_ids(ids, "user")
    for word in words.split(";"):
        assert word in str(error.value)


# -- pairs -------------------------------------------------------------------------------------------


@given(tables())
def test_pairs_are_the_same_in_every_form(table: Table) -> None:
    ratings = Ratings.from_arrays(table.user, table.item, table.rating)
    listed = list(zip(table.user, table.item, strict=True))
    forms = [
        listed,
        tuple(map(list, listed)),
        [np.array(pair, dtype=object) for pair in listed],
        object_array(listed),
        pd.DataFrame({"item": table.item, "user": table.user}),
        pl.DataFrame({"other": table.rating, "userId": table.user, "movieId": table.item}),
        pa.table({"user": table.user, "item": table.item}),
    ]
    for form in forms:
        pairs = Pairs.of(form)
        assert (pairs.users.to_pylist(), pairs.items.to_pylist()) == (table.user, table.item)
        assert len(pairs) == len(table)
    users, items = Pairs.of(listed).index(ratings.users, ratings.items)
    assert [ratings.users[place] for place in users] == table.user
    assert [ratings.items[place] for place in items] == table.item
    of_ratings = Pairs.of(ratings)
    assert list(zip(of_ratings.users.to_pylist(), of_ratings.items.to_pylist(), strict=True)) == sorted(listed)


def object_array(pairs: list[tuple[Any, Any]]) -> Any:
    array = np.empty((len(pairs), 2), dtype=object)
    array[:] = pairs
    return array


def test_unknown_ids_of_pairs_have_no_index() -> None:
    users, items = Pairs.of([("ann", 9), ("eve", 7)]).index(Vocabulary(["ann"]), Vocabulary([7]))
    assert (users.tolist(), items.tolist()) == ([0, -1], [-1, 0])
    assert len(Pairs.of([])) == 0


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (np.zeros((2, 3)), r"two columns.*\(2, 3\)"),
        (np.zeros(2), r"two columns.*\(2,\)"),
        ([(1, 2), (1, 2, 3)], r"list of \(user, item\)"),
        ([1, 2], r"list of \(user, item\)"),
        (["ab", "cd"], r"list of \(user, item\)"),
        ([(1, None)], "1 item ids are missing"),
        ({"user": [1], "item": [1]}, "got dict"),
        (pd.DataFrame({"user": [1]}), "no item column"),
    ],
)
def test_what_is_no_pair_is_refused(pairs: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Pairs.of(pairs)
