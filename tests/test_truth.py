"""Reliabilities held to the truth: on ratings that were drawn from known probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bemf
from bemf import metrics

FEW, MANY = 15_000, 240_000
SEEDS = range(2)


def learned(n_ratings: int, seed: int, **setting: Any) -> tuple[Any, bemf.Forecast, bemf.Forecast]:
    """A model's forecast of ratings held out, and the truth of these."""
    ratings, truth = bemf.datasets.synthetic(n_users=1500, n_items=400, n_ratings=n_ratings, random_state=seed)
    train, test = bemf.datasets.holdout(ratings, 0.2, random_state=0)
    model = bemf.BeMF(random_state=0, **setting).fit(train)
    forecast = model.forecast(test)
    known = np.flatnonzero(forecast.known)
    return (model, truth), forecast.take(known), truth.forecast(test).take(known)


def mean_ece(n_ratings: int, of: Any, **setting: Any) -> float:
    return float(
        np.mean(
            [
                metrics.ece(truth, forecast, of=of)
                for _, forecast, truth in (learned(n_ratings, seed, **setting) for seed in SEEDS)
            ]
        )
    )


def test_probabilities_of_scores_come_nearer_to_the_truth_with_more_ratings() -> None:
    few, many = (mean_ece(n, "scores") for n in (FEW, MANY))
    assert many < 0.9 * few
    assert few < 0.025


def test_a_bold_model_is_cured_by_more_ratings() -> None:
    """With little regularization few ratings make it too sure; many teach it."""
    few, many = (mean_ece(n, "mode", regularization=2.0) for n in (FEW, MANY))
    assert many < few / 3
    assert many < 0.025


@pytest.mark.parametrize("n", [60_000, MANY])
def test_reliable_recommendations_are_liked(n: int) -> None:
    drawn = []
    for seed in SEEDS:
        (model, truth), _, _ = learned(n, seed)
        best = model.recommend(min_reliability=0.8, like=4)
        chance = truth.forecast(best.to_frame("pyarrow")).p_like(4)
        drawn.append(np.random.default_rng(seed).random(len(best)) < chance)
        assert (best.reliability >= 0.8).all()
    assert len(np.concatenate(drawn)) >= 50
    assert np.mean(np.concatenate(drawn)) >= 0.75
