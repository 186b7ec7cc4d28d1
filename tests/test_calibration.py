"""Calibration against scikit-learn's curve, a twin written out, and what theory says of true probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.calibration
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import bemf
from bemf import metrics
from test_forecast import forecast_of
from test_metrics import cases

BINNINGS: Any = st.sampled_from(["width", "mass"])
N_BINS = st.integers(1, 20)
DIAGRAMS = st.sampled_from([{}, {"of": 1.0}, {"of": 2.0}, {"like": 2.0}, {"like": 1.5}])


def said_and_came(truth: Any, forecast: bemf.Forecast, asked: dict[str, float]) -> tuple[NDArray[Any], NDArray[Any]]:
    phi, scores = forecast.probabilities.astype(np.float64), forecast.scores
    if "like" in asked:
        return phi[:, scores >= asked["like"]].sum(axis=1), truth >= asked["like"]
    if "of" in asked:
        return phi[:, scores.tolist().index(asked["of"])], truth == asked["of"]
    return phi.max(axis=1), truth == scores[phi.argmax(axis=1)]


def bins_twin(said: NDArray[Any], n_bins: int, binning: str) -> NDArray[Any]:
    """The bin of each, from its value or its rank."""
    if binning == "width":
        return np.array(
            [max(0, min(n for n in range(n_bins) if value <= (n + 1) / n_bins)) for value in said.clip(0, 1)]
        )
    rank = said.argsort().argsort() + 1
    return np.array([min(n for n in range(n_bins) if each <= (n + 1) * len(said) // n_bins) for each in rank])


@given(cases(), DIAGRAMS, N_BINS)
def test_diagrams_as_in_scikit_learn(case: Any, asked: Any, n_bins: int) -> None:
    truth, forecast = case
    diagram = metrics.reliability_diagram(truth, forecast, **asked, n_bins=n_bins)
    said, came = said_and_came(truth, forecast, asked)
    observed, predicted = sklearn.calibration.calibration_curve(came, said.clip(0, 1), pos_label=True, n_bins=n_bins)
    filled = diagram.counts > 0
    np.testing.assert_allclose(diagram.observed[filled], observed)
    np.testing.assert_allclose(diagram.predicted[filled], predicted)
    assert diagram.counts.sum() == len(truth)
    assert np.isnan(diagram.observed[~filled]).all()
    assert np.isnan(diagram.predicted[~filled]).all()


@given(cases(), DIAGRAMS, N_BINS, BINNINGS)
def test_ece_is_its_definition(case: Any, asked: Any, n_bins: int, binning: Any) -> None:
    truth, forecast = case
    said, came = said_and_came(truth, forecast, asked)
    place = bins_twin(said, n_bins, binning)
    want = sum(abs(said[place == n].sum() - came[place == n].sum()) for n in range(n_bins)) / len(said)
    found = metrics.ece(truth, forecast, **asked, n_bins=n_bins, binning=binning)
    assert found == pytest.approx(want, abs=1e-12)


@given(cases(), N_BINS, BINNINGS)
def test_ece_of_the_scores_is_their_mean(case: Any, n_bins: int, binning: Any) -> None:
    truth, forecast = case
    options = {"n_bins": n_bins, "binning": binning}
    each = [metrics.ece(truth, forecast, of=score, **options) for score in forecast.scores]
    assert metrics.ece(truth, forecast, of="scores", **options) == pytest.approx(np.mean(each))


@given(cases(), N_BINS, BINNINGS)
def test_arrays_and_forecasts_are_the_same(case: Any, n_bins: int, binning: Any) -> None:
    truth, forecast = case
    by_arrays = metrics.ece(truth, forecast.prediction, forecast.reliability, n_bins=n_bins, binning=binning)
    assert by_arrays == metrics.ece(truth, forecast, n_bins=n_bins, binning=binning)


@given(cases())
def test_bins_of_equal_mass_hold_as_many(case: Any) -> None:
    truth, forecast = case
    diagram = metrics.reliability_diagram(truth, forecast, n_bins=5, binning="mass")
    assert diagram.counts.max() - diagram.counts.min() <= 1
    assert diagram.edges[[0, -1]].tolist() == [forecast.reliability.min(), forecast.reliability.max()]


def test_equal_probabilities_stay_in_one_bin() -> None:
    diagram = metrics.reliability_diagram([1, 2, 2, 2], forecast_of([[0.25, 0.75]] * 4), n_bins=3, binning="mass")
    assert diagram.counts.tolist() == [4, 0, 0]
    assert diagram.ece == 0


def test_by_hand() -> None:
    forecast = forecast_of([[0.5, 0.5], [0.2, 0.8], [1, 0], [np.nan, np.nan], [0.1, 0.9]])
    diagram = metrics.reliability_diagram([1, 2, 2, 1, 1], forecast, n_bins=2)
    assert diagram.edges.tolist() == [0, 0.5, 1]
    np.testing.assert_allclose(diagram.predicted, [0.5, 0.9])
    np.testing.assert_allclose(diagram.observed, [1, 1 / 3])
    assert diagram.counts.tolist() == [1, 3]
    assert diagram.ece == pytest.approx((0.5 + 3 * (0.9 - 1 / 3)) / 4)


# -- edges -------------------------------------------------------------------------------------------


def test_points_and_thresholds_do_not_matter_and_unknown_pairs_are_left_out() -> None:
    truth, phi = [1, 2, 2, 1], [[0.5, 0.5], [0.2, 0.8], [np.nan, np.nan], [0.3, 0.7]]
    plain = metrics.ece([1, 2, 1], forecast_of([phi[0], phi[1], phi[3]]))
    for forecast in (forecast_of(phi), forecast_of(phi).by("mean").at_least(0.6), forecast_of(phi).at_least(2)):
        assert metrics.ece(truth, forecast) == plain
        assert metrics.reliability_diagram(truth, forecast, like=2).counts.sum() == 3
        assert metrics.reliability_histogram(forecast).counts.sum() == 3
        assert metrics.reliability_histogram(forecast).unknown == 1
    assert metrics.ece([1, 2, 1], [1, np.nan, 2], [0.5, 0.9, np.nan]) == 0.5


def test_nothing_known_is_not_a_number() -> None:
    for forecast in (forecast_of([[np.nan] * 3] * 2), forecast_of(np.empty((0, 3)))):
        for asked in ({}, {"of": "scores"}, {"like": 2}, {"binning": "mass"}):
            assert np.isnan(metrics.ece([2] * len(forecast), forecast, **asked))
        assert metrics.reliability_histogram(forecast).counts.tolist() == [0] * 20
        assert metrics.reliability_histogram(forecast).unknown == len(forecast)


def test_certain_forecasts_are_in_the_last_bin() -> None:
    """Also those that rounding put above 1, here by more than single precision does."""
    phi = np.array([[1, 0], [1 + 1e-6, 0], [1 - 1e-6, 1e-6]])
    diagram = metrics.reliability_diagram([1, 1, 1], forecast_of(phi), n_bins=4)
    assert diagram.counts.tolist() == [0, 0, 0, 3]
    assert diagram.ece < 1e-6
    assert metrics.reliability_histogram(forecast_of(phi), n_bins=4).counts.tolist() == [0, 0, 0, 3]
    assert metrics.ece([2, 2, 2], forecast_of(phi)) == pytest.approx(1)


@given(cases())
def test_single_precision_makes_no_difference(case: Any) -> None:
    truth, forecast = case
    single = forecast_of(forecast.probabilities, forecast.scores)
    object.__setattr__(single, "probabilities", forecast.probabilities.astype(np.float32))
    exact = metrics.ece(truth, forecast, n_bins=1)
    assert metrics.ece(truth, single, n_bins=1) == pytest.approx(exact, abs=1e-6)
    assert metrics.ece(truth, single, like=2, n_bins=1) == pytest.approx(
        metrics.ece(truth, forecast, like=2, n_bins=1), abs=1e-6
    )


def test_ratings_off_the_scale_are_never_right_but_may_be_liked() -> None:
    forecast = forecast_of([[0.25, 0.75]])
    assert metrics.ece([1.5], forecast) == pytest.approx(0.75)
    assert metrics.ece([1.5], forecast, of="scores") == pytest.approx(0.5)
    assert metrics.ece([2.5], forecast, like=2) == pytest.approx(0.25)


# -- against the truth -------------------------------------------------------------------------------


@given(cases(), DIAGRAMS)
def test_true_probabilities_are_calibrated(case: Any, asked: Any) -> None:
    _, truth = case
    assert metrics.ece(truth, truth, **asked) == pytest.approx(0, abs=1e-12)
    assert metrics.ece(truth, truth, of="scores") == pytest.approx(0, abs=1e-12)


def test_against_the_truth_is_the_limit_of_many_ratings() -> None:
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.ones(3), 40)
    said = chances**2 / (chances**2).sum(axis=1, keepdims=True)  # too sure
    against_truth = metrics.reliability_diagram(forecast_of(chances), forecast_of(said), n_bins=5)
    drawn = (rng.random((40, 5000, 1)) > chances.cumsum(axis=1)[:, None]).sum(axis=2) + 1.0
    against_ratings = metrics.reliability_diagram(drawn.ravel(), forecast_of(np.repeat(said, 5000, axis=0)), n_bins=5)
    np.testing.assert_allclose(against_truth.observed, against_ratings.observed, atol=0.01)
    assert against_truth.ece > 0.1


def test_true_probabilities_on_another_scale() -> None:
    truth = forecast_of([[0.1, 0.2, 0.3, 0.4]], [1, 2, 3, 4])
    forecast = forecast_of([[0.4, 0.6]], [2, 4])
    assert metrics.ece(truth, forecast) == pytest.approx(0.6 - 0.4)
    assert metrics.ece(truth, forecast, of=2.0) == pytest.approx(0.4 - 0.2)
    assert metrics.ece(truth, forecast, like=3) == pytest.approx(0.7 - 0.6)


# -- histograms --------------------------------------------------------------------------------------


@given(cases(), N_BINS)
def test_histograms_are_those_of_the_diagram(case: Any, n_bins: int) -> None:
    truth, forecast = case
    histogram = metrics.reliability_histogram(forecast, n_bins=n_bins)
    diagram = metrics.reliability_diagram(truth, forecast, n_bins=n_bins)
    np.testing.assert_array_equal(histogram.counts, diagram.counts)
    np.testing.assert_array_equal(histogram.edges, diagram.edges)
    np.testing.assert_array_equal(
        metrics.reliability_histogram(forecast.reliability, n_bins=n_bins).counts, diagram.counts
    )


# -- wrong use ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"of": "scores", "like": 2}, "ask for two things"),
        ({"of": 1.0, "like": 2}, "ask for two things"),
        ({"of": "median"}, r"'mode' or a score of the scale, 1, 2; got 'median'"),
        ({"of": 1.5}, "got 1.5"),
        ({"n_bins": 0}, "at least 1; got 0"),
        ({"binning": "depth"}, "'width' or 'mass'; got 'depth'"),
    ],
)
def test_wrong_options_are_refused(asked: Any, says: str) -> None:
    with pytest.raises(bemf.ParameterError, match=says):
        metrics.ece([1, 2], forecast_of([[0.4, 0.6]] * 2), **asked)


def test_a_diagram_is_of_one_thing() -> None:
    with pytest.raises(bemf.ParameterError, match="got 'scores'"):
        metrics.reliability_diagram([1], forecast_of([[0.4, 0.6]]), of="scores")  # type: ignore[arg-type]


def test_wrong_input_is_refused() -> None:
    forecast = forecast_of([[0.4, 0.6]])
    with pytest.raises(bemf.DataError, match="2 ratings but 1 prediction"):
        metrics.ece([1, 2], forecast)
    with pytest.raises(bemf.DataError, match="has its own reliability"):
        metrics.ece([1], forecast, [0.5])
    with pytest.raises(bemf.DataError, match="no reliability"):
        metrics.ece([1], [1])
    with pytest.raises(bemf.DataError, match="give a Forecast"):
        metrics.ece([1], [1], [0.5], like=1)
    with pytest.raises(bemf.DataError, match="give a Forecast"):
        metrics.ece([1], [1], [0.5], of="scores")
    with pytest.raises(bemf.ParameterError, match="at least 1"):
        metrics.reliability_histogram(forecast, n_bins=-1)
