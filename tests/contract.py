"""What every model keeps to. A model's test file subclasses `ModelContract` and names its makers."""

from __future__ import annotations

import copy
import pickle
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bemf
from strategies import random_ratings


@pytest.fixture(scope="module")
def ratings() -> bemf.Ratings:
    """A small problem with something to learn: users like one half of the items or the other."""
    rng = np.random.default_rng(5)
    users, items = np.divmod(rng.choice(60 * 40, 1200, replace=False), 40)
    liked = (users % 2 == items % 2) ^ (rng.random(1200) < 0.1)
    return bemf.Ratings.from_arrays(
        [f"user {n}" for n in users], [int(n) for n in items], np.where(liked, 4, 2) + rng.integers(0, 2, 1200)
    )


class ModelContract:
    is_random = True  # whether the seed changes anything
    takes_in_users = True

    @abstractmethod
    def make(self, **setting: Any) -> Any:
        """A model that fits the small problem in well under a second."""

    @pytest.fixture
    def fitted(self, ratings: bemf.Ratings) -> Any:
        return self.make(random_state=0).fit(ratings)

    def test_learns(self, fitted: Any, ratings: bemf.Ratings) -> None:
        forecast = fitted.forecast(ratings)
        if fitted.gives == "points":
            assert bemf.metrics.rmse(ratings, forecast) < 0.9 * ratings.values.std()
        else:
            prior = -np.sum(fitted.prior_ * np.log(fitted.prior_))
            assert bemf.metrics.log_loss(ratings, forecast) < 0.95 * prior

    def test_probabilities_are_probabilities(self, fitted: Any, ratings: bemf.Ratings) -> None:
        forecast = fitted.forecast(ratings)
        phi = forecast.probabilities
        assert phi.shape == (len(ratings), 4)
        assert ((forecast.prediction >= 2) & (forecast.prediction <= 5)).all()
        if fitted.gives == "points":
            assert np.isnan(phi).all()
            return
        assert np.all(phi >= 0)
        np.testing.assert_allclose(phi.sum(axis=1), 1, atol=1e-5)

    def test_rows_come_in_the_order_asked(self, fitted: Any, ratings: bemf.Ratings) -> None:
        frame = ratings.to_frame("pandas")
        shuffled = frame.sample(frac=1, random_state=0)
        whole = self.answers(fitted, frame)
        np.testing.assert_array_equal(self.answers(fitted, shuffled), whole[shuffled.index])
        one = self.answers(fitted, [(frame.user[7], int(frame.item[7]))])
        np.testing.assert_array_equal(one[0], whole[7])

    def test_same_seed_same_model(self, fitted: Any, ratings: bemf.Ratings) -> None:
        again = self.make(random_state=0).fit(ratings)
        other = self.make(random_state=1).fit(ratings)
        np.testing.assert_array_equal(self.answers(again, ratings), self.answers(fitted, ratings))
        if self.is_random:
            assert not np.array_equal(self.answers(other, ratings), self.answers(fitted, ratings))

    def test_the_order_of_the_rows_does_not_matter(self, fitted: Any, ratings: bemf.Ratings) -> None:
        shuffled = ratings.to_frame("pandas").sample(frac=1, random_state=1)
        again = self.make(random_state=0).fit(shuffled)
        assert again.fingerprint_ == fitted.fingerprint_
        np.testing.assert_array_equal(self.answers(again, ratings), self.answers(fitted, ratings))

    def test_unknown_pairs_say_so(self, fitted: Any) -> None:
        asked = [("user 0", 0), ("user 0", 999), ("nobody", 0), ("nobody", 999)]
        forecast = fitted.forecast(asked)
        assert forecast.known.tolist() == [True, False, False, False]
        assert np.isnan(forecast.prediction).tolist() == [False, True, True, True]
        assert forecast.reliability[1:].tolist() == [0, 0, 0]
        prior = fitted.forecast(asked, unknown="prior")
        if fitted.gives == "points":
            np.testing.assert_allclose(prior.prediction[1:], fitted.prior_ @ fitted.classes_)
        else:
            np.testing.assert_allclose(prior.probabilities[1:], [fitted.prior_] * 3, rtol=1e-6)
        assert not prior.known[1:].any()

    def test_scikit_learns_face_is_always_finite(self, fitted: Any) -> None:
        X = np.array([["user 0", "0"], ["nobody", "0"]], dtype=object)
        X[:, 1] = [0, 999]
        assert np.isfinite(fitted.predict(X)).all()
        assert fitted.classes_.tolist() == [2, 3, 4, 5]
        if fitted.gives == "points":
            assert not hasattr(fitted, "predict_proba")
            assert fitted.score(X, [4, 5]) <= 1
        else:
            assert fitted.predict_proba(X).shape == (2, 4)
            assert fitted.score(X, [4, 5]) < 0

    def test_frame_arrays_and_ratings_are_the_same(self, ratings: bemf.Ratings) -> None:
        frame = ratings.to_frame("pandas")
        X = frame[["user", "item"]].to_numpy(dtype=object)
        want = self.answers(self.make(random_state=0).fit(ratings), ratings)
        by_frame = self.make(random_state=0).fit(frame)
        by_arrays = self.make(random_state=0).fit(X, frame["rating"].to_numpy())
        np.testing.assert_array_equal(self.answers(by_frame, ratings), want)
        np.testing.assert_array_equal(self.answers(by_arrays, ratings), want)

    def test_parameters_travel(self) -> None:
        model = self.make(random_state=3)
        assert type(model)(**model.get_params()).get_params() == model.get_params()
        assert model.set_params(random_state=4).random_state == 4
        with pytest.raises(bemf.ParameterError, match="no parameter 'n_factor'"):
            model.set_params(n_factor=3)
        with pytest.raises(TypeError, match="n_factor"):
            self.make(n_factor=3)

    def test_clone_is_unfitted(self, fitted: Any) -> None:
        from sklearn.base import clone

        assert clone(fitted).get_params() == fitted.get_params()
        with pytest.raises(bemf.NotFittedError, match="call fit first"):
            clone(fitted).forecast([("user 0", 0)])

    def test_save_pickle_and_copy(self, fitted: Any, ratings: bemf.Ratings, tmp_path: Path) -> None:
        fitted.save(tmp_path / "model.bemf")
        want = self.answers(fitted, ratings)
        for other in (bemf.load(tmp_path / "model.bemf"), pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
            np.testing.assert_array_equal(self.answers(other, ratings), want)
            assert other.get_params() == fitted.get_params()

    def test_an_unfitted_model_cannot_be_saved(self, tmp_path: Path) -> None:
        with pytest.raises(bemf.NotFittedError):
            self.make().save(tmp_path / "model.bemf")
        assert list(tmp_path.iterdir()) == []

    def test_empty_rows_and_absent_scores(self) -> None:
        ratings = random_ratings(np.random.default_rng(0), 20, 10, 5, 0.2)
        without = ratings.select((ratings.values != 3) & (ratings.user_index != 4))
        model = self.make(random_state=0).fit(without)
        forecast = model.forecast(ratings)
        assert forecast.probabilities.shape[1] == 5
        assert not forecast.known[ratings.user_index == 4].any()
        assert np.isfinite(self.answers(model, ratings)[forecast.known]).all()

    def test_recommends_what_it_forecasts_best(self, fitted: Any, ratings: bemf.Ratings) -> None:
        best = fitted.recommend("user 3", n=5)
        worth = best.p_like if best.by == "p_like" else best.prediction
        seen = set(ratings.to_frame("pandas").query("user == 'user 3'")["item"])
        others = [item for item in ratings.items if item not in seen | set(best.items.to_pylist())]
        forecast = fitted.forecast([("user 3", item) for item in others])
        assert len(best) == 5
        assert not seen & set(best.items.to_pylist())
        assert (np.diff(worth) <= 1e-6).all()
        rest = forecast.p_like(best.like) if best.by == "p_like" else forecast.prediction
        assert np.nanmax(rest) <= worth.min() + 1e-6

    def test_takes_in_new_users(self, ratings: bemf.Ratings) -> None:
        if not self.takes_in_users:
            pytest.skip("this model takes in nobody")
        is_new = ratings.user_index < 10
        shown = is_new & (np.arange(len(ratings)) % 2 == 0)
        model = self.make(random_state=0).fit(ratings.select(~is_new))
        test = ratings.select(is_new & ~shown)
        assert not model.forecast(test).known.any()
        forecast = model.fold_in(ratings.select(shown)).forecast(test)
        assert forecast.known.all()
        assert np.isfinite(forecast.prediction).all()
        liked = forecast.p_like(4) if model.gives == "probabilities" else forecast.prediction
        assert liked[test.values >= 4].mean() > liked[test.values < 4].mean()

    @staticmethod
    def answers(model: Any, pairs: Any) -> NDArray[Any]:
        forecast = model.forecast(pairs)
        points = model.gives == "points"
        return np.asarray(forecast.prediction[:, None] if points else forecast.probabilities)
