"""Validation, early stopping, callbacks, going on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bemf
from contract import ratings

__all__ = ["ratings"]


def test_validation_stops_early_and_keeps_the_best(ratings: bemf.Ratings) -> None:
    train, held_out = bemf.datasets.holdout(ratings, 0.2, random_state=0)
    model = bemf.BeMF(n_factors=8, regularization=0.3, n_iterations=60, random_state=0)
    model.fit(train, validation=held_out, patience=4)
    losses = model.history_["validation"]
    best = int(np.argmin(losses))
    assert len(losses) == model.n_iter_ == best + 5 < 60
    assert bemf.metrics.log_loss(held_out, model.forecast(held_out)) == pytest.approx(losses[best], rel=1e-6)
    last = bemf.BeMF(n_factors=8, regularization=0.3, n_iterations=model.n_iter_, random_state=0).fit(train)
    assert bemf.metrics.log_loss(held_out, last.forecast(held_out)) == pytest.approx(losses[-1], rel=1e-6)


def test_a_share_is_held_out_of_training(ratings: bemf.Ratings) -> None:
    model = bemf.BeMF(random_state=0).fit(ratings, validation=0.25)
    assert model.user_counts_.sum() == 0.75 * len(ratings)
    train = bemf.datasets.holdout(ratings, 0.25, random_state=0)[0]
    assert model.fingerprint_ == train.fingerprint


def test_validation_of_strangers_is_refused(ratings: bemf.Ratings) -> None:
    strangers = bemf.Ratings.from_arrays(["nobody"], [0], [4])
    with pytest.raises(bemf.ParameterError, match="known to training"):
        bemf.BeMF().fit(ratings, validation=strangers)
    with pytest.raises(bemf.ParameterError, match="patience"):
        bemf.BeMF().fit(ratings, validation=0.1, patience=0)


def test_validation_knows_its_own_ids_and_scores(ratings: bemf.Ratings) -> None:
    """Strangers and scores off the training scale are left out; the rest is matched by id."""
    frame = ratings.to_frame("pandas")
    held_out = frame.sample(100, random_state=0)
    mixed = bemf.Ratings.from_arrays(
        [*held_out.user, "nobody", held_out.user.iloc[0]], [*held_out.item, 0, 777], [*held_out.rating, 4, 1]
    )
    model = bemf.BeMF(random_state=0, n_iterations=3).fit(ratings, validation=mixed, patience=9)
    known = bemf.Ratings.from_frame(held_out)
    assert model.history_["validation"][-1] == pytest.approx(bemf.metrics.log_loss(known, model.forecast(known)))


def test_callbacks_see_each_iteration_and_can_stop(ratings: bemf.Ratings) -> None:
    seen: list[bemf.Iteration] = []

    def stop_after_four(iteration: bemf.Iteration) -> bool:
        seen.append(iteration)
        return iteration.number == 4

    model = bemf.BeMF(random_state=0).fit(ratings, callbacks=[stop_after_four])
    assert [each.number for each in seen] == [1, 2, 3, 4]
    assert model.n_iter_ == 4
    assert [each.objective for each in seen] == model.history_["objective"][:4]
    assert len(model.history_["objective"]) == 5
    assert {each.validation for each in seen} == {None}


@pytest.mark.parametrize("setting", [{"solver": "mm"}, {"learning_rate": 0.01}])
def test_two_halves_make_a_whole(ratings: bemf.Ratings, setting: dict[str, Any]) -> None:
    """warm_start goes on where the fit ended: bit for bit the same as without the pause."""
    whole = bemf.BeMF(**setting, n_iterations=10, random_state=0).fit(ratings)
    halves = bemf.BeMF(**setting, n_iterations=4, random_state=0, warm_start=True).fit(ratings)
    halves.set_params(n_iterations=6).fit(ratings)
    np.testing.assert_array_equal(halves.user_factors_, whole.user_factors_)
    assert halves.history_["objective"] == pytest.approx(whole.history_["objective"], rel=1e-12)


def test_warm_start_takes_in_new_ids(ratings: bemf.Ratings) -> None:
    frame = ratings.to_frame("pandas")
    first = frame[(frame.user != "user 3") & (frame.item != 5)]
    model = bemf.BeMF(random_state=0, warm_start=True, n_iterations=20).fit(
        bemf.Ratings.from_frame(first, scores=ratings.scores)
    )
    assert not model.forecast([("user 3", 5)]).known[0]
    before = model.history_["objective"][-1]
    model.set_params(n_iterations=1).fit(ratings)
    assert model.forecast([("user 3", 5)]).known[0]
    assert model.history_["objective"][-2] > 1.5 * before  # near what it had reached, for more ratings


def test_warm_start_refuses_another_shape(ratings: bemf.Ratings) -> None:
    model = bemf.BeMF(random_state=0, warm_start=True, n_factors=2).fit(ratings)
    with pytest.raises(bemf.ParameterError, match="n_factors"):
        model.set_params(n_factors=3).fit(ratings)
    with pytest.raises(bemf.DataError, match="same scores"):
        model.set_params(n_factors=2).fit(ratings.select(ratings.values < 5).to_frame("pandas"))


def test_init_of_a_wrong_shape_is_refused(ratings: bemf.Ratings) -> None:
    with pytest.raises(bemf.ParameterError, match="shapes"):
        bemf.BeMF(n_factors=2).fit(ratings, init=(np.zeros((4, 60, 2)), np.zeros((4, 40, 2))))


def test_a_diverging_fit_names_iteration_and_remedy(ratings: bemf.Ratings) -> None:
    model = bemf.BeMF(learning_rate=0.01, random_state=0).fit(ratings)
    before = model.user_factors_.copy()
    with pytest.raises(bemf.DivergenceError, match=r"iteration \d+.*lower learning_rate"):
        model.set_params(learning_rate=30.0).fit(ratings)
    np.testing.assert_array_equal(model.user_factors_, before)


def test_fit_takes_no_nonsense(ratings: bemf.Ratings) -> None:
    with pytest.raises(bemf.DataError, match="leave y out"):
        bemf.BeMF().fit(ratings, [1, 2])
    with pytest.raises(bemf.DataError, match="frame"):
        bemf.BeMF().fit("ratings.csv")
    with pytest.raises(bemf.ParameterError, match="engine must be"):
        bemf.BeMF(engine="abacus").fit(ratings)
    with pytest.raises(bemf.DataError, match="two columns"):
        bemf.BeMF().fit(np.zeros((3, 3)), [1, 2, 3])
    with pytest.raises(bemf.DataError, match="list of"):
        bemf.BeMF().fit(ratings).forecast([("user 0", 0, 4)])
    with pytest.raises(bemf.DataError, match="integers here, but strings"):
        bemf.BeMF().fit(ratings).forecast([("user 0", "0")])
    with pytest.raises(bemf.ParameterError, match="'prior'"):
        bemf.BeMF().fit(ratings).forecast([("user 0", 0)], unknown="mean")
