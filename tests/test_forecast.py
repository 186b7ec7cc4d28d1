"""Points, reliability, thresholds and frames of a forecast."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import bemf


def forecast_of(phi: Any, scores: Any = None, **more: Any) -> bemf.Forecast:
    phi = np.asarray(phi, dtype=float)
    ids = pa.array(np.arange(len(phi)))
    scale = np.arange(1.0, phi.shape[1] + 1) if scores is None else np.asarray(scores, dtype=float)
    return bemf.Forecast(ids, ids, phi, scale, ~np.isnan(phi[:, 0]), **more)


PHI = [[0.05, 0.05, 0.1, 0.6, 0.2], [0.4, 0.05, 0.05, 0.15, 0.35], [np.nan] * 5, [0.5, 0.5, 0, 0, 0]]


def test_points() -> None:
    forecast = forecast_of(PHI)
    np.testing.assert_array_equal(forecast.prediction, [4, 1, np.nan, 1])
    np.testing.assert_array_equal(forecast.by("median").prediction, [4, 3, np.nan, 1])
    np.testing.assert_allclose(forecast.by("mean").prediction, [3.85, 3.0, np.nan, 1.5])
    np.testing.assert_allclose(forecast.reliability, [0.6, 0.4, 0, 0.5])


def test_a_tie_goes_to_the_lowest_score() -> None:
    assert forecast_of([[0.2, 0.4, 0.4]]).prediction.tolist() == [2]


def test_thresholds_withhold_and_the_reliability_stays() -> None:
    forecast = forecast_of(PHI).at_least(0.5)
    np.testing.assert_array_equal(forecast.prediction, [4, np.nan, np.nan, 1])
    np.testing.assert_allclose(forecast.reliability, [0.6, 0.4, 0, 0.5])
    assert repr(forecast) == "Forecast(4 pairs, 2 predicted by mode with reliability ≥ 0.5)"
    np.testing.assert_array_equal(forecast_of(PHI).at_least(0).prediction, forecast_of(PHI).prediction)
    np.testing.assert_array_equal(forecast_of(PHI).by("median").at_least(0.5).prediction, [4, np.nan, np.nan, 1])


def test_probability_of_liking() -> None:
    np.testing.assert_allclose(forecast_of(PHI).p_like(4), [0.8, 0.5, np.nan, 0])
    np.testing.assert_allclose(forecast_of(PHI).p_like(3.5), [0.8, 0.5, np.nan, 0])
    np.testing.assert_allclose(forecast_of(PHI).p_like(6), [0, 0, np.nan, 0])


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=20), elements=st.floats(0.01, 1)))
def test_points_against_their_definitions(phi: Any) -> None:
    """The mode is likeliest, the median has the least expected absolute error, the mean the least squared."""
    phi = phi / phi.sum(axis=1, keepdims=True)
    scores = np.cumsum(np.arange(1, phi.shape[1] + 1)) / 2.0
    forecast = forecast_of(phi, scores)
    assert np.all(forecast.reliability == phi.max(axis=1))
    np.testing.assert_array_equal(forecast.prediction, scores[phi.argmax(axis=1)])
    distance = np.abs(scores[:, None] - scores[None, :])
    cost = phi @ distance
    median = forecast.by("median").prediction
    np.testing.assert_allclose(cost[np.arange(len(phi)), np.searchsorted(scores, median)], cost.min(axis=1), atol=1e-12)
    np.testing.assert_allclose(forecast.by("mean").prediction, phi @ scores)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames(kind: Any) -> None:
    ratings = bemf.Ratings.from_arrays(["ann", "bob"], [1, 2], [0.5, 1])
    forecast = bemf.BeMF(random_state=0).fit(ratings).forecast([("bob", 2), ("eve", 1)])
    frame = forecast.to_frame(kind, probabilities=True)
    assert type(frame).__module__.startswith(kind)
    columns = ["user", "item", "prediction", "reliability", "known", "p_0.5", "p_1"]
    assert list(frame.column_names if kind == "pyarrow" else frame.columns) == columns
    table = frame if kind == "pyarrow" else pa.table({name: pa.array(list(frame[name])) for name in columns})
    first, second = table.to_pylist()
    assert (first["user"], first["item"], first["known"]) == ("bob", 2, True)
    assert first["prediction"] == forecast.prediction[0]
    assert second["user"] == "eve"
    assert second["reliability"] == 0


def test_a_million_pairs_build_no_python_objects() -> None:
    """Ids, predictions and reliabilities of 200,000 pairs: far fewer new objects than pairs."""
    ratings = bemf.Ratings.from_arrays([f"u{n}" for n in range(50)] * 2, [0] * 50 + [1] * 50, [1, 2] * 50)
    model = bemf.BeMF(random_state=0).fit(ratings)
    users = pa.array([f"u{n}" for n in range(50)]).take(pa.array(np.arange(200_000) % 50))
    pairs = pa.table({"user": users, "item": pa.array(np.arange(200_000) % 2)})
    model.forecast(pairs)  # lazy imports
    gc.collect()
    before = sys.getallocatedblocks()
    forecast = model.forecast(pairs)
    held = (forecast.prediction, forecast.reliability, forecast.to_frame("pyarrow"))
    assert sys.getallocatedblocks() - before < 2_000
    assert len(held[0]) == 200_000


def test_printed() -> None:
    text = str(forecast_of(PHI).at_least(0.5)).splitlines()
    assert [line.split() for line in text] == [
        ["user", "item", "prediction", "reliability"],
        ["0", "0", "4", "0.60"],
        ["1", "1", "withheld", "0.40"],
        ["2", "2", "unknown", "0.00"],
        ["3", "3", "1", "0.50"],
    ]
    assert str(forecast_of(PHI * 5)).splitlines()[-1] == "… 10 more"
    assert len(str(forecast_of(PHI * 5)).splitlines()) == 12


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(bemf.DataError, match="polars is not installed"):
        forecast_of(PHI).to_frame("polars")


def test_what_is_no_point_or_frame_is_refused() -> None:
    with pytest.raises(bemf.ParameterError, match="median"):
        forecast_of(PHI, point="max")
    with pytest.raises(bemf.DataError, match="'polars'"):
        forecast_of(PHI).to_frame("spark")  # type: ignore[arg-type]
