"""The loop of a fit: iterations, their objective, validation, early stopping."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf.engines import Run, State, Step
from bemf.errors import DivergenceError, ParameterError
from bemf.progress import Callback, Iteration, Progress
from bemf.ratings import Ratings

if TYPE_CHECKING:
    from bemf.factorization import Factorization

BETWEEN_REPORTS = 0.05  # seconds
RUNAWAY = 10  # times its first value: no fit that goes anywhere has so bad an objective


@dataclass(frozen=True, eq=False)
class Validation:
    """Ratings held out of training, by which to stop."""

    training: Ratings
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    score_index: NDArray[np.uint8]
    patience: int

    @classmethod
    def of(
        cls, given: Ratings | float | None, training: Ratings, patience: int, random_state: int | None
    ) -> Validation | None:
        """The validation part: a share of training taken out of it, or ratings given."""
        if given is None:
            return None
        if patience < 1:
            raise ParameterError(f"patience must be at least 1; got {patience}")
        if isinstance(given, Ratings):
            held_out = given
        else:
            from bemf.datasets.splits import holdout

            training, held_out = holdout(training, float(given), random_state=random_state)
        users = training.users.index(held_out.users.arrow)[held_out.user_index]
        items = training.items.index(held_out.items.arrow)[held_out.item_index]
        score = np.searchsorted(training.scores, held_out.values).clip(0, training.n_scores - 1)
        known = (users >= 0) & (items >= 0) & (training.scores[score] == held_out.values)
        if not known.any():
            raise ParameterError("no rating of the validation part has a user, an item and a score known to training")
        return cls(training, users[known], items[known], score[known].astype(np.uint8), patience)

    def loss(self, run: Run, model: Factorization) -> float:
        """Of the factors as they are now: the log-loss of probabilities, the squared error of points."""
        answer = run.forecast(f"{model.family}.forecast", self.users, self.items, model.forecast_parameters())
        if answer.ndim == 1:
            return float(np.mean((answer - self.training.scores[self.score_index]) ** 2))
        hit = np.take_along_axis(answer, self.score_index[:, None].astype(np.intp), axis=1)
        return float(-np.mean(np.log(np.maximum(hit, 1e-15), dtype=np.float64)))


class Fit:
    """One fit as it goes on. `objectives` starts with the value before the first iteration."""

    def __init__(
        self,
        model: Factorization,
        run: Run,
        facts: dict[str, NDArray[Any]],
        validation: Validation | None,
        callbacks: Sequence[Callback],
        progress: Progress | None,
    ) -> None:
        self._model, self._run, self._facts, self._validation = model, run, facts, validation
        self._callbacks, self._progress = callbacks, progress
        self._total = model.iterations()
        self._best: State | None = None
        self.objectives: list[float] = []
        self.validations: list[float] = []
        self.n_done = 0
        self._first = 0
        self._reported = time.monotonic()

    def go(self, before: Sequence[float]) -> None:
        """Iterates to the end, or until a callback or the validation part says stop."""
        self.objectives = list(before[:-1])  # its last is measured again by the first sweep
        self._first = len(self.objectives)
        for _ in range(self._total):
            steps = list(self._model.steps(self._facts))
            totals = [self._step(step, place / len(steps), 1 / len(steps)) for place, step in enumerate(steps)]
            self._note(self._model.objective(totals))
            self.n_done += 1
            if self._validated() or self._called_back():
                break
        self._note(self._model.objective([self._run.step(look) for look in self._model.looks(self._facts)]))
        if self._progress:
            self._progress(1.0)

    def interrupted(self) -> None:
        """Makes the record fit for going on: what the last whole iteration reached was not measured."""
        self.objectives = [*self.objectives[: self._first + self.n_done], math.nan]

    def best_state(self) -> State:
        """The factors that did best on the validation part; without one, the last."""
        return self._best if self._best is not None else self._run.fetch()

    def _step(self, step: Step, start: float, share: float) -> NDArray[np.float64]:
        """A half-sweep, which is `share` of an iteration and begins at `start` of it."""

        def report(done: float) -> None:
            now = time.monotonic()
            if self._progress and now - self._reported >= BETWEEN_REPORTS:
                self._reported = now
                self._progress((self.n_done + start + share * done) / self._total)

        totals = self._run.step(step, report if self._progress else None)
        report(1.0)
        return totals

    def _note(self, objective: float) -> None:
        self.objectives.append(objective)
        at_first = self.objectives[self._first]
        if not math.isfinite(objective) or objective < RUNAWAY * min(at_first, -1.0):
            raise DivergenceError(
                f"the fit diverged in iteration {max(self.n_done, 1)}: the objective went from {at_first:.6g} "
                f"to {objective:.6g}; {self._model.remedy()}"
            )

    def _validated(self) -> bool:
        """Measures the validation part; whether it has not got better for too long."""
        if self._validation is None:
            return False
        self.validations.append(self._validation.loss(self._run, self._model))
        best = int(np.argmin(self.validations))
        if best == len(self.validations) - 1:
            self._best = {name: np.array(block) for name, block in self._run.fetch().items()}
        return len(self.validations) - 1 - best >= self._validation.patience

    def _called_back(self) -> bool:
        validation = self.validations[-1] if self.validations else None
        iteration = Iteration(self.n_done, self._total, self.objectives[-1], validation)
        answers = [callback(iteration) for callback in self._callbacks]
        return any(answer is True for answer in answers)
