"""bemf datasets: what there is, getting it, writing it."""

from __future__ import annotations

import csv
import io
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pandas as pd
import polars as pl
import pytest

import bemf as library
from bemf.cli.options import downloading, progress
from command_line import bemf, contents, fails, works


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No data, nothing in the cache, and no network."""

    def no_network(*_: Any, **__: Any) -> None:
        raise URLError("Name or service not known")

    monkeypatch.setenv("BEMF_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BEMF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    (tmp_path / "data").mkdir()
    return tmp_path


def test_all_data_sets_are_listed(folders: Path) -> None:
    pd.DataFrame({"user": [1], "item": [1], "rating": [3]}).to_parquet(folders / "data" / "ml1m.parquet")
    rows = works("datasets").text.splitlines()
    facts = {each["name"]: each for each in works("datasets", "--json").json}
    assert [row.split()[0] for row in rows[1:]] == [each.name for each in library.datasets.available()] == list(facts)
    assert facts["ml1m"]["where"] == str(folders / "data" / "ml1m.parquet") in rows[2]
    assert facts["ml100k"]["where"] == "not here"
    assert facts["demo"]["where"] == "made when asked for"
    assert facts["ml25m"]["address"].startswith("https://files.grouplens.org/")
    assert "1,000,209" in rows[2]
    assert (facts["ml1m"]["ratings"], facts["ml1m"]["users"], facts["ml1m"]["items"]) == (1_000_209, 6040, 3706)
    assert all(each["licence"] and each["title"] for each in facts.values())


def test_one_is_told_of() -> None:
    words = works("datasets", "demo").text
    assert "Ratings(30,000 ratings by 600 users of 250 items, scores 1, 2, 3, 4, 5)" in words
    for said in ("Invented films", "licence", "made when asked for", "liked from  4"):
        assert said in words
    facts = works("datasets", "demo", "--json").json
    assert (facts["name"], facts["ratings"], facts["like"]) == ("demo", 30_000, 4)


def licensed(*arguments: Any) -> bytes:
    """What is written to the standard output; the licence is told beside it."""
    done = bemf("datasets", *arguments)
    assert (done.status, done.err) == (0, "Invented films, rated by invented people. Licence: that of bemf\n")
    return done.out


def test_ratings_are_written(tmp_path: Path) -> None:
    wanted = library.datasets.load("demo").to_frame("pyarrow").to_pylist()
    assert licensed("demo", "-o", tmp_path / "r.parquet") == b""
    assert pl.read_parquet(tmp_path / "r.parquet").to_dicts() == wanted
    licensed("demo", "-o", tmp_path / "r.csv")
    assert library.Ratings.read(tmp_path / "r.csv").fingerprint == library.datasets.load("demo").fingerprint
    assert licensed("demo", "--format", "csv") == (tmp_path / "r.csv").read_bytes()
    assert {*contents(tmp_path)} == {"r.parquet", "r.csv"}


def test_titles_are_written(tmp_path: Path) -> None:
    wanted = library.datasets.titles("demo").to_pylist()
    licensed("demo", "--titles", "-o", tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == wanted
    assert bemf("datasets", "demo", "--titles", "--json").json == wanted
    works("fit", "demo", "-o", tmp_path / "m.bemf", "--validation", 0)
    rows = works("similar", tmp_path / "m.bemf", wanted[0]["item"], "--titles", tmp_path / "t.csv", "--json").json
    assert [row["similar_title"] for row in rows] == [row["similar"] for row in rows]


@pytest.mark.parametrize("command", [("datasets",), ("fit", "-o", "m.bemf")])
def test_one_that_is_absent_is_told_where_to_get(
    command: tuple[str, ...], folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders)
    message = fails(*command, "ml100k")
    assert message.startswith("https://files.grouplens.org/datasets/movielens/ml-100k.zip cannot be downloaded")
    assert "Name or service not known" in message
    assert message.endswith(f"put it at {folders / 'cache' / 'ml-100k.zip'}")
    assert contents(folders) == {}
    for name, words in (("myanimelist", "Kaggle"), ("anime-sample5k", "put anime-sample5k.parquet in a folder")):
        assert words in fails(*command, name)


def test_an_unknown_one_is_refused() -> None:
    assert "no data set is called 'ml2m'; there are ml100k, ml1m, " in fails("datasets", "ml2m", status=2)
    assert fails("fit", "ml2m", "-o", "m.bemf") == "ml2m does not exist"
    assert "filmtrust have no titles" in fails("datasets", "filmtrust", "--titles")


# -- bars --------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Download:
    def __init__(self, n_bytes: int, n_total: int | None) -> None:
        self.n_bytes, self.n_total = n_bytes, n_total


def test_a_download_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with downloading() as tell:
        assert tell
        tell(Download(25, 100))
    assert "Downloading" in terminal.getvalue()
    assert "25%" in terminal.getvalue()
    with downloading() as tell:
        assert tell
        tell(Download(25, None))
    assert "100%" not in terminal.getvalue(), "nobody knows how much there will be"


def test_there_are_no_bars_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", quiet := io.StringIO())
    with downloading() as download, progress("Learning") as learning:
        assert download is None
        assert learning is None
    assert quiet.getvalue() == ""
