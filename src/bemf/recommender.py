"""What every model shares: fitting, forecasting, scikit-learn's protocol, saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import closing
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bemf.engines import Block, Engine, Run, Side, State, Step, Wish, engine
from bemf.errors import DataError, NotFittedError, ParameterError
from bemf.fitting import Fit, Validation
from bemf.forecast import Forecast, Point
from bemf.hyperparameters import Configured, anything, choice, whole
from bemf.pairs import Pairs
from bemf.progress import Callback, Progress
from bemf.ratings import Ratings
from bemf.rows import Rows
from bemf.vocabulary import Vocabulary

if TYPE_CHECKING:
    from bemf.recommendations import By, Recommendations, Similar

Init = dict[str, NDArray[Any]] | tuple[NDArray[Any], NDArray[Any]]


class Recommender(Configured, ABC):
    """A model of who gives what which score.

    A model describes itself to `fit` and `forecast` by the methods at the end of this class.
    """

    scores: Sequence[float] | None = anything(default=None)
    random_state: int | None = whole(default=None, low=0)
    warm_start: bool = choice(False, True, default=False)
    engine: str | Engine = anything(default="native")
    n_threads: int | None = whole(default=None, low=1, high=4096)
    dtype: str = choice("float32", "float64", default="float32")

    family: ClassVar[str]

    # -- fitting -----------------------------------------------------------------------------------

    def fit(
        self,
        ratings: Any,
        y: ArrayLike | None = None,
        *,
        validation: Ratings | float | None = None,
        patience: int = 3,
        init: Init | None = None,
        callbacks: Iterable[Callback] = (),
        progress: Progress | None = None,
    ) -> Self:
        """Learns from ratings.

        Parameters
        ----------
        ratings : Ratings, frame with user, item and rating, or (users, items) pairs with `y`
        y : the ratings of the pairs, in scikit-learn's way
        validation : Ratings or a share of the training ratings to hold out
            The fit stops when the log-loss on it has not fallen for `patience` iterations, and keeps the
            factors that did best.
        init : the initial factors (user's, item's), in place of random ones
        callbacks : called after each iteration with an `Iteration`; returning True ends the fit
        progress : called with the share of the fit that is done, about twenty times a second

        If it is interrupted, the model keeps the factors it had reached (what their objective is was not
        measured: NaN). `warm_start=True` goes on from there, and takes in new users and items.

        >>> import bemf
        >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
        >>> bemf.BeMF(random_state=0).fit(ratings).n_iter_ > 0
        True
        """
        self.check_parameters()
        training = as_ratings(ratings, y, self.scores)
        held_out = Validation.of(validation, training, patience, self.random_state)
        training = held_out.training if held_out else training
        made = engine(self.engine, self.n_threads)
        state = self._start(training, init, made)
        with closing(made.place(self.family, state, training)) as run:
            fit = Fit(self, run, held_out, list(callbacks), progress)
            try:
                fit.go(self.history_["objective"] if self._goes_on() else [])
            except KeyboardInterrupt:
                fit.interrupted()
                self._keep(fit, training)
                raise
            self._keep(fit, training)
        return self

    def _start(self, training: Ratings, init: Init | None, made: Engine) -> State:
        state = {
            name: made.zeros(self.family, shape, self.dtype) for name, shape in self.block_shapes(training).items()
        }
        state |= self.facts(training)
        self.draw(state, np.random.default_rng(self.random_state))
        if init is not None:
            given = init if isinstance(init, dict) else dict(zip(("U", "V"), init, strict=True))
            for name, block in given.items():
                wanted = {name: np.shape(block) for name, block in state.items()}
                if name not in wanted or np.shape(block) != wanted[name]:
                    raise ParameterError(f"init must have shapes {wanted}; got {name}: {np.shape(block)}")
                for mine, theirs in zip(state[name], block, strict=True):
                    mine[...] = theirs
        elif self._goes_on():
            self._carry_over(state, training)
        return state

    def _goes_on(self) -> bool:
        return self.warm_start and hasattr(self, "state_")

    def _carry_over(self, state: State, training: Ratings) -> None:
        """Puts the fitted rows in place of random ones where the ids are the same."""
        if not np.array_equal(training.scores, self.classes_):
            raise DataError(f"warm_start needs the same scores; got {training.scores}, had {self.classes_}")
        for name, old, new in (("U", self.users_, training.users), ("V", self.items_, training.items)):
            if state[name][0].shape[1] != self.state_[name][0].shape[1]:
                raise ParameterError("warm_start needs the same n_factors and biases as the fit it goes on from")
            place = old.index(new.arrow)
            for mine, before in zip(state[name], self.state_[name], strict=True):
                mine[place >= 0] = before[place[place >= 0]]
        state |= {name: block for name, block in self.state_.items() if name not in ("U", "V")}

    def _keep(self, fit: Fit, training: Ratings) -> None:
        """Takes over what a fit found; until here the model is what it was."""
        before: list[float] = self.history_["validation"] if self._goes_on() else []
        self.history_: dict[str, list[float]] = {"objective": fit.objectives, "validation": before + fit.validations}
        self.n_iter_ = fit.n_done
        self.set_state(fit.best_state())
        self.users_, self.items_ = training.users, training.items
        self.classes_ = as_classes(training.scores)
        self.prior_ = training.score_counts / len(training)
        self.user_counts_, self.item_counts_ = training.by_user.counts, training.by_item.counts
        self.rated_: Rows | None = training.by_user
        self.fingerprint_ = training.fingerprint

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
        from bemf.folding import fold_in

        self._require_fit()
        fold_in(self, on_scale(ratings, y, self.classes_))
        return self

    def empty_block(self, made: Engine, n_rows: int, n_columns: int) -> Block:
        """Room for rows of factors, as the engine likes it."""
        return made.zeros(self.family, (len(self.classes_), n_rows, n_columns), self.dtype)

    def set_state(self, state: State) -> None:
        """Other factors, to answer with from now on."""
        self.state_ = state
        self._scorer: Run | None = None

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
        probabilities = self._placed().forecast(f"{self.family}.forecast", users, items, self.forecast_parameters())
        if unknown == "prior":
            probabilities[~known] = self.prior_
        return Forecast(asked.users, asked.items, probabilities, self.classes_.astype(np.float64), known, point)

    def recommend(
        self,
        users: Any = None,
        n: int = 10,
        *,
        like: float | None = None,
        by: By = "p_like",
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
        by : "p_like", the probability of a rating of at least `like`, or "mean", the expected rating
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
        return self._placed().rank(f"{self.family}.rank", users, wish, self.forecast_parameters(), progress)

    def seen(self) -> Rows:
        """What each user rated in training."""
        self._require_fit()
        if self.rated_ is None:
            raise DataError(
                "this model was saved without its training ratings, so nobody knows what users have seen; "
                "use exclude_seen=False (on the command line --seen)"
            )
        return self.rated_

    def item_vectors(self) -> NDArray[Any]:
        """All that is learned of each item, a row each."""
        return np.concatenate(list(self.state_["V"]), axis=1)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The most likely score of each pair, never NaN: scikit-learn's face of `forecast`."""
        return self.forecast(X, unknown="prior").prediction

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each score in `classes_` for each pair, never NaN."""
        return self.forecast(X, unknown="prior").probabilities

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """The mean log-likelihood of ratings: `X` with `y`, or `Ratings` alone."""
        from bemf.metrics import scorer

        return scorer("log_loss")(self, X, y)

    def _placed(self) -> Run:
        """The factors, placed for forecasts and kept so."""
        scorer: Run | None = getattr(self, "_scorer", None)
        if scorer is None:
            scorer = self._scorer = engine(self.engine, self.n_threads).place(self.family, self.state_)
        return scorer

    def _require_fit(self) -> None:
        if not hasattr(self, "state_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")

    # -- scikit-learn, pickle, files ---------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(categorical=True, string=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "state_")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_scorer"}

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
    def block_shapes(self, ratings: Ratings) -> dict[str, tuple[int, int, int]]:
        """The blocks of factors, (scores, rows, columns)."""

    @abstractmethod
    def facts(self, ratings: Ratings) -> dict[str, NDArray[Any]]:
        """Further blocks, that follow from the ratings and do not change."""

    @abstractmethod
    def draw(self, state: State, rng: np.random.Generator) -> None:
        """Fills the factors with their values before the first iteration, the same ones for every engine."""

    @abstractmethod
    def iterations(self) -> int:
        """How many iterations a fit has."""

    @abstractmethod
    def steps(self) -> Iterable[Step]:
        """The half-sweeps of one iteration."""

    @abstractmethod
    def looks(self) -> Iterable[Step]:
        """Half-sweeps that change nothing and return the totals of the steps."""

    @abstractmethod
    def objective(self, totals: list[NDArray[np.float64]]) -> float:
        """What the fit raises, from the totals of an iteration's steps: its value before the iteration."""

    @abstractmethod
    def fold_steps(self, side: Side) -> Iterable[Step]:
        """The half-sweeps that learn new rows of a side, as many as it may take."""

    @abstractmethod
    def side_objective(self, side: Side, totals: NDArray[np.float64]) -> float:
        """What these half-sweeps raise, from the totals of one: its value before the half-sweep."""

    @abstractmethod
    def forecast_parameters(self) -> dict[str, Any]:
        """What the forecast kernel needs to know."""

    def remedy(self) -> str:
        """What to change when a fit diverges."""
        return "use stronger regularization"


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


__all__ = ["Init", "Recommender", "Vocabulary", "as_classes", "as_ratings"]
