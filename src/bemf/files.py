"""Tables in and out: text, Parquet, Arrow, and frames of any library."""

from __future__ import annotations

import csv
import itertools
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from bemf.delimiters import UNIT_SEPARATOR, one_byte_delimiters
from bemf.errors import DataError
from bemf.vocabulary import as_ids

Column = str | int

USUAL_NAMES = {
    "user": ("user", "userid", "user_id", "uid", "reviewerid", "customer", "customerid", "customer_id"),
    "item": (
        *("item", "itemid", "item_id", "iid", "movie", "movieid", "movie_id", "anime_id", "product", "productid"),
        *("product_id", "book", "bookid", "book_id", "isbn", "asin"),
    ),
    "rating": ("rating", "ratings", "score", "stars", "overall", "value"),
    "date": ("date", "timestamp", "time", "datetime", "rated_at", "unixreviewtime"),
    "title": ("title", "name", "movie_title"),
}
OPTIONAL = frozenset({"date"})
DELIMITERS = ("::", "\t", ";", ",", "|")
BLOCK = 1 << 22
START = 1 << 16
COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\x04\x22\x4d\x18": "lz4"}


def read_table(
    source: str | PathLike[str] | zipfile.Path | IO[bytes],
    columns: dict[str, Column | None],
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    optional: frozenset[str] = OPTIONAL,
    kinds: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The columns of a file that play these roles, as Arrow arrays; optional ones may be missing.

    Ids are of the `kinds` given, Arrow's int64 or large_string, or else as they look.
    """
    import pyarrow as pa

    kinds = kinds or {}
    name = str(source) if isinstance(source, str | PathLike | zipfile.Path) else "the stream"
    if isinstance(source, str | PathLike) and not os.path.exists(source):
        raise DataError(f"{name} does not exist")
    try:
        found = _read(source, columns, delimiter, header, optional, kinds)
        return {role: _of_kind(column, role, kinds.get(role)) for role, column in found.items()}
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    except (pa.ArrowException, csv.Error, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{name} cannot be read: {error}") from error


def frame_columns(frame: Any, columns: dict[str, Column | None]) -> dict[str, Any]:
    """The columns of a frame of any library that play these roles; a date may be missing."""
    import narwhals as nw
    import pyarrow as pa

    try:
        table = nw.from_native(frame)
        if isinstance(table, nw.LazyFrame):
            table = table.collect()
        chosen = _choose(list(table.columns), columns, OPTIONAL)
    except (TypeError, nw.exceptions.NarwhalsError) as error:
        kind = type(frame).__name__
        raise DataError(f"a frame of pandas, polars or pyarrow is needed; got {kind} ({error})") from error
    out = {}
    for role, name in chosen.items():
        try:
            out[role] = table.get_column(name).to_arrow()
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise DataError(f"the {role} column is not of one kind: {error}") from error
    return out


def to_frame(columns: dict[str, Any], kind: Literal["pandas", "polars", "pyarrow"]) -> Any:
    """Columns as a frame of the library asked for."""
    import pyarrow as pa

    table = pa.table(columns)
    if kind == "pyarrow":
        return table
    try:
        if kind == "pandas":
            return table.to_pandas()
        if kind == "polars":
            import polars

            return polars.from_arrow(table)
    except ImportError as error:
        raise DataError(f"{kind} is not installed; install it, or ask for 'pyarrow'") from error
    raise DataError(f"a frame is 'pandas', 'polars' or 'pyarrow'; got {kind!r}")


# -- which columns -----------------------------------------------------------------------------------


def _choose(names: list[Any], columns: dict[str, Column | None], optional: frozenset[str]) -> dict[str, Any]:
    """The name of each role's column: as said, or by its usual names."""
    chosen = {}
    for role, said in columns.items():
        if said is not None:
            chosen[role] = _named(names, role, said)
            continue
        usual = [name for name in names if str(name).strip().lower() in USUAL_NAMES[role]]
        if len(usual) > 1:
            raise DataError(f"{' and '.join(map(repr, usual))} could both be the {role} column; say which: {role}=…")
        if usual:
            chosen[role] = usual[0]
        elif role not in optional:
            raise DataError(f"no {role} column among {', '.join(map(repr, names))}; name it: {role}=…")
    return chosen


def _named(names: list[Any], role: str, said: Column) -> Any:
    if said in names:
        return said
    if isinstance(said, int) and 0 <= said < len(names):
        return names[said]
    raise DataError(f"no column {said!r} for {role}; there are {', '.join(map(repr, names))}")


# -- any file ----------------------------------------------------------------------------------------


def _read(
    source: Any,
    columns: dict[str, Column | None],
    delimiter: str | None,
    header: bool | None,
    optional: frozenset[str],
    kinds: Mapping[str, Any],
) -> dict[str, Any]:
    if isinstance(source, str | PathLike) and os.path.isdir(source):
        return _read_folder(source, columns, optional)
    open_again = _opener(source)
    with open_again() as stream:
        start = bytes(stream.read(START))
    if start[:4] == b"PAR1":
        return _read_parquet(open_again, columns, optional)
    if start[:6] == b"ARROW1":
        return _read_arrow(open_again, columns, optional)
    return _read_text(_decompressed(open_again, start), columns, delimiter, header, optional, kinds)


def _opener(source: Any) -> Callable[[], Any]:
    """Opens the source as an Arrow stream, again and again."""
    import pyarrow as pa

    if isinstance(source, str | PathLike) and os.path.isfile(source):
        return lambda: pa.OSFile(os.fspath(source), "rb")
    if isinstance(source, zipfile.Path):
        return lambda: pa.PythonFile(source.open("rb"), mode="r")
    content = Path(source).read_bytes() if isinstance(source, str | PathLike) else source.read()  # a pipe: once
    if isinstance(content, str):
        content = content.encode()
    return lambda: pa.BufferReader(content)


def _decompressed(open_again: Callable[[], Any], start: bytes) -> Callable[[], Any]:
    import pyarrow as pa

    for magic, kind in COMPRESSED.items():
        if start.startswith(magic):
            return lambda: pa.CompressedInputStream(open_again(), kind)
    return open_again


def _read_parquet(
    open_again: Callable[[], Any], columns: dict[str, Column | None], optional: frozenset[str]
) -> dict[str, Any]:
    import pyarrow.parquet as pq

    with open_again() as stream:
        file = pq.ParquetFile(stream)
        chosen = _choose(file.schema_arrow.names, columns, optional)
        table = file.read(columns=list(chosen.values()))
    return {role: table.column(name) for role, name in chosen.items()}


def _read_folder(source: Any, columns: dict[str, Column | None], optional: frozenset[str]) -> dict[str, Any]:
    import pyarrow.dataset as ds

    data = ds.dataset(source, format="parquet")
    if not data.files:
        raise DataError("there is no Parquet file in this folder")
    chosen = _choose(data.schema.names, columns, optional)
    table = data.to_table(columns=list(chosen.values()))
    return {role: table.column(name) for role, name in chosen.items()}


def _read_arrow(
    open_again: Callable[[], Any], columns: dict[str, Column | None], optional: frozenset[str]
) -> dict[str, Any]:
    import pyarrow as pa

    with open_again() as stream:
        table = pa.ipc.open_file(stream).read_all()
    chosen = _choose(table.column_names, columns, optional)
    return {role: table.column(name) for role, name in chosen.items()}


def _of_kind(column: Any, role: str, kind: Any) -> Any:
    """Ids as that kind, in which 7.0 is "7" as text."""
    import pyarrow as pa

    try:
        return column if kind is None else as_ids(column, role).cast(kind)
    except pa.ArrowInvalid as error:
        raise DataError(f"{role} ids are integers here, but strings were given ({error})") from error


# -- text --------------------------------------------------------------------------------------------


def _read_text(
    open_again: Callable[[], Any],
    columns: dict[str, Column | None],
    delimiter: str | None,
    header: bool | None,
    optional: frozenset[str],
    kinds: Mapping[str, Any],
) -> dict[str, Any]:
    with open_again() as stream:
        start = bytes(stream.read(START)).removeprefix(b"\xef\xbb\xbf")
    if not start.strip():
        raise DataError(f"there are no {'ratings' if 'rating' in columns else 'rows'}: the file is empty")
    if b"\0" in start:
        raise DataError("it is no UTF-8 text, nor Parquet or Arrow")
    lines = [line.removesuffix("\r") for line in start.decode("utf-8", "replace").split("\n")]
    delimiter = delimiter or _delimiter(lines[0], sum(role not in optional for role in columns))
    rows = list(_fields(lines if len(start) < START else lines[:-1] or lines, delimiter))
    if header is None:
        header = not any(_is_number(field) for field in rows[0])
    names = rows[0] if header else [str(place) for place in range(len(rows[0]))]
    chosen = _choose(names, columns, optional) if header else _numbered(names, columns, optional)
    place = names.index(chosen["rating"]) if "rating" in chosen else len(names)
    comma = delimiter == ";" and any(len(row) > place and "," in row[place] for row in rows[header:])
    return _Text(open_again, delimiter, names, chosen, header, "," if comma else ".", kinds).read()


def _fields(lines: list[str], delimiter: str) -> Iterator[list[str]]:
    if len(delimiter) > 1:
        lines, delimiter = [line.replace(delimiter, UNIT_SEPARATOR) for line in lines], UNIT_SEPARATOR
    return ([field.strip() for field in row] for row in csv.reader(lines, delimiter=delimiter))


def _delimiter(line: str, n_columns: int) -> str:
    for delimiter in DELIMITERS:
        if line.count(delimiter) >= max(n_columns - 1, 1):
            return delimiter
    if n_columns <= 1:
        return ","
    raise DataError(
        f"the first line, {line[:60]!r}, has no {n_columns} columns divided by one of "
        f"{' '.join(map(repr, DELIMITERS))}; say what divides them: delimiter=…"
    )


def _numbered(names: list[str], columns: dict[str, Column | None], optional: frozenset[str]) -> dict[str, Any]:
    """The columns of each role without a header: those first that must be there, a date only where it is said."""
    for role, said in columns.items():
        if isinstance(said, str) and said not in names:
            raise DataError(f"the file has no header, so {role}={said!r} must be a number, from 0 to {len(names) - 1}")
    roles = [role for role, said in columns.items() if said is not None or role != "date"]
    if len(names) < len(roles):
        roles = [role for role in roles if columns[role] is not None or role not in optional]
    said_or_next = {role: columns[role] for role in roles}
    return {
        role: _named(names, role, place if said is None else said)
        for place, (role, said) in enumerate(said_or_next.items())
    }


def _is_number(field: str) -> bool:
    try:
        float(field.replace(",", "."))
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class _Text:
    """A text file whose form is known."""

    open: Callable[[], Any]
    delimiter: str
    names: list[str]
    chosen: dict[str, str]
    header: bool
    decimal_point: str
    kinds: Mapping[str, Any]

    @property
    def _is_long(self) -> bool:
        """Whether the delimiter is more than Arrow can split on: one byte."""
        return len(self.delimiter.encode()) > 1

    def read(self) -> dict[str, Any]:
        """Ratings are numbers, or true and false; ids are whole numbers, or else texts.

        The kinds are tried one after the other: where Arrow guesses them itself it holds all texts in memory.
        """
        import pyarrow as pa

        ids = (pa.int64(), pa.float64(), pa.large_string())
        tried = {"rating": (pa.float64(), pa.bool_()), "user": ids, "item": ids, "title": (pa.large_string(),)}
        tried |= {role: (kind,) for role, kind in self.kinds.items() if kind == pa.large_string()}
        roles = [role for role in tried if role in self.chosen]
        for kinds in itertools.product(*(tried[role] for role in roles)):
            types = {self.chosen[role]: kind for role, kind in zip(reversed(roles), reversed(kinds), strict=True)}
            try:
                return self._parse(types)
            except pa.ArrowInvalid as raised:
                error = raised
        if "UTF8" in str(error):
            raise DataError(f"the file is not UTF-8 text; convert it ({error})")
        self._diagnose()
        raise error

    def _diagnose(self) -> None:
        """Says which rows of an unreadable file are wrong."""
        import pyarrow as pa

        uneven: list[Any] = []

        def note(row: Any) -> str:
            uneven.append(row)
            return "skip"

        columns = self._parse(dict.fromkeys(self.chosen.values(), pa.large_string()), note)
        if uneven:
            shown = "; ".join(
                f"line {row.number}: {row.text.replace(UNIT_SEPARATOR, self.delimiter)[:60]!r}" for row in uneven[:3]
            )
            raise DataError(
                f"{len(uneven):,} lines do not have the {uneven[0].expected_columns} columns of the first ({shown})"
            )
        if "rating" in columns:
            self._refuse_words(columns["rating"])

    def _refuse_words(self, texts: Any) -> None:
        import pyarrow.compute as pc

        point = "," if self.decimal_point == "," else r"\."
        pattern = rf"^[ \t]*[-+]?(\d+({point}\d*)?([eE][-+]?\d+)?|{point}\d+|(?i:inf|infinity|nan))[ \t]*$"
        bad = np.flatnonzero(np.asarray(pc.fill_null(pc.invert(pc.match_substring_regex(texts, pattern)), False)))
        if len(bad):
            shown = ", ".join(f"{texts[int(row)].as_py()!r} at row {row:,}" for row in bad[:3])
            raise DataError(f"{len(bad):,} ratings are no numbers: {shown}. Correct or drop these rows")

    def _parse(self, types: dict[str, Any], on_uneven: Callable[[Any], str] | None = None) -> dict[str, Any]:
        from pyarrow import csv as arrow_csv

        with self.open() as stream:
            table = arrow_csv.read_csv(
                one_byte_delimiters(stream, self.delimiter, BLOCK) if self._is_long else stream,
                read_options=arrow_csv.ReadOptions(
                    column_names=self.names, skip_rows=int(self.header), block_size=BLOCK, use_threads=on_uneven is None
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=UNIT_SEPARATOR if self._is_long else self.delimiter,
                    invalid_row_handler=on_uneven,
                    newlines_in_values=True,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=list(dict.fromkeys(self.chosen.values())),
                    column_types=types,
                    strings_can_be_null=True,
                    null_values=[""],
                    decimal_point=self.decimal_point,
                ),
            )
        return {role: table.column(name) for role, name in self.chosen.items()}
