"""Synthetic ratings: what they look like, and that they are a draw from the truth that comes with them."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

import bemf
from bemf.datasets import holdout, synthetic
from bemf.datasets.synthetic import Synthetic

FIVE_SIGMA = 5
YEAR = 365.25 * 24 * 3600


@st.composite
def small(draw: st.DrawFn) -> tuple[Synthetic, dict[str, Any]]:
    """Data of any shape up to all pairs of 25 users and 25 items."""
    n_users, n_items = draw(st.integers(1, 25)), draw(st.integers(1, 25))
    asked: dict[str, Any] = {
        "n_users": n_users,
        "n_items": n_items,
        "n_ratings": draw(st.integers(n_users, n_users * n_items) | st.just(n_users * n_items)),
        "scores": tuple(draw(st.lists(st.integers(-50, 50), min_size=2, max_size=20, unique=True))),
        "n_factors": draw(st.integers(0, 5)),
        "random_state": draw(st.integers(0, 2**32)),
    }
    return synthetic(**asked), asked


# -- shapes ------------------------------------------------------------------------------------------


@given(small())
def test_sizes_are_those_asked_for(data: tuple[Synthetic, dict[str, Any]]) -> None:
    (ratings, truth), asked = data
    assert len(ratings) == asked["n_ratings"]
    assert list(ratings.users) == list(truth.users) == list(range(1, asked["n_users"] + 1))
    assert list(ratings.items) == list(truth.items) == list(range(1, asked["n_items"] + 1))
    assert ratings.scores.tolist() == truth.scores.tolist() == sorted(asked["scores"])
    assert ratings.by_user.counts.min() >= max(1, min(20, asked["n_ratings"] // asked["n_users"] // 3))
    assert len({*zip(ratings.user_index.tolist(), ratings.item_index.tolist(), strict=True)}) == len(ratings)


@given(small())
def test_the_truth_is_probabilities(data: tuple[Synthetic, dict[str, Any]]) -> None:
    (_, truth), asked = data
    pairs = [(user, item) for user in truth.users for item in truth.items]
    forecast = truth.forecast(pairs)
    assert forecast.probabilities.shape == (len(pairs), len(asked["scores"]))
    assert forecast.known.all()
    assert (forecast.probabilities >= 0).all()
    np.testing.assert_allclose(forecast.probabilities.sum(axis=1), 1, atol=1e-12)


@given(small(), st.data())
def test_the_truth_is_that_of_its_formula(data: tuple[Synthetic, dict[str, Any]], choice: st.DataObject) -> None:
    truth = data[0].truth
    user, item = (choice.draw(st.integers(1, len(ids))) for ids in (truth.users, truth.items))
    liking = sum(truth.user_factors[user - 1][k] * value for k, value in enumerate(truth.item_factors[item - 1]))
    at_most = [special.expit(limit - liking) for limit in truth.limits[user - 1]]
    wanted = [high - low for low, high in zip([0, *at_most], [*at_most, 1], strict=True)]
    np.testing.assert_allclose(truth.forecast([(user, item)]).probabilities[0], wanted, atol=1e-12)


def test_the_truth_answers_as_models_do() -> None:
    truth = synthetic(20, 10, 100, random_state=0).truth
    forecast = truth.forecast([(3, 4), (3, 11), (0, 4), (21, 11)], point="mean")
    assert forecast.known.tolist() == [True, False, False, False]
    assert np.isnan(forecast.prediction).tolist() == [False, True, True, True]
    assert forecast.reliability[1:].tolist() == [0, 0, 0]
    np.testing.assert_allclose(forecast.prediction[0], forecast.probabilities[0] @ truth.scores)
    assert len(truth.forecast([])) == 0
    with pytest.raises(bemf.ParameterError, match="mode, median, mean"):
        truth.forecast([(3, 4)], point="best")  # type: ignore[arg-type]


def test_rows_come_in_the_order_asked() -> None:
    """Also where there are more than are looked at together."""
    ratings, truth = synthetic(2000, 100, 150_000, random_state=0)
    shuffled = np.random.default_rng(0).permutation(len(ratings))
    frame = ratings.to_frame()
    phi = truth.forecast(ratings).probabilities
    np.testing.assert_array_equal(truth.forecast(frame.iloc[shuffled]).probabilities, phi[shuffled])


# -- a draw from the truth -----------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[2, 5, 20], ids="{} scores".format)
def drawn(request: pytest.FixtureRequest) -> Synthetic:
    return synthetic(3000, 800, 200_000, scores=range(request.param), random_state=request.param)


def groups(data: Synthetic) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Ratings by what could have gone into the draw and must not: who rates, what, when, and how it is liked."""
    ratings, truth = data
    assert ratings.dates is not None
    user, item = ratings.user_index, ratings.item_index
    liking = np.einsum("nk,nk->n", truth.user_factors[user], truth.item_factors[item])
    yield "all", np.zeros(len(ratings), dtype=np.intp)
    for name, values in {
        "activity": ratings.by_user.counts[user],
        "popularity": ratings.by_item.counts[item],
        "arrival": user,
        "date": ratings.dates,
        "liking": liking,
    }.items():
        yield name, np.searchsorted(np.quantile(values, np.arange(0.1, 1, 0.1)), values)


def test_the_scores_of_every_group_are_as_frequent_as_they_should_be(drawn: Synthetic) -> None:
    phi = drawn.truth.forecast(drawn.ratings).probabilities
    came = np.eye(phi.shape[1])[drawn.ratings.score_index]
    for name, group in groups(drawn):
        for one in np.unique(group):
            mine = group == one
            variance = (phi[mine] * (1 - phi[mine])).sum(axis=0)
            off = (came[mine] - phi[mine]).sum(axis=0) / np.sqrt(variance)
            assert np.abs(off[variance > 20]).max() < FIVE_SIGMA, f"{name} {one}"


def test_probabilities_are_calibrated(drawn: Synthetic) -> None:
    """Among all scores of all ratings that had some probability, this share came; by chi-square."""
    phi = drawn.truth.forecast(drawn.ratings).probabilities
    came = (np.arange(phi.shape[1]) == drawn.ratings.score_index[:, None]).ravel()
    bins = np.minimum((phi.ravel() * 20).astype(int), 19)
    off = np.bincount(bins, came - phi.ravel(), 20)
    variance = np.bincount(bins, (phi * (1 - phi)).ravel(), 20)
    enough = variance > 20
    assert enough.sum() >= 10
    assert stats.chi2.sf((off[enough] ** 2 / variance[enough]).sum(), enough.sum()) > 1e-6


def test_the_log_loss_is_the_entropy(drawn: Synthetic) -> None:
    """A draw from other probabilities, however alike, would be less likely than its own."""
    forecast = drawn.truth.forecast(drawn.ratings)
    phi = forecast.probabilities
    entropy = special.entr(phi).sum(axis=1)
    variance = special.xlogy(phi, phi) @ np.ones(phi.shape[1])
    variance = (phi * np.log(np.maximum(phi, 1e-300)) ** 2).sum(axis=1) - variance**2
    off = bemf.metrics.log_loss(drawn.ratings, forecast) - entropy.mean()
    assert abs(off) < FIVE_SIGMA * np.sqrt(variance.sum()) / len(drawn.ratings)


def test_the_same_seed_gives_the_same_data() -> None:
    def made(seed: int) -> tuple[str, bytes, bytes]:
        ratings, truth = synthetic(200, 100, 3000, random_state=seed)
        assert ratings.dates is not None
        return ratings.fingerprint, ratings.dates.tobytes(), truth.forecast(ratings).probabilities.tobytes()

    assert made(1) == made(1)
    assert all(mine != other for mine, other in zip(made(1), made(2), strict=True))
    assert synthetic(200, 100, 3000).ratings.fingerprint != synthetic(200, 100, 3000).ratings.fingerprint


# -- like real data ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def like_real() -> Synthetic:
    """As large as MovieLens 100K."""
    return synthetic(943, 1682, 100_000, random_state=7)


def top_tenth(counts: NDArray[np.int64]) -> float:
    return float(np.sort(counts)[-len(counts) // 10 :].sum() / counts.sum())


def test_popularity_and_activity_have_long_tails(like_real: Synthetic) -> None:
    """Of MovieLens' ratings, 43 % are of the most popular tenth of the films, 32 % by the most active of users."""
    ratings = like_real.ratings
    assert 0.35 < top_tenth(ratings.by_item.counts) < 0.6
    assert 0.25 < top_tenth(ratings.by_user.counts) < 0.45
    assert ratings.by_user.counts.min() >= 20
    assert np.median(ratings.by_user.counts) < 0.8 * ratings.by_user.counts.mean()


def test_good_items_are_popular_and_liked_ones_are_rated(like_real: Synthetic) -> None:
    ratings, truth = like_real
    assert stats.spearmanr(truth.item_factors[:, 0], ratings.by_item.counts).statistic > 0.45
    taste = truth.user_factors[:, 1:] @ truth.item_factors[:, 1:].T
    of_rated = (taste[ratings.user_index, ratings.item_index]).mean()
    assert of_rated > taste.mean() + 0.1


def test_shares_of_scores_are_like_those_of_stars(like_real: Synthetic) -> None:
    """MovieLens 100K: 6, 11, 27, 34 and 21 %."""
    shares = like_real.ratings.score_counts / len(like_real.ratings)
    np.testing.assert_allclose(shares, [0.06, 0.11, 0.27, 0.34, 0.21], atol=0.05)
    assert [int(shares.argmax()), int(shares.argmin())] == [3, 0]


def test_scores_have_their_shares_on_any_scale(drawn: Synthetic) -> None:
    x = np.linspace(0, 1, len(drawn.ratings.scores) + 1)
    shares = drawn.ratings.score_counts / len(drawn.ratings)
    np.testing.assert_allclose(np.cumsum(shares), 1 - (1 - x[1:] ** 2.6) ** 1.8, atol=0.01)


@pytest.mark.parametrize("n_scores", range(2, 21))
def test_some_ratings_are_nearly_sure_on_any_scale(n_scores: int) -> None:
    ratings, truth = synthetic(scores=range(n_scores), random_state=0)
    reliability = truth.forecast(ratings).reliability
    assert np.count_nonzero(reliability > 0.8) >= 20
    assert np.count_nonzero(reliability < 0.6) >= 1000
    assert np.count_nonzero(ratings.score_counts) == n_scores


def test_users_are_numbered_as_they_come(like_real: Synthetic) -> None:
    ratings = like_real.ratings
    assert ratings.dates is not None
    first = np.minimum.reduceat(ratings.dates, ratings.by_user.indptr[:-1])
    assert stats.spearmanr(first, np.arange(len(first))).statistic > 0.99
    assert first.min() >= np.datetime64("2015-01-01", "s").astype(int)
    np.testing.assert_allclose((first.max() - first.min()) / YEAR, 5, atol=0.1)
    waits = ratings.dates - np.repeat(first, ratings.by_user.counts)
    assert np.quantile(waits, 0.99) < YEAR / 2


def test_later_users_are_stricter() -> None:
    ratings, truth = synthetic(5000, 200, 100_000, random_state=0)
    rng = np.random.default_rng(0)
    users = {"early": range(1, 1001), "late": range(4001, 5001)}
    mean = {
        when: truth.forecast(np.column_stack([some, rng.integers(1, 201, 1000)]), point="mean").prediction.mean()
        for when, some in users.items()
    }
    assert 0.2 < mean["early"] - mean["late"] < 0.8
    assert ratings.values[ratings.user_index < 1000].mean() - ratings.values[ratings.user_index >= 4000].mean() > 0.2


def test_one_user_s_probabilities_do_not_change_with_the_date(like_real: Synthetic) -> None:
    """The later half of everybody's ratings is off the truth by as much as chance makes it."""
    ratings, truth = like_real
    frame = ratings.to_frame()
    late = frame["date"] > frame.groupby("user")["date"].transform("median")
    forecast = truth.forecast(ratings, point="mean")
    variance = forecast.probabilities @ truth.scores**2 - forecast.prediction**2
    off = (ratings.values - forecast.prediction) / np.sqrt(variance)
    assert abs(off[late].mean()) < FIVE_SIGMA / np.sqrt(late.sum())


# -- learning ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_model_comes_nearer_to_the_truth_with_four_times_as_many_ratings(seed: int) -> None:
    ratings, truth = synthetic(1000, 300, 60_000, random_state=seed)
    many, test = holdout(ratings, 0.2, random_state=seed)
    few = holdout(many, 0.75, random_state=seed)[0]
    wanted = truth.forecast(test).probabilities
    off = [np.abs(bemf.BeMF(random_state=0).fit(part).forecast(test).probabilities - wanted) for part in (few, many)]
    known = ~np.isnan(off[0][:, 0]) & ~np.isnan(off[1][:, 0])
    assert off[1][known].mean() < 0.9 * off[0][known].mean()


# -- size ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_million_ratings_take_seconds() -> None:
    tracemalloc.start()
    start = time.process_time()
    ratings = synthetic(6040, 3706, 1_000_209, random_state=0).ratings
    seconds, (_, most) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ratings) == 1_000_209
    assert seconds < 5
    assert most < 300e6


# -- bad arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"n_users": 0}, "n_users must be a whole number of at least 1; got 0"),
        ({"n_items": 2.5}, "n_items must be a whole number of at least 1; got 2.5"),
        ({"n_factors": -1}, "n_factors must be a whole number of at least 0; got -1"),
        ({"n_ratings": 999}, "n_ratings must be a whole number from 1000 to 500000; got 999"),
        ({"n_ratings": 500_001}, "n_ratings must be a whole number from 1000 to 500000; got 500001"),
        ({"scores": (3, 3)}, "scores must be at least 2 different numbers"),
    ],
)
def test_bad_arguments_are_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(bemf.ParameterError, match=words):
        synthetic(**asked)
