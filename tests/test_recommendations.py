"""What is recommended: the best by an independent count, reliable, unseen, with titles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bemf
from bemf import _native
from bemf.engines import Wish
from bemf.engines.native import NativeEngine
from bemf.engines.reference import ReferenceEngine
from bemf.recommendations import usual_like
from contract import ratings
from strategies import Problem, problems

__all__ = ["ratings"]


@pytest.fixture(scope="module")
def model(ratings: bemf.Ratings) -> bemf.BeMF:
    return bemf.BeMF(regularization=1.0, random_state=0).fit(ratings)


# -- the kernel --------------------------------------------------------------------------------------


@pytest.mark.parametrize("isa", _native.instruction_sets())
@settings(max_examples=40)
@given(problem=problems(), data=st.data(), n_threads=st.integers(1, 3))
def test_the_native_ranking_is_that_of_its_twin(
    isa: str, problem: Problem, data: st.DataObject, n_threads: int
) -> None:
    n_users, n_items = problem.U.shape[1], problem.V.shape[1]
    users = np.array(data.draw(st.lists(st.integers(-1, n_users - 1), min_size=1, max_size=40)), dtype=np.int32)
    candidates = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=n_items, max_size=n_items)))
    wish = Wish(
        n=data.draw(st.integers(1, 12)),
        candidates=candidates.astype(np.int32),
        worths=np.linspace(0.5, 5, len(problem.U)),
        min_reliability=data.draw(st.sampled_from([0.0, 0.3, 0.6])),
        min_worth=data.draw(st.sampled_from([-np.inf, 1.0])),
        seen=data.draw(st.sampled_from([problem.ratings.by_user, None])),
    )
    activation = data.draw(st.sampled_from(["logistic", "probit", "cauchit"]))
    native, twin = (
        engine.place("bernoulli", problem.state("float64")).rank(
            "bernoulli.rank", users, wish, {"activation": activation}
        )
        for engine in (NativeEngine(n_threads, isa), ReferenceEngine())
    )
    np.testing.assert_array_equal(native >= 0, twin >= 0)
    if len(problem.U) > 1:  # else all are worth the same, to a rounding
        np.testing.assert_array_equal(native, twin)


def test_candidates_beyond_one_stretch() -> None:
    """More candidates than a batch of groups holds, and more users than a task."""
    rng = np.random.default_rng(0)
    state = {"U": rng.normal(0, 1, (3, 100, 2)), "V": rng.normal(0, 1, (3, 5000, 2))}
    wish = Wish(7, np.arange(5000, dtype=np.int32), np.array([0.0, 0, 1]))
    users = np.arange(100, dtype=np.int32)
    native, twin = (
        engine.place("bernoulli", state).rank("bernoulli.rank", users, wish, {"activation": "logistic"})
        for engine in (NativeEngine(2), ReferenceEngine())
    )
    np.testing.assert_array_equal(native, twin)


def test_equal_worth_goes_by_the_order_of_items() -> None:
    state = {"U": np.zeros((2, 1, 1)), "V": np.zeros((2, 50, 1))}
    wish = Wish(5, np.arange(50, dtype=np.int32), np.array([0.0, 1]))
    for engine in (NativeEngine(1), ReferenceEngine()):
        best = engine.place("bernoulli", state).rank(
            "bernoulli.rank", np.array([0], np.int32), wish, {"activation": "logistic"}
        )
        assert best.tolist() == [[0, 1, 2, 3, 4]]


# -- recommend ---------------------------------------------------------------------------------------


def by_hand(model: bemf.BeMF, ratings: bemf.Ratings, user: Any, n: int, like: float, least: float) -> list[Any]:
    """The n unseen items of highest P(r ≥ like), by forecasting every one of them."""
    rated = set(ratings.to_frame("pandas").query("user == @user")["item"])
    items = [item for item in ratings.items if item not in rated]
    forecast = model.forecast([(user, item) for item in items])
    p_like = forecast.p_like(like)
    sure = (forecast.reliability >= least) & (p_like >= least)
    best = sorted((-p_like[j], items[j]) for j in np.flatnonzero(sure))
    return [item for _, item in best[:n]]


@pytest.mark.parametrize("least", [0.0, 0.45])
def test_each_user_gets_the_best(model: bemf.BeMF, ratings: bemf.Ratings, least: float) -> None:
    frame = model.recommend(n=5, like=4, min_reliability=least).to_frame()
    for user in ratings.users:
        mine = frame[frame["user"] == user]
        assert mine["item"].tolist() == by_hand(model, ratings, user, 5, 4, least)
        assert mine["rank"].tolist() == list(range(1, len(mine) + 1))
    assert (frame["reliability"] >= least).all()
    assert frame["p_like"].between(0, 1).all()
    assert (frame.groupby("user")["p_like"].diff().dropna() <= 0).all()


def test_its_columns_are_the_forecasts(model: bemf.BeMF) -> None:
    best = model.recommend("user 3", n=4, like=5)
    forecast = model.forecast(best.to_frame())
    np.testing.assert_array_equal(best.prediction, forecast.prediction)
    np.testing.assert_array_equal(best.reliability, forecast.reliability)
    np.testing.assert_array_equal(best.p_like, forecast.p_like(5))
    assert best.to_frame("polars").columns == ["user", "item", "rank", "prediction", "reliability", "p_like"]


def test_by_the_expected_rating(model: bemf.BeMF, ratings: bemf.Ratings) -> None:
    best = model.recommend("user 3", n=40, by="mean", exclude_seen=False)
    mean = best.forecast.by("mean").prediction
    assert len(best) == len(ratings.items)
    assert (np.diff(mean) <= 0).all()


def test_seen_items_come_only_when_asked(model: bemf.BeMF, ratings: bemf.Ratings) -> None:
    seen = {("user 0", item) for item in ratings.to_frame("pandas").query("user == 'user 0'")["item"]}
    whole = model.recommend("user 0", n=1000, exclude_seen=False).to_frame()
    unseen = model.recommend("user 0", n=1000).to_frame()
    pairs = set(zip(whole["user"], whole["item"], strict=True))
    assert pairs - set(zip(unseen["user"], unseen["item"], strict=True)) == seen


def test_candidates_can_be_named(model: bemf.BeMF) -> None:
    best = model.recommend(["user 1", "user 2"], items=[5, 7, 999], exclude_seen=False)
    assert set(best.items.to_pylist()) == {5, 7}


def test_unknown_users_are_named(model: bemf.BeMF) -> None:
    best = model.recommend(["user 1", "nobody"], n=2)
    assert best.unknown.to_pylist() == ["nobody"]
    assert set(best.users.to_pylist()) == {"user 1"}
    assert "1 user not known" in repr(best)
    nothing = model.recommend("nobody")
    assert len(nothing) == 0
    assert nothing.to_frame()["item"].tolist() == []


def test_nothing_is_sure_enough(model: bemf.BeMF) -> None:
    assert len(model.recommend(min_reliability=1.0)) == 0


@pytest.mark.parametrize("like", [1.9, 5.1, float("nan")])
def test_liking_begins_on_the_scale(model: bemf.BeMF, like: float) -> None:
    with pytest.raises(bemf.ParameterError, match="like must be on the scale 2, 3, 4, 5; got"):
        model.recommend(like=like)
    assert model.recommend(like=2.5).like == 2.5


@pytest.mark.parametrize("kind", ["mapping", "frame", "csv", "parquet"])
def test_titles_are_joined(model: bemf.BeMF, tmp_path: Path, kind: str) -> None:
    names = {item: f"Film {item}, or not" for item in range(0, 40, 2)}
    frame = pd.DataFrame({"item": names.keys(), "title": names.values()})
    frame.to_csv(tmp_path / "titles.csv", index=False)
    frame.to_parquet(tmp_path / "titles.parquet")
    given = {"mapping": names, "frame": frame}.get(kind, str(tmp_path / f"titles.{kind}"))
    best = model.recommend("user 5", n=40, titles=given)
    assert best.titles is not None
    assert best.titles.to_pylist() == [names.get(item) for item in best.items.to_pylist()]
    assert best.to_frame("pyarrow")["title"].to_pylist() == best.titles.to_pylist()
    assert names[next(item for item in best.items.to_pylist() if item in names)] in str(best)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"n": 0}, "n must be at least 1"), ({"by": "reliability"}, "'p_like' or 'mean'")],
)
def test_wrong_wishes_are_refused(model: bemf.BeMF, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(bemf.ParameterError, match=says):
        model.recommend(**wrong)


def test_a_model_that_does_not_know_what_was_seen(model: bemf.BeMF, tmp_path: Path) -> None:
    model.save(tmp_path / "small.bemf", ratings=False)
    small = bemf.load(tmp_path / "small.bemf")
    with pytest.raises(bemf.DataError, match="exclude_seen=False"):
        small.recommend("user 1")
    assert len(small.recommend("user 1", n=3, exclude_seen=False)) == 3
    model.save(tmp_path / "whole.bemf")
    whole = bemf.load(tmp_path / "whole.bemf").recommend(n=3).to_frame()
    pd.testing.assert_frame_equal(whole, model.recommend(n=3).to_frame())


@pytest.mark.parametrize(
    ("scores", "like"),
    [([1, 2, 3, 4, 5], 4), ([0, 1], 1), ([0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4], 3.5), ([3], 3), (list(range(1, 11)), 8)],
)
def test_what_usually_counts_as_liking(scores: list[float], like: float) -> None:
    assert usual_like(np.array(scores, dtype=float)) == like


def test_it_prints_as_a_table(model: bemf.BeMF) -> None:
    lines = str(model.recommend(n=1)).splitlines()
    assert lines[0].split() == ["user", "rank", "item", "prediction", "reliability", "p_like"]
    assert lines[-1] == "… 40 more"


# -- similar items -----------------------------------------------------------------------------------


def test_similar_items_are_the_nearest_by_cosine(model: bemf.BeMF) -> None:
    vectors = model.item_vectors().astype(float)
    found = model.similar_items([3, 8], n=39, titles={4: "Four"}).to_frame()
    for item in (3, 8):
        others = found[found["item"] == item]
        cosine = vectors @ vectors[item] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[item])
        assert item not in others["similar"].tolist()
        np.testing.assert_allclose(others["similarity"], cosine[others["similar"]], atol=1e-6)
        assert (np.diff(others["similarity"]) <= 1e-7).all()
    assert found.loc[found["similar"] == 4, "similar_title"].eq("Four").all()


def test_items_liked_by_the_same_users_are_similar(model: bemf.BeMF) -> None:
    """The problem's users like the even items or the odd ones."""
    found = model.similar_items(n=5)
    same = [a % 2 == b % 2 for a, b in zip(found.items.to_pylist(), found.similar.to_pylist(), strict=True)]
    assert np.mean(same) > 0.9


def test_unknown_items_are_named(model: bemf.BeMF) -> None:
    found = model.similar_items([3, 999], n=2)
    assert found.unknown.to_pylist() == [999]
    assert found.items.to_pylist() == [3, 3]
    assert "1 item not known" in repr(found)
    assert str(found).splitlines()[0].split() == ["item", "rank", "similar", "similarity"]
    with pytest.raises(bemf.ParameterError, match="n must"):
        model.similar_items(3, n=0)


def test_reliable_recommendations_of_integers_and_strings_agree(ratings: bemf.Ratings) -> None:
    frame = ratings.to_frame("pyarrow")
    as_text = frame.set_column(1, "item", frame["item"].cast(pa.string()))
    one, other = (bemf.BeMF(random_state=0).fit(each).recommend("user 7", n=40) for each in (frame, as_text))
    assert dict(zip(map(str, one.items.to_pylist()), one.p_like, strict=True)) == pytest.approx(
        dict(zip(other.items.to_pylist(), other.p_like, strict=True)), abs=1e-3
    )


@pytest.mark.data
@pytest.mark.slow
def test_ten_for_every_user_of_movielens_take_less_than_a_second() -> None:
    import time

    model = bemf.BeMF(random_state=0, n_iterations=5).fit(bemf.datasets.load("ml1m"))
    times = []
    for _ in range(3):
        start = time.process_time()
        best = model.recommend(min_reliability=0.0)
        times.append(time.process_time() - start)
    assert len(best) == 60_400
    assert np.median(times) < 1
