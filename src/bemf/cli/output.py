"""What commands answer: tables to files or to people, facts in words or JSON."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import click

from bemf.cli.options import together
from bemf.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

BY_ENDING = {
    "": "csv", "csv": "csv", "tsv": "tsv", "txt": "csv", "json": "json", "jsonl": "jsonl", "ndjson": "jsonl",
    "parquet": "parquet", "pq": "parquet", "arrow": "arrow", "feather": "arrow",
}  # fmt: skip
FORMATS = ("csv", "tsv", "json", "jsonl", "parquet", "arrow")
BATCH = 1 << 14  # rows that are text at a time


table_output = together(
    click.option(
        "-o", "--output", type=click.Path(), metavar="FILE", help="Where to write; the standard output by default."
    ),
    click.option("--format", "form", type=click.Choice(FORMATS), help="By the file's ending, else csv."),
)


# -- tables ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Destination:
    """Where a table goes, and in which form: without one as csv, or on a terminal as people read it."""

    path: str | None
    form: str | None
    as_json: bool

    @classmethod
    def of(cls, path: str | None, form: str | None, as_json: bool) -> Destination:
        """What the options say, refused before the work if it will not do."""
        if path is not None:
            check_writable(path)
            return cls(path, form or _by_ending(path), as_json)
        if as_json and form not in (None, "json"):
            raise click.UsageError(f"--json and --format {form} ask for two things; leave one out")
        return cls(path, "json" if as_json else form, as_json)

    def write(self, table: pa.Table, shown: str) -> None:
        """The table, to a file whole or not at all; `shown` is what people read."""
        from bemf.persistence import replace_atomically

        if self.path is not None:
            replace_atomically(self.path, lambda file: _write(table, file, self.form))
            if self.as_json:
                write_json({"rows": table.num_rows, "output": self.path})
        elif self.form is None and sys.stdout.isatty():
            click.echo(shown)
        else:
            _write(table, sys.stdout.buffer, self.form)
            sys.stdout.buffer.flush()


def check_writable(path: str) -> None:
    """Fails before the work, not after it, where a file cannot be written."""
    from bemf.persistence import is_device

    folder = os.path.dirname(os.path.realpath(path))
    if is_device(path):
        return
    if os.path.isdir(path):
        raise DataError(f"{path} is a folder; name a file to write to")
    if not os.path.isdir(folder):
        raise DataError(f"{folder} is no folder, so {path} cannot be written")
    if not os.access(folder, os.W_OK):
        raise DataError(f"{path} cannot be written: {folder} takes no new files")


def _by_ending(path: str) -> str:
    ending = os.path.splitext(path)[1].lstrip(".").lower()
    if ending not in BY_ENDING:
        raise click.UsageError(f"{path} does not end like a format; say which it has: --format {'|'.join(FORMATS)}")
    return BY_ENDING[ending]


def _write(table: pa.Table, file: IO[bytes], form: str | None) -> None:
    if form == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, file)
    elif form == "arrow":
        import pyarrow as pa

        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    elif form == "json":
        _write_rows(table, file, "[\n", ",\n", "\n]\n")
    elif form == "jsonl":
        _write_rows(table, file, "", "\n", "\n" if len(table) else "")
    else:
        from pyarrow import csv

        csv.write_csv(_without_nan(table), file, csv.WriteOptions(delimiter="\t" if form == "tsv" else ","))


def _write_rows(table: pa.Table, file: IO[bytes], start: str, between: str, end: str) -> None:
    """Each row as a JSON object, on a line of its own."""
    file.write(start.encode())
    for place, batch in enumerate(_without_nan(table).to_batches(max_chunksize=BATCH)):
        rows = (json.dumps(row, ensure_ascii=False) for row in batch.to_pylist())
        file.write((between * (place > 0) + between.join(rows)).encode())
    file.write(end.encode())


def _without_nan(table: pa.Table) -> pa.Table:
    """What is not known is left empty in text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            column = table.column(place)
            emptied = pc.if_else(pc.is_nan(column), pa.scalar(None, field.type), column)
            table = table.set_column(place, field.name, emptied)
    return table


# -- facts -------------------------------------------------------------------------------------------


def write_json(facts: Mapping[str, Any] | Sequence[Any]) -> None:
    """Facts as one JSON document; what is not a number is null."""
    click.echo(json.dumps(_plain(facts), ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def lines(facts: Mapping[str, str]) -> str:
    """Facts one under the other.

    >>> print(lines({"users": "3", "scores": "1, 2"}))
    users   3
    scores  1, 2
    """
    width = max(map(len, facts), default=0)
    return "\n".join(f"{name:{width}}  {value}" for name, value in facts.items())
