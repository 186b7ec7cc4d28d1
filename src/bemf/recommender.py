"""What every model shares: forecasting, recommending, scikit-learn's protocol, saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bemf.engines import State, Wish
from bemf.engines.ranking import rank_by_answers
from bemf.errors import DataError, NotFittedError, ParameterError
from bemf.forecast import Forecast, Point, PointForecast
from bemf.hyperparameters import Configured, anything, whole
from bemf.pairs import Pairs
from bemf.progress import Progress
from bemf.ratings import Ratings
from bemf.rows import Rows
from bemf.vocabulary import Vocabulary
from bemf.words import listed

if TYPE_CHECKING:
    from bemf.recommendations import By, Recommendations, Similar


class Sizes(NamedTuple):
    """How much there is of what."""

    scores: int
    users: int
    items: int


class OnlyOfProbabilities:
    """A method that models which give points do not have, not even by name."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, model: Recommender | None, owner: type) -> Any:
        if model is None:
            return self._method
        if model.gives == "points":
            raise AttributeError(f"{owner.__name__} predicts points, no probabilities")
        return self._method.__get__(model, owner)


class Recommender(Configured, ABC):
    """A model of who gives what which score.

    A model gives probabilities of every score, or points: one number for each pair. What it must say of itself
    stands at the end of this class.

    Parameters
    ----------
    scores : the whole scale, where it is not known from `Ratings` and some score may not occur
    random_state : the seed of what is drawn: with the same one the same model
    n_threads : how many threads, by default as many as the process may use; no result depends on it
    """

    scores: Sequence[float] | None = anything(default=None)
    random_state: int | None = whole(default=None, low=0)
    n_threads: int | None = whole(default=None, low=1, high=4096)

    gives: ClassVar[Literal["probabilities", "points"]] = "probabilities"

    @abstractmethod
    def fit(self, ratings: Any, y: ArrayLike | None = None, *, progress: Progress | None = None) -> Self:
        """Learns from Ratings, a frame with user, item and rating, or (users, items) pairs with `y`."""

    def fold_in(self, ratings: Any, y: ArrayLike | None = None) -> Self:
        """Learns new users and new items from their ratings, while all else stands still; no refit.

        Users of these ratings are learned anew from all their ratings, those of training and these (which
        replace those of the same items). Items that are not known yet are learned from these ratings.

        >>> import bemf
        >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2, 3], [1, 2, 1, 2, 1], [1, 2, 1, 2, 1])
        >>> model = bemf.BeMF(random_state=0).fit(ratings)
        >>> model.fold_in(bemf.Ratings.from_arrays(["new"], [1], [1], scores=[1, 2])).users_
        Traceback (most recent call last):
        ...
        bemf.errors.DataError: user ids are integers here, but strings were given
        >>> model.fold_in(bemf.Ratings.from_arrays([4], [1], [1], scores=[1, 2])).recommend(4).items.to_pylist()
        [2]
        """
        self._require_fit()
        self.take_in(on_scale(ratings, y, self.classes_))
        return self

    # -- answering ---------------------------------------------------------------------------------

    def forecast(self, pairs: Any, *, point: Point = "mode", unknown: str = "nan") -> Forecast:
        """The probabilities of every score for pairs, one row a pair, in the order given.

        Parameters
        ----------
        pairs : Ratings, frame with user and item, array of two columns, or list of (user, item)
        point : "mode", "median" or "mean", the point of the distribution that is the prediction
        unknown : "nan", or "prior" to answer with the frequencies of training where the user or the item
            has no rating there

        >>> import bemf
        >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
        >>> bemf.BeMF(random_state=0).fit(ratings).forecast([(2, 1)]).prediction
        array([1.])
        """
        self._require_fit()
        if unknown not in ("nan", "prior"):
            raise ParameterError(f"unknown must be 'nan' or 'prior'; got {unknown!r}")
        asked = Pairs.of(pairs)
        users, items = asked.index(self.users_, self.items_)
        known = _counted(self.user_counts_, users) & _counted(self.item_counts_, items)
        users, items = np.where(known, users, -1), np.where(known, items, -1)
        answer, trust = self.answer(users, items), self.trust(users, items)
        if unknown == "prior":
            answer[~known] = self.prior_ if answer.ndim == 2 else self.prior_ @ self.classes_
        pair = (asked.users, asked.items)
        scores = self.classes_.astype(np.float64)
        if answer.ndim == 2:
            return Forecast(*pair, answer, scores, known, point, trust=trust)
        return PointForecast.of(*pair, answer, scores, known, trust)

    def recommend(
        self,
        users: Any = None,
        n: int = 10,
        *,
        like: float | None = None,
        by: By | None = None,
        min_reliability: float = 0.0,
        exclude_seen: bool = True,
        items: Any = None,
        titles: Any = None,
        progress: Progress | None = None,
    ) -> Recommendations:
        """The best items for users, each with its prediction and how sure that is.

        Parameters
        ----------
        users : one id, many, or None for all that have ratings
        n : how many items for each, at most
        like : the lowest score that counts as liking; by default the lowest in the upper quarter of the scale
        by : "p_like", the probability of a rating of at least `like`, or "mean", the expected rating; by default
            the first, if the model gives probabilities
        min_reliability : items whose prediction, or with "p_like" whose liking, is less sure are left out
        exclude_seen : whether what the user has rated in training is left out
        items : ids of the candidates, all by default; those without a rating in training cannot be recommended
        titles : a mapping from items to titles, or a frame or file with the columns item and title
        progress : called with the share that is done

        >>> import bemf
        >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2, 3], [1, 2, 1, 2, 1], [1, 2, 1, 2, 1])
        >>> bemf.BeMF(random_state=0).fit(ratings).recommend(3, titles={2: "Brazil"}).titles.to_pylist()
        ['Brazil']
        """
        from bemf.recommendations import recommend

        self._require_fit()
        return recommend(
            self,
            users,
            n,
            like=like,
            by=by,
            min_reliability=min_reliability,
            exclude_seen=exclude_seen,
            items=items,
            titles=titles,
            progress=progress,
        )

    def similar_items(self, items: Any = None, n: int = 10, *, titles: Any = None) -> Similar:
        """The items whose factors point in the direction most like that of others.

        >>> import bemf
        >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2, 3], [1, 2, 1, 2, 1], [1, 2, 1, 2, 1])
        >>> bemf.BeMF(random_state=0).fit(ratings).similar_items(1).similar.to_pylist()
        [2]
        """
        from bemf.recommendations import similar_items

        self._require_fit()
        return similar_items(self, items, n, titles)

    def rank(self, users: NDArray[np.int32], wish: Wish, progress: Progress | None = None) -> NDArray[np.int32]:
        """The best candidates of users, by inner indexes: see `bemf.engines.Run.rank`."""
        return rank_by_answers(self.answer, self.trust, users, wish, progress)

    def seen(self) -> Rows:
        """What each user rated in training."""
        self._require_fit()
        if self.rated_ is None:
            raise DataError(
                "this model was saved without its training ratings, so nobody knows what users have seen; "
                "use exclude_seen=False"
            )
        return self.rated_

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The most likely score of each pair, or the point predicted, never NaN: scikit-learn's face of `forecast`."""
        return self.forecast(X, unknown="prior").prediction

    @OnlyOfProbabilities
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each score in `classes_` for each pair, never NaN."""
        return self.forecast(X, unknown="prior").probabilities

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """The mean log-likelihood of ratings, or R² of points: `X` with `y`, or `Ratings` alone."""
        from bemf.metrics import scorer

        return scorer("log_loss" if self.gives == "probabilities" else "r2")(self, X, y)

    def _require_fit(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")

    def set_state(self, state: State) -> None:
        """What was learned, as named arrays, to answer with from now on."""
        self.state_: State = state

    def _remember(self, training: Ratings, history: dict[str, list[float]] | None = None, n_iter: int = 0) -> None:
        """What every model keeps of what it was fitted to."""
        self.history_ = history or {"objective": [], "validation": []}
        self.n_iter_ = n_iter
        self.users_, self.items_ = training.users, training.items
        self.classes_ = as_classes(training.scores)
        self.prior_ = training.score_counts / len(training)
        self.user_counts_, self.item_counts_ = training.by_user.counts, training.by_item.counts
        self.rated_: Rows | None = training.by_user
        self.fingerprint_ = training.fingerprint

    # -- scikit-learn, notebooks, files ------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        classifies = self.gives == "probabilities"
        return Tags(
            estimator_type="classifier" if classifies else "regressor",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if classifies else None,
            regressor_tags=None if classifies else RegressorTags(),
            input_tags=InputTags(categorical=True, string=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fingerprint_")

    def _repr_html_(self) -> str:
        """Parameters that were chosen and what the fit found, for notebooks."""
        from bemf import html

        fitted = self.__sklearn_is_fitted__()
        named = self.changed_parameters() | (self._found() if fitted else {})
        parts = [html.facts(named)] * bool(named) + [html.note("not fitted yet")] * (not fitted)
        return html.card(type(self).__name__, *parts)

    def _found(self) -> dict[str, str]:
        """What there is to say of the fit."""
        return {
            "ratings": f"{self.user_counts_.sum():,}",
            "users": f"{np.count_nonzero(self.user_counts_):,}",
            "items": f"{np.count_nonzero(self.item_counts_):,}",
            "scale": listed(self.classes_),
        }

    def save(self, path: str | PathLike[str], *, ratings: bool = True) -> None:
        """Writes the model to one file, whole or not at all; `bemf.load` reads it.

        The training `ratings` go along, five bytes each, so that the loaded model knows what users have seen.

        >>> import bemf, tempfile, pathlib
        >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.bemf"
        >>> bemf.BeMF(random_state=0).fit(ratings).save(path)
        >>> bemf.load(path).forecast([(2, 1)]).prediction
        array([1.])
        """
        from bemf.persistence import save

        self._require_fit()
        save(self, path, ratings)

    # -- what a model says of itself ---------------------------------------------------------------

    @abstractmethod
    def answer(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[Any]:
        """Of pairs of inner indexes: probabilities (pairs, scores), or points; NaN where an index is −1."""

    def trust(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64] | None:  # noqa: ARG002
        """How reliable the answers are, if the model knows it otherwise than from its probabilities."""
        return None

    @property
    def is_reliable(self) -> bool:
        """Whether its predictions have reliabilities."""
        return self.gives == "probabilities"

    def take_in(self, new: Ratings) -> None:  # noqa: ARG002
        """See `fold_in`."""
        raise ParameterError(f"{type(self).__name__} cannot take in new ratings; fit it again")

    def item_vectors(self) -> NDArray[Any]:
        """All that is learned of each item, a row each."""
        raise ParameterError(f"{type(self).__name__} has no factors to compare items by")

    @abstractmethod
    def check_state(self, state: dict[str, NDArray[Any]], sizes: Sizes) -> None:
        """Raises a ValueError for arrays out of a file that do not fit each other: kernels trust them."""


def as_ratings(given: Any, y: ArrayLike | None, scores: ArrayLike | None) -> Ratings:
    """Ratings from what `fit` was given.

    >>> as_ratings([(1, "a"), (2, "a")], [4, 5], None)
    Ratings(2 ratings by 2 users of 1 item, scores 4, 5)
    """
    if isinstance(given, Ratings):
        if y is not None:
            raise DataError("Ratings hold the ratings already; leave y out")
        return given
    if y is None:
        return Ratings.from_frame(given, scores=scores)
    pairs = Pairs.of(given)
    return Ratings.from_arrays(pairs.users, pairs.items, y, scores=scores)


def on_scale(given: Any, y: ArrayLike | None, scores: NDArray[np.float64]) -> Ratings:
    """Ratings on a scale that is known already.

    >>> on_scale([(1, "a")], [4], np.array([3.0, 4.0])).scores
    array([3., 4.])
    """
    ratings = as_ratings(given, y, scores)
    if np.array_equal(ratings.scores, scores):
        return ratings
    return Ratings.from_indexes(
        ratings.users, ratings.items, ratings.user_index, ratings.item_index, ratings.values, scores=scores
    )


def as_classes(scores: NDArray[np.float64]) -> NDArray[Any]:
    """A scale as scikit-learn wants its classes: it uses those that are whole as indexes.

    >>> as_classes(np.array([0.0, 1.0])), as_classes(np.array([0.5, 1.0]))
    (array([0, 1]), array([0.5, 1. ]))
    """
    whole = (scores % 1 == 0) & (np.abs(scores) < 2**53)
    return scores.astype(np.int64) if whole.all() else scores


def _counted(counts: NDArray[np.int64], index: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether a row is known and has ratings."""
    return (index >= 0) & (np.append(counts, 0)[index] > 0)


__all__ = ["Recommender", "Vocabulary", "as_classes", "as_ratings", "on_scale"]
