"""Every native kernel against its NumPy twin: on every instruction set of the machine, in both precisions.

A value may differ by tolerance × (|value| + the sum of the absolute terms added up to it).
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bemf import _native
from bemf.activations import BUILT_IN
from bemf.engines import Step
from bemf.engines.native import NativeEngine
from bemf.engines.reference import BernoulliSums, ReferenceEngine, bernoulli_sums
from strategies import Problem, problems, random_ratings

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
each_isa = pytest.mark.parametrize("isa", _native.instruction_sets())
each_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


def both(problem: Problem, step: Step, dtype: str, isa: str, n_threads: int = 1) -> Any:
    """The state before, and totals and state after the step, native and reference."""
    before = problem.state(dtype)
    out: list[Any] = [before]
    for engine in (NativeEngine(n_threads, isa), ReferenceEngine()):
        state = before if engine.name == "native" else {n: b.astype(np.float64) for n, b in before.items()}
        with closing(engine.place("bernoulli", state, problem.ratings)) as run:
            totals = run.step(step)
            out += [totals, {name: np.asarray(block) for name, block in run.fetch().items()}]
    return out


def twin_sums(problem: Problem, state: dict[str, NDArray[Any]], step: Step) -> BernoulliSums:
    exact = {name: block.astype(np.float64) for name, block in state.items()}
    this, other, rows = (
        (exact["U"], exact["V"], problem.ratings.by_user)
        if step.side == "user"
        else (exact["V"], exact["U"], problem.ratings.by_item)
    )
    return bernoulli_sums(this, other, rows, BUILT_IN[step.parameters["activation"]], exact.get("offset"))


def assert_near(actual: NDArray[Any], expected: NDArray[Any], scale: NDArray[Any], tolerance: float) -> None:
    excess = np.abs(actual.astype(np.float64) - expected) - tolerance * scale
    assert np.all(excess <= 0), f"off by {np.max(excess + tolerance * scale):.3g}, allowed {np.max(tolerance * scale)}"


def assert_half_sweep(problem: Problem, step: Step, dtype: str, isa: str) -> None:
    before, totals, after, twin_totals, twin_after = both(problem, step, dtype, isa)
    this, other = ("U", "V") if step.side == "user" else ("V", "U")
    sums = twin_sums(problem, before, step)
    tolerance = TOLERANCE[dtype]
    np.testing.assert_array_equal(after[other], before[other])
    np.testing.assert_allclose(totals, twin_totals, rtol=tolerance)
    old, new = before[this].astype(np.float64), after[this].astype(np.float64)
    if step.kernel == "bernoulli.gradient":
        gamma, eta = step.parameters["learning_rate"], step.parameters["regularization"]
        scale = np.abs(twin_after[this]) + np.abs(old) * (1 + gamma * eta) + gamma * sums.absolute
        assert_near(new, twin_after[this], scale, tolerance)
    elif step.kernel == "bernoulli.bound":
        assert_solution(sums, old, new, step.parameters["regularization"], tolerance)
    else:
        np.testing.assert_array_equal(new, old)


def assert_solution(sums: BernoulliSums, old: Any, new: Any, eta: float, tolerance: float) -> None:
    """The step solves the twin's equations: its residual is small beside the terms of both sides."""
    rated = sums.absolute.any(axis=2)
    matrix = sums.curvature + eta * np.eye(old.shape[2])
    delta = new - old
    residual = np.einsum("drab,drb->dra", matrix, delta) - (sums.gradient - eta * old)
    moved = np.abs(delta) + np.abs(new) + np.abs(old)
    scale = np.einsum("drab,drb->dra", np.abs(matrix), moved) + sums.absolute + eta * np.abs(old)
    assert_near(residual[rated], np.zeros_like(residual[rated]), scale[rated], tolerance)


@each_isa
@each_dtype
@settings(max_examples=40)
@given(
    problem=problems(),
    side=st.sampled_from(["user", "item"]),
    kernel=st.sampled_from(["bernoulli.gradient", "bernoulli.bound", "bernoulli.look"]),
    eta=st.sampled_from([0.01, 0.16, 4.0]),
)
def test_half_sweep(isa: str, dtype: str, problem: Problem, side: Any, kernel: str, eta: float) -> None:
    parameters = {"activation": "logistic", "learning_rate": 0.02, "regularization": eta}
    assert_half_sweep(problem, Step(kernel, side, parameters), dtype, isa)


@each_isa
@each_dtype
@settings(max_examples=15)
@given(
    problem=problems(scores=(2, 5, 17)),
    side=st.sampled_from(["user", "item"]),
    activation=st.sampled_from(["probit", "cauchit"]),
)
def test_half_sweep_of_other_activations(isa: str, dtype: str, problem: Problem, side: Any, activation: str) -> None:
    parameters = {"activation": activation, "learning_rate": 0.02, "regularization": 0.1}
    assert_half_sweep(problem, Step("bernoulli.gradient", side, parameters), dtype, isa)


@each_dtype
@pytest.mark.parametrize("k", [5, 6, 8, 9, 10, 12, 33, 64])
@pytest.mark.parametrize("kernel", ["bernoulli.gradient", "bernoulli.bound"])
def test_many_factors(dtype: str, k: int, kernel: str) -> None:
    rng = np.random.default_rng(k)
    ratings = random_ratings(rng, 12, 90, 5, 0.7)
    U, V = (rng.normal(0, 0.5, (5, n, k + 1)) for n in (12, 90))
    problem = Problem(ratings, U, V, rng.normal(0, 1, 5))
    parameters = {"activation": "logistic", "learning_rate": 0.01, "regularization": 2.0}
    assert_half_sweep(problem, Step(kernel, "user", parameters), dtype, _native.instruction_sets()[0])


@each_isa
@each_dtype
@pytest.mark.parametrize("kernel", ["bernoulli.gradient", "bernoulli.bound"])
def test_256_scores(isa: str, dtype: str, kernel: str) -> None:
    rng = np.random.default_rng(0)
    U, V = (rng.normal(0, 0.5, (256, n, 2)) for n in (9, 40))
    problem = Problem(random_ratings(rng, 9, 40, 256, 0.5), U, V, None)
    parameters = {"activation": "logistic", "learning_rate": 0.01, "regularization": 1.0}
    assert_half_sweep(problem, Step(kernel, "item", parameters), dtype, isa)


@each_isa
@each_dtype
@pytest.mark.parametrize("kernel", ["bernoulli.gradient", "bernoulli.bound"])
@pytest.mark.parametrize("n_scores", [5, 10])
def test_a_row_so_long_that_it_is_cut(isa: str, dtype: str, kernel: str, n_scores: int) -> None:
    rng = np.random.default_rng(1)
    ratings = random_ratings(rng, 3, 40_000, n_scores, 0.01, long_row=True)
    assert ratings.by_user.counts.max() > 2 * 16_384  # more than two pieces: see native/rows.hpp
    U, V = (rng.normal(0, 1, (n_scores, n, 3)) for n in (3, 40_000))
    problem = Problem(ratings, U, V, rng.normal(0, 1, n_scores))
    parameters = {"activation": "logistic", "learning_rate": 1e-4, "regularization": 1.0}
    assert_half_sweep(problem, Step(kernel, "user", parameters), dtype, isa)


@each_isa
@each_dtype
@settings(max_examples=15)
@given(problem=problems(), kernel=st.sampled_from(["bernoulli.gradient", "bernoulli.bound", "bernoulli.look"]))
def test_what_is_not_measured_moves_all_the_same(isa: str, dtype: str, problem: Problem, kernel: str) -> None:
    parameters = {"activation": "logistic", "learning_rate": 0.02, "regularization": 0.16}
    (_, totals, after, _, _), (_, unmeasured_totals, unmeasured, twin_totals, _) = (
        both(problem, Step(kernel, "user", parameters, measured), dtype, isa) for measured in (True, False)
    )
    np.testing.assert_array_equal(unmeasured["U"], after["U"])
    np.testing.assert_array_equal(unmeasured_totals, [0, totals[1]])
    np.testing.assert_allclose(unmeasured_totals, twin_totals, rtol=TOLERANCE[dtype])


@each_dtype
def test_rounding_does_not_grow_with_the_row(dtype: str) -> None:
    """Equal terms round in the same direction every time: the hardest case for a running sum."""
    n = 30_000
    ratings = random_ratings(np.random.default_rng(2), 1, n, 1, 1.0)
    U, V = np.full((1, 1, 1), 0.1), np.full((1, n, 1), 0.7)
    problem = Problem(ratings, U, V, None)
    parameters = {"activation": "logistic", "learning_rate": 1.0, "regularization": 0.0}
    assert_half_sweep(problem, Step("bernoulli.gradient", "user", parameters), dtype, _native.instruction_sets()[0])


@each_isa
@each_dtype
@pytest.mark.parametrize("activation", list(BUILT_IN))
@settings(max_examples=20)
@given(problem=problems())
def test_forecast(isa: str, dtype: str, activation: str, problem: Problem) -> None:
    state = problem.state(dtype)
    rng = np.random.default_rng(0)
    users = rng.integers(-1, problem.U.shape[1], 50).astype(np.int32)
    items = rng.integers(-1, problem.V.shape[1], 50).astype(np.int32)
    phi = []
    for engine in (NativeEngine(2, isa), ReferenceEngine()):
        with closing(engine.place("bernoulli", state)) as run:
            phi.append(run.forecast("bernoulli.forecast", users, items, {"activation": activation}))
    unknown = (users < 0) | (items < 0)
    assert np.isnan(phi[0][unknown]).all()
    np.testing.assert_allclose(phi[0][~unknown], phi[1][~unknown], rtol=0, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(phi[0][~unknown].sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("activation", list(BUILT_IN))
@pytest.mark.parametrize("biased", [False, True])
def test_the_twin_climbs_the_objective(activation: str, biased: bool) -> None:
    """The gradient of the reference engine against finite differences of its log-likelihood."""
    rng = np.random.default_rng(3)
    ratings = random_ratings(rng, 4, 5, 3, 0.7)
    U, V = (rng.normal(0, 1, (3, n, 3)) for n in (4, 5))
    offset = rng.normal(0, 1, 3) if biased else None
    psi = BUILT_IN[activation]
    gradient = bernoulli_sums(U, V, ratings.by_user, psi, offset).gradient
    h = 1e-6
    for place in np.ndindex(U.shape):
        moved = [U.copy(), U.copy()]
        moved[0][place] += h
        moved[1][place] -= h
        up, down = (bernoulli_sums(each, V, ratings.by_user, psi, offset).log_likelihood for each in moved)
        assert (up - down) / (2 * h) == pytest.approx(gradient[place], abs=1e-7)


def test_the_bound_touches_and_stays_below() -> None:
    """The quadratic of the twin's curvature is a lower bound of every row's log-likelihood."""
    rng = np.random.default_rng(4)
    ratings = random_ratings(rng, 3, 6, 2, 0.8)
    U, V = (rng.normal(0, 2, (2, n, 2)) for n in (3, 6))
    psi = BUILT_IN["logistic"]
    here = bernoulli_sums(U, V, ratings.by_user, psi, None)
    for _ in range(200):
        move = rng.normal(0, 2, U.shape)
        there = bernoulli_sums(U + move, V, ratings.by_user, psi, None)
        quadratic = np.einsum("drk,drkl,drl->", move, here.curvature, move)
        bound = here.log_likelihood + np.sum(move * here.gradient) - 0.5 * quadratic
        assert there.log_likelihood >= bound - 1e-9
