"""BeMF itself: the paper's example and numbers, its two solvers, its hyperparameters."""

from __future__ import annotations

from typing import Any

import hypothesis
import numpy as np
import pytest

import bemf
from bemf.paper.published.generator import JavaRandom
from strategies import Problem, problems, random_ratings

DISLIKE, LIKE = 0.0, 1.0


def paper_example() -> tuple[bemf.Ratings, Any]:
    """The rating matrix and the initial factors of the paper's running example."""
    rows = {
        "u1": {"i1": DISLIKE, "i2": LIKE, "i4": LIKE},
        "u2": {"i1": LIKE, "i3": LIKE, "i4": DISLIKE, "i5": DISLIKE},
        "u3": {"i2": LIKE, "i3": LIKE, "i6": DISLIKE},
        "u4": {"i1": DISLIKE, "i3": DISLIKE, "i5": LIKE, "i6": LIKE},
    }
    users, items = (
        bemf.Vocabulary([f"{side}{n + 1}" for n in range(count)], side) for side, count in (("u", 4), ("i", 6))
    )
    triples = [(user, item, score) for user, row in rows.items() for item, score in row.items()]
    ratings = bemf.Ratings.from_indexes(
        users,
        items,
        users.index([user for user, _, _ in triples]),
        items.index([item for _, item, _ in triples]),
        np.array([score for _, _, score in triples]),
    )
    u_like = [[0.99, 0.26, 0.55], [0.77, 0.77, 0.85], [0.20, 0.27, 0.35], [0.11, 0.96, 0.13]]
    u_dislike = [[0.61, 0.83, 0.47], [0.12, 0.02, 0.54], [0.11, 0.41, 0.07], [0.81, 0.92, 0.52]]
    v_like = [[0.91, 0.15, 0.27], [0.54, 0.54, 0.79], [0.31, 0.57, 0.09], [1.00, 0.83, 0.75]]
    v_like += [[0.68, 0.03, 0.05], [0.35, 0.50, 0.75]]
    v_dislike = [[0.92, 0.53, 0.67], [0.40, 0.24, 0.12], [0.64, 0.22, 0.89], [0.64, 0.86, 0.60]]
    v_dislike += [[0.51, 0.12, 0.41], [0.92, 0.23, 0.75]]
    return ratings, (np.array([u_dislike, u_like]), np.array([v_dislike, v_like]))


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_the_running_example(engine: str) -> None:
    ratings, init = paper_example()
    model = bemf.BeMF(n_factors=3, n_iterations=1, learning_rate=0.1, regularization=0.01, engine=engine)
    forecast = model.fit(ratings, init=init).forecast([("u1", "i3")])
    np.testing.assert_allclose(forecast.probabilities, [[0.53, 0.47]], atol=0.005)
    np.testing.assert_allclose(forecast.probabilities, [[0.529, 0.471]], atol=0.0005)
    assert forecast.prediction.tolist() == [DISLIKE]
    assert forecast.reliability[0] == pytest.approx(0.53, abs=0.005)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_one_iteration_is_algorithm_1(engine: str) -> None:
    """Users against the old items, then items against the new users, one score after the other."""
    ratings, (U, V) = paper_example()
    gamma, eta = 0.1, (0.01, 0.3)
    model = bemf.BeMF(
        n_factors=3, n_iterations=1, learning_rate=gamma, regularization=eta, engine=engine, dtype="float64"
    ).fit(ratings, init=(U, V))
    U, V = U.copy(), V.copy()
    rated = list(zip(ratings.user_index, ratings.item_index, ratings.score_index, strict=True))
    for s in range(2):
        for this, other, penalty, mine, theirs in ((U, V, eta[0], 0, 1), (V, U, eta[1], 1, 0)):
            steps = np.zeros_like(this[s])
            for rating in rated:
                row, column = rating[mine], rating[theirs]
                logistic = 1 / (1 + np.exp(-this[s, row] @ other[s, column]))
                steps[row] += ((rating[2] == s) - logistic) * other[s, column]
            this[s] += gamma * (steps - penalty * this[s])
    np.testing.assert_allclose(model.user_factors_, U, rtol=1e-13)
    np.testing.assert_allclose(model.item_factors_, V, rtol=1e-13)


@pytest.mark.data
@pytest.mark.parametrize("engine", ["native", pytest.param("reference", marks=pytest.mark.slow)])
def test_filmtrust_as_published(engine: str) -> None:
    train, test = bemf.datasets.load("filmtrust", split="cf4j")
    java, k = JavaRandom(43), 2
    init = java.doubles(train.n_scores, len(train.users), k), java.doubles(train.n_scores, len(train.items), k)
    model = bemf.BeMF(
        n_factors=k, n_iterations=75, learning_rate=0.02, regularization=0.06, dtype="float64", engine=engine
    ).fit(train, init=init)
    U, V = model.user_factors_[:, test.user_index], model.item_factors_[:, test.item_index]
    phi = 1 / (1 + np.exp(-np.einsum("dpk,dpk->pd", U, V)))
    phi /= phi.sum(axis=1, keepdims=True)
    assert bemf.metrics.mae(test, test.scores[phi.argmax(axis=1)]) == pytest.approx(0.71496984746, abs=1e-9)
    assert np.mean(phi.max(axis=1) >= 0.5) == pytest.approx(0.24583185527, abs=1e-9)
    forecast = model.forecast(test)
    assert len(test) - np.count_nonzero(forecast.known) == 95
    np.testing.assert_allclose(forecast.probabilities[forecast.known], phi[forecast.known], rtol=1e-12)


@pytest.mark.data
def test_movielens_1m_with_ordinary_initial_factors() -> None:
    train, test = bemf.datasets.load("ml1m", split="cf4j")
    mae, coverage = [], []
    for seed in range(5):
        model = bemf.BeMF(
            n_factors=2, n_iterations=100, learning_rate=0.006, regularization=0.16, random_state=seed
        ).fit(train)
        forecast = model.forecast(test)
        mae.append(bemf.metrics.mae(test, forecast))
        coverage.append(bemf.metrics.coverage(test, forecast.at_least(0.5)))
    assert 0.707 <= np.mean(mae) <= 0.726
    assert 0.275 <= np.mean(coverage) <= 0.300


@pytest.mark.data
def test_ten_bound_sweeps_beat_a_hundred_gradient_steps() -> None:
    train = bemf.datasets.load("ml1m", split="cf4j")[0]
    training, held_out = bemf.datasets.holdout(train, 0.1, random_state=1)
    gd = bemf.BeMF(n_factors=2, n_iterations=100, learning_rate=0.006, regularization=0.16, random_state=0)
    gd.fit(training, validation=held_out, patience=100)
    mm = bemf.BeMF(n_iterations=10, random_state=0).fit(training, validation=held_out, patience=100)
    assert mm.history_["validation"][9] < min(gd.history_["validation"])
    assert len(gd.history_["validation"]) == 100


@hypothesis.settings(max_examples=25)
@hypothesis.given(problem=problems(scores=(1, 2, 5, 10)))
def test_bound_steps_never_go_down(problem: Problem) -> None:
    biased = problem.offset is not None
    model = bemf.BeMF(
        solver="mm",
        n_factors=problem.U.shape[2] - biased,
        biases=biased,
        n_iterations=15,
        dtype="float64",
        regularization=0.5,
    ).fit(problem.ratings, init=(problem.U, problem.V))
    objective = np.array(model.history_["objective"])
    assert len(objective) == 16
    assert np.all(np.diff(objective) >= -1e-9 * np.abs(objective[1:]))
    assert objective[-1] > objective[0]


@pytest.mark.data
@pytest.mark.parametrize("biases", [True, False])
def test_bound_steps_never_go_down_on_real_ratings(biases: bool) -> None:
    train = bemf.datasets.load("ml100k", split="cf4j")[0]
    model = bemf.BeMF(solver="mm", biases=biases, random_state=0, dtype="float64").fit(train)
    assert np.all(np.diff(model.history_["objective"]) > 0)


@pytest.mark.parametrize("setting", [{"learning_rate": 0.01}, {"solver": "mm"}, {"solver": "mm", "biases": False}])
def test_history_is_the_objective_of_the_factors(setting: dict[str, Any]) -> None:
    """The last entry equals the paper's cost, with the sign turned, of the factors that fit left."""
    ratings = random_ratings(np.random.default_rng(0), 20, 30, 5, 0.3)
    model = bemf.BeMF(**setting, regularization=(0.5, 2.0), random_state=0, dtype="float64", n_iterations=7).fit(
        ratings
    )
    U, V = np.asarray(model.state_["U"]), np.asarray(model.state_["V"])
    users, items = ratings.user_index, ratings.item_index
    x = np.einsum("dpk,dpk->dp", model.user_factors_[:, users], model.item_factors_[:, items])
    if "offset" in model.state_:
        x += np.asarray(model.state_["offset"])[:, None] + U[:, users, 0] + V[:, items, 0]
    hit = np.arange(5)[:, None] == ratings.score_index
    log_likelihood = -np.sum(np.log1p(np.exp(np.where(hit, -x, x))))
    rated = [rows.counts > 0 for rows in (ratings.by_user, ratings.by_item)]
    penalty = 0.5 * (0.5 * np.sum(U[:, rated[0]] ** 2) + 2.0 * np.sum(V[:, rated[1]] ** 2))
    assert model.history_["objective"][-1] == pytest.approx(log_likelihood - penalty, rel=1e-12)
    assert len(model.history_["objective"]) == 8


def test_rows_without_ratings_keep_their_initial_values() -> None:
    users, items = bemf.Vocabulary([1, 2, 3], "user"), bemf.Vocabulary([1, 2], "item")
    ratings = bemf.Ratings.from_indexes(users, items, np.array([0, 2]), np.array([0, 0]), np.array([1.0, 2.0]))
    init = np.random.default_rng(0).random((2, 3, 2)), np.random.default_rng(1).random((2, 2, 2))
    for setting in ({"solver": "gd"}, {"solver": "mm", "biases": False}):
        model = bemf.BeMF(n_factors=2, dtype="float64", **setting).fit(ratings, init=init)
        np.testing.assert_array_equal(model.user_factors_[:, 1], init[0][:, 1])
        np.testing.assert_array_equal(model.item_factors_[:, 1], init[1][:, 1])
        assert not np.array_equal(model.user_factors_[:, 0], init[0][:, 0])


def test_engines_start_from_the_same_factors_and_end_near_each_other() -> None:
    ratings = random_ratings(np.random.default_rng(0), 40, 30, 5, 0.4)
    for setting in ({"learning_rate": 0.01}, {"solver": "mm"}):
        native, reference = (
            bemf.BeMF(**setting, random_state=3, engine=engine, dtype="float64").fit(ratings)
            for engine in ("native", "reference")
        )
        np.testing.assert_allclose(native.user_factors_, reference.user_factors_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("given", "kernel"),
    [
        ({}, "bernoulli.bound"),
        ({"learning_rate": 0.01}, "bernoulli.gradient"),
        ({"activation": "probit"}, "bernoulli.gradient"),
        ({"solver": "gd"}, "bernoulli.gradient"),
        ({"solver": "mm"}, "bernoulli.bound"),
    ],
)
def test_the_solver_follows_from_what_is_given(given: dict[str, Any], kernel: str) -> None:
    assert [step.kernel for step in bemf.BeMF(**given).steps({})] == [kernel, kernel]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"solver": "mm", "learning_rate": 0.1}, "no learning_rate"),
        ({"solver": "mm", "activation": "probit"}, "logistic"),
        ({"solver": "mm", "regularization": 0}, "above 0"),
        ({"regularization": -1.0, "learning_rate": 0.1}, "at least 0"),
        ({"regularization": (1, 2, 3)}, "pair"),
        ({"regularization": "much"}, "pair"),
        ({"activation": "softmax"}, "logistic, probit, cauchit"),
        ({"n_factors": 65}, "from 1 to 64"),
        ({"n_factors": 2.5}, "whole number"),
        ({"n_iterations": 0}, "at least 1"),
        ({"learning_rate": 0.0}, "above 0"),
        ({"learning_rate": float("nan")}, "above 0"),
        ({"solver": "sgd"}, "'gd'"),
        ({"dtype": "float16"}, "'float32'"),
        ({"biases": "yes"}, "True"),
    ],
)
def test_wrong_hyperparameters_are_refused(wrong: dict[str, Any], says: str) -> None:
    ratings, _ = paper_example()
    with pytest.raises(bemf.ParameterError, match=says):
        bemf.BeMF(**wrong).fit(ratings)


@pytest.mark.parametrize("activation", ["logistic", "probit", "cauchit"])
def test_every_activation_learns(activation: str) -> None:
    ratings = random_ratings(np.random.default_rng(0), 30, 20, 3, 0.5)
    model = bemf.BeMF(activation=activation, learning_rate=0.01, random_state=0).fit(ratings)
    assert model.history_["objective"][-1] > model.history_["objective"][0]
    assert model.score(ratings) > np.sum(model.prior_ * np.log(model.prior_))


def test_an_activation_of_ones_own_runs_on_the_reference_engine() -> None:
    class Softsign(bemf.Activation):
        def value(self, x: Any) -> Any:
            return 0.5 + 0.5 * x / (1 + np.abs(x))

        def derivative(self, x: Any) -> Any:
            return 0.5 / (1 + np.abs(x)) ** 2

    ratings, init = paper_example()
    model = bemf.BeMF(activation=Softsign(), n_factors=3, learning_rate=0.05, engine="reference").fit(
        ratings, init=init
    )
    assert model.history_["objective"][-1] > model.history_["objective"][0]
    with pytest.raises(bemf.EngineError, match="reference"):
        model.set_params(engine="native").fit(ratings)


def test_a_single_score_is_certain() -> None:
    ratings = bemf.Ratings.from_arrays([1, 2], [1, 1], [4, 4])
    forecast = bemf.BeMF(random_state=0).fit(ratings).forecast([(1, 1)])
    assert forecast.prediction.tolist() == [4.0]
    assert forecast.reliability.tolist() == [1.0]
