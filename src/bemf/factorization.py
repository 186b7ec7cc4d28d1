"""Models that are learned by an engine, which sweeps over the ratings: all factorizations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from contextlib import closing
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bemf.engines import Engine, Run, Side, State, Step, Wish, engine
from bemf.errors import DataError, ParameterError
from bemf.fitting import Fit, Validation
from bemf.hyperparameters import anything, choice
from bemf.progress import Callback, Progress
from bemf.ratings import Ratings
from bemf.recommender import Recommender, Sizes, as_ratings

Facts = dict[str, NDArray[Any]]
Init = dict[str, NDArray[Any]] | tuple[NDArray[Any], NDArray[Any]]
MOST_COLUMNS = 65  # 64 factors and a bias, as the kernels have room for


class Factorization(Recommender):
    """A model whose rows of factors an engine learns in half-sweeps.

    A model describes itself to `fit` and `forecast` by the methods at the end of this class.

    Parameters
    ----------
    warm_start : whether `fit` goes on from what the last one learned
    engine : "native", or "reference", which is NumPy and slow, to check by
    dtype : "float32", or "float64" for exact work
    """

    warm_start: bool = choice(False, True, default=False)
    engine: str | Engine = anything(default="native")
    dtype: str = choice("float32", "float64", default="float32")

    family: ClassVar[str]
    block_sides: ClassVar[dict[str, Side]] = {"U": "user", "V": "item"}  # whose rows the blocks hold

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

        If it is interrupted, the model keeps the factors it had reached (what their objective is was not
        measured: NaN). `warm_start=True` goes on from there, and takes in new users and items.

        Parameters
        ----------
        ratings : Ratings, frame with user, item and rating, or (users, items) pairs with `y`
        y : the ratings of the pairs, in scikit-learn's way
        validation : Ratings or a share of the training ratings to hold out
            The fit stops when the log-loss on it (of points, their squared error) has not fallen for `patience`
            iterations, and keeps the factors that did best.
        init : the initial factors (user's, item's), in place of random ones
        callbacks : called after each iteration with an `Iteration`; returning True ends the fit
        progress : called with the share of the fit that is done, about twenty times a second

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
        facts = self.facts(training)
        state = self._start(training, facts, init, made)
        facts = {name: np.asarray(state[name]) for name in facts}
        with closing(made.place(self.family, state, training)) as run:
            fit = Fit(self, run, facts, held_out, list(callbacks), progress)
            try:
                fit.go(self.history_["objective"] if self._goes_on() else [])
            except KeyboardInterrupt:
                fit.interrupted()
                self._keep(fit, training)
                raise
            self._keep(fit, training)
        return self

    def _start(self, training: Ratings, facts: Facts, init: Init | None, made: Engine) -> State:
        shapes = self.block_shapes(sizes_of(training))
        state: State = {name: made.zeros(self.family, shape, self.dtype) for name, shape in shapes.items()}
        state |= facts
        self.draw(state, np.random.default_rng(self.random_state))
        if init is not None:
            _put(init, state)
        elif self._goes_on():
            self._carry_over(state, training)
        return state

    def _goes_on(self) -> bool:
        return self.warm_start and hasattr(self, "state_")

    def _carry_over(self, state: State, training: Ratings) -> None:
        """Puts the fitted rows in place of random ones where the ids are the same."""
        if not np.array_equal(training.scores, self.classes_):
            raise DataError(f"warm_start needs the same scores; got {training.scores}, had {self.classes_}")
        places = {"user": self.users_.index(training.users.arrow), "item": self.items_.index(training.items.arrow)}
        for name, side in self.block_sides.items():
            place = places[side]
            if state[name][0].shape[1] != self.state_[name][0].shape[1]:
                raise ParameterError("warm_start needs the same n_factors and biases as the fit it goes on from")
            for mine, before in zip(state[name], self.state_[name], strict=True):
                mine[place >= 0] = before[place[place >= 0]]
        state |= {name: block for name, block in self.state_.items() if name not in self.block_sides}

    def _keep(self, fit: Fit, training: Ratings) -> None:
        """Takes over what a fit found; until here the model is what it was."""
        before: list[float] = self.history_["validation"] if self._goes_on() else []
        self.set_state(fit.best_state())
        history = {"objective": fit.objectives, "validation": before + fit.validations}
        self._remember(training, history, fit.n_done)

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._scorer: Run | None = None

    # -- answering ---------------------------------------------------------------------------------

    def answer(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[Any]:
        return self._placed().forecast(f"{self.family}.forecast", users, items, self.forecast_parameters())

    def rank(self, users: NDArray[np.int32], wish: Wish, progress: Progress | None = None) -> NDArray[np.int32]:
        return self._placed().rank(f"{self.family}.rank", users, wish, self.forecast_parameters(), progress)

    def take_in(self, new: Ratings) -> None:
        from bemf.folding import fold_in

        fold_in(self, new)

    def item_vectors(self) -> NDArray[Any]:
        return np.concatenate(list(self.state_["V"]), axis=1)

    def _placed(self) -> Run:
        """The factors, placed for forecasts and kept so."""
        scorer: Run | None = getattr(self, "_scorer", None)
        if scorer is None:
            scorer = self._scorer = engine(self.engine, self.n_threads).place(self.family, self.state_)
        return scorer

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_scorer"}

    def _found(self) -> dict[str, str]:
        objective, validation = self.history_["objective"], self.history_["validation"]
        found = super()._found()
        found["iterations"] = f"{self.n_iter_:,}"
        found["objective"] = f"{objective[0]:,.6g} → {objective[-1]:,.6g}"
        if validation:
            found["loss on validation"] = f"{min(validation):.4f}"
        return found

    def check_state(self, state: dict[str, NDArray[Any]], sizes: Sizes) -> None:
        blocks, facts = self.block_shapes(sizes), self.fact_shapes(sizes)
        if not set(blocks) <= set(state) <= set(blocks) | set(facts):
            raise ValueError(f"it has the arrays {', '.join(sorted(state))}")
        for name, array in state.items():
            wanted = facts.get(name) or (*blocks[name][:2], array.shape[-1])
            if array.shape != wanted or not array.size or (name in blocks and array.shape[-1] > MOST_COLUMNS):
                raise ValueError(f"{name} has shape {array.shape}")
            if array.dtype != self.dtype:
                raise ValueError(f"{name} is of {array.dtype}, not {self.dtype}")
        if len({array.shape[-1] - blocks[name][-1] for name, array in state.items() if name in blocks}) > 1:
            raise ValueError("the rows of users and items are not equally long")

    # -- what a model says of itself ---------------------------------------------------------------

    @abstractmethod
    def block_shapes(self, sizes: Sizes) -> dict[str, tuple[int, int, int]]:
        """The blocks of factors, (scores, rows, columns)."""

    def facts(self, ratings: Ratings) -> Facts:  # noqa: ARG002
        """Further blocks, that follow from the ratings and do not change."""
        return {}

    def fact_shapes(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:  # noqa: ARG002
        """The shapes of these blocks."""
        return {}

    @abstractmethod
    def draw(self, state: State, rng: np.random.Generator) -> None:
        """Fills the factors with their values before the first iteration, the same ones for every engine."""

    @abstractmethod
    def iterations(self) -> int:
        """How many iterations a fit has."""

    @abstractmethod
    def steps(self, facts: Facts) -> Iterable[Step]:
        """The half-sweeps of one iteration."""

    @abstractmethod
    def looks(self, facts: Facts) -> Iterable[Step]:
        """Half-sweeps that change nothing and return the totals of the steps."""

    @abstractmethod
    def objective(self, totals: list[NDArray[np.float64]]) -> float:
        """What the fit raises, from the totals of an iteration's steps: its value before the iteration."""

    @abstractmethod
    def fold_steps(self, side: Side, facts: Facts) -> Iterable[Step]:
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


def sizes_of(ratings: Ratings) -> Sizes:
    """How many scores, users and items there are.

    >>> sizes_of(Ratings.from_arrays([1, 2], [7, 7], [4, 5]))
    Sizes(scores=2, users=2, items=1)
    """
    return Sizes(ratings.n_scores, len(ratings.users), len(ratings.items))


def _put(init: Init, state: State) -> None:
    """Given factors in the place of drawn ones."""
    given = init if isinstance(init, dict) else dict(zip(("U", "V"), init, strict=True))
    wanted = {name: np.shape(block) for name, block in state.items()}
    for name, block in given.items():
        if name not in wanted or np.shape(block) != wanted[name]:
            raise ParameterError(f"init must have shapes {wanted}; got {name}: {np.shape(block)}")
        for mine, theirs in zip(state[name], block, strict=True):
            mine[...] = theirs
