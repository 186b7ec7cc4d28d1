"""Data sets by name, and the paper's split of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bemf import DataError, ParameterError, Ratings
from bemf.datasets import load

SIZES = {
    "ml100k": (100_000, 943, 1_682, range(1, 6)),
    "ml1m": (1_000_209, 6_040, 3_706, range(1, 6)),
    "filmtrust": (35_494, 1_508, 2_071, np.arange(0.5, 4.5, 0.5)),
    "anime-sample5k": (419_943, 4_714, 7_157, range(1, 11)),
}


def real(name: str) -> Path:
    path = Path(os.environ["BEMF_DATA"], f"{name}.parquet")
    if not path.exists():
        pytest.skip(f"BEMF_DATA has no {name}.parquet")
    return path


@pytest.mark.data
@pytest.mark.parametrize("name", SIZES)
def test_the_paper_s_split_is_the_published_one(name: str) -> None:
    real(name)
    published = [real(f"splits/{name}-{part}") for part in ("train", "test")]
    for part, path in zip(load(name, split="cf4j"), published, strict=True):
        wanted = pd.read_parquet(path).sort_values(["cf4j_user", "cf4j_item"])
        frame = part.to_frame()
        for column in ("user", "item", "rating"):
            np.testing.assert_array_equal(frame[column], wanted[column])
        np.testing.assert_array_equal(part.user_index, wanted["cf4j_user"])
        np.testing.assert_array_equal(part.item_index, wanted["cf4j_item"])
        np.testing.assert_array_equal(part.scores, SIZES[name][3])


@pytest.mark.data
@pytest.mark.parametrize("name", SIZES)
def test_a_data_set_has_every_rating_once(name: str) -> None:
    frame = pd.read_parquet(real(name))
    ratings = load(name)
    n_ratings, n_users, n_items, scores = SIZES[name]
    assert (len(ratings), len(ratings.users), len(ratings.items)) == (n_ratings, n_users, n_items)
    np.testing.assert_array_equal(ratings.scores, scores)
    once = frame[~frame.duplicated(["user", "item"], keep=False)].sort_values(["user", "item"])
    loaded = ratings.to_frame().merge(once[["user", "item"]]).sort_values(["user", "item"])
    np.testing.assert_array_equal(loaded[["user", "item", "rating"]], once[["user", "item", "rating"]])
    assert (ratings.dates is not None) == ("timestamp" in frame)
    if "timestamp" in frame:
        np.testing.assert_array_equal(loaded["date"], once["timestamp"])


@pytest.mark.data
def test_repeated_ratings_of_filmtrust_are_those_of_the_benchmark() -> None:
    real("filmtrust")
    frame = load("filmtrust").to_frame()
    frame = frame[(frame["user"] == 308) & frame["item"].isin([12, 207, 235])]
    assert frame[["item", "rating"]].to_numpy().tolist() == [[12, 4], [207, 3.5], [235, 1.5]]


# -- made-up folders ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data sets with few ratings, among them one that filmtrust has twice."""
    monkeypatch.setenv("BEMF_DATA", str(tmp_path))
    columns = {"user": [2, 308, 308, 1], "item": [9, 207, 207, 207], "rating": [4.0, 2.0, 1.0, 0.5]}
    pd.DataFrame(columns).to_parquet(tmp_path / "filmtrust.parquet")
    dated = pd.DataFrame({"user": [2, 1], "item": [9, 8], "rating": [4, 3], "timestamp": [20, 10]})
    dated.to_parquet(tmp_path / "ml100k.parquet")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_data_set_is_read_from_the_folder() -> None:
    wanted = Ratings.from_arrays([1, 2], [8, 9], [3, 4], dates=[10, 20])
    assert load("ml100k").fingerprint == wanted.fingerprint
    np.testing.assert_array_equal(load("ml100k").dates, wanted.dates)
    train, test = load("ml100k", split="cf4j")
    assert len(train) + len(test) == 2


@pytest.mark.usefixtures("folder")
def test_what_the_benchmark_repeats_is_kept_once_with_its_rating() -> None:
    assert load("filmtrust").to_frame().to_numpy().tolist() == [[1, 207, 0.5], [2, 9, 4], [308, 207, 3.5]]
    parts = load("filmtrust", split="cf4j")
    rows = [row for part in parts for row in part.to_frame().to_numpy().tolist()]
    assert sorted(rows) == [[1, 207, 0.5], [2, 9, 4], [308, 207, 3.5]]


@pytest.mark.usefixtures("folder")
def test_a_name_must_be_known() -> None:
    with pytest.raises(ParameterError, match="'ml2m'; there are ml100k, ml1m, filmtrust, anime-sample5k"):
        load("ml2m")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("split", ["random", "", 43])
def test_a_split_must_be_known(split: Any) -> None:
    with pytest.raises(ParameterError, match=f"'cf4j' or None; got {split!r}"):
        load("ml100k", split=split)


@pytest.mark.usefixtures("folder")
def test_a_file_must_be_in_the_folder() -> None:
    with pytest.raises(DataError, match=r"ml1m\.parquet is not there.*BEMF_DATA"):
        load("ml1m")


@pytest.mark.parametrize("value", [None, "", "/nowhere"])
def test_a_folder_must_be_set(value: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if value is None:
        monkeypatch.delenv("BEMF_DATA")
    else:
        monkeypatch.setenv("BEMF_DATA", value)
    with pytest.raises(DataError, match=r"ml100k\.parquet is not there.*set BEMF_DATA"):
        load("ml100k")
