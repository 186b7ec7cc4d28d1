"""The best candidates of users for models and engines that have no kernel of their own for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bemf.engines import Tick, Wish

AT_ONCE = 1 << 20  # pairs that are answered together

Answer = Callable[[NDArray[np.int32], NDArray[np.int32]], Any]


class RanksByForecasts(ABC):
    """A run that ranks by its forecasts."""

    @abstractmethod
    def forecast(
        self, kernel: str, users: NDArray[np.int32], items: NDArray[np.int32], parameters: Mapping[str, Any]
    ) -> NDArray[Any]:
        """See `bemf.engines.Run.forecast`."""

    def rank(
        self,
        kernel: str,
        users: NDArray[np.int32],
        wish: Wish,
        parameters: Mapping[str, Any],
        tick: Tick | None = None,
    ) -> NDArray[np.int32]:
        """See `bemf.engines.Run.rank`."""

        def answer(users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[Any]:
            return self.forecast(kernel, users, items, parameters)

        return rank_by_answers(answer, lambda *_: None, users, wish, tick)


def rank_by_answers(
    answer: Answer, trust: Answer, users: NDArray[np.int32], wish: Wish, tick: Tick | None = None
) -> NDArray[np.int32]:
    """See `bemf.engines.Run.rank`; `answer` and `trust` are those of a model."""
    out = np.full((len(users), wish.n), -1, dtype=np.int32)
    n_together = max(1, AT_ONCE // max(len(wish.candidates), 1))
    for start in range(0, len(users), n_together):
        some = users[start : start + n_together]
        worth = _worths(answer, trust, some, wish)
        for row, user in enumerate(some):
            if user >= 0:
                best = _best(worth[row], wish, user)
                out[start + row, : len(best)] = best
        if tick:
            tick((start + len(some)) / len(users))
    return out


def _worths(answer: Answer, trust: Answer, users: NDArray[np.int32], wish: Wish) -> NDArray[np.float64]:
    """What each candidate is worth to each user; NaN where it is not wanted."""
    pairs = np.repeat(users, len(wish.candidates)), np.tile(wish.candidates, len(users))
    answers, trusted = answer(*pairs), trust(*pairs)
    worth = np.array(answers @ wish.worths if answers.ndim == 2 else answers, dtype=np.float64)
    if trusted is None and answers.ndim == 2:
        trusted = answers.max(axis=1)
    if trusted is not None:
        worth[trusted < wish.min_reliability] = np.nan
    worth[worth < wish.min_worth] = np.nan
    return worth.reshape(len(users), len(wish.candidates))


def _best(worth: NDArray[np.float64], wish: Wish, user: int) -> NDArray[np.int32]:
    """The n of most worth, of equal worth the first."""
    if wish.seen is not None:
        worth = np.where(np.isin(wish.candidates, wish.seen.of(user)), np.nan, worth)
    wanted = np.flatnonzero(~np.isnan(worth))
    if len(wanted) > wish.n:  # leave out those below the n-th, which may have equals
        least = np.partition(worth[wanted], len(wanted) - wish.n)[len(wanted) - wish.n]
        wanted = wanted[worth[wanted] >= least]
    order = np.argsort(-worth[wanted], kind="stable")[: wish.n]
    return wish.candidates[wanted[order]]
