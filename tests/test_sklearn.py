"""scikit-learn's face of a model: clones, searches, cross-validation, scorers."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    PredefinedSplit,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import bemf
from bemf import metrics

NAMES = ["accuracy", "brier", "coverage", "log_loss", "mae", "r2", "rmse"]
GAINS = ("accuracy", "coverage", "r2")
WHOLE, HALVES = np.arange(1.0, 6.0), np.arange(0.5, 3.0, 0.5)
FOLDS = KFold(3, shuffle=True, random_state=0)


def problem(scale: NDArray[Any], ids: str, seed: int = 0) -> tuple[Any, NDArray[Any]]:
    """Pairs and their ratings: users like one half of the items, the others do not."""
    rng = np.random.default_rng(seed)
    users, items = np.divmod(rng.choice(20 * 15, 240, replace=False), 15)
    place = np.where(rng.random(240) < 0.3, rng.integers(0, 5, 240), np.where(users % 2 == items % 2, 3, 1))
    if ids == "strings":
        users, items = np.char.add("user ", users.astype(str)), np.char.add("item ", items.astype(str))
    X = np.column_stack([users, items]).astype(object if ids == "strings" else int)
    return X, scale[place]


@pytest.fixture(params=["strings", "numbers"])
def ids(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[WHOLE, HALVES], ids=["whole stars", "half stars"])
def scale(request: pytest.FixtureRequest) -> Any:
    return request.param


def model(**setting: Any) -> bemf.BeMF:
    return bemf.BeMF(**{"n_iterations": 20, "regularization": 1.0, "random_state": 0, **setting})


# -- the protocol ------------------------------------------------------------------------------------


def test_a_model_is_a_classifier() -> None:
    assert is_classifier(model())


def test_clones_have_the_parameters_and_no_fit(scale: Any, ids: str) -> None:
    given = model(scores=list(WHOLE), regularization=(1.0, 2.0), n_factors=3)
    copy = clone(given)
    assert copy is not given
    assert copy.get_params() == given.get_params()
    assert repr(copy) == repr(given)
    fitted = model().fit(*problem(scale, ids))
    check_is_fitted(fitted)
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(fitted))


def test_scores_may_be_an_array() -> None:
    given = model(scores=WHOLE)
    assert clone(given).get_params()["scores"].tolist() == WHOLE.tolist()
    assert "scores=array(" in repr(given)
    np.testing.assert_array_equal(given.fit([("ann", "Alien"), ("ann", "Brazil")], [1, 5]).classes_, WHOLE)


def test_parameters_are_those_that_were_set() -> None:
    given = model().set_params(n_factors=4, learning_rate=0.1)
    assert given.get_params()["n_factors"] == 4
    assert given.get_params(deep=False) == given.get_params()
    assert set(given.get_params()) >= {"n_factors", "n_iterations", "scores", "random_state", "dtype"}


def test_a_model_ends_a_pipeline() -> None:
    X, y = problem(HALVES, "strings")
    piped = Pipeline([("nothing", "passthrough"), ("model", model())])
    np.testing.assert_array_equal(piped.fit(X, y).predict(X), model().fit(X, y).predict(X))
    assert piped.set_params(model__n_factors=3).get_params()["model__n_factors"] == 3


def test_pairs_come_in_any_form() -> None:
    X, y = problem(WHOLE, "strings")
    frame = {"user": list(X[:, 0]), "item": list(X[:, 1])}
    forms = [X, X.tolist(), [tuple(pair) for pair in X], pd.DataFrame(frame), pl.DataFrame(frame)]
    scores = [cross_val_score(model(), form, y, cv=FOLDS).tolist() for form in forms]
    assert scores.count(scores[0]) == len(forms)


# -- cross-validation ---------------------------------------------------------------------------------


def test_cross_val_score_is_the_likelihood_of_each_fold(scale: Any, ids: str) -> None:
    X, y = problem(scale, ids)
    want = []
    for train, test in FOLDS.split(X):
        proba = model().fit(X[train], y[train]).predict_proba(X[test])
        want.append(np.mean(np.log(proba[np.arange(len(test)), np.searchsorted(scale, y[test])])))
    np.testing.assert_allclose(cross_val_score(model(), X, y, cv=FOLDS), want, rtol=1e-6)


def test_cross_val_predict(scale: Any, ids: str) -> None:
    X, y = problem(scale, ids)
    predicted = cross_val_predict(model(), X, y, cv=FOLDS)
    proba = cross_val_predict(model(), X, y, cv=FOLDS, method="predict_proba")
    for train, test in FOLDS.split(X):
        fitted = model().fit(X[train], y[train])
        np.testing.assert_array_equal(predicted[test], fitted.predict(X[test]))
        np.testing.assert_allclose(proba[test], fitted.predict_proba(X[test]), rtol=1e-5)
    np.testing.assert_array_equal(scale[proba.argmax(axis=1)], predicted)


def test_folds_are_stratified_by_default() -> None:
    """On whole stars; scikit-learn takes half stars for numbers without classes."""
    X, y = problem(WHOLE, "numbers")
    assert len(cross_val_score(model(), X, y)) == 5
    assert len(cross_val_score(model(), *problem(HALVES, "numbers"))) == 5


def test_classes_that_are_whole_are_integers(tmp_path: Path) -> None:
    """scikit-learn uses them as indexes where a fold lacks one; a forecast's scores are numbers all the same."""
    for scale, kind in ((WHOLE, np.int64), (HALVES, np.float64), (np.array([1e300, 2e300]), np.float64)):
        fitted = model().fit([(1, 1), (1, 2)], scale[:2])
        fitted.save(tmp_path / "model.bemf")
        for one in (fitted, bemf.load(tmp_path / "model.bemf")):
            assert one.classes_.dtype == kind
            assert one.classes_.tolist() == one.forecast([(1, 1)]).scores.tolist() == scale[:2].tolist()
            assert one.forecast([(1, 1)]).scores.dtype == np.float64


def test_a_user_unknown_in_a_fold_gets_the_prior(scale: Any, ids: str) -> None:
    X, y = problem(scale, ids)
    out = X[:, 0] == X[0, 0]
    split = PredefinedSplit(np.where(out, 0, -1))
    proba = cross_val_predict_of(split, X, y, out)
    prior = [np.mean(y[~out] == score) for score in scale]
    np.testing.assert_allclose(proba, [prior] * out.sum(), rtol=1e-6)
    score = cross_val_score(model(), X, y, cv=split, error_score="raise")
    assert score == pytest.approx(np.mean(np.log(np.array(prior)[np.searchsorted(scale, y[out])])))
    for name in NAMES:
        (value,) = cross_val_score(model(), X, y, cv=split, scoring=metrics.scorer(name), error_score="raise")
        assert np.isfinite(value)
        assert (value == 0) == (name == "coverage") or name == "accuracy"


def cross_val_predict_of(split: Any, X: Any, y: Any, out: Any) -> Any:
    """Of one fold alone; scikit-learn wants all to be predicted."""
    ((train, test),) = split.split()
    assert np.array_equal(test, np.flatnonzero(out))
    return model().fit(X[train], y[train]).predict_proba(X[test])


def test_a_score_absent_from_a_fold_has_no_probability_there(scale: Any, ids: str) -> None:
    X, y = problem(scale, ids)
    rare = y == scale[4]
    first = np.flatnonzero(rare | (np.arange(len(y)) % 3 == 0))
    folds = [(np.setdiff1d(np.arange(len(y)), first), first), (first, np.setdiff1d(np.arange(len(y)), first))]
    with pytest.warns(RuntimeWarning, match="Number of classes"):
        proba = cross_val_predict(model(), X, y, cv=folds, method="predict_proba")
    assert (proba[first, 4] == 0).all()
    assert (proba[folds[1][1], 4] > 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    assert np.isin(cross_val_predict(model(), X, y, cv=folds)[first], scale[:4]).all()
    for name in NAMES:
        assert np.isfinite(cross_val_score(model(), X, y, cv=folds, scoring=metrics.scorer(name))).all()


def test_a_scale_that_is_named_keeps_its_columns_in_every_fold(scale: Any) -> None:
    X, y = problem(scale, "numbers")
    fold = (np.flatnonzero(y < scale[3]), np.flatnonzero(y >= scale[3]))
    given = model(scores=tuple(scale)).fit(X[fold[0]], y[fold[0]])
    assert given.predict_proba(X).shape == (len(X), 5)
    assert cross_val_score(model(scores=tuple(scale)), X, y, cv=[fold], error_score="raise")[0] < -1


# -- searches -----------------------------------------------------------------------------------------


def test_grid_search(scale: Any, ids: str) -> None:
    X, y = problem(scale, ids)
    grid = {"regularization": [0.5, 500.0], "n_factors": [1, 2]}
    search = GridSearchCV(model(), grid, cv=FOLDS, error_score="raise").fit(X, y)
    assert search.best_params_["regularization"] == 0.5
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(search.classes_, scale)
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))
    assert search.score(X, y) == search.best_estimator_.score(X, y)
    assert search.best_estimator_.forecast(X).known.all()


def test_searches_show_the_model_in_a_notebook() -> None:
    search = RandomizedSearchCV(model(n_factors=7), {"regularization": [1.0]})
    assert "n_factors=7" in search._repr_html_()


def test_a_wrong_parameter_is_named() -> None:
    X, y = problem(WHOLE, "numbers")
    with pytest.raises(bemf.ParameterError, match="no parameter 'n_factor'; it has"):
        GridSearchCV(model(), {"n_factor": [1]}).fit(X, y)


# -- scikit-learn's own scorers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("accuracy", "accuracy"),
        ("neg_log_loss", "log_loss"),
        ("neg_mean_absolute_error", "mae"),
        ("neg_root_mean_squared_error", "rmse"),
    ],
)
def test_their_scorers_and_ours_agree(theirs: str, ours: str, ids: str) -> None:
    """On whole stars, known pairs and, in the last fold, pairs of a user that is not known."""
    X, y = problem(WHOLE, ids)
    out = np.flatnonzero(X[:, 0] == X[0, 0])
    folds = [*FOLDS.split(X), (np.setdiff1d(np.arange(len(X)), out), np.arange(len(X)))]
    results = cross_validate(
        model(), X, y, scoring={"theirs": theirs, "ours": metrics.scorer(ours)}, cv=folds, error_score="raise"
    )
    np.testing.assert_allclose(results["test_ours"], results["test_theirs"], rtol=1e-5)


def test_their_classification_scorers_refuse_half_stars_and_ours_do_not() -> None:
    X, y = problem(HALVES, "strings")
    fitted = model().fit(X, y)
    with pytest.raises(ValueError, match="continuous"):
        accuracy_score(y, fitted.predict(X))
    assert metrics.scorer("accuracy")(fitted, X, y) == np.mean(fitted.predict(X) == y)


# -- our scorers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_scorers_are_the_metrics_and_more_is_better(name: str, scale: Any, ids: str) -> None:
    X, y = problem(scale, ids)
    fitted = model().fit(X[:200], y[:200])
    X[-3:, 0] = "nobody" if ids == "strings" else -1
    value = getattr(metrics, name)(y, fitted.forecast(X, unknown="nan" if name == "coverage" else "prior"))
    assert metrics.scorer(name)(fitted, X, y) == (value if name in GAINS else -value)
    assert value > 0


def test_scorers_take_ratings_alone() -> None:
    X, y = problem(HALVES, "strings")
    ratings = bemf.Ratings.from_arrays(X[:, 0], X[:, 1], y)
    fitted = model().fit(ratings)
    assert metrics.scorer("mae")(fitted, ratings) == -metrics.mae(ratings, fitted.forecast(ratings))
    assert metrics.scorer("log_loss")(fitted, ratings) == fitted.score(ratings)
    with pytest.raises(bemf.DataError, match="give y"):
        metrics.scorer("mae")(fitted, X)
    with pytest.raises(bemf.DataError, match="give y"):
        fitted.score(X)


@pytest.mark.parametrize("name", NAMES)
def test_searches_by_our_scorers(name: str, scale: Any) -> None:
    X, y = problem(scale, "strings")
    search = GridSearchCV(
        model(), {"regularization": [1.0, 1000.0]}, scoring=metrics.scorer(name), cv=FOLDS, error_score="raise"
    ).fit(X, y)
    if name != "coverage":
        assert search.best_params_ == {"regularization": 1.0}
    assert search.score(X, y) == metrics.scorer(name)(search.best_estimator_, X, y)


@pytest.mark.slow
def test_several_scorers_in_several_processes(scale: Any) -> None:
    X, y = problem(scale, "strings")
    scoring = {name: metrics.scorer(name) for name in NAMES}
    one, two = (
        cross_validate(model(n_threads=1), X, y, scoring=scoring, cv=FOLDS, n_jobs=n, error_score="raise")
        for n in (1, 2)
    )
    for name in NAMES:
        np.testing.assert_array_equal(one[f"test_{name}"], two[f"test_{name}"])


def test_scorers_travel_and_say_what_they_are() -> None:
    scorer = metrics.scorer("rmse")
    assert repr(scorer) == "scorer('rmse')"
    assert pickle.loads(pickle.dumps(scorer)) == scorer == metrics.scorer("rmse") != metrics.scorer("mae")
    assert len({scorer, metrics.scorer("rmse")}) == 1


def test_unknown_scorers_are_refused_with_those_there_are() -> None:
    with pytest.raises(bemf.ParameterError, match=f"'auc'; there are {', '.join(NAMES)}"):
        metrics.scorer("auc")


def test_a_scorer_needs_no_scikit_learn() -> None:
    code = """
import json, sys, bemf
ratings = bemf.Ratings.from_arrays([1, 1, 2], [1, 2, 1], [1, 2, 2])
bemf.metrics.scorer("brier")(bemf.BeMF(n_iterations=1).fit(ratings), ratings)
print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "sklearn" not in json.loads(done.stdout)
