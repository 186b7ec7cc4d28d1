"""Predictions, recommendations and similar items on the command line are the library's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import bemf as library
from bemf.cli.output import FORMATS
from command_line import (
    N_ITEMS,
    N_USERS,
    Fitted,
    bemf,
    contents,
    digits,
    each_kind,
    name,
    plain,
    read_back,
    without_nan,
    works,
    write_csv,
)

__all__ = ["each_kind", "plain"]

ENDINGS = {
    "a.csv": "csv", "a": "csv", "a.TSV": "tsv", "a.json": "json", "a.jsonl": "jsonl", "a.ndjson": "jsonl",
    "a.parquet": "parquet", "a.pq": "parquet", "a.arrow": "arrow", "a.feather": "arrow",
}  # fmt: skip


def rows_of(answer: Any, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = answer.to_frame("pyarrow", **options).to_pylist()
    return rows


@pytest.fixture
def pairs(each_kind: Fitted, tmp_path: Path) -> list[tuple[Any, Any]]:
    """Pairs in no order, one of them twice, some of people and items that nobody knows; also in pairs.csv."""
    numbers = [(3, 4), (0, 0), (N_USERS - 1, N_ITEMS - 1), (3, 4), (99, 1), (1, 99), (99, 99), (7, 2)]
    chosen = [(each_kind.user(u), each_kind.item(i)) for u, i in numbers]
    write_csv(tmp_path / "pairs.csv", ("user", "item"), chosen)
    return chosen


@pytest.mark.parametrize("form", FORMATS)
def test_predictions_are_those_of_forecast(
    each_kind: Fitted, pairs: list[tuple[Any, Any]], form: str, tmp_path: Path
) -> None:
    done = works("predict", each_kind.model, tmp_path / "pairs.csv", "--format", form)
    wanted = rows_of(library.load(each_kind.model).forecast(pairs))
    assert [row["known"] for row in wanted] == [True] * 4 + [False] * 3 + [True]
    assert np.isnan([row["prediction"] for row in wanted]).tolist() == [False] * 4 + [True] * 3 + [False]
    if form in ("parquet", "arrow"):  # these have NaN
        np.testing.assert_equal(read_back(done.out, form), wanted)
    else:
        assert read_back(done.out, form) == without_nan(wanted, form)


@pytest.mark.parametrize("form", FORMATS)
def test_recommendations_are_those_of_recommend(each_kind: Fitted, form: str) -> None:
    done = works("recommend", each_kind.model, "-n", 3, "--format", form)
    wanted = rows_of(library.load(each_kind.model).recommend(n=3))
    assert len(wanted) == 3 * N_USERS
    assert read_back(done.out, form) == without_nan(wanted, form)


@pytest.mark.parametrize("form", FORMATS)
def test_similar_items_are_those_of_similar_items(each_kind: Fitted, form: str) -> None:
    asked = [each_kind.item(5), each_kind.item(0)]
    done = works("similar", each_kind.model, *asked, "-n", 4, "--format", form)
    wanted = rows_of(library.load(each_kind.model).similar_items(asked, 4))
    assert len(wanted) == 8
    assert read_back(done.out, form) == without_nan(wanted, form)


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ((), {}),
        (("--user", "{0}"), {"users": [0]}),
        (("-u", "{4}", "--user", "{2}", "-n", "7"), {"users": [4, 2], "n": 7}),
        (("-u", "{1}", "--by", "mean", "--seen"), {"users": [1], "by": "mean", "exclude_seen": False}),
        (("--min-reliability", "0.5", "--like", "5"), {"min_reliability": 0.5, "like": 5}),
        (("--like", "1.5", "-n", "1", "--threads", "2"), {"like": 1.5, "n": 1}),
        (("--min-reliability", "1"), {"min_reliability": 1}),
    ],
)
def test_recommend_asks_what_it_is_told_to(each_kind: Fitted, options: tuple[str, ...], asked: dict[str, Any]) -> None:
    if "users" in asked:
        asked = asked | {"users": [each_kind.user(n) for n in asked["users"]]}
    typed = [str(each_kind.user(int(each[1:-1]))) if each[0] == "{" else each for each in options]
    done = works("recommend", each_kind.model, *typed, "--json")
    assert done.json == rows_of(library.load(each_kind.model).recommend(**asked))


@pytest.mark.parametrize("point", ["mode", "median", "mean"])
@pytest.mark.parametrize("least", [0, 0.5, 1])
def test_points_thresholds_and_probabilities(plain: Fitted, point: Any, least: float) -> None:
    asked = [(name(n), n) for n in range(15)]
    typed = "".join(f"{user},{item}\n" for user, item in asked)
    done = works(
        *("predict", plain.model, "-", "--point", point, "--min-reliability", least, "--probabilities", "--json"),
        *("--threads", "1"),
        stdin=typed,
    )
    forecast = library.load(plain.model).forecast(asked, point=point).at_least(least)
    wanted = rows_of(forecast, probabilities=True)
    assert np.isnan(forecast.prediction).any() == (least > 0)
    assert np.isnan(forecast.prediction).all() == (least == 1)
    assert list(wanted[0])[-5:] == ["known", "p_1", "p_2", "p_4", "p_5"]
    assert done.json == without_nan(wanted, "json")


def test_evaluate_says_what_the_metrics_say(each_kind: Fitted, tmp_path: Path) -> None:
    rows = [(each_kind.user(n), each_kind.item(n % 7), 1 + n % 2) for n in range(30)]
    rows.append((each_kind.user(99), each_kind.item(1), 4))
    write_csv(tmp_path / "test.csv", ("user", "item", "rating"), rows)
    truth = library.Ratings.from_arrays(*map(list, zip(*rows, strict=True)))
    forecast = library.load(each_kind.model).forecast(truth)
    facts = works("evaluate", each_kind.model, tmp_path / "test.csv", "--json").json
    for metric in ("mae", "accuracy", "log_loss", "brier", "ece", "rpi"):
        assert facts[metric] == pytest.approx(getattr(library.metrics, metric)(truth, forecast), abs=1e-12)
    assert facts["mae_of_median"] == pytest.approx(library.metrics.mae(truth, forecast.by("median")))
    assert facts["rmse_of_mean"] == pytest.approx(library.metrics.rmse(truth, forecast.by("mean")))
    assert facts["ratings"] == 31
    assert facts["known"] == pytest.approx(30 / 31)
    assert facts["mean_reliability"] == pytest.approx(forecast.reliability.sum() / 30)
    for row in facts["by_threshold"]:
        sure = forecast.at_least(row["min_reliability"])
        assert row["coverage"] == pytest.approx(library.metrics.coverage(truth, sure))
        mae = library.metrics.mae(truth, sure)
        assert row["mae"] == (pytest.approx(mae) if not np.isnan(mae) else None)
    words = works("evaluate", each_kind.model, tmp_path / "test.csv").text
    assert f"MAE {facts['mae']:.3f}" in words
    assert f"{facts['mean_reliability']:.1%} were promised" in words
    assert "≥ 0.3" in words


def test_info_says_what_the_model_is(plain: Fitted) -> None:
    model = library.load(plain.model)
    facts = works("info", plain.model, "--json").json
    assert facts == {
        "model": "BeMF",
        "parameters": model.get_params(),
        "users": N_USERS,
        "items": N_ITEMS,
        "ratings": 400,
        "scores": [1, 2, 4, 5],
        "iterations": model.n_iter_,
        "objective": model.history_["objective"][-1],
        "keeps_ratings": True,
        "data": library.Ratings.read(plain.ratings).fingerprint,
    }
    words = works("info", plain.model).text
    assert "400 ratings by 30 users of 40 items" in words
    assert "keeps ratings  yes" in words


def test_a_model_without_its_ratings(plain: Fitted, tmp_path: Path) -> None:
    path = tmp_path / "bare.bemf"
    library.load(plain.model).save(path, ratings=False)
    assert works("info", path, "--json").json["keeps_ratings"] is False
    done = bemf("recommend", path)
    assert done.status == 1
    assert "--seen" in done.err
    assert works("recommend", path, "--seen").out == works("recommend", plain.model, "--seen").out


# -- where tables go ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("file", "form"), ENDINGS.items())
def test_a_file_s_ending_says_its_form(plain: Fitted, tmp_path: Path, file: str, form: str) -> None:
    done = works("recommend", plain.model, "-o", tmp_path / file)
    assert done.out == b""
    wanted = rows_of(library.load(plain.model).recommend())
    assert read_back((tmp_path / file).read_bytes(), form) == without_nan(wanted, form)


def test_a_form_that_is_said_goes_before_the_ending(plain: Fitted, tmp_path: Path) -> None:
    works("recommend", plain.model, "-o", tmp_path / "a.csv", "--format", "parquet")
    assert len(pl.read_parquet(tmp_path / "a.csv")) == 300


def test_json_says_what_was_written_to_a_file(plain: Fitted, tmp_path: Path) -> None:
    done = works("recommend", plain.model, "-o", tmp_path / "a.csv", "--json")
    assert done.json == {"rows": 300, "output": str(tmp_path / "a.csv")}
    assert (tmp_path / "a.csv").read_bytes() == works("recommend", plain.model).out
    assert list(contents(tmp_path)) == ["a.csv"]


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_asked_is_nothing_answered(plain: Fitted, form: str) -> None:
    done = works("predict", plain.model, "-", "--format", form, stdin="user,item\n")
    assert read_back(done.out, form) == []
    if form in ("csv", "tsv"):
        assert done.text.count("\n") == 1
        assert "prediction" in done.text


def test_many_rows_of_json_are_one_document(plain: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are written in batches, which no one must see."""
    before = [works("recommend", plain.model, "--format", form).out for form in ("json", "jsonl")]
    monkeypatch.setattr("bemf.cli.output.BATCH", 7)
    assert [works("recommend", plain.model, "--format", form).out for form in ("json", "jsonl")] == before


def test_csv_that_was_written_can_be_read_in(each_kind: Fitted, tmp_path: Path) -> None:
    """Predictions taken for ratings, for want of others, have the same users and items."""
    if each_kind.user is digits:
        pytest.skip("CSV cannot tell digits from numbers")
    works("predict", each_kind.model, each_kind.ratings, "-o", tmp_path / "again.csv")
    works("fit", tmp_path / "again.csv", "-o", tmp_path / "m.bemf", "--rating", "prediction")
    before, after = library.load(each_kind.model), library.load(tmp_path / "m.bemf")
    assert after.users_ == before.users_
    assert after.items_ == before.items_


def test_unknown_people_are_named(plain: Fitted) -> None:
    done = bemf("recommend", plain.model, "-u", "nobody", "-u", name(3), "-u", "none", "-u", "nobody")
    assert done.status == 0
    assert done.err == "bemf: 2 users without a rating in training: nobody, none\n"
    assert done.out == works("recommend", plain.model, "-u", name(3)).out


def test_unknown_items_are_named(plain: Fitted) -> None:
    done = bemf("similar", plain.model, 99, 2, 98)
    assert (done.status, done.err) == (0, "bemf: 2 items without a rating in training: 99, 98\n")
    assert done.out == works("similar", plain.model, 2).out
