"""Metrics against scikit-learn, and against their formulas written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
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
        with pytest.raises(bemf.DataError, match="1 true ratings are missing"):
            metric([1, np.nan], [1, 2])
    with pytest.raises(bemf.DataError, match="one column"):
        metrics.mae([[1, 2]], [[1, 2]])
    with pytest.raises(bemf.DataError, match="2 ratings but 1 forecasts"):
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
