"""The forms in which makers of data sets give out ratings and titles."""

from __future__ import annotations

import csv
import gzip
import html
import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile
from zipfile import Path as ZipPath

import numpy as np

from bemf.errors import DataError
from bemf.files import read_table

if TYPE_CHECKING:
    import pyarrow as pa

Source = Path | ZipPath
Columns = dict[str, Any]
Row = tuple[int, str, str]

GENRES = (  # of MovieLens 100K, in the order of their flags
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama"),
    *("Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western"),
)
NAMES = (("item", "movieId", "anime_id", "anime_ids"), ("title", "name"), ("genres", "genre"))


# -- ratings -----------------------------------------------------------------------------------------


def ratings(source: Source, *, date: int | None = None, delimiter: str | None = None) -> Columns:
    """The columns of ratings; `date` is the place of the dates where there is no header."""
    return read_table(source, {"user": None, "item": None, "rating": None, "date": date}, delimiter=delimiter)


def watched(source: Source) -> Columns:
    """Ratings among which −1 says that there is none, and some stand twice; of these the first counts."""
    columns = {name: np.asarray(column) for name, column in ratings(source).items()}
    rated = columns["rating"] >= 0
    user, item = columns["user"][rated], columns["item"][rated]
    first = np.unique(user * (item.max(initial=0) + 1) + item, return_index=True)[1]
    kept = np.flatnonzero(rated)[np.sort(first)]
    return {name: column[kept] for name, column in columns.items()}


# -- titles ------------------------------------------------------------------------------------------


def titles_with_flags(source: Source) -> pa.Table:
    """Lines divided by |: item, title, three more, and for each genre whether it is one."""

    def row(line: str) -> Row:
        fields = line.split("|")
        genres = [genre for genre, flag in zip(GENRES, fields[5:], strict=True) if flag == "1"]
        return int(fields[0]), fields[1], ", ".join(genres)

    return _table(source, map(row, _lines(source, "latin-1")))


def titles_with_colons(source: Source, *, encoding: str) -> pa.Table:
    """Lines divided by ::, of item, title and genres."""

    def row(line: str) -> Row:
        item, rest = line.split("::", 1)
        title, genres = rest.rsplit("::", 1)
        return int(item), title, genres.replace("|", ", ")

    return _table(source, map(row, _lines(source, encoding)))


def titles_with_names(source: Source) -> pa.Table:
    """CSV with a header; its titles may have escapes of HTML in them."""

    def rows() -> Iterator[Row]:
        lines = csv.reader(_lines(source, "utf-8"))
        header = next(lines, [])
        places = [header.index(name) for names in NAMES for name in names if name in header]
        if len(places) != len(NAMES):
            raise ValueError(f"no columns for item, title and genres among {', '.join(header)}")
        for fields in lines:
            item, title, genres = (fields[place] for place in places)
            yield int(item), html.unescape(title), genres.replace("|", ", ")

    return _table(source, rows())


def _lines(source: Source, encoding: str) -> Iterator[str]:
    """The lines of a text, which may be compressed, without those that are empty."""
    with source.open("rb") as stream:
        plain = gzip.GzipFile(fileobj=stream) if source.name.endswith(".gz") else stream
        text = io.TextIOWrapper(plain, encoding=encoding, newline="")
        yield from (line for line in (line.rstrip("\r\n") for line in text) if line)


def _table(source: Source, rows: Iterable[Row]) -> pa.Table:
    import pyarrow as pa

    read: list[Row] = []
    try:
        read.extend(rows)
    except (ValueError, IndexError, EOFError, OSError, BadZipFile, zlib.error) as error:
        raise DataError(f"{source} cannot be read after {len(read):,} titles ({error})") from error
    kinds = {"item": pa.int64(), "title": pa.string(), "genres": pa.string()}
    return pa.table({name: [row[n] for row in read] for n, name in enumerate(kinds)}, pa.schema(kinds))
