"""Tables in and out: text, Parquet, Arrow, and frames of any library."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import IO, Any, Literal

import numpy as np

from bemf.errors import DataError

Column = str | int

USUAL_NAMES = {
    "user": ("user", "userid", "user_id", "uid", "reviewerid", "customer", "customerid", "customer_id"),
    "item": (
        *("item", "itemid", "item_id", "iid", "movie", "movieid", "movie_id", "anime_id", "product", "productid"),
        *("product_id", "book", "bookid", "book_id", "isbn", "asin"),
    ),
    "rating": ("rating", "ratings", "score", "stars", "overall", "value"),
    "date": ("date", "timestamp", "time", "datetime", "rated_at", "unixreviewtime"),
}
DELIMITERS = ("::", "\t", ";", ",", "|")
UNIT_SEPARATOR = "\x1f"
BLOCK = 1 << 22


def read_table(
    source: str | PathLike[str] | IO[bytes],
    columns: dict[str, Column | None],
    *,
    delimiter: str | None = None,
    header: bool | None = None,
) -> dict[str, Any]:
    """The user, item, rating and perhaps date columns of a file, as Arrow arrays."""
    import pyarrow as pa

    name = str(source) if isinstance(source, str | PathLike) else "the stream"
    if isinstance(source, str | PathLike) and not os.path.exists(source):
        raise DataError(f"{name} does not exist")
    try:
        kind = _kind(source)
        if kind == "parquet":
            return _read_parquet(source, columns)
        if kind == "arrow":
            return _read_arrow(source, columns)
        return _read_text(source, columns, delimiter, header)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    except (pa.ArrowException, OSError, EOFError) as error:
        raise DataError(f"{name} cannot be read: {error}") from error


def frame_columns(frame: Any, columns: dict[str, Column | None]) -> dict[str, Any]:
    """The user, item, rating and perhaps date columns of a frame of any library."""
    import narwhals as nw

    try:
        table = nw.from_native(frame)
    except TypeError as error:
        raise DataError(f"a frame of pandas, polars or pyarrow is needed; got {type(frame).__name__}") from error
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    chosen = _choose(list(table.columns), columns)
    return {role: table.get_column(str(name)).to_arrow() for role, name in chosen.items()}


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


def _choose(names: list[Any], columns: dict[str, Column | None]) -> dict[str, Any]:
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
        elif role != "date":
            raise DataError(f"no {role} column among {', '.join(map(repr, names))}; name it: {role}=…")
    return chosen


def _named(names: list[Any], role: str, said: Column) -> Any:
    if said in names:
        return said
    if isinstance(said, int) and 0 <= said < len(names):
        return names[said]
    raise DataError(f"no column {said!r} for {role}; there are {', '.join(map(repr, names))}")


# -- binary files ------------------------------------------------------------------------------------


def _kind(source: Any) -> str:
    if not isinstance(source, str | PathLike):
        return "text"
    if os.path.isdir(source):
        return "parquet"
    with open(source, "rb") as file:
        start = file.read(6)
    return "parquet" if start[:4] == b"PAR1" else "arrow" if start == b"ARROW1" else "text"


def _read_parquet(source: Any, columns: dict[str, Column | None]) -> dict[str, Any]:
    import pyarrow.dataset as ds

    data = ds.dataset(source, format="parquet")
    chosen = _choose(data.schema.names, columns)
    table = data.to_table(columns=list(chosen.values()))
    return {role: table.column(name) for role, name in chosen.items()}


def _read_arrow(source: Any, columns: dict[str, Column | None]) -> dict[str, Any]:
    import pyarrow.feather as feather

    names = _arrow_names(source)
    chosen = _choose(names, columns)
    table = feather.read_table(source, columns=list(chosen.values()))
    return {role: table.column(name) for role, name in chosen.items()}


def _arrow_names(source: Any) -> list[str]:
    import pyarrow as pa

    with pa.memory_map(os.fspath(source)) as file:
        return list(pa.ipc.open_file(file).schema.names)


# -- text --------------------------------------------------------------------------------------------


def _opener(source: Any) -> Callable[[], Any]:
    """Opens the source as a readable Arrow stream, again and again; files are decompressed by their ending."""
    import pyarrow as pa

    if isinstance(source, str | PathLike):
        return lambda: pa.input_stream(os.fspath(source), compression="detect")
    content = source.read()
    if isinstance(content, str):
        content = content.encode()
    return lambda: pa.BufferReader(content)


def _read_text(
    source: Any, columns: dict[str, Column | None], delimiter: str | None, header: bool | None
) -> dict[str, Any]:
    import pyarrow as pa

    open_again = _opener(source)
    with open_again() as stream:
        start = stream.read(1 << 16)
    if not start.strip():
        raise DataError("there are no ratings: the file is empty")
    lines = start.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").splitlines()[:2]
    delimiter = delimiter or _delimiter(lines[0])
    rows = [[field.strip().strip('"') for field in line.split(delimiter)] for line in lines]
    if header is None:
        header = not any(_is_number(field) for field in rows[0])
    names = rows[0] if header else [str(place) for place in range(len(rows[0]))]
    chosen = _choose(names, columns) if header else _numbered(names, columns)
    example = dict(zip(names, rows[-1], strict=False)).get(chosen["rating"], "")
    text = _Text(open_again, delimiter, names, chosen, header, "," if delimiter == ";" and "," in example else ".")
    try:
        return text.read()
    except pa.ArrowInvalid as error:
        return text.read_carefully(error)


def _delimiter(line: str) -> str:
    for delimiter in DELIMITERS:
        if line.count(delimiter) >= 2:
            return delimiter
    raise DataError(
        f"the first line, {line[:60]!r}, has no three columns divided by one of {' '.join(map(repr, DELIMITERS))}; "
        "say what divides them: delimiter=…"
    )


def _numbered(names: list[str], columns: dict[str, Column | None]) -> dict[str, Any]:
    for role, said in columns.items():
        if isinstance(said, str) and said not in names:
            raise DataError(f"the file has no header, so {role}={said!r} must be a number, from 0 to {len(names) - 1}")
    places = {role: place if said is None else said for place, (role, said) in enumerate(columns.items())}
    if columns["date"] is None:
        del places["date"]
    return {role: _named(names, role, said) for role, said in places.items()}


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

    def read(self) -> dict[str, Any]:
        import pyarrow as pa

        return self._parse({self.chosen["rating"]: pa.float64()})

    def read_carefully(self, error: Exception) -> dict[str, Any]:
        """After `error`: says which rows are wrong; ids that only began like numbers are read as strings."""
        import pyarrow as pa

        uneven: list[Any] = []

        def note(row: Any) -> str:
            uneven.append(row)
            return "skip"

        columns = self._parse(dict.fromkeys(self.chosen.values(), pa.large_string()), note)
        if uneven:
            shown = "; ".join(f"line {row.number}: {row.text[:60]!r}" for row in uneven[:3])
            raise DataError(
                f"{len(uneven):,} lines do not have the {uneven[0].expected_columns} columns of the first ({shown})"
            )
        columns["rating"] = self._as_numbers(columns["rating"])
        if "date" in columns:
            raise DataError(f"the date column is not of one kind: {error}")
        return columns

    def _as_numbers(self, texts: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pc.replace_substring(texts, self.decimal_point, ".")
        pattern = r"^\s*[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+|inf|infinity|nan)\s*$"
        bad = np.flatnonzero(np.asarray(pc.fill_null(pc.invert(pc.match_substring_regex(texts, pattern)), False)))
        if len(bad):
            shown = ", ".join(f"{texts[int(row)].as_py()!r} at row {row:,}" for row in bad[:3])
            raise DataError(f"{len(bad):,} ratings are no numbers: {shown}. Correct or drop these rows")
        return pc.utf8_trim_whitespace(texts).cast(pa.float64())

    def _parse(self, types: dict[str, Any], on_uneven: Callable[[Any], str] | None = None) -> dict[str, Any]:
        from pyarrow import csv

        with self.open() as stream:
            table = csv.read_csv(
                _one_byte_delimiters(stream, self.delimiter) if len(self.delimiter) > 1 else stream,
                read_options=csv.ReadOptions(
                    column_names=self.names, skip_rows=int(self.header), block_size=BLOCK, use_threads=on_uneven is None
                ),
                parse_options=csv.ParseOptions(
                    delimiter=UNIT_SEPARATOR if len(self.delimiter) > 1 else self.delimiter,
                    invalid_row_handler=on_uneven,
                ),
                convert_options=csv.ConvertOptions(
                    include_columns=list(dict.fromkeys(self.chosen.values())),
                    column_types=types,
                    strings_can_be_null=True,
                    decimal_point=self.decimal_point,
                ),
            )
        return {role: table.column(name) for role, name in self.chosen.items()}


def _one_byte_delimiters(stream: Any, delimiter: str) -> Any:
    """The stream with a long delimiter, which Arrow cannot split on, as one byte."""
    import pyarrow as pa

    return pa.PythonFile(io.BufferedReader(_Replacing(stream, delimiter.encode()), BLOCK), mode="r")


class _Replacing(io.RawIOBase):
    def __init__(self, stream: Any, delimiter: bytes) -> None:
        self._stream, self._delimiter = stream, delimiter
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._ready = self._ready or self._next()
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _next(self) -> bytes:
        part = more = self._stream.read(BLOCK)
        while more and part[-1:] in self._delimiter:  # the delimiter may go on in what comes
            more = self._stream.read(BLOCK)
            part += more
        return bytes(part.replace(self._delimiter, UNIT_SEPARATOR.encode()))
