"""bemf fit: what it reads, learns, measures, says and saves."""

from __future__ import annotations

import gzip
import os
import re
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import bemf as library
from command_line import (
    N_ITEMS,
    N_USERS,
    contents,
    fails,
    in_process,
    name,
    rating_rows,
    works,
    write_csv,
    write_ratings,
)


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_ratings(tmp_path_factory.mktemp("ratings") / "ratings.csv")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "m.bemf"


def same(one: Any, other: Any) -> bool:
    """Whether two models forecast the same, to the last bit."""
    asked = [(name(user), item) for user in range(N_USERS) for item in range(N_ITEMS)]
    return bool(np.array_equal(one.forecast(asked).probabilities, other.forecast(asked).probabilities))


# -- what is learned ---------------------------------------------------------------------------------


def test_the_model_is_that_of_the_library(ratings: Path, target: Path) -> None:
    works("fit", ratings, "-o", target)
    wanted = library.BeMF(random_state=0).fit(library.Ratings.read(ratings))
    model = library.load(target)
    assert model.get_params() == wanted.get_params()
    assert model.history_ == wanted.history_
    assert same(model, wanted)


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        (("--seed", "7"), {"random_state": 7}),
        (("--seed", "7", "-p", "random_state=8"), {"random_state": 8}),
        (("-p", "n_factors=4", "-p", "n_factors=3"), {"n_factors": 3}),
        (("-p", "solver=gd", "-p", "learning_rate=0.01"), {"solver": "gd", "learning_rate": 0.01}),
        (("-p", "regularization=[1, 2.5]"), {"regularization": (1, 2.5)}),
        (("-p", "biases=False", "-p", "n_iterations=None"), {"biases": False}),
        (("-p", "dtype=float64", "-p", "engine=reference"), {"dtype": "float64", "engine": "reference"}),
        (("--threads", "2", "--model", "BeMF"), {"n_threads": 2}),
    ],
)
def test_hyperparameters_are_those_given(
    ratings: Path, target: Path, options: tuple[str, ...], setting: dict[str, Any]
) -> None:
    works("fit", ratings, "-o", target, "--validation", "0", *options)
    wanted = library.BeMF(**{"random_state": 0} | setting)
    assert library.load(target).get_params() == wanted.get_params() | {"n_threads": setting.get("n_threads")}
    assert same(library.load(target), wanted.fit(library.Ratings.read(ratings)))


# -- what it says ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "seed"), [(0.1, 0), (0.3, 5)])
def test_it_measures_by_ratings_held_out(ratings: Path, target: Path, share: float, seed: int) -> None:
    done = works("fit", ratings, "-o", target, "--validation", share, "--seed", seed, "--json")
    facts = done.json
    data = library.Ratings.read(ratings)
    train, test = library.datasets.holdout(data, share, random_state=seed)
    forecast = library.BeMF(random_state=seed).fit(train).forecast(test)
    assert facts["validation"]["ratings"] == len(test) == round(share * 400)
    assert facts["validation"]["mae"] == pytest.approx(library.metrics.mae(test, forecast), abs=1e-12)
    assert facts["validation"]["log_loss"] == pytest.approx(library.metrics.log_loss(test, forecast), abs=1e-12)
    assert facts["validation"]["mean_reliability"] == pytest.approx(forecast.reliability.mean(), abs=1e-12)
    assert (facts["ratings"], facts["users"], facts["items"]) == (400, N_USERS, N_ITEMS)
    assert facts["scores"] == [1, 2, 4, 5]
    assert facts["output"] == str(target)
    assert facts["bytes"] == target.stat().st_size
    assert 0 < facts["seconds_to_read"] <= facts["seconds"]


def test_it_ends_with_a_summary_for_people(ratings: Path, target: Path) -> None:
    words = works("fit", ratings, "-o", target).text
    measured = works("fit", ratings, "-o", target, "--json").json["validation"]
    assert "400 ratings by 30 users of 40 items, scores 1, 2, 4, 5" in words
    assert "BeMF(random_state=0), 30 iterations" in words
    assert str(target) in words
    assert f"MAE {measured['mae']:.3f}" in words
    assert f"right          {measured['accuracy']:.1%}" in words
    assert f"{measured['mean_reliability']:.1%} were promised" in words
    assert words.count("≥") == len([row for row in measured["by_threshold"][1:] if row["coverage"] * 40 >= 20])
    assert words.index("saved") < words.index("held out")
    assert "nan" not in words


def test_measuring_can_be_left_out(ratings: Path, target: Path) -> None:
    words = works("fit", ratings, "-o", target, "--validation", 0).text
    assert "held out" not in words
    assert "few" not in words
    assert works("fit", ratings, "-o", target, "--validation", 0, "--json").json["validation"] is None


FEW = {
    "nineteen": rating_rows()[:19],
    "one user": [("ann", n, n % 5) for n in range(40)],
    "one item": [(n, "Alien", n % 5) for n in range(40)],
    "nobody twice": [(n, n, n % 5) for n in range(40)],
    "one rating": [("ann", "Alien", 3)],
}


@pytest.mark.parametrize("rows", FEW.values(), ids=FEW)
def test_where_there_is_too_little_to_measure_by(rows: list[Any], target: Path, tmp_path: Path) -> None:
    write_csv(tmp_path / "few.csv", ("user", "item", "rating"), rows)
    words = works("fit", tmp_path / "few.csv", "-o", target).text
    assert "too few ratings" in words
    assert "nan" not in words
    assert works("fit", tmp_path / "few.csv", "-o", target, "--json").json["validation"] is None
    assert len(library.load(target).users_) == len({row[0] for row in rows})


def test_one_score_only(target: Path, tmp_path: Path) -> None:
    write_csv(tmp_path / "one.csv", ("user", "item", "rating"), [(n % 8, n // 8, 3) for n in range(64)])
    words = works("fit", tmp_path / "one.csv", "-o", target).text
    assert "MAE 0.000" in words
    assert "nan" not in words
    assert library.load(target).forecast([(0, 0)]).prediction.tolist() == [3]


# -- what it reads -----------------------------------------------------------------------------------


def as_given(header: bool, delimiter: str, order: tuple[int, ...] = (0, 1, 2)) -> str:
    rows = [("user", "item", "rating"), *rating_rows()]
    return "".join(delimiter.join(str(row[place]) for place in order) + "\n" for row in rows[not header :])


FORMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "csv": (as_given(True, ","), ()),
    "colons without a header": (as_given(False, "::"), ()),
    "said to be without a header": (as_given(False, ";"), ("--no-header",)),
    "another delimiter": (as_given(True, "/"), ("--delimiter", "/")),
    "numbered columns": (as_given(False, "\t", (2, 0, 1)), ("--user", "1", "--item", "2", "--rating", "0")),
    "named columns": (
        "x,y,z\n" + as_given(False, ",", (1, 2, 0)), ("--user", "z", "--item", "x", "--rating", "y", "--header")
    ),
    "repeated ratings": (as_given(True, ",") + "ann 1,1,5\nann 1,1,5\n", ("--duplicates", "last")),
}  # fmt: skip


@pytest.mark.parametrize(("text", "options"), FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("piped", [False, True])
def test_files_of_many_forms(text: str, options: tuple[str, ...], piped: bool, target: Path, tmp_path: Path) -> None:
    (tmp_path / "given").write_text(text, encoding="utf-8")
    source, stdin = ("-", text) if piped else (tmp_path / "given", "")
    works("fit", source, "-o", target, *options, "--validation", 0, stdin=stdin)
    rows = {(user, item): rating for user, item, rating in rating_rows()}
    if "--duplicates" in options:
        rows[name(1), 1] = 5
    wanted = library.Ratings.from_arrays([u for u, _ in rows], [i for _, i in rows], list(rows.values()))
    assert library.load(target).fingerprint_ == wanted.fingerprint


def test_compressed_and_columnar_files(ratings: Path, target: Path, tmp_path: Path) -> None:
    wanted = library.Ratings.read(ratings).fingerprint
    (tmp_path / "r.csv.gz").write_bytes(gzip.compress(ratings.read_bytes()))
    pl.read_csv(ratings).write_parquet(tmp_path / "r.parquet")
    for file in ("r.csv.gz", "r.parquet"):
        works("fit", tmp_path / file, "-o", target, "--validation", 0)
        assert library.load(target).fingerprint_ == wanted
        works("fit", "-", "-o", target, "--validation", 0, stdin=(tmp_path / file).read_bytes())
        assert library.load(target).fingerprint_ == wanted


def test_a_pipe_by_its_path(ratings: Path, target: Path) -> None:
    """What the shell's <(…) gives: a path that can be read once."""
    reading, writing = os.pipe()
    os.write(writing, ratings.read_bytes())
    os.close(writing)
    done = in_process("fit", f"/dev/fd/{reading}", "-o", target, pass_fds=[reading])
    os.close(reading)
    assert (done.returncode, done.stderr) == (0, b"")
    assert library.load(target).fingerprint_ == library.Ratings.read(ratings).fingerprint


def test_scores_and_dates(target: Path, tmp_path: Path) -> None:
    rows = [(*row, 1_000_000 + n) for n, row in enumerate(rating_rows())]
    write_csv(tmp_path / "dated.csv", ("user", "item", "rating", "when"), rows)
    works("fit", tmp_path / "dated.csv", "-o", target, "--scores", "5,4,3, 2,1", "--date", "when", "--validation", 0)
    assert library.load(target).classes_.tolist() == [1, 2, 3, 4, 5]


def test_a_data_set_by_its_name(target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "30,000 ratings by 600 users of 250 items" in works("fit", "demo", "-o", target).text
    assert library.load(target).fingerprint_ == library.datasets.load("demo").fingerprint
    for option in (("--user", "1"), ("--scores", "1,2"), ("--duplicates", "last"), ("--no-header",)):
        message = fails("fit", "demo", "-o", target, *option, status=2)
        assert option[0].replace("no-", "") in message
        assert "leave out" in message
    monkeypatch.chdir(tmp_path)
    write_ratings(Path("demo"))  # a file of that name goes first
    assert "400 ratings" in works("fit", "demo", "-o", target).text


# -- before the work ---------------------------------------------------------------------------------

WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "an unknown model": (("--model", "BMF"), "'BMF' is none of BeMF"),
    "an unknown parameter": (("-p", "n_factor=2"), "no parameter 'n_factor' here; it has .*n_factors"),
    "a parameter with an option": (("-p", "scores=[1, 2]"), "use --scores"),
    "no value": (("-p", "n_factors"), "NAME=VALUE"),
    "too many factors": (("-p", "n_factors=65"), "n_factors must be a whole number from 1 to 64; got 65"),
    "half a factor": (("-p", "n_factors=1.5"), "n_factors must be a whole number"),
    "no number": (("-p", "regularization=[1"), "regularization must be a number"),
    "no finite number": (("-p", "learning_rate=NaN"), "learning_rate must be a number"),
    "a contradiction": (("-p", "solver=mm", "-p", "learning_rate=1"), "has no learning_rate"),
    "an unknown engine": (("-p", "engine=steam"), "engine must be one of native, reference; got 'steam'"),
    "a negative seed": (("--seed", "-1"), "'--seed'"),
    "no threads": (("--threads", "0"), "'--threads'"),
    "a share of one": (("--validation", "1"), "'--validation'"),
    "a share that is none": (("--validation", "nan"), "'--validation': nan is no number"),
    "scores that are none": (("--scores", "1,two"), "'--scores'.*two"),
    "scores without end": (("--scores", "1,inf"), "'--scores'.*finite"),
    "an unknown choice": (("--duplicates", "mean"), "'--duplicates'"),
    "an unknown option": (("--learning-rate", "1"), "--learning-rate"),
    "too much": (("more.csv",), "more.csv"),
}


@pytest.mark.parametrize(("options", "words"), WRONG.values(), ids=WRONG)
def test_wrong_use_is_refused(ratings: Path, target: Path, options: tuple[str, ...], words: str) -> None:
    message = fails("fit", ratings, "-o", target, *options, status=2)
    assert re.search(words, message), message
    assert contents(target.parent) == {}


def test_wrong_use_is_refused_before_anything_is_read(target: Path) -> None:
    assert "n_factors" in fails("fit", "absent.csv", "-o", target, "-p", "n_factors=0", status=2)
    assert "is no folder" in fails("fit", "absent.csv", "-o", target / "deep" / "m.bemf")
    assert "absent.csv" in fails("fit", "absent.csv", "-o", target)


def test_what_is_needed_is_named(ratings: Path) -> None:
    assert "'-o'" in fails("fit", ratings, status=2)
    assert "'RATINGS'" in fails("fit", "-o", "m.bemf", status=2)


def test_a_fit_that_diverges_says_what_to_do(ratings: Path, target: Path) -> None:
    message = fails("fit", ratings, "-o", target, "-p", "learning_rate=100", "-p", "biases=True")
    assert "diverged" in message
    assert "lower learning_rate" in message
    assert contents(target.parent) == {}


# -- how long it takes -------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.slow
def test_a_million_ratings_take_less_than_five_seconds(target: Path, tmp_path: Path) -> None:
    """From the shell to the saved model, with reading and measuring."""
    pl.read_parquet(Path(os.environ["BEMF_DATA"], "ml1m.parquet")).write_csv(tmp_path / "ml1m.csv")
    walls, cpus = [], []
    for _ in range(3):
        wall, cpu = time.perf_counter(), os.times()
        done = in_process("fit", tmp_path / "ml1m.csv", "-o", target)
        walls.append(time.perf_counter() - wall)
        cpus.append(sum(os.times()[2:4]) - sum(cpu[2:4]))
        assert done.returncode == 0
    print(f"{statistics.median(walls):.2f} s, {statistics.median(cpus):.2f} s of CPU")
    assert statistics.median(walls) < 5 or statistics.median(cpus) < 5
    assert int(library.load(target).user_counts_.sum()) == 1_000_209
