"""Data sets by name: where they are found, in every form that they are given out in, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import struct
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bemf
from bemf import DataError, ParameterError, Ratings
from bemf.datasets import available, cache_folder, demo, holdout, load, places, titles
from bemf.datasets.catalogue import DATASETS, Dataset, Size
from bemf.datasets.registry import Download
from site_of_one_file import Site, served

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
    assert DATASETS[name].size == (n_ratings, n_users, n_items)
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


@pytest.mark.data
@pytest.mark.parametrize(("name", "delimiter"), [("filmtrust", " "), ("ml100k", "\t"), ("ml1m", "::")])
def test_the_real_ones_are_accepted_as_their_makers_give_them_out(
    name: str, delimiter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, prepared = pd.read_parquet(real(name)), load(name)
    frame["timestamp"] = frame.get("timestamp", 0)
    text = frame.to_csv(sep="|", header=False, index=False).replace("|", delimiter)
    member = DATASETS[name].ratings
    assert member is not None
    with zipfile.ZipFile(tmp_path / DATASETS[name].archive, "w") as archive:
        archive.writestr(member.path, text)
    monkeypatch.delenv("BEMF_DATA")
    monkeypatch.setenv("BEMF_CACHE", str(tmp_path))
    assert load(name).fingerprint == prepared.fingerprint


@pytest.mark.data
@pytest.mark.parametrize("name", ["ml100k", "ml1m", "anime-sample5k"])
def test_every_item_of_the_real_ones_has_a_title(name: str) -> None:
    real(name)
    table = titles(name)
    assert set(load(name).items) <= set(table["item"].to_pylist())
    assert all(table["title"].to_pylist())


# -- made-up folders ---------------------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """An empty folder of one's own and an empty cache, and no network."""
    paths = {"BEMF_DATA": tmp_path / "data", "BEMF_CACHE": tmp_path / "cache"}
    for name, path in paths.items():
        path.mkdir()
        monkeypatch.setenv(name, str(path))
    for name, dataset in DATASETS.items():
        monkeypatch.setitem(DATASETS, name, replace(dataset, address=f"http://127.0.0.1:9/{dataset.archive}"))
    return paths


@pytest.fixture
def folder(folders: dict[str, Path]) -> Path:
    """A folder of data sets with few ratings, among them one that filmtrust has twice."""
    path = folders["BEMF_DATA"]
    columns = {"user": [2, 308, 308, 1], "item": [9, 207, 207, 207], "rating": [4.0, 2.0, 1.0, 0.5]}
    pd.DataFrame(columns).to_parquet(path / "filmtrust.parquet")
    dated = pd.DataFrame({"user": [2, 1], "item": [9, 8], "rating": [4, 3], "timestamp": [20, 10]})
    dated.to_parquet(path / "ml100k.parquet")
    return path


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


NAMES = "ml100k, ml1m, ml10m, ml25m, filmtrust, myanimelist, anime-sample5k, demo"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("ask", [load, titles])
def test_a_name_must_be_known(ask: Any) -> None:
    with pytest.raises(ParameterError, match=f"'ml2m'; there are {NAMES}"):
        ask("ml2m")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("split", ["random", "", 43])
def test_a_split_must_be_known(split: Any) -> None:
    with pytest.raises(ParameterError, match=f"'cf4j' or None; got {split!r}"):
        load("ml100k", split=split)


@pytest.mark.parametrize("value", [None, "", "/nowhere"])
def test_a_folder_need_not_be_set(value: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if value is None:
        monkeypatch.delenv("BEMF_DATA")
    else:
        monkeypatch.setenv("BEMF_DATA", value)
    with pytest.raises(DataError, match="cannot be downloaded"):
        load("ml100k")
    (folder / "ml100k.parquet").rename(cache_folder() / "ml100k.parquet")
    assert len(load("ml100k")) == 2


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ml1m", "http://127.0.0.1:9/ml-1m.zip;cannot be downloaded;put it at {cache}/ml-1m.zip"),
        ("myanimelist", "account at Kaggle;get rating.csv from http;put it at {cache}/rating.csv"),
        ("anime-sample5k", "anime-sample5k cannot be downloaded;put anime-sample5k.parquet in a folder;BEMF_DATA"),
    ],
)
def test_what_is_not_here_is_said_with_what_to_do(name: str, words: str, folders: dict[str, Path]) -> None:
    with pytest.raises(DataError) as error:
        load(name)
    for word in words.format(cache=folders["BEMF_CACHE"]).split(";"):
        assert word in str(error.value)


@pytest.mark.usefixtures("folders")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("filmtrust", "the items of filmtrust have no titles"),
        ("myanimelist", "get anime.csv from"),
        ("anime-sample5k", "put anime-items.csv.gz in a folder"),
    ],
)
def test_titles_that_are_not_here(name: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        titles(name)


# -- as their makers give them out -----------------------------------------------------------------------

MEMBERS: dict[str, dict[str, bytes]] = {
    "ml100k": {
        "ml-100k/u.data": b"196\t242\t3\t881250949\n186\t302\t5\t891717742\n196\t302\t1\t878887116\n",
        "ml-100k/u.item": (
            "242|Kolya (1996)|24-Jan-1997||http://x.y/M?Kolya%20(1996)|0|0|0|0|0|1|0|0|0|0|0|0|0|0|0|0|0|0|0\n"
            "302|Misérables, Les|10-Oct-1997||http://x.y/M|1|0|0|0|0|0|1|0|0|0|1|0|0|0|0|0|0|0|1\n"
        ).encode("latin-1"),
    },
    "ml1m": {
        "ml-1m/ratings.dat": b"196::242::3::881250949\n186::302::5::891717742\n196::302::1::878887116\n",
        "ml-1m/movies.dat": "242::Kolya: I (1996)::Comedy\n302::Misérables, Les::unknown|Crime|Western\n".encode(
            "latin-1"
        ),
    },
    "ml10m": {
        "ml-10M100K/ratings.dat": b"196::242::3.5::881250949\n186::302::5::891717742\n196::302::1::878887116\n",
        "ml-10M100K/movies.dat": "242::Kolya (1996)::Comedy\n302::Misérables, Les::Crime|Drama\n".encode(),
    },
    "ml25m": {
        "ml-25m/ratings.csv": b"userId,movieId,rating,timestamp\n196,242,3.5,881250949\n186,302,5.0,891717742\n"
        b"196,302,1.0,878887116\n",
        "ml-25m/movies.csv": "movieId,title,genres\n242,Kolya (1996),Comedy\n"
        '302,"Misérables, Les",Crime|Drama\n'.encode(),
    },
    "filmtrust": {"ratings.txt": b"196 242 3.5\r\n186 302 5\r\n308 12 2\r\n308 12 1\r\n196 302 1\r\n"},
    "myanimelist": {
        "rating.csv": b"user_id,anime_id,rating\n196,7,-1\n196,242,3\n186,302,5\n5,302,-1\n196,302,1\n196,242,2\n",
        "anime.csv": 'anime_id,name,genre,type,episodes,rating,members\n242,Kolya&#039;,"Comedy",TV,1,9.3,20\n'
        '302,"Misérables, Les",,TV,?,,12\n'.encode(),
    },
}
DATES = [881250949, 891717742, 878887116]
RATED: dict[str, list[tuple[int, int, float]]] = {
    "ml100k": [(196, 242, 3), (186, 302, 5), (196, 302, 1)],
    "ml1m": [(196, 242, 3), (186, 302, 5), (196, 302, 1)],
    "ml10m": [(196, 242, 3.5), (186, 302, 5), (196, 302, 1)],
    "ml25m": [(196, 242, 3.5), (186, 302, 5), (196, 302, 1)],
    "filmtrust": [(196, 242, 3.5), (186, 302, 5), (308, 12, 4), (196, 302, 1)],
    "myanimelist": [(196, 242, 3), (186, 302, 5), (196, 302, 1)],
}
TITLED = {
    "ml100k": [
        ("Kolya (1996)", "Comedy"),
        ("Misérables, Les", "unknown, Crime, Film-Noir, Western"),
    ],
    "ml1m": [("Kolya: I (1996)", "Comedy"), ("Misérables, Les", "unknown, Crime, Western")],
    "ml10m": [("Kolya (1996)", "Comedy"), ("Misérables, Les", "Crime, Drama")],
    "ml25m": [("Kolya (1996)", "Comedy"), ("Misérables, Les", "Crime, Drama")],
    "myanimelist": [("Kolya'", "Comedy"), ("Misérables, Les", "")],
}
DOWNLOADED = [name for name in MEMBERS if name != "myanimelist"]


def zipped(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in {"../evil.txt": b"out of the folder", **members}.items():
            archive.writestr(name, content)
    return path.read_bytes()


@pytest.fixture
def small(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The data sets have as few ratings as those above."""
    assert folders
    for name, rows in RATED.items():
        size = Size(len(rows), *(len({row[side] for row in rows}) for side in (0, 1)))
        counts = (1, 1, 1, 1) if name == "filmtrust" else ()
        monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], size=size, score_counts=counts))


def assert_loaded(name: str) -> None:
    """What is loaded is what is above, in whole and split, and leaves nothing behind."""
    user, item, rating = (list(column) for column in zip(*RATED[name], strict=True))
    wanted = Ratings.from_arrays(user, item, rating, dates=DATES if name.startswith("ml") else None)
    ratings = load(name)
    assert ratings.fingerprint == wanted.fingerprint
    np.testing.assert_array_equal(ratings.dates, wanted.dates)
    split = bemf.datasets.cf4j(user, item, np.array(rating))
    for part, wanted_part in zip(load(name, split="cf4j"), split, strict=True):
        assert part.fingerprint == wanted_part.fingerprint
    if name in TITLED:
        rows = [
            {"item": item, "title": title, "genres": genres}
            for item, (title, genres) in zip((242, 302), TITLED[name], strict=True)
        ]
        assert titles(name).to_pylist() == rows


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("place", ["BEMF_DATA", "BEMF_CACHE"])
@pytest.mark.parametrize("name", MEMBERS)
def test_an_archive_put_there_by_hand_is_read(name: str, place: str, folders: dict[str, Path]) -> None:
    path = folders[place] / DATASETS[name].archive
    zipped(path, MEMBERS[name])
    assert_loaded(name)
    assert {each for each in folders[place].parent.rglob("*") if each.is_file()} == {path}
    assert DATASETS[name].where == str(path)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("place", ["BEMF_DATA", "BEMF_CACHE"])
@pytest.mark.parametrize("name", MEMBERS)
def test_files_taken_out_of_an_archive_are_read(name: str, place: str, folders: dict[str, Path]) -> None:
    for path, content in MEMBERS[name].items():
        (folders[place] / path).parent.mkdir(exist_ok=True)
        (folders[place] / path).write_bytes(content)
    assert_loaded(name)
    assert DATASETS[name].where == str(folders[place] / next(iter(MEMBERS[name])))


@pytest.mark.usefixtures("small")
def test_what_is_prepared_goes_first_and_one_s_own_folder_before_the_cache(folders: dict[str, Path]) -> None:
    for n, path in enumerate(
        [
            folders["BEMF_CACHE"] / "ml-1m.zip",
            folders["BEMF_CACHE"] / "ml-1m/ratings.dat",
            folders["BEMF_DATA"] / "ml-1m.zip",
            folders["BEMF_DATA"] / "ml-1m/ratings.dat",
            folders["BEMF_CACHE"] / "ml1m.parquet",
            folders["BEMF_DATA"] / "ml1m.parquet",
        ]
    ):
        rows = [(196, 242, n), (186, 302, 1), (196, 302, 1)]
        text = "".join(f"{user}::{item}::{rating}::0\n" for user, item, rating in rows)
        if path.suffix == ".zip":
            zipped(path, {"ml-1m/ratings.dat": text.encode()})
        elif path.suffix == ".dat":
            path.parent.mkdir()
            path.write_text(text)
        else:
            pd.DataFrame(rows, columns=["user", "item", "rating"]).to_parquet(path)
        assert load("ml1m").to_frame()["rating"].tolist() == [1, n, 1]
        assert DATASETS["ml1m"].where == str(path)


# -- downloads -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_site() -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as patch, served() as site:
        patch.setenv("no_proxy", "*")
        yield site


def offered(name: str, site: Site, path: Path, monkeypatch: pytest.MonkeyPatch, checksum: str = "") -> Dataset:
    """The data set's archive on the site, which is its address now."""
    site.reset(zipped(path, MEMBERS[name]))
    if DATASETS[name].checksum:
        checksum = checksum or f"md5:{hashlib.md5(site.content, usedforsecurity=False).hexdigest()}"
    dataset = replace(DATASETS[name], address=site.address, checksum=checksum)
    monkeypatch.setitem(DATASETS, name, dataset)
    return dataset


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", DOWNLOADED)
def test_a_data_set_is_downloaded_once(
    name: str,
    one_site: Site,
    folders: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    dataset = offered(name, one_site, tmp_path / "origin.zip", monkeypatch)
    assert dataset.where == "not here"
    told: list[Download] = []
    with caplog.at_level(logging.INFO, "bemf.datasets"):
        load(name, progress=told.append)
    assert told[-1] == Download(dataset, len(one_site.content), len(one_site.content))
    assert (dataset.address in caplog.text, dataset.licence in caplog.text) == (True, True)
    assert_loaded(name)
    assert one_site.asked == [None]
    assert dataset.where == str(folders["BEMF_CACHE"] / dataset.archive)
    assert list(folders["BEMF_DATA"].iterdir()) == []


@pytest.mark.usefixtures("small")
def test_titles_are_downloaded_too(one_site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered("ml1m", one_site, tmp_path / "origin.zip", monkeypatch)
    told: list[Download] = []
    assert titles("ml1m", progress=told.append).num_rows == 2
    assert told
    assert_loaded("ml1m")
    assert one_site.asked == [None]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("checksum", ["md5:" + "0" * 32, "sha256:" + "0" * 64])
def test_an_archive_of_another_checksum_is_refused(
    checksum: str, one_site: Site, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered("ml1m", one_site, tmp_path / "origin.zip", monkeypatch, checksum)
    algorithm, _, wanted = checksum.partition(":")
    digest = hashlib.new(algorithm, one_site.content).hexdigest()
    with pytest.raises(DataError, match=f"its {algorithm} is {digest}, not {wanted}; it was not kept"):
        load("ml1m")
    assert not (folders["BEMF_CACHE"] / "ml-1m.zip").exists()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("change", [{"size": Size(5, 3, 3)}, {"size": Size(4, 2, 3)}, {"score_counts": (1, 1, 2)}])
def test_where_no_checksum_is_known_the_content_is_checked(
    change: Any, one_site: Site, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = offered("filmtrust", one_site, tmp_path / "origin.zip", monkeypatch)
    monkeypatch.setitem(DATASETS, "filmtrust", replace(dataset, **change))
    with pytest.raises(DataError, match=r"is not filmtrust.*4 ratings by 3 users of 3 items.*not kept"):
        load("filmtrust")
    assert not (folders["BEMF_CACHE"] / "filmtrust.zip").exists()
    monkeypatch.setitem(DATASETS, "filmtrust", dataset)
    assert_loaded("filmtrust")


# -- damaged and hostile files ---------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
def test_other_ratings_under_the_name_are_refused(folders: dict[str, Path]) -> None:
    (folders["BEMF_DATA"] / "rating.csv").write_text("user_id,anime_id,rating\n1,2,3\n")
    wanted = "1 ratings by 1 users of 1 items, not 3 ratings by 2 users of 2 items"
    with pytest.raises(DataError, match=rf"rating\.csv is not myanimelist, or not all of it: it has {wanted}"):
        load("myanimelist")


def declared(path: Path, member: str, field: int, form: str, value: int) -> None:
    """Changes what the archive's directory says of a member; `field` is the place in its entry."""
    content = bytearray(path.read_bytes())
    entry = content.rindex(member.encode()) - 46
    assert content[entry : entry + 4] == b"PK\x01\x02"
    struct.pack_into(form, content, entry + field, value)
    path.write_bytes(content)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("ask", [load, titles])
def test_damaged_archives_are_refused(ask: Any, folders: dict[str, Path]) -> None:
    path = folders["BEMF_CACHE"] / "ml-1m.zip"
    whole = zipped(path, MEMBERS["ml1m"], zipfile.ZIP_STORED)
    for content in (b"", b"no archive", whole[:-30], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"ml-1m\.zip is no zip archive, or not one that can be read.*remove it"):
            ask("ml1m")
    zipped(path, {"ml-1m/other.dat": b""})
    with pytest.raises(DataError, match=r"ml-1m\.zip has no ml-1m/\w+\.dat in it"):
        ask("ml1m")
    path.write_bytes(whole.replace(b"196::242::3", b"196::242::4").replace(b"Kolya", b"Colya"))
    with pytest.raises(DataError, match=r"cannot be read.*CRC"):
        ask("ml1m")


@pytest.mark.usefixtures("small")
def test_an_archive_that_is_too_large_within_is_not_read(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folders["BEMF_CACHE"] / "ml-1m.zip"
    zipped(path, {"ml-1m/ratings.dat": bytes(10_000_000)})
    monkeypatch.setattr(places, "LARGEST_MEMBER", 9_999_999)
    with pytest.raises(DataError, match=r"ratings\.dat of 10,000,000 bytes"):
        load("ml1m")
    declared(path, "ml-1m/ratings.dat", 24, "<I", 20)  # it says that it is small, and is read as far as that
    with pytest.raises(DataError, match=r"ml-1m\.zip"):
        load("ml1m")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("field", "value"), [(8, 1), (8, 32), (10, 99)])
def test_encrypted_and_unusual_archives_are_refused(field: int, value: int, folders: dict[str, Path]) -> None:
    path = folders["BEMF_CACHE"] / "ml-1m.zip"
    zipped(path, MEMBERS["ml1m"])
    declared(path, "ml-1m/ratings.dat", field, "<H", value)
    with pytest.raises(DataError, match=r"ml-1m\.zip is no zip archive, or not one that can be read"):
        load("ml1m")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_with_any_byte_changed_is_refused_or_the_same(packing: int, folders: dict[str, Path]) -> None:
    path = folders["BEMF_CACHE"] / "ml-1m.zip"
    whole = zipped(path, MEMBERS["ml1m"], packing)
    wanted, wanted_titles = load("ml1m").fingerprint, titles("ml1m")
    rng = np.random.default_rng(packing)
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ rng.integers(1, 256)]) + whole[place + 1 :])
        with suppress(DataError):
            assert load("ml1m").fingerprint == wanted
        with suppress(DataError):
            assert titles("ml1m") == wanted_titles


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("name", "path", "content"),
    [
        ("ml100k", "ml-100k/u.item", b"1|Kolya|||x|0|1\n"),
        ("ml100k", "ml-100k/u.item", b"one|Kolya|||x" + b"|0" * 19),
        ("ml1m", "ml-1m/movies.dat", b"1::Kolya\n"),
        ("ml10m", "ml-10M100K/movies.dat", b"1::Kol\xe9::Comedy\n"),
        ("ml25m", "ml-25m/movies.csv", b"movieId,title,genres\n1,Kolya\n"),
        ("ml25m", "ml-25m/movies.csv", b"movieId,title\n1,Kolya\n"),
        ("ml25m", "ml-25m/movies.csv", b""),
        ("anime-sample5k", "anime-items.csv.gz", b"no gzip"),
        ("anime-sample5k", "anime-items.csv.gz", gzip.compress(b"anime_ids,name,genre\n" * 99)[:-9]),
    ],
)
def test_titles_that_cannot_be_read_are_refused(name: str, path: str, content: bytes, folders: dict[str, Path]) -> None:
    (folders["BEMF_DATA"] / path).parent.mkdir(exist_ok=True)
    (folders["BEMF_DATA"] / path).write_bytes(content)
    with pytest.raises(DataError, match=path.rpartition("/")[2]):
        titles(name)


def test_titles_beside_the_ratings(folders: dict[str, Path]) -> None:
    folder = folders["BEMF_DATA"]
    (folder / "ml1m-movies.csv").write_text('item,title,genres\n1,"Kolya, I",Comedy|Drama\n\n', encoding="utf-8")
    assert titles("ml1m").to_pylist() == [{"item": 1, "title": "Kolya, I", "genres": "Comedy, Drama"}]
    content = 'anime_ids,name,genre,type\n7,Kolya°,"Comedy, Drama",TV\n'.encode()
    (folder / "anime-items.csv.gz").write_bytes(gzip.compress(content))
    assert titles("anime-sample5k").to_pylist() == [{"item": 7, "title": "Kolya°", "genres": "Comedy, Drama"}]
    (folder / "ml100k-movies.csv").write_text("item,title,genres\n")
    table = titles("ml100k")
    assert (table.num_rows, [str(each.type) for each in table.schema]) == (0, ["int64", "string", "string"])


# -- the list --------------------------------------------------------------------------------------------


def test_what_is_available_is_described() -> None:
    assert ", ".join(each.name for each in available()) == NAMES
    for each in available():
        assert each.title
        assert each.licence
        assert each.size.ratings > max(each.size.users, each.size.items) > 0
        assert each.like in (3.5, 4, 7)
        assert each.obstacle or each.address.endswith(f"/{each.archive}") or each.name == "demo"
    checked = {each.name for each in available() if each.checksum}
    assert checked == {"ml100k", "ml1m", "ml10m", "ml25m"}
    assert all(len(DATASETS[name].checksum) == len("md5:") + 32 for name in checked)
    assert sum(DATASETS["filmtrust"].score_counts) == DATASETS["filmtrust"].size.ratings


@pytest.mark.parametrize(
    ("system", "variables", "wanted"),
    [
        ("linux", {}, "~/.cache/bemf"),
        ("linux", {"XDG_CACHE_HOME": "/var/kept"}, "/var/kept/bemf"),
        ("linux", {"XDG_CACHE_HOME": "not/absolute"}, "~/.cache/bemf"),
        ("linux", {"XDG_CACHE_HOME": "/var/kept", "BEMF_CACHE": "/films"}, "/films"),
        ("linux", {"BEMF_CACHE": "films"}, "./films"),
        ("linux", {"BEMF_CACHE": ""}, "~/.cache/bemf"),
        ("darwin", {}, "~/Library/Caches/bemf"),
        ("win32", {}, "~/bemf/cache"),
    ],
)
def test_the_cache_folder(
    system: str, variables: dict[str, str], wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "BEMF_CACHE", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "platform", system)
    assert str(cache_folder()) == wanted.replace("~", str(tmp_path / "home")).replace("./", f"{tmp_path}/")
    assert list(tmp_path.iterdir()) == []


# -- the demo --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("folders")
def test_the_demo_is_always_the_same_and_has_every_pair_once() -> None:
    ratings, truth = demo()
    assert ratings.fingerprint == load("demo").fingerprint == demo().ratings.fingerprint
    np.testing.assert_array_equal(ratings.dates, load("demo").dates)
    assert DATASETS["demo"].size == (len(ratings), len(ratings.users), len(ratings.items))
    assert set(truth.users) == set(ratings.users)
    assert set(truth.items) == set(ratings.items)
    train, test = load("demo", split="cf4j")
    assert len(train) + len(test) == len(ratings)
    assert DATASETS["demo"].where == "made when asked for"


def test_the_demo_s_ratings_are_a_draw_from_its_truth() -> None:
    """Each score comes as often as its probabilities say, among those of high and those of low ones."""
    ratings, truth = demo()
    phi = truth.forecast(ratings).probabilities
    came = np.eye(5)[ratings.score_index]
    for low, high in ((0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1)):
        some = (phi >= low) & (phi < high)
        assert abs((came - phi)[some].sum()) < 5 * np.sqrt((phi * (1 - phi))[some].sum())


def test_the_demo_s_people_and_films_have_names_of_their_own() -> None:
    table = titles("demo")
    assert table["item"] == table["title"]
    assert set(table["title"].to_pylist()) == set(demo().ratings.items)
    assert all(name.isalpha() and name.istitle() for name in demo().ratings.users)  # type: ignore[union-attr]


def test_the_demo_s_genres_go_with_taste() -> None:
    """The genres at the two ends of a taste are those that are least often liked by the same people."""
    frame = demo().ratings.to_frame().merge(titles("demo").to_pandas())
    frame["off"] = frame["rating"] - frame.groupby("user")["rating"].transform("mean")
    frame["off"] -= frame.groupby("item")["off"].transform("mean")
    together = frame.pivot_table(index="user", columns="genres", values="off").corr()
    for one, other in (("Comedy", "Thriller"), ("Romance", "Science fiction"), ("Adventure", "Drama")):
        assert together[one].idxmin() == other
        assert together[other].idxmin() == one
        assert together[one][other] < -0.2


def test_the_demo_shows_what_reliability_is_good_for() -> None:
    train, test = holdout(demo().ratings, 0.2, random_state=0)
    forecast = bemf.BeMF(random_state=0).fit(train).forecast(test)
    errors = bemf.metrics.by_coverage(test, forecast, shares=[1, 0.5, 0.1]).mae
    assert errors[2] < 0.8 * errors[1] < 0.7 * errors[0]
