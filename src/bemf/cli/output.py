"""What commands answer: tables to files or to people, facts in words or JSON."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

import click

from bemf.cli.options import together

if TYPE_CHECKING:
    import pyarrow as pa

BY_ENDING = {
    "csv": "csv", "tsv": "tsv", "parquet": "parquet", "pq": "parquet",
    "arrow": "arrow", "feather": "arrow", "jsonl": "jsonl", "ndjson": "jsonl",
}  # fmt: skip
FORMATS = ("csv", "tsv", "jsonl", "parquet", "arrow")
BATCH = 1 << 14  # rows that are text at a time

table_output = together(
    click.option("-o", "--output", metavar="FILE", help="Where to write; the standard output by default."),
    click.option("--format", "form", type=click.Choice(FORMATS), help="By the file's ending, else csv."),
)


def write_table(table: pa.Table, output: str | None, form: str | None, as_json: bool, shown: str) -> None:
    """A table to a file, whole or not at all; without one to the standard output, as people read it on a terminal."""
    from bemf.persistence import replace_atomically

    if output is None and form is None and not as_json and sys.stdout.isatty():
        click.echo(shown)
        return
    form = form or ("jsonl" if as_json else _by_ending(output))
    if output is None:
        _write(table, sys.stdout.buffer, form)
        sys.stdout.buffer.flush()
    else:
        replace_atomically(output, lambda file: _write(table, file, form))


def _by_ending(output: str | None) -> str:
    if output is None:
        return "csv"
    ending = os.path.splitext(output)[1].lstrip(".").lower()
    return BY_ENDING.get(ending, "csv")


def _write(table: pa.Table, file: IO[bytes], form: str) -> None:
    if form == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, file)
    elif form == "arrow":
        import pyarrow as pa

        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    elif form == "jsonl":
        _write_json_lines(table, file)
    else:
        from pyarrow import csv

        csv.write_csv(_without_nan(table), file, csv.WriteOptions(delimiter="\t" if form == "tsv" else ","))


def _write_json_lines(table: pa.Table, file: IO[bytes]) -> None:
    for batch in _without_nan(table).to_batches(max_chunksize=BATCH):
        lines = [json.dumps(row, ensure_ascii=False) for row in batch.to_pylist()]
        file.write("".join(f"{line}\n" for line in lines).encode())


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


def write_json(facts: Mapping[str, Any] | Sequence[Any]) -> None:
    """Facts as one JSON document; what is not a number is null."""
    click.echo(json.dumps(_plain(facts), ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def lines(facts: Mapping[str, str]) -> str:
    """Facts one under the other.

    >>> print(lines({"users": "3", "scores": "1, 2"}))
    users   3
    scores  1, 2
    """
    width = max(map(len, facts), default=0)
    return "\n".join(f"{name:{width}}  {value}" for name, value in facts.items())
