"""Running the command line, in this process where that will do, and small data to run it on."""

from __future__ import annotations

import csv
import io
import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from bemf.cli import main

Id = Callable[[int], Any]

# -- running -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Done:
    """How a command ended and what it wrote."""

    status: Any
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def bemf(*arguments: Any, stdin: str | bytes = b"") -> Done:
    """What a command does, within this process."""
    status: Any = None
    with CliRunner().isolation(input=stdin) as streams:
        try:
            main([str(each) for each in arguments])
        except SystemExit as ended:
            status = ended.code
        sys.stdout.flush()
        out, err = streams[0].getvalue(), streams[1].getvalue()
    return Done(status, out, err.decode())


def works(*arguments: Any, stdin: str | bytes = b"") -> Done:
    """A command that must work, and has nothing to complain about."""
    done = bemf(*arguments, stdin=stdin)
    assert (done.status, done.err) == (0, "")
    return done


def fails(*arguments: Any, stdin: str | bytes = b"", status: int = 1) -> str:
    """The line that a command says when it fails, which must be all that it writes."""
    done = bemf(*arguments, stdin=stdin)
    assert done.out == b""
    return one_line(done.err, done.status, status)


def one_line(err: str, status: int, wanted: int = 1) -> str:
    """What stderr says, if it is a foreseen error's one line."""
    assert status == wanted, err
    assert err.startswith("bemf: "), err
    assert err.endswith("\n")
    assert err.count("\n") == 1, err
    assert "(bemf --debug" not in err, "nobody foresaw this"
    return err.removeprefix("bemf: ").removesuffix("\n")


def in_process(*arguments: Any, first: str = "", **options: Any) -> subprocess.CompletedProcess[bytes]:
    """The same in a process of its own, in which some code is run first."""
    asked = command(*arguments, first=first)
    return subprocess.run(asked, capture_output="stdout" not in options, check=False, **options)


def command(*arguments: Any, first: str = "") -> list[str]:
    becomes = "import os, sys; os.execv(sys.executable, [sys.executable, '-m', 'bemf', *sys.argv[1:]])"
    start = ["-c", f"{first}\n{becomes}"] if first else ["-m", "bemf"]
    return [sys.executable, *start, *map(str, arguments)]


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder, hidden ones too."""
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}


# -- data --------------------------------------------------------------------------------------------

N_USERS, N_ITEMS = 30, 40


def name(n: int) -> str:
    return f"ann {n}"


def digits(n: int) -> str:
    return f"{n:03}"


def strange(n: int) -> str:
    """Ids that a careless reader or writer of CSV spoils."""
    return f'{n}: "é",\n\t;漢字\'🎬 '


KINDS: dict[str, tuple[Id, Id]] = {
    "numbers": (int, int),
    "names and numbers": (name, int),
    "texts of digits": (digits, digits),
    "strange texts": (strange, strange),
}


def rating_rows(user: Id = name, item: Id = int, seed: int = 0) -> list[tuple[Any, Any, int]]:
    """Ratings with something to learn: users like one half of the items or the other."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(N_USERS * N_ITEMS, 400, replace=False)
    liked = (pairs // N_ITEMS % 2 == pairs % N_ITEMS % 2) ^ (rng.random(400) < 0.1)
    values = np.where(liked, 4, 1) + rng.integers(0, 2, 400)
    return [(user(int(p) // N_ITEMS), item(int(p) % N_ITEMS), int(v)) for p, v in zip(pairs, values, strict=True)]


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerows([list(header), *rows] if header else rows)
    return path


def write_ratings(path: Path, user: Id = name, item: Id = int, seed: int = 0) -> Path:
    return write_csv(path, ("user", "item", "rating"), rating_rows(user, item, seed))


def tiny_picture() -> bytes:
    """A PNG of one black pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixel = zlib.compress(b"\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


@dataclass(frozen=True)
class Fitted:
    """Ratings in a file, and the model that `bemf fit` made of them."""

    ratings: Path
    model: Path
    user: Id
    item: Id


def fitted(folder: Path, kind: str = "names and numbers") -> Fitted:
    user, item = KINDS[kind]
    ratings = write_ratings(folder / "ratings.csv", user, item)
    if kind == "texts of digits":  # which CSV cannot tell from numbers
        pl.DataFrame(rating_rows(user, item), ["user", "item", "rating"], orient="row").write_parquet(ratings)
    works("fit", ratings, "-o", folder / "model.bemf", "--validation", 0, "-p", "regularization=1")
    return Fitted(ratings, folder / "model.bemf", user, item)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    """A model of people with names and of items with numbers."""
    return fitted(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module", params=KINDS)
def each_kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    """A model of ids of each kind."""
    return fitted(tmp_path_factory.mktemp("kind"), request.param)


# -- tables that were written ------------------------------------------------------------------------

NUMBERS = ("prediction", "reliability", "p_like", "similarity", "rating")


def read_back(content: bytes, form: str) -> list[dict[str, Any]]:
    """Rows of a table by readers that bemf does not use; ids in CSV are texts."""
    if form == "json":
        return list(json.loads(content))
    if form == "jsonl":
        return [json.loads(line) for line in content.decode().removesuffix("\n").split("\n") if line]
    if form == "parquet":
        return pl.read_parquet(io.BytesIO(content)).to_dicts()
    if form == "arrow":
        return pl.read_ipc(io.BytesIO(content)).to_dicts()
    text = io.StringIO(content.decode(), newline="")
    return [_typed(row) for row in csv.DictReader(text, delimiter="\t" if form == "tsv" else ",")]


def _typed(row: dict[str, str]) -> dict[str, Any]:
    typed: dict[str, Any] = dict(row)
    for column, cell in row.items():
        if column in NUMBERS or column.startswith("p_"):
            typed[column] = float(cell) if cell else None
        elif column == "rank":
            typed[column] = int(cell)
        elif column == "known":
            typed[column] = {"true": True, "false": False}[cell]
    return typed


def without_nan(rows: list[dict[str, Any]], form: str) -> list[dict[str, Any]]:
    """Rows as they should come back: NaN is None, and in CSV ids are texts."""
    ids = ("user", "item", "similar") if form in ("csv", "tsv") else ()
    return [
        {
            name: str(cell) if name in ids else None if isinstance(cell, float) and np.isnan(cell) else cell
            for name, cell in row.items()
        }
        for row in rows
    ]


def environment(**more: str) -> dict[str, str]:
    return os.environ | more
