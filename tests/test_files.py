"""Ratings from files: every form of the same data alike, and what is refused."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bemf import DataError, Ratings, files
from bemf.delimiters import Replacing
from strategies import NAMES, WHOLE, Table, tables

BOM = "\ufeff"


def read(content: str | bytes, **options: Any) -> Ratings:
    return Ratings.read(io.BytesIO(content if isinstance(content, bytes) else content.encode()), **options)


# -- text --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """How a table is written as text."""

    delimiter: str
    header: bool
    newline: str
    ends: bool
    quoted: bool
    bom: bool
    decimal_comma: bool

    def written(self, table: Table) -> str:
        point = "," if self.decimal_comma and self.delimiter == ";" else "."
        rows = [["userId", "movieId", "rating", "timestamp"]] if self.header else []
        for user, item, rating, date in zip(*table.columns().values(), strict=True):
            rows.append([str(user), str(item), f"{rating:.1f}".replace(".", point), str(date)])
        quote = '"' if self.quoted else ""
        lines = [self.delimiter.join(f"{quote}{field}{quote}" for field in row) for row in rows]
        return BOM * self.bom + self.newline.join(lines) + self.newline * self.ends


FORMS = st.builds(
    Form,
    st.sampled_from(["::", "\t", ";", ",", "|"]),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
    *[st.booleans()] * 4,
)


@settings(max_examples=300)
@given(tables((WHOLE, NAMES)), FORMS)
def test_every_form_of_text_is_read_alike(table: Table, form: Form) -> None:
    ratings = read(form.written(table), date=None if form.header else 3)
    wanted = Ratings.from_arrays(table.user, table.item, table.rating, dates=table.date)
    assert ratings.fingerprint == wanted.fingerprint
    np.testing.assert_array_equal(ratings.dates, wanted.dates)


@given(tables((WHOLE, NAMES)), FORMS)
def test_dates_of_a_file_without_header_are_read_when_asked_for(table: Table, form: Form) -> None:
    dates = read(form.written(table)).dates
    assert (dates is not None) == form.header


SIMPLE = "user,item,rating\n1,a,4.5\n2,a,3\n1,b,0.5\n"
SAME = Ratings.from_arrays([1, 2, 1], ["a", "a", "b"], [4.5, 3, 0.5])


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (SIMPLE, {}),
        ("userId,movieId,rating\n1,a,4.5\n2,a,3.0\n1,b,.5", {}),
        ("User-ID;ISBN;Stars\n1;a;4.5\n2;a;3\n1;b;0.5\n", {"user": "User-ID"}),
        ("reviewerID,asin,overall\n1,a,4.5\n2,a,3\n1,b,5e-1\n", {}),
        (" user , item , rating \n1,a,4.5\n2,a,3\n1,b,0.5\n", {}),
        ("n,rating,x,who,what\n7,4.5,,1,a\n8,3,,2,a\n9,0.5,,1,b\n", {"user": "who", "item": "what"}),
        ("n,rating,x,who,what\n7,4.5,,1,a\n8,3,,2,a\n9,0.5,,1,b\n", {"user": 3, "item": 4, "rating": 1}),
        ("a,9,4.5,1\na,9,3,2\nb,9,0.5,1\n", {"user": 3, "item": 0, "rating": 2}),
        ("a,9,4.5,1\na,9,3,2\nb,9,0.5,1\n", {"user": 3, "item": 0, "rating": 2, "header": False}),
        ("1,2,3\n1,a,4.5\n2,a,3\n1,b,0.5\n", {"user": "1", "item": "2", "rating": "3", "header": True}),
        ("1 a 4.5\n2 a 3\n1 b 0.5\n", {"delimiter": " "}),
        ("1=>>a=>>4.5\n2=>>a=>>3\n1=>>b=>>0.5\n", {"delimiter": "=>>"}),
        ("user,item,rating\n\n1,a,4.5\n\n2,a,3\n1,b,0.5\n\n", {}),
        ("1.0,a,4.5\n2.0,a,3\n1.0,b,0.5\n", {}),
        ("user;item;rating\n1;a;4,5\n2;a;3\n1;b;0,5\n", {}),
    ],
)
def test_columns_by_usual_names_other_names_and_numbers(content: str, options: dict[str, Any]) -> None:
    assert read(content, **options).fingerprint == SAME.fingerprint


def test_quoted_fields_may_hold_what_divides_others() -> None:
    ratings = read('user,item,rating\n"Smith, ""J""","Alien; 3",5\nDoe,"a::b",4\n')
    assert ratings.to_frame("pyarrow").to_pylist() == [
        {"user": "Doe", "item": "a::b", "rating": 4.0},
        {"user": 'Smith, "J"', "item": "Alien; 3", "rating": 5.0},
    ]


def test_dates_of_text_may_be_written_out() -> None:
    ratings = read("user,item,rating,date\n1,1,4,2020-03-01 10:00:00\n1,2,4,2019-01-01 00:00:00\n")
    assert ratings.dates is not None
    assert ratings.dates.tolist() == [1_583_056_800, 1_546_300_800]


def test_text_may_come_as_characters() -> None:
    assert Ratings.read(io.StringIO(SIMPLE)).fingerprint == SAME.fingerprint  # type: ignore[arg-type]


# -- blocks ------------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([b":", b"::", b"=", b">>", b"1", b"ab", b"\n"]), max_size=40).map(b"".join),
    st.sampled_from([b"::", b"=>>", b":::", b"ab"]),
    st.integers(1, 9),
)
def test_long_delimiters_are_replaced_wherever_blocks_end(content: bytes, delimiter: bytes, block: int) -> None:
    replaced = io.BufferedReader(Replacing(io.BytesIO(content), delimiter, block), 8).read()
    assert replaced == content.replace(delimiter, b"\x1f")


@pytest.mark.parametrize("block", range(40, 60))
def test_a_file_is_the_same_in_blocks_of_any_size(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"user{n % 10}", n, n % 5 + 1) for n in range(50)]
    content = "".join(f"{user}::{item}::{rating}\r\n" for user, item, rating in rows)
    wanted = Ratings.from_arrays(*(list(column) for column in zip(*rows, strict=True)))
    monkeypatch.setattr(files, "BLOCK", block)
    assert read(content).fingerprint == wanted.fingerprint
    assert read(content.replace("::", "\t")).fingerprint == wanted.fingerprint


@pytest.mark.parametrize("block", [50, 64, 100, 4096])
def test_line_breaks_in_quotes_wherever_blocks_end(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f'one\n"{n % 10}"', f"{n}\n,", n % 5 + 1) for n in range(50)]
    content = pd.DataFrame(rows, columns=["user", "item", "rating"]).to_csv(index=False)
    wanted = Ratings.from_arrays(*(list(column) for column in zip(*rows, strict=True)))
    monkeypatch.setattr(files, "BLOCK", block)
    assert read(content).fingerprint == wanted.fingerprint


@pytest.mark.parametrize("block", [50, 4096])
@pytest.mark.parametrize(
    ("late", "kinds"),
    [("x7,99,3", (str, int)), ("7,x,3", (int, str)), ("7.0,99,3", (int, int)), ("07a,9x,3", (str, str))],
)
def test_ids_may_begin_like_numbers(late: str, kinds: Any, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK", block)
    ratings = read("user,item,rating\n" + "".join(f"{n},{n % 7},{n % 5}\n" for n in range(40)) + late + "\n")
    assert (type(ratings.users[0]), type(ratings.items[0])) == kinds
    user, item, _ = late.split(",")
    assert (kinds[0](float(user) if kinds[0] is int else user) in ratings.users) is True
    assert kinds[1](item) in ratings.items
    assert len(ratings) == 41


# -- other files -------------------------------------------------------------------------------------


def write_folder(table: Any, path: Path) -> None:
    path.mkdir()
    pyarrow.parquet.write_table(table[:1], path / "0.parquet")
    pyarrow.parquet.write_table(table[1:], path / "1.parquet")


WRITERS: dict[str, Callable[[Any, Path], object]] = {
    "ratings.csv": pyarrow.csv.write_csv,
    "ratings.csv.gz": lambda table, path: path.write_bytes(
        gzip.compress(table.to_pandas().to_csv(index=False).encode())
    ),
    "ratings.tsv.bz2": lambda table, path: path.write_bytes(bz2.compress(table.to_pandas().to_csv(sep="\t").encode())),
    "ratings.dat.gz": lambda table, path: path.write_bytes(
        gzip.compress(table.to_pandas().to_csv(sep="|", index=False).replace("|", "::").encode())
    ),
    "ratings.parquet": pyarrow.parquet.write_table,
    "ratings.feather": pyarrow.feather.write_feather,
    "ratings.arrow": lambda table, path: pyarrow.feather.write_feather(table, path, compression="uncompressed"),
    "pandas.parquet": lambda table, path: table.to_pandas().to_parquet(path),
    "polars.parquet": lambda table, path: pl.DataFrame(table).write_parquet(path),
    "polars.arrow": lambda table, path: pl.DataFrame(table).write_ipc(path),
    "whatever.its.name": pyarrow.parquet.write_table,
    "folder": write_folder,
}


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=15)
@given(table=tables((WHOLE, NAMES)), as_text=st.booleans())
def test_every_file_is_read_alike(
    name: str, table: Table, as_text: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("files") / name
    WRITERS[name](pa.table({"other": ["x"] * len(table)} | table.columns()), path)
    ratings = Ratings.read(str(path) if as_text else path)
    wanted = Ratings.from_arrays(table.user, table.item, table.rating, dates=table.date)
    assert ratings.fingerprint == wanted.fingerprint
    np.testing.assert_array_equal(ratings.dates, wanted.dates)


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "folder"])
def test_files_within_archives_are_read(name: str, tmp_path: Path) -> None:
    table = pa.table({"user": [7, 8], "item": ["a", "b"], "rating": [4, 5]})
    WRITERS[name](table, tmp_path / name)
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tmp_path / name, f"ratings/{name}")
    read_again = Ratings.read(zipfile.Path(tmp_path / "all.zip", f"ratings/{name}"))
    assert read_again.fingerprint == Ratings.from_frame(table).fingerprint
    with pytest.raises(DataError, match=r"all\.zip/other"):
        Ratings.read(zipfile.Path(tmp_path / "all.zip", "other"))


@pytest.mark.parametrize("name", [name for name in WRITERS if "bz2" not in name])
@pytest.mark.parametrize("chosen", [("stars", "who", "what", "when"), (1, 3, 0, 2)])
def test_columns_of_files_are_chosen_by_name_or_number(name: str, chosen: Any, tmp_path: Path) -> None:
    table = pa.table({"what": ["a", "b"], "stars": [4, 5], "when": [10, 20], "who": [7, 8]})
    WRITERS[name](table, tmp_path / name)
    options = dict(zip(("rating", "user", "item", "date"), chosen, strict=True))
    ratings = Ratings.read(tmp_path / name, **options)
    assert ratings.fingerprint == Ratings.from_arrays([7, 8], ["a", "b"], [4, 5]).fingerprint
    assert ratings.dates is not None
    assert ratings.dates.tolist() == [10, 20]


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("", {}, "no ratings;empty"),
        ("\n \r\n", {}, "no ratings;empty"),
        ("user,item,rating\n", {}, "no ratings"),
        ("user,item,x\n1,2,3\n", {}, "no rating column among 'user', 'item', 'x';rating=…"),
        ("user,item,rating,stars\n1,2,3,4\n", {}, "'rating' and 'stars';rating=…"),
        ("user,item,rating\n1,2,3\n", {"date": "when"}, "no column 'when' for date;'user', 'item', 'rating'"),
        ("1,2,3\n", {"user": "who"}, "no header;user='who';from 0 to 2"),
        ("1,2,3\n", {"user": 3}, "no column 3 for user"),
        ("1,2,3\n", {"user": -1}, "no column -1 for user"),
        ("one two three\n1 2 3\n", {}, "'one two three';delimiter=…"),
        ("user,item,rating\n1,2,4\n1,3\n5\n1,5,4\n", {}, "2 lines;3 columns;line 3: '1,3';line 4: '5'"),
        ("1,2,4\n1,3,4,4\n" + "1\n" * 4, {}, "5 lines;line 2: '1,3,4,4';line 4: '1')"),
        ("user,item,rating\n1,2,4\n1,3,good\n1,4,5\n1,5,bad\n", {}, "2 ratings;'good' at row 1, 'bad' at row 3;drop"),
        ("1\t2\t4,5\n", {}, "1 ratings;'4,5' at row 0"),
        (
            "user,item,rating\n1,2,4\n1,3,\n1,4,NaN\n1,5,inf\n",
            {},
            "3 ratings missing;2 missing, 1 infinite;row 1, 2, 3",
        ),
        ("user,item,rating\n1,2,4\n,3,4\n", {}, "1 user ids are missing;row 1"),
        ("user,item,rating\n1,a,4\n1,,4\n", {}, "1 item ids are missing;row 1"),
        ("user,item,rating\n1,2,4\n1.5,3,4\n", {}, "1 user ids are not whole;1.5;row 1"),
        ("user,item,rating\n1,2,4\n2,2,4\n1,2,5\n", {}, "1 repeated;user 1 and item 2 (rows 0 and 2)"),
        ("user,item,rating\n1,2,4\n2,2,9\n", {"scores": [4, 5]}, "1 rating off;9 by user 2 for item 2 (row 1)"),
        ("user,item,rating,date\n1,2,4,7\n2,2,5,\n", {}, "1 dates are missing"),
        ("user,item,rating,date\n1,2,4,yesterday\n2,2,5,today\n", {}, "dates must be"),
        ("user,item,rating\né,2,4\n".encode("latin-1"), {}, "UTF-8;convert"),
        ("user,item,rating\n1,2,4\n".encode("utf-16"), {}, "no UTF-8 text, nor Parquet or Arrow"),
        ("user,item,rating\r1,2,4\r", {}, "cannot be read"),
    ],
)
def test_bad_text_is_refused(content: Any, options: Any, words: str) -> None:
    with pytest.raises(DataError) as error:
        read(content, **options)
    for word in words.split(";"):
        assert word in str(error.value)


def test_repeats_in_a_file_are_kept_as_asked() -> None:
    content = "user,item,rating,date\n1,2,4,10\n2,2,4,20\n1,2,5,30\n"
    for keep, rating, date in (("first", 4, 10), ("last", 5, 30)):
        rows = read(content, duplicates=keep).to_frame("pyarrow").to_pylist()
        assert rows[0] == {"user": 1, "item": 2, "rating": rating, "date": date}
        assert len(rows) == 2


@given(
    st.lists(st.sampled_from([*'1ax;:,\t\n"', "::", "\r\n", "nan", "é", "user,item,rating\n", "1,2,3\n"]), max_size=30)
)
def test_any_text_is_ratings_or_refused(pieces: list[str]) -> None:
    with suppress(DataError):
        assert len(read("".join(pieces))) > 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("junk.csv", bytes(range(256)) * 20),
        ("cut.csv.gz", gzip.compress(SIMPLE.encode() * 1000)[:-20]),
        ("none.parquet", b"PAR1" + bytes(100)),
        ("none.arrow", b"ARROW1" + bytes(100)),
        ("empty.csv", b""),
        ("empty.parquet", b""),
    ],
)
def test_a_damaged_file_is_refused_by_name(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=name):
        Ratings.read(tmp_path / name)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.csv does not exist"):
        Ratings.read(tmp_path / "nowhere.csv")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match="nothing"):
        Ratings.read(tmp_path / "nothing")
    (tmp_path / "nothing" / "ratings.csv").write_text(SIMPLE)
    with pytest.raises(DataError, match=r"ratings\.csv"):
        Ratings.read(tmp_path / "nothing")


def test_a_file_of_no_rows_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"user": [], "item": [], "rating": []}).to_parquet(tmp_path / "none.parquet")
    with pytest.raises(DataError, match="no ratings"):
        Ratings.read(tmp_path / "none.parquet")
