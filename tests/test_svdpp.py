"""SVD++: the shortcut against Koren's own steps, and against finite differences."""

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
from strategies import random_ratings


def state_of(rng: np.random.Generator, ratings: bemf.Ratings, k: int) -> dict[str, Any]:
    n_users, n_items = len(ratings.users), len(ratings.items)
    shapes = {"U": (1, n_users, k + 1), "V": (1, n_items, k + 1), "Y": (1, n_items, k), "Z": (1, n_users, k)}
    return {name: rng.normal(0, 0.5, shape) for name, shape in shapes.items()}


def after(engine: Any, kernel: str, state: dict[str, Any], ratings: bemf.Ratings, rate: float = 0.02) -> Any:
    parameters = {"targets": np.linspace(-1, 1.5, ratings.n_scores), "learning_rate": rate, "regularization": 0.3}
    with closing(engine.place("svdpp", state, ratings)) as run:
        totals = run.step(Step(kernel, "user", parameters))
        return totals, {name: np.array(block, dtype=np.float64) for name, block in run.fetch().items()}


@pytest.mark.parametrize("isa", _native.instruction_sets())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32),
    k=st.sampled_from([1, 2, 3, 7, 14, 15, 31, 64]),
    density=st.sampled_from([0.05, 0.3, 0.9]),
    kernel=st.sampled_from(["svdpp.look", "svdpp.descent", "svdpp.users"]),
)
def test_a_pass_is_its_twins(isa: str, dtype: str, seed: int, k: int, density: float, kernel: str) -> None:
    rng = np.random.default_rng(seed)
    ratings = random_ratings(rng, int(rng.integers(1, 15)), int(rng.integers(1, 15)), 4, density)
    state = {name: block.astype(dtype) for name, block in state_of(rng, ratings, k).items()}
    tolerance = {"float32": 2e-4, "float64": 1e-10}[dtype]
    totals, blocks = after(NativeEngine(2, isa), kernel, state, ratings)
    twin_totals, twin_blocks = after(
        ReferenceEngine(), kernel, {name: block.astype(float) for name, block in state.items()}, ratings
    )
    np.testing.assert_allclose(totals, twin_totals, rtol=tolerance, atol=tolerance)
    for name in ("U", "V", "Y", "Z"):
        np.testing.assert_allclose(blocks[name], twin_blocks[name], rtol=tolerance, atol=tolerance)


def objective(state: dict[str, Any], ratings: bemf.Ratings, targets: Any, penalty: float) -> float:
    """Koren's: squared errors, and for each rating the squares of all rows in its prediction."""
    U, V, Y = (state[name][0] for name in ("U", "V", "Y"))
    total = 0.0
    for user, item, score in zip(ratings.user_index, ratings.item_index, ratings.score_index, strict=True):
        seen = ratings.by_user.of(user)
        w = U[user, 1:] + Y[seen].sum(axis=0) / np.sqrt(len(seen))
        error = targets[score] - (U[user, 0] + V[item, 0] + w @ V[item, 1:])
        total += error**2 + penalty * (np.sum(U[user] ** 2) + np.sum(V[item] ** 2) + np.sum(Y[seen] ** 2))
    return total / 2


def test_a_small_pass_is_the_gradient() -> None:
    rng = np.random.default_rng(0)
    ratings = random_ratings(rng, 6, 5, 4, 0.6)
    state, rate = state_of(rng, ratings, 3), 1e-7
    targets = np.linspace(-1, 1.5, 4)
    _, moved = after(NativeEngine(1), "svdpp.descent", state, ratings, rate)
    for name in ("U", "V", "Y"):
        step = (moved[name] - state[name]) / rate
        for place in np.ndindex(state[name].shape):
            values = []
            for nudge in (1e-5, -1e-5):
                nudged = {key: block.copy() for key, block in state.items()}
                nudged[name][place] += nudge
                values.append(objective(nudged, ratings, targets, 0.3))
            assert step[place] == pytest.approx(-(values[0] - values[1]) / 2e-5, abs=1e-3)


def test_history_is_the_objective() -> None:
    ratings = random_ratings(np.random.default_rng(1), 12, 9, 4, 0.5)
    model = bemf.SVDpp(n_factors=3, n_iterations=4, random_state=0, dtype="float64").fit(ratings)
    state = {name: np.asarray(block) for name, block in model.state_.items()}
    want = objective(state, ratings, state["targets"], model.regularization)
    assert model.history_["objective"][-1] == pytest.approx(-want, rel=1e-10)
    assert model.history_["objective"][-1] > model.history_["objective"][0]


def test_a_forecast_is_the_formula() -> None:
    ratings = random_ratings(np.random.default_rng(1), 12, 9, 4, 0.5)
    model = bemf.SVDpp(n_factors=3, random_state=0, dtype="float64").fit(ratings)
    U, V, Y = (np.asarray(model.state_[name][0]) for name in ("U", "V", "Y"))
    user, item = 3, 5
    seen = ratings.by_user.of(user)
    w = U[user, 1:] + Y[seen].sum(axis=0) / np.sqrt(len(seen))
    want = np.clip(model.mean_ + U[user, 0] + V[item, 0] + w @ V[item, 1:], 0, 3)
    assert model.forecast([(user, item)]).prediction[0] == pytest.approx(want, rel=1e-10)


def test_only_users_are_taken_in() -> None:
    ratings = random_ratings(np.random.default_rng(1), 12, 9, 4, 0.5)
    model = bemf.SVDpp(n_factors=3, random_state=0).fit(ratings)
    with pytest.raises(bemf.DataError, match="not items"):
        model.fold_in(bemf.Ratings.from_arrays([50], [77], [1], scores=range(4)))
    model.fold_in(bemf.Ratings.from_arrays([50, 50], [77, 3], [1, 2], scores=range(4)))
    assert model.forecast([(50, 4), (50, 77)]).known.tolist() == [True, False]


@pytest.mark.data
def test_filmtrust_by_the_papers_settings() -> None:
    train, test = bemf.datasets.load("filmtrust", split="cf4j")
    maes = [
        bemf.metrics.mae(
            test,
            bemf.SVDpp(n_factors=2, n_iterations=50, learning_rate=0.0014, regularization=0.1, random_state=seed)
            .fit(train)
            .forecast(test),
        )
        for seed in range(5)
    ]
    assert np.mean(maes) <= 0.645
