"""Metrics against scikit-learn, and against their formulas written out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

import bemf
from bemf import metrics
from test_forecast import forecast_of


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(2, 200)), draw(st.integers(2, 8))
    phi = rng.dirichlet(np.ones(d), n)
    return rng.integers(1, d + 1, n).astype(float), forecast_of(phi)


@given(cases())
def test_errors_as_in_scikit_learn(case: tuple[Any, Any]) -> None:
    truth, forecast = case
    assert metrics.mae(truth, forecast) == pytest.approx(
        sklearn.metrics.mean_absolute_error(truth, forecast.prediction)
    )
    assert metrics.rmse(truth, forecast) == pytest.approx(
        sklearn.metrics.root_mean_squared_error(truth, forecast.prediction)
    )
    assert metrics.accuracy(truth, forecast) == sklearn.metrics.accuracy_score(truth, forecast.prediction)
    assert metrics.log_loss(truth, forecast) == pytest.approx(
        sklearn.metrics.log_loss(truth, forecast.probabilities, labels=forecast.scores)
    )


def test_what_is_withheld_counts_for_coverage_alone() -> None:
    truth, forecast = (
        [4, 5, 3, 1],
        forecast_of([[0, 0, 0, 0.9, 0.1], [0, 0, 0, 0.6, 0.4], [np.nan] * 5, [1, 0, 0, 0, 0]]),
    )
    assert metrics.mae(truth, forecast) == pytest.approx(1 / 3)
    assert metrics.coverage(truth, forecast) == 0.75
    assert metrics.mae(truth, forecast.at_least(0.7)) == 0
    assert metrics.coverage(truth, forecast.at_least(0.7)) == 0.5
    assert np.isnan(metrics.mae(truth, forecast.at_least(2)))
    assert metrics.log_loss(truth, forecast) == pytest.approx(-(np.log(0.9) + np.log(0.4) + np.log(1)) / 3)


def test_log_loss_of_the_impossible_is_floored() -> None:
    forecast = forecast_of([[1, 0], [1, 0]])
    assert metrics.log_loss([2, 1], forecast) == pytest.approx(-np.log(1e-15) / 2)
    assert metrics.log_loss([1.5, 1], forecast, floor=0.01) == pytest.approx(-np.log(0.01) / 2)


@given(cases(), st.booleans())
def test_brier_as_in_scikit_learn(case: tuple[Any, Any], single: bool) -> None:
    truth, forecast = case
    if single:
        forecast = replace(forecast, probabilities=forecast.probabilities.astype(np.float32))
    phi = forecast.probabilities.astype(np.float64)
    labels = forecast.scores.tolist()
    want = sklearn.metrics.brier_score_loss(
        truth, phi / phi.sum(axis=1, keepdims=True), labels=labels, scale_by_half=False
    )
    assert metrics.brier(truth, forecast) == pytest.approx(want, rel=1e-5)


def test_brier_by_hand() -> None:
    forecast = forecast_of([[0.2, 0.8], [1, 0], [np.nan, np.nan]])
    assert metrics.brier([2, 1, 1], forecast) == pytest.approx((0.04 + 0.04 + 0) / 2)
    assert metrics.brier([2, 2, 1], forecast) == pytest.approx((0.08 + 2) / 2)
    assert metrics.brier([1.5, 1, 1], forecast) == pytest.approx((0.04 + 0.64 + 1) / 2)
    assert metrics.brier([2, 1, 1], forecast.at_least(1.5)) == metrics.brier([2, 1, 1], forecast)
    assert np.isnan(metrics.brier([2], forecast_of([[np.nan, np.nan]])))


# -- a truth of probabilities ------------------------------------------------------------------------

MEANS = (
    *(metrics.mae, metrics.accuracy, metrics.coverage, metrics.log_loss, metrics.brier),
    *(lambda truth, forecast: metrics.by_coverage(truth, forecast).mae[0],),
    *(lambda truth, forecast: metrics.by_threshold(truth, forecast, thresholds=[0.4]).mae[0],),
)


@pytest.mark.parametrize("metric", MEANS)
@given(case=cases())
def test_certain_truth_is_the_ratings_themselves(metric: Any, case: tuple[Any, Any]) -> None:
    truth, forecast = case
    certain = forecast_of(truth[:, None] == forecast.scores, forecast.scores)
    np.testing.assert_allclose(metric(certain, forecast), metric(truth, forecast), rtol=1e-12)


@pytest.mark.parametrize("metric", MEANS)
@given(case=cases(), seed=st.integers(0, 2**32))
def test_metrics_of_true_probabilities_are_means_over_what_may_come(metric: Any, case: Any, seed: int) -> None:
    """Of one pair that may be rated one way or another, on a scale that the forecast knows only in part."""
    _, forecast = case
    one = forecast_of(forecast.probabilities[:1], forecast.scores)
    scores = np.append(forecast.scores[1:], 9.5)
    chances = np.random.default_rng(seed).dirichlet(np.ones(len(scores)))
    want = sum(chance * metric([score], one) for chance, score in zip(chances, scores, strict=True))
    np.testing.assert_allclose(metric(forecast_of([chances], scores), one), want, rtol=1e-9)


def test_root_mean_squared_error_of_true_probabilities() -> None:
    truth, forecast = forecast_of([[0.5, 0, 0.5], [0, 1, 0]]), forecast_of([[0.9, 0.1, 0], [0.9, 0.1, 0]])
    assert metrics.rmse(truth, forecast) == pytest.approx(np.sqrt((0.5 * 4 + 1) / 2))


def test_truth_is_the_best_forecast_of_itself() -> None:
    rng = np.random.default_rng(0)
    truth, other = (forecast_of(rng.dirichlet(np.ones(4), 50)) for _ in range(2))
    assert metrics.brier(truth, truth) < metrics.brier(truth, other)
    assert metrics.log_loss(truth, truth) < metrics.log_loss(truth, other)
    assert metrics.log_loss(truth, truth) == pytest.approx(scipy.stats.entropy(truth.probabilities, axis=1).mean())


@pytest.mark.parametrize("metric", [metrics.rpi, metrics.confusion])
def test_what_needs_the_ratings_that_came_says_so(metric: Any) -> None:
    with pytest.raises(bemf.DataError, match="the ratings that came"):
        metric(forecast_of([[0.4, 0.6]]), forecast_of([[0.4, 0.6]]))


@pytest.mark.parametrize("metric", [metrics.mae, metrics.brier, metrics.ece])
def test_missing_truth_is_refused(metric: Any) -> None:
    truth = forecast_of([[0.4, 0.6], [np.nan, np.nan], [np.nan, np.nan]])
    with pytest.raises(bemf.DataError, match="2 true forecasts missing or infinite; first at row 1"):
        metric(truth, forecast_of([[0.4, 0.6]] * 3))
    with pytest.raises(bemf.DataError, match="3 ratings but 1 prediction"):
        metric(truth, forecast_of([[0.4, 0.6]]))


# -- confusion ---------------------------------------------------------------------------------------


@given(cases(), st.floats(0, 1))
def test_confusion_as_in_scikit_learn(case: tuple[Any, Any], threshold: float) -> None:
    truth, forecast = case
    forecast = forecast.at_least(threshold)
    there = ~np.isnan(forecast.prediction)
    matrix = metrics.confusion(truth, forecast)
    np.testing.assert_array_equal(matrix.scores, forecast.scores)
    if there.any():
        found, predicted = truth[there].astype(int), forecast.prediction[there].astype(int)
        want = sklearn.metrics.confusion_matrix(found, predicted, labels=forecast.scores.astype(int))
        np.testing.assert_array_equal(matrix.counts, want)
        normal = np.where(
            want.any(axis=1, keepdims=True), want / np.maximum(want.sum(axis=1, keepdims=True), 1), np.nan
        )
        np.testing.assert_allclose(matrix.shares(), normal)
    assert matrix.withheld.tolist() == [np.sum(truth[~there] == score) for score in forecast.scores]
    assert matrix.counts.sum() + matrix.withheld.sum() == len(truth)


def test_confusion_has_every_score_of_either_side() -> None:
    ratings = bemf.Ratings.from_arrays([1, 1], [1, 2], [3.5, 9], scores=[1, 3.5, 9])
    matrix = metrics.confusion(ratings, forecast_of([[0.1, 0.9], [np.nan, np.nan]]))
    assert matrix.scores.tolist() == [1, 2, 3.5, 9]
    assert matrix.counts.tolist() == [[0] * 4, [0] * 4, [0, 1, 0, 0], [0] * 4]
    assert matrix.withheld.tolist() == [0, 0, 0, 1]
    assert np.isnan(matrix.shares()[[0, 1, 3]]).all()
    empty = metrics.confusion([], forecast_of(np.empty((0, 3))))
    assert empty.counts.tolist() == [[0] * 3] * 3


def test_confusion_is_of_scores() -> None:
    with pytest.raises(bemf.DataError, match=r"by\('mode'\)"):
        metrics.confusion([1], forecast_of([[0.4, 0.6]]).by("mean"))
    with pytest.raises(bemf.DataError, match="301 different ratings"):
        metrics.confusion(np.ones(300), np.arange(300) + 1.5)
    with pytest.raises(bemf.DataError, match="2 ratings but 1 prediction"):
        metrics.confusion([1, 2], [1])


# -- reliability -------------------------------------------------------------------------------------


@given(cases(), st.sampled_from(["std", "mad"]))
def test_rpi_is_its_formula(case: tuple[Any, Any], spread: str) -> None:
    truth, forecast = case
    e, trust = np.abs(truth - forecast.prediction), forecast.reliability
    spread_of = np.std if spread == "std" else lambda x: np.mean(np.abs(x - np.mean(x)))
    total = 0.0
    for error, reliability in zip(e, trust, strict=True):
        total += error * (error - np.mean(e)) * (np.mean(trust) - reliability)
    if np.std(e) == 0:
        assert np.isnan(metrics.rpi(truth, forecast, spread=spread))
        return
    want = total / (len(e) * np.mean(e) * spread_of(e) * spread_of(trust))
    assert metrics.rpi(truth, forecast, spread=spread) == pytest.approx(want)


def test_rpi_is_higher_when_reliability_knows_the_errors() -> None:
    rng = np.random.default_rng(0)
    e = rng.exponential(1, 10_000)
    good, useless = metrics.rpi(e, 0 * e, -e), metrics.rpi(e, 0 * e, rng.random(10_000))
    assert good > 1
    assert abs(useless) < 0.1
    assert metrics.rpi(e, 0 * e, e) == pytest.approx(-good)


@given(cases())
def test_curves_by_threshold_are_the_thresholded_forecast(case: tuple[Any, Any]) -> None:
    truth, forecast = case
    curve = metrics.by_threshold(truth, forecast)
    for threshold, mae, coverage in zip(curve.cut, curve.mae, curve.coverage, strict=True):
        np.testing.assert_allclose(mae, metrics.mae(truth, forecast.at_least(threshold)))
        assert coverage == pytest.approx(metrics.coverage(truth, forecast.at_least(threshold)))
    assert np.all(np.diff(curve.coverage) <= 0)


@given(cases())
def test_curves_by_coverage_keep_the_most_reliable(case: tuple[Any, Any]) -> None:
    truth, forecast = case
    n = len(truth)
    curve = metrics.by_coverage(truth, forecast, shares=[1.0, np.ceil(n / 2) / n])
    e = np.abs(truth - forecast.prediction)[np.argsort(-forecast.reliability)]
    assert curve.mae[0] == pytest.approx(e.mean())
    assert curve.mae[1] == pytest.approx(e[: int(np.ceil(n / 2))].mean())
    np.testing.assert_allclose(curve.coverage, [1, np.ceil(n / 2) / n])


def test_equal_reliabilities_share_their_error() -> None:
    curve = metrics.by_coverage([1, 2, 3, 4], [1, 2, 4, 6], [0.5, 0.5, 0.5, 0.5], shares=[0.25, 0.5, 1])
    np.testing.assert_allclose(curve.mae, [0.75, 0.75, 0.75])
    unknown = metrics.by_coverage([1, 2, 3, 4], [1, 3, np.nan, np.nan], [0.9, 0.5, 0.0, 0.0], shares=[1, 0.5])
    np.testing.assert_allclose(unknown.mae, [0.5, 0])
    np.testing.assert_allclose(unknown.coverage, [0.5, 0.25])


def test_ratings_and_arrays_are_the_same_truth() -> None:
    ratings = bemf.Ratings.from_arrays([1, 1, 2], [1, 2, 1], [1, 2, 2])
    forecast = bemf.BeMF(random_state=0).fit(ratings).forecast(ratings)
    for metric in (metrics.mae, metrics.rmse, metrics.accuracy, metrics.coverage, metrics.log_loss):
        assert metric(ratings, forecast) == metric(ratings.values, forecast)


def test_wrong_input_is_refused() -> None:
    for metric in (metrics.mae, metrics.rmse, metrics.accuracy, metrics.coverage):
        with pytest.raises(bemf.DataError, match="2 ratings but 3 predictions"):
            metric([1, 2], [1, 2, 3])
        with pytest.raises(bemf.DataError, match="1 true rating missing"):
            metric([1, np.nan], [1, 2])
    with pytest.raises(bemf.DataError, match="one column"):
        metrics.mae([[1, 2]], [[1, 2]])
    with pytest.raises(bemf.DataError, match="2 ratings but 1 prediction"):
        metrics.log_loss([1, 2], forecast_of([[1, 0]]))
    with pytest.raises(bemf.DataError, match="no reliability"):
        metrics.rpi([1, 2], [1, 2])
    with pytest.raises(bemf.DataError, match=r"shape \(1,\)"):
        metrics.rpi([1, 2], [1, 2], [0.5])
    with pytest.raises(bemf.ParameterError, match="'mad'"):
        metrics.rpi([1, 2], [1, 2], [0.5, 0.6], spread="iqr")
    with pytest.raises(bemf.ParameterError, match="above 0"):
        metrics.by_coverage([1, 2], [1, 2], [0.5, 0.6], shares=[0])
    with pytest.raises(bemf.DataError, match="no prediction"):
        metrics.by_coverage([1, 2], [np.nan, np.nan], [0.5, 0.6])
    assert np.isnan(metrics.rpi([1], [np.nan], [0.5]))
    assert np.isnan(metrics.rpi([1, 2], [1, 2], [0.5, 0.6]))
