"""The native functions, called wrongly: they raise, and never crash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bemf
from bemf import _native
from bemf.rows import Rows

ISAS = _native.instruction_sets()
LANES = _native.blocks(ISAS[0], 5, exact=False)


def blocks(n_rows: int, n_columns: int = 3, lanes: list[int] = LANES, exact: bool = False) -> list[NDArray[Any]]:
    return [_native.factors(n_rows, n_columns, each, exact) for each in lanes]


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def misaligned(array: NDArray[Any]) -> NDArray[Any]:
    room = np.zeros(array.nbytes + 64, dtype=np.uint8)
    start = -room.ctypes.data % 64 + 4
    return room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)


def right_sweep() -> dict[str, Any]:
    return {
        "isa": ISAS[0],
        "solver": 2,
        "activation": 0,
        "measured": True,
        "n_scores": 5,
        "indptr": np.array([0, 2, 3]),
        "indices": np.array([0, 1, 2], dtype=np.int32),
        "scores": np.array([0, 1, 4], dtype=np.uint8),
        "self": blocks(2),
        "other": blocks(3),
        "offset": np.zeros(5, dtype=np.float32),
        "learning_rate": 0.1,
        "regularization": 1.0,
        "threads": _native.Threads(1),
        "progress": None,
    }


def right_forecast() -> dict[str, Any]:
    return {
        "isa": ISAS[0],
        "activation": 0,
        "users": np.array([0, 1], dtype=np.int32),
        "items": np.array([2, 0], dtype=np.int32),
        "user_factors": blocks(2),
        "item_factors": blocks(3),
        "offset": np.zeros(5, dtype=np.float32),
        "probabilities": np.empty((2, 5), dtype=np.float32),
        "threads": _native.Threads(1),
        "progress": None,
    }


def test_native_functions_called_rightly() -> None:
    log_likelihood, squares = _native.bernoulli_sweep(**right_sweep())
    assert log_likelihood == pytest.approx(15 * np.log(0.5))
    assert squares == 0
    given = right_forecast()
    _native.bernoulli_forecast(**given)
    np.testing.assert_allclose(given["probabilities"], 0.2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("isa", "mmx"),
        ("isa", None),
        ("solver", "mm"),
        ("indptr", np.array([0, 3])),
        ("indptr", np.array([], dtype=np.int64)),
        ("indptr", np.array([[0, 2, 3]])),
        ("indptr", None),
        ("indices", np.array([0, 1], dtype=np.int32)),
        ("indices", "012"),
        ("scores", np.array([0, 1, 4, 0], dtype=np.uint8)),
        ("n_scores", 0),
        ("n_scores", -5),
        ("n_scores", 100),
        ("n_scores", 2**20),
        ("self", blocks(2, exact=True)),
        ("self", [each.astype(np.int32) for each in blocks(2)]),
        ("self", [each[0] for each in blocks(2)]),
        ("self", []),
        ("self", blocks(2) * 2),
        ("self", blocks(4)),
        ("self", blocks(2, lanes=[2 * each for each in LANES])),
        ("self", [read_only(each) for each in blocks(2)]),
        ("self", [misaligned(each) for each in blocks(2)]),
        ("self", None),
        ("other", blocks(3, exact=True)),
        ("other", [each[0] for each in blocks(3)]),
        ("offset", np.zeros(5)),
        ("offset", np.zeros(4, dtype=np.float32)),
        ("offset", np.zeros((1, 5), dtype=np.float32)),
        ("learning_rate", "fast"),
        ("threads", 1),
        ("threads", None),
        ("solver", 3),
        ("activation", 3),
        ("activation", 1),  # has no bound
        ("self", [each[:, :, ::-1] for each in blocks(2)]),
        ("other", blocks(3, 4)),
        ("indptr", np.array([0, 2, 4])),
        ("indptr", np.array([1, 2, 3])),
    ],
)
def test_a_sweep_called_wrongly(name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        _native.bernoulli_sweep(**right_sweep() | {name: value})


def test_blocks_of_differing_rows() -> None:
    """Ten scores fill two blocks on most machines; both must be of the same rows."""
    given = right_sweep() | {"n_scores": 10, "offset": np.zeros(10, dtype=np.float32)}
    lanes = _native.blocks(ISAS[0], 10, exact=False)
    uneven = [_native.factors(2 + place, 3, each, False) for place, each in enumerate(lanes)]
    with pytest.raises(ValueError, match="differ in their rows"):
        _native.bernoulli_sweep(**given | {"self": uneven, "other": blocks(3, lanes=lanes)})


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("isa", ISAS)
def test_blocks_hold_all_scores_and_few_more(isa: str, exact: bool) -> None:
    narrowest = 2 if exact else 4
    for n_scores in range(1, 257):
        lanes = _native.blocks(isa, n_scores, exact)
        assert n_scores <= sum(lanes) < n_scores + narrowest
        assert lanes == sorted(lanes, reverse=True)


def test_a_sweep_of_too_many_factors() -> None:
    with pytest.raises(ValueError, match="from 1 to 64"):
        _native.bernoulli_sweep(**right_sweep() | {"self": blocks(2, 66), "other": blocks(3, 66)})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("isa", "mmx"),
        ("users", np.array([0], dtype=np.int32)),
        ("users", np.array([[0, 1]], dtype=np.int32)),
        ("items", np.array([0, 1, 2], dtype=np.int32)),
        ("user_factors", blocks(2, lanes=[2 * each for each in LANES])),
        ("user_factors", blocks(2, exact=True)),
        ("user_factors", [each[0] for each in blocks(2)]),
        ("user_factors", []),
        ("item_factors", blocks(3, exact=True)),
        ("probabilities", np.empty((1, 5), dtype=np.float32)),
        ("activation", -1),
        ("offset", np.zeros(5)),
        ("offset", np.zeros(6, dtype=np.float32)),
        ("item_factors", blocks(3, 4)),
        ("probabilities", np.empty((2, 5))),
        ("probabilities", np.empty((2, 200), dtype=np.float32)),
        ("probabilities", np.empty((2, 5), dtype=np.int32)),
        ("probabilities", np.empty(10, dtype=np.float32)),
        ("probabilities", read_only(np.empty((2, 5), dtype=np.float32))),
    ],
)
def test_a_forecast_called_wrongly(name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        _native.bernoulli_forecast(**right_forecast() | {name: value})


def test_pairs_out_of_range_are_unknown() -> None:
    for users, items in (([-1, 0], [0, -1]), ([2, 2**31 - 1], [0, 0]), ([0, 1], [3, -(2**31)])):
        given = right_forecast()
        ids = {"users": np.array(users, dtype=np.int32), "items": np.array(items, dtype=np.int32)}
        _native.bernoulli_forecast(**given | ids)
        assert np.isnan(given["probabilities"]).all()


@pytest.mark.parametrize(
    ("keys", "n_keys"),
    [([1], 1), ([-1], 1), ([0], 0), ([[0]], 1), (None, 1), ([0], "1"), ([0], 1.5)],
)
def test_a_grouping_called_wrongly(keys: Any, n_keys: Any) -> None:
    given: Any = None if keys is None else np.array(keys, dtype=np.int32)
    with pytest.raises((TypeError, ValueError)):
        _native.group(given, n_keys)


def test_more_memory_than_there_is() -> None:
    with pytest.raises(MemoryError):
        _native.group(np.array([], dtype=np.int32), 2**62)
    with pytest.raises(MemoryError):
        _native.factors(2**40, 2**10, 16, exact=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("indptr", np.array([0, 2, 1, 3])),
        ("indptr", np.array([0, 2])),
        ("indices", np.array([0, 1, 3], dtype=np.int32)),
        ("indices", np.array([0, -1, 2], dtype=np.int32)),
        ("scores", np.array([0, 1, 5], dtype=np.uint8)),
    ],
)
def test_rows_that_lead_out_of_their_arrays(name: str, value: Any) -> None:
    right = {name: right_sweep()[name] for name in ("indptr", "indices", "scores")} | {"n_columns": 3, "n_scores": 5}
    _native.check_rows(**right)
    with pytest.raises(ValueError, match=r"must|out of range"):
        _native.check_rows(**right | {name: value})


@pytest.mark.parametrize("n", [0, -1, 2**40, None, 1.5])
def test_no_threads(n: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        _native.Threads(n)


def test_an_engine_checks_the_rows() -> None:
    """Ratings put together by hand, with an item that is none."""
    ratings = bemf.Ratings.from_arrays([1, 2], [1, 2], [1, 2])
    wrong = Rows(ratings.by_user.indptr, np.array([0, 2], dtype=np.int32), ratings.by_user.score_index)
    broken = bemf.Ratings(ratings.users, ratings.items, ratings.scores, wrong, ratings.by_item)
    with pytest.raises(ValueError, match="out of range"):
        bemf.BeMF().fit(broken)
    short = Rows(np.array([0, 2]), ratings.by_user.indices, ratings.by_user.score_index)
    broken = bemf.Ratings(ratings.users, ratings.items, ratings.scores, short, ratings.by_item)
    with pytest.raises(bemf.DataError, match="1 rows of ratings but 2 of factors"):
        bemf.BeMF().fit(broken)
