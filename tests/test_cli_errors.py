"""What goes wrong on the command line: one clear line, the right exit status, nothing half-written."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bemf as library
from bemf.cli import COMMANDS
from command_line import (
    Fitted,
    bemf,
    contents,
    fails,
    plain,
    tiny_picture,
    works,
)

__all__ = ["plain"]

HEADER = "user,item,rating\n"
GARBAGE = random.Random(0).randbytes(5000)

# -- files that are not what they should be ----------------------------------------------------------

BAD: dict[str, bytes | None] = {
    "absent": None,
    "empty": b"",
    "blank": b"\n \r\n\n",
    "other columns": b"a,b,c,d\nx,y,z,w\n",
    "no columns": b"lorem ipsum dolor\nsit amet\n",
    "garbage": GARBAGE,
    "picture": tiny_picture(),
    "latin-1": "user,item,rating,title\né,é,3,é\n".encode("latin-1"),
    "utf-16": "user,item,rating,title\n1,1,3,a\n".encode("utf-16"),
    "uneven": b"user,item,rating,title\nann 1,1,3,a\nann 1,2\n",
    "cut gzip": gzip.compress(b"user,item,rating,title\n" + b"ann 1,1,3,a\n" * 9999)[:-30],
    "cut parquet": b"PAR1" + GARBAGE,
    "cut arrow": b"ARROW1" + GARBAGE,
    "missing ids": b"user,item,rating,title\n,,3,a\n",
}
RATINGS: dict[str, bytes] = {
    "words for ratings": f"{HEADER}ann 1,1,good\nann 1,2,bad\n".encode(),
    "no rating": f"{HEADER}ann 1,1,\n".encode(),
    "infinite": f"{HEADER}ann 1,1,inf\nann 1,2,3\n".encode(),
    "continuous": (HEADER + "".join(f"ann {n % 30},{n % 37},{n / 7}\n" for n in range(400))).encode(),
    "twice": f"{HEADER}ann 1,1,4\nann 1,1,5\n".encode(),
}
READERS: dict[str, Callable[[Fitted, Path], tuple[Any, ...]]] = {
    "fit": lambda _, file: ("fit", file, "-o", file.with_name("m.bemf")),
    "predict": lambda given, file: ("predict", given.model, file, "-o", file.with_name("out.csv")),
    "titles of predict": lambda given, file: ("predict", given.model, given.ratings, "--titles", file),
    "evaluate": lambda given, file: ("evaluate", given.model, file),
    "ratings of recommend": lambda given, file: ("recommend", given.model, "--ratings", file),
    "items of recommend": lambda given, file: ("recommend", given.model, "--items", file),
    "titles of recommend": lambda given, file: ("recommend", given.model, "--titles", file),
    "titles of similar": lambda given, file: ("similar", given.model, 1, "--titles", file),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("bad", BAD)
def test_bad_files_are_named(plain: Fitted, reader: str, bad: str, tmp_path: Path) -> None:
    file = tmp_path / "given.csv"
    if (content := BAD[bad]) is not None:
        file.write_bytes(content)
    before = contents(tmp_path)
    message = fails(*READERS[reader](plain, file))
    assert message.startswith(str(file)) or "ids are missing" in message
    assert contents(tmp_path) == before


@pytest.mark.parametrize("reader", ["fit", "evaluate", "ratings of recommend"])
@pytest.mark.parametrize("bad", RATINGS)
def test_bad_ratings_are_refused(plain: Fitted, reader: str, bad: str, tmp_path: Path) -> None:
    (tmp_path / "given.csv").write_bytes(RATINGS[bad])
    assert re.search("rating|repeated", fails(*READERS[reader](plain, tmp_path / "given.csv")))
    assert list(contents(tmp_path)) == ["given.csv"]


@pytest.mark.parametrize("reader", READERS)
def test_a_folder_is_no_file(plain: Fitted, reader: str, tmp_path: Path) -> None:
    (tmp_path / "given.csv").mkdir()
    assert "given.csv" in fails(*READERS[reader](plain, tmp_path / "given.csv"))


@pytest.mark.parametrize("content", [b"", GARBAGE, b"a,b\nc,d\n"], ids=["empty", "garbage", "other columns"])
@pytest.mark.parametrize("reader", ["fit", "predict", "evaluate", "ratings of recommend"])
def test_a_bad_stream_is_refused(plain: Fitted, reader: str, content: bytes, tmp_path: Path) -> None:
    arguments = ["-" if each == tmp_path / "in" else each for each in READERS[reader](plain, tmp_path / "in")]
    assert fails(*arguments, stdin=content).startswith("the stream")
    assert contents(tmp_path) == {}


# -- models that are none ----------------------------------------------------------------------------

MODELS: dict[str, Callable[[bytes], bytes | None]] = {
    "absent": lambda _: None,
    "empty": lambda _: b"",
    "picture": lambda _: tiny_picture(),
    "garbage": lambda _: GARBAGE,
    "text": lambda _: HEADER.encode(),
    "cut in the header": lambda model: model[:100],
    "cut by a byte": lambda model: model[:-1],
    "one bit other": lambda model: model[:-9] + bytes([model[-9] ^ 4]) + model[-8:],
}
USERS: dict[str, tuple[str, ...]] = {
    "predict": ("pairs.csv",),
    "recommend": ("--user", "ann 1"),
    "similar": ("1",),
    "evaluate": ("ratings.csv",),
    "info": (),
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("damage", MODELS)
def test_bad_models_are_named(plain: Fitted, user: str, damage: str, tmp_path: Path) -> None:
    file = tmp_path / "m.bemf"
    if (content := MODELS[damage](plain.model.read_bytes())) is not None:
        file.write_bytes(content)
    before = contents(tmp_path)
    assert fails(user, file, *USERS[user]).startswith(f"{file}: ")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("user", USERS)
def test_a_folder_is_no_model(user: str, tmp_path: Path) -> None:
    assert f"{tmp_path}: cannot be read" in fails(user, tmp_path, *USERS[user])


# -- ids that nobody knows ---------------------------------------------------------------------------


def test_unknown_ids_are_named(plain: Fitted) -> None:
    assert fails("recommend", plain.model, "-u", "zed") == "1 user without a rating in training: zed"
    assert fails("recommend", plain.model, "-u", "zed", "-u", "zed") == "1 user without a rating in training: zed"
    assert fails("recommend", plain.model, "-u", "a\nb", "-u", "c") == "2 users without a rating in training: a b, c"
    many = [part for n in range(7) for part in ("-u", f"z{n}")]
    assert fails("recommend", plain.model, *many) == "7 users without a rating in training: z0, z1, z2, z3, z4, …"
    assert fails("similar", plain.model, 99, 98) == "2 items without a rating in training: 99, 98"
    assert fails("similar", plain.model, "--", -7) == "1 item without a rating in training: -7"


@pytest.mark.parametrize("typed", ["x", "1.0", "²", "", "1_0", " 1", "--1", "9" * 19, "9" * 5000])
def test_ids_of_the_wrong_kind_are_refused(plain: Fitted, typed: str) -> None:
    assert "integers" in (message := fails("similar", plain.model, "--", 1, typed)) or "whole numbers" in message


def test_ids_of_the_wrong_kind_in_files_are_refused(plain: Fitted, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("user,item\nann 1,one\nann 2,two\n")
    for arguments in (("predict", plain.model, tmp_path / "pairs.csv"),
                      ("recommend", plain.model, "--items", tmp_path / "pairs.csv")):  # fmt: skip
        assert "item ids are integers here, but strings were given" in fails(*arguments)


def test_ratings_of_nobody_known_measure_nothing(plain: Fitted, tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text(HEADER + "zed,1,4\nann 1,99,3\n")
    assert "none of 2 ratings is by a user and of an item that the model knows" in fails(
        "evaluate", plain.model, tmp_path / "test.csv"
    )


# -- wrong use ---------------------------------------------------------------------------------------

WRONG: dict[str, tuple[str, ...]] = {
    "no such command": ("learn",),
    "no such option": ("--quiet", "info", "M"),
    "no such option of a command": ("info", "M", "--quiet"),
    "no argument": ("predict", "M"),
    "no items": ("similar", "M"),
    "too many arguments": ("info", "M", "M"),
    "no recommendations": ("recommend", "M", "-n", "0"),
    "half a recommendation": ("recommend", "M", "-n", "1.5"),
    "too reliable": ("recommend", "M", "--min-reliability", "1.01"),
    "less than unreliable": ("predict", "M", "R", "--min-reliability", "-0.1"),
    "a reliability that is none": ("predict", "M", "R", "--min-reliability", "nan"),
    "what nobody can like": ("recommend", "M", "--like", "6"),
    "what all like": ("recommend", "M", "--like", "0"),
    "a liking that is none": ("recommend", "M", "--like", "nan"),
    "an unknown order": ("recommend", "M", "--by", "taste"),
    "an unknown point": ("predict", "M", "R", "--point", "max"),
    "an unknown form": ("predict", "M", "R", "--format", "xlsx"),
    "an unknown ending": ("predict", "M", "R", "-o", "a.xlsx"),
    "compressed output": ("recommend", "M", "-o", "a.csv.gz"),
    "two forms": ("recommend", "M", "--json", "--format", "csv"),
    "two ways to say for whom": ("recommend", "M", "--user", "ann 1", "--ratings", "R"),
    "no threads": ("similar", "M", "1", "--threads", "0"),
    "too many threads": ("similar", "M", "1", "--threads", "5000"),
    "an unknown data set": ("datasets", "ml2m"),
    "no data set to write": ("datasets", "-o", "a.csv"),
    "no data set to list titles of": ("datasets", "--titles"),
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_wrong_use_is_refused(plain: Fitted, arguments: tuple[str, ...], tmp_path: Path) -> None:
    here = {"M": plain.model, "R": plain.ratings, "a.csv": tmp_path / "a.csv"}
    fails(*(here.get(each, each) for each in arguments), status=2)
    assert contents(tmp_path) == {}


def test_wrong_use_says_where_there_is_help(plain: Fitted) -> None:
    assert fails("predict", plain.model, status=2) == "Missing argument 'PAIRS' (bemf predict --help tells more)"
    assert fails("recommend", plain.model, "--user", status=2).endswith("(bemf recommend --help tells more)")
    assert "(bemf --help tells more)" in fails("learn", status=2)
    for each in COMMANDS:
        assert works(each, "--help").text.startswith(f"Usage: bemf {each} ")


def test_bemf_alone_shows_its_help() -> None:
    done = bemf()
    assert (done.status, done.out) == (2, b"")
    assert done.err == works("--help").text
    assert works("--version").text == f"bemf, version {library.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("fit", "bad.csv", "-o", "m.bemf"), "--rating …"),
        (("evaluate", "MODEL", "bad.csv"), "--rating …"),
        (("recommend", "MODEL", "--ratings", "bad.csv"), "rating=…"),
    ],
)
def test_a_missing_column_is_named_by_the_option_there_is(
    plain: Fitted, arguments: tuple[str, ...], option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text("user,item,grade\n1,2,3\n")
    message = fails(*(plain.model if each == "MODEL" else each for each in arguments))
    assert message.endswith(f"no rating column among 'user', 'item', 'grade'; name it: {option}")


# -- debugging, and what nobody foresaw --------------------------------------------------------------


def test_debug_shows_where_an_error_came_from(plain: Fitted) -> None:
    for arguments, status in ((("info", "absent"), 1), (("recommend", plain.model, "--like", 9), 2), (("learn",), 2)):
        plainly, debugged = bemf(*arguments), bemf("--debug", *arguments)
        assert plainly.status == debugged.status == status
        assert debugged.err.startswith("Traceback")
        assert debugged.err.endswith(plainly.err)


def test_debug_is_no_option_after_the_command(plain: Fitted) -> None:
    assert "--debug" in bemf("info", plain.model, "--debug").err
    assert fails("similar", plain.model, "--", "--debug") == "item ids are whole numbers here; got '--debug'"


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (RuntimeError("odd\n thing"), "RuntimeError: odd thing (bemf --debug … shows where)"),
        (MemoryError(), "there is not enough memory for this"),
        (KeyboardInterrupt(), "interrupted"),
        (OSError(5, "Input/output error", "disk"), "disk: Input/output error"),
    ],
)
def test_errors_that_nobody_foresaw(
    plain: Fitted, error: BaseException, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any) -> None:
        raise error

    monkeypatch.setattr("bemf.persistence.load", fail)
    done = bemf("info", plain.model)
    assert (done.status, done.out, done.err) == (1, b"", f"bemf: {wanted}\n")
