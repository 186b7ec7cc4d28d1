"""The kernels that predict points, against their NumPy twins and against theory."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bemf
from bemf import _native
from bemf.engines import Step
from bemf.engines.native import NativeEngine
from bemf.engines.reference import ReferenceEngine
from bemf.engines.reference_points import point_products
from strategies import random_ratings

TOLERANCE = {"float32": 2e-5, "float64": 1e-11}
KERNELS = ["points.look", "points.descent", "points.multiplication", "biased.look", "biased.descent"]


@st.composite
def point_problems(draw: st.DrawFn) -> tuple[bemf.Ratings, dict[str, Any]]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_users, n_items = draw(st.integers(1, 30)), draw(st.integers(1, 30))
    density = draw(st.sampled_from([0.02, 0.3, 0.9]))
    ratings = random_ratings(rng, n_users, n_items, draw(st.sampled_from([1, 2, 5, 17])), density, draw(st.booleans()))
    columns = draw(st.sampled_from([2, 3, 4, 7, 8, 15, 16, 31, 33, 65]))
    return ratings, {"U": rng.random((1, n_users, columns)), "V": rng.random((1, n_items, columns))}


def stepped(engine: Any, kernel: str, state: dict[str, Any], ratings: bemf.Ratings, side: Any) -> tuple[Any, Any]:
    targets = np.linspace(0.5, 3, ratings.n_scores)
    parameters = {"targets": targets, "learning_rate": 0.02, "regularization": 0.3}
    with closing(engine.place(kernel.partition(".")[0], state, ratings)) as run:
        totals = run.step(Step(kernel, side, parameters))
        return totals, {name: np.asarray(block, dtype=np.float64) for name, block in run.fetch().items()}


@pytest.mark.parametrize("isa", _native.instruction_sets())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@settings(max_examples=30)
@given(
    problem=point_problems(),
    kernel=st.sampled_from(KERNELS),
    side=st.sampled_from(["user", "item"]),
    n_threads=st.integers(1, 3),
)
def test_half_sweeps_are_their_twins(
    isa: str, dtype: str, problem: Any, kernel: str, side: str, n_threads: int
) -> None:
    ratings, exact = problem
    state = {name: block.astype(dtype) for name, block in exact.items()}
    totals, after = stepped(NativeEngine(n_threads, isa), kernel, state, ratings, side)
    wide = {name: block.astype(np.float64) for name, block in state.items()}
    twin_totals, twin_after = stepped(ReferenceEngine(), kernel, wide, ratings, side)
    np.testing.assert_allclose(totals, twin_totals, rtol=TOLERANCE[dtype] * 10, atol=TOLERANCE[dtype])
    for name in ("U", "V"):
        np.testing.assert_allclose(after[name], twin_after[name], rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("isa", _native.instruction_sets())
@settings(max_examples=20)
@given(problem=point_problems(), family=st.sampled_from(["points", "biased"]))
def test_forecasts_are_their_twins(isa: str, problem: Any, family: str) -> None:
    ratings, state = problem
    users, items = np.append(ratings.user_index, [-1, 0]), np.append(ratings.item_index, [0, -1])
    native, twin = (
        engine.place(family, state).forecast(f"{family}.forecast", users.astype(np.int32), items.astype(np.int32), {})
        for engine in (NativeEngine(2, isa), ReferenceEngine())
    )
    np.testing.assert_allclose(native, twin, rtol=1e-12)
    assert np.isnan(native[-2:]).all()


@pytest.mark.parametrize("family", ["points", "biased"])
def test_a_small_step_is_the_gradient(family: str) -> None:
    """By finite differences of the penalised squared error; with a small step the order of the ratings is nothing."""
    rng = np.random.default_rng(0)
    ratings = random_ratings(rng, 8, 6, 5, 0.6)
    state = {"U": rng.random((1, 8, 4)), "V": rng.random((1, 6, 4))}
    rate, penalty, targets = 1e-7, 0.3, np.linspace(0.5, 3, 5)
    counts = ratings.by_user.counts

    def loss(U: Any) -> float:
        predicted = point_products(U[ratings.user_index], state["V"][0][ratings.item_index], family == "biased")
        errors = targets[ratings.score_index] - predicted
        return float(0.5 * np.sum(errors**2) + 0.5 * penalty * counts @ np.sum(U**2, axis=1))

    with closing(NativeEngine(1).place(family, state, ratings)) as run:
        parameters = {"targets": targets, "learning_rate": rate, "regularization": penalty}
        run.step(Step(f"{family}.descent", "user", parameters))
        moved = (np.asarray(run.fetch()["U"])[0] - state["U"][0]) / rate
    for row, column in np.ndindex(8, 4):
        nudge = np.zeros((8, 4))
        nudge[row, column] = 1e-5
        slope = (loss(state["U"][0] + nudge) - loss(state["U"][0] - nudge)) / 2e-5
        assert moved[row, column] == pytest.approx(-slope, abs=1e-4)


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), k=st.integers(1, 5))
def test_multiplications_never_raise_the_error(seed: int, k: int) -> None:
    ratings = random_ratings(np.random.default_rng(seed), 20, 15, 5, 0.4)
    model = bemf.NMF(n_factors=k, n_iterations=20, random_state=seed, dtype="float64").fit(ratings)
    objective = np.array(model.history_["objective"])
    assert np.all(np.diff(objective) >= -1e-9 * np.abs(objective[1:]))
    assert (np.asarray(model.user_factors_) >= 0).all()


@pytest.mark.parametrize("model", [bemf.PMF, bemf.BiasedMF, bemf.NMF])
def test_history_is_the_objective_of_the_factors(model: Any) -> None:
    ratings = random_ratings(np.random.default_rng(0), 20, 30, 5, 0.3)
    fitted = model(n_factors=3, n_iterations=6, random_state=0, dtype="float64").fit(ratings)
    predicted = fitted.user_factors_[ratings.user_index] * fitted.item_factors_[ratings.item_index]
    predicted = predicted.sum(axis=1) + fitted.mean_
    squares = 0.0
    if model is not bemf.NMF:
        rated = [rows.counts > 0 for rows in (ratings.by_user, ratings.by_item)]
        blocks = [np.asarray(fitted.state_[name][0]) for name in ("U", "V")]
        squares = sum(np.sum(block[mask] ** 2) for block, mask in zip(blocks, rated, strict=True))
    if model is bemf.BiasedMF:
        predicted += fitted.user_biases_[ratings.user_index] + fitted.item_biases_[ratings.item_index]
    penalty = getattr(fitted, "regularization", 0.0)
    want = -0.5 * np.sum((ratings.values - predicted) ** 2) - 0.5 * penalty * squares
    assert fitted.history_["objective"][-1] == pytest.approx(want, rel=1e-10)


def test_predictions_stay_on_the_scale() -> None:
    ratings = random_ratings(np.random.default_rng(0), 30, 20, 5, 0.3)
    model = bemf.PMF(n_factors=8, n_iterations=400, regularization=0.0, random_state=0).fit(ratings)
    pairs = [(user, item) for user in ratings.users for item in ratings.items]
    prediction = model.forecast(pairs).prediction
    known = ~np.isnan(prediction)
    assert prediction[known].min() == 0
    assert prediction[known].max() == 4


def test_negative_ratings_are_not_for_nmf() -> None:
    with pytest.raises(bemf.DataError, match="not negative"):
        bemf.NMF().fit(bemf.Ratings.from_arrays([1, 2], [1, 1], [-1, 1]))


@pytest.mark.parametrize("model", [bemf.PMF(), bemf.BiasedMF(), bemf.NMF()])
def test_points_have_no_probabilities(model: Any) -> None:
    ratings = random_ratings(np.random.default_rng(0), 20, 30, 5, 0.3)
    forecast = model.fit(ratings).forecast(ratings)
    assert np.isnan(forecast.probabilities).all()
    assert np.isnan(forecast.reliability).all()
    assert not hasattr(model, "predict_proba")
    assert np.isnan(bemf.metrics.log_loss(ratings, forecast))
    with pytest.raises(bemf.ParameterError, match="no reliability"):
        forecast.at_least(0.5)
    with pytest.raises(bemf.ParameterError, match="points, not probabilities"):
        forecast.by("median")
    with pytest.raises(bemf.ParameterError, match="by='mean'"):
        model.recommend(by="p_like")
    with pytest.raises(bemf.ParameterError, match="no reliability"):
        model.recommend(min_reliability=0.5)
    best = model.recommend(n=3)
    assert best.by == "mean"
    assert np.isnan(best.p_like).all()
    assert (np.diff(best.prediction[:3]) <= 0).all()
    assert "Recommendations(" in repr(best)
    assert "3" in str(best)
