"""ResBeMF and DirMF: kernels against their twins, gradients against finite differences, digamma against SciPy."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import bemf
from bemf import _native
from bemf.engines import Step
from bemf.engines.native import NativeEngine
from bemf.engines.reference import ReferenceEngine
from bemf.engines.reference_simplex import digamma, dirichlet_likelihood, softmax_likelihood
from strategies import random_ratings

FAMILIES = ["softmax", "dirichlet"]
LIKELIHOODS = {"softmax": softmax_likelihood, "dirichlet": dirichlet_likelihood}


def after(engine: Any, kernel: str, state: Any, ratings: bemf.Ratings, side: Any = "user") -> Any:
    parameters = {"learning_rate": 0.02, "regularization": 0.3, "hit": 0.8}
    with closing(engine.place(kernel.partition(".")[0], state, ratings)) as run:
        totals = run.step(Step(kernel, side, parameters))
        return totals, {name: np.array(block, dtype=np.float64) for name, block in run.fetch().items()}


@pytest.mark.parametrize("isa", _native.instruction_sets())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    k=st.sampled_from([1, 2, 5, 64]),
    n_scores=st.sampled_from([1, 2, 5, 8, 10, 17, 40]),
    density=st.sampled_from([0.05, 0.3, 0.9]),
    family=st.sampled_from(FAMILIES),
    name=st.sampled_from(["look", "gradient"]),
    side=st.sampled_from(["user", "item"]),
)
def test_half_sweeps_are_their_twins(
    isa: str, dtype: str, seed: int, k: int, n_scores: int, density: float, family: str, name: str, side: str
) -> None:
    if family == "dirichlet" and n_scores == 1:
        n_scores = 2
    rng = np.random.default_rng(seed)
    ratings = random_ratings(rng, int(rng.integers(1, 20)), int(rng.integers(1, 20)), n_scores, density)
    shapes = {"U": len(ratings.users), "V": len(ratings.items)}
    state = {each: rng.normal(0, 0.5, (n_scores, n, k)).astype(dtype) for each, n in shapes.items()}
    tolerance = {"float32": 2e-5, "float64": 1e-11}[dtype]
    totals, blocks = after(NativeEngine(2, isa), f"{family}.{name}", state, ratings, side)
    wide = {each: block.astype(np.float64) for each, block in state.items()}
    twin_totals, twin_blocks = after(ReferenceEngine(), f"{family}.{name}", wide, ratings, side)
    np.testing.assert_allclose(totals, twin_totals, rtol=tolerance * 10, atol=tolerance * 10)
    for each in ("U", "V"):
        np.testing.assert_allclose(blocks[each], twin_blocks[each], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("isa", _native.instruction_sets())
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_scores", [2, 5, 17])
def test_forecasts_are_their_twins(isa: str, family: str, n_scores: int) -> None:
    rng = np.random.default_rng(0)
    state = {"U": rng.normal(0, 2, (n_scores, 9, 3)), "V": rng.normal(0, 2, (n_scores, 7, 3))}
    users, items = np.array([0, 8, -1, 3], np.int32), np.array([6, 0, 2, -1], np.int32)
    native, twin = (
        engine.place(family, state).forecast(f"{family}.forecast", users, items, {})
        for engine in (NativeEngine(1, isa), ReferenceEngine())
    )
    np.testing.assert_allclose(native, twin, rtol=1e-12)
    np.testing.assert_allclose(native[:2].sum(axis=1), 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_errors_are_the_derivatives_of_the_likelihood(family: str) -> None:
    rng = np.random.default_rng(0)
    x, score = rng.normal(0, 1, (6, 4)), rng.integers(0, 4, 6).astype(np.uint8)
    _, error = LIKELIHOODS[family](x, score, 0.8)
    for place in np.ndindex(x.shape):
        nudge = np.zeros_like(x)
        nudge[place] = 1e-6
        slope = LIKELIHOODS[family](x + nudge, score, 0.8)[0] - LIKELIHOODS[family](x - nudge, score, 0.8)[0]
        assert error[place] == pytest.approx(slope / 2e-6, abs=1e-7)


def test_the_likelihood_of_a_dirichlet_distribution_is_scipys() -> None:
    x, score = np.array([[0.3, -1.0, 2.0]]), np.array([1], dtype=np.uint8)
    want = stats.dirichlet.logpdf([0.1, 0.8, 0.1], special.expit(x[0]))
    assert dirichlet_likelihood(x, score, 0.8)[0] == pytest.approx(want, rel=1e-12)


def test_the_twins_digamma_is_scipys() -> None:
    x = np.concatenate([np.geomspace(1e-6, 1e3, 200), np.linspace(0.01, 20, 200)])
    np.testing.assert_allclose(digamma(x), special.digamma(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", [bemf.ResBeMF, bemf.DirMF])
def test_small_steps_raise_the_objective(model: Any) -> None:
    ratings = random_ratings(np.random.default_rng(0), 30, 20, 5, 0.4)
    fitted = model(learning_rate=1e-3, n_iterations=50, random_state=0, dtype="float64").fit(ratings)
    assert (np.diff(fitted.history_["objective"]) > 0).all()


@pytest.mark.parametrize("hit", [0.0, 1.0, 1.5])
def test_a_share_is_between_0_and_1(hit: float) -> None:
    with pytest.raises(bemf.ParameterError, match="hit"):
        bemf.DirMF(hit=hit).fit([(1, 1), (2, 1)], [1, 2])
