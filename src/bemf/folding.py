"""New users and items without a refit: their rows are learned while the rows of the others stand still."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf.engines import Block, Engine, Side, State, engine
from bemf.rows import Rows, arranged, kept_of_repeats, only, transposed, with_rows
from bemf.vocabulary import Vocabulary

if TYPE_CHECKING:
    from bemf.factorization import Factorization
    from bemf.ratings import Ratings

ENOUGH = 1e-6  # growth of the objective in a step, as a share of it, at which rows are learned


@dataclass(frozen=True)
class OneSide:
    """Ratings of which one side's rows are to be learned: the other side has none."""

    by_user: Rows
    by_item: Rows


def fold_in(model: Factorization, new: Ratings) -> None:
    """See `Recommender.fold_in`. Until the end the model is what it was."""
    fold = Fold(model, new)
    fold.learn_users()
    if fold.has_new_items:
        fold.learn_new_items()
        fold.learn_users()
    fold.give()


class Fold:
    """Growing copies of what a model knows; `changed` are the users whose rows are learned anew."""

    def __init__(self, model: Factorization, new: Ratings) -> None:
        self._model = model
        self._engine: Engine = engine(model.engine, model.n_threads)
        self._state: State = dict(model.state_)
        self._facts = {name: np.asarray(block) for name, block in model.state_.items() if name not in model.block_sides}
        self._users, user = _indexed(model.users_, new.users, new.user_index)
        self._items, item = _indexed(model.items_, new.items, new.item_index)
        self._user_counts = _padded(model.user_counts_, len(self._users))
        self._item_counts = _padded(model.item_counts_, len(self._items))
        self._changed, local = np.unique(user, return_inverse=True)
        self._theirs = self._whole_rows(local.astype(np.int32), item, new.score_index)
        self.has_new_items = bool((self._item_counts[item] == 0).any())
        self._grow("user", len(self._users))
        if self.has_new_items:
            self._grow("item", len(self._items))

    def learn_users(self) -> None:
        """From their ratings of items that are known by now."""
        rows = only(self._theirs, self._item_counts[self._theirs.indices] > 0)
        self._learn("user", self._changed, rows, len(self._items))
        self._user_counts[self._changed] = rows.counts

    def learn_new_items(self) -> None:
        """From the ratings of users that are known by now."""
        by_item = transposed(self._theirs, len(self._items))
        new = np.flatnonzero((self._item_counts == 0) & (by_item.counts > 0))
        rows = by_item.take(new)
        rows = Rows(rows.indptr, self._changed[rows.indices].astype(np.int32), rows.score_index)
        rows = only(rows, self._user_counts[rows.indices] > 0)
        self._learn("item", new, rows, len(self._users))
        self._item_counts[new] = rows.counts

    def give(self) -> None:
        """Makes the model what was learned."""
        model = self._model
        if model.rated_ is not None:
            model.rated_ = with_rows(model.rated_, self._changed, self._theirs)
        model.users_, model.items_ = self._users, self._items
        model.user_counts_, model.item_counts_ = self._user_counts, self._item_counts
        model.set_state(self._state)

    def _whole_rows(self, local: NDArray[np.int32], item: NDArray[np.int32], score_index: NDArray[np.uint8]) -> Rows:
        """All ratings of the changed users, the new ones before those of training."""
        old = self._changed[self._changed < len(self._model.users_)]
        if len(old):
            before = self._model.seen().take(old)
            local = np.concatenate([local, before.row_of_each()])
            item = np.concatenate([item, before.indices])
            score_index = np.concatenate([score_index, before.score_index])
        rows, order = arranged(local, item, score_index, len(self._changed), len(self._items))
        kept = kept_of_repeats(rows, order, self._users, self._items, "first")
        return rows if kept is None else only(rows, kept)

    def _empty(self, like: Block, n_rows: int) -> Block:
        shape = (len(like), n_rows, like[0].shape[1])
        return self._engine.zeros(self._model.family, shape, self._model.dtype)

    def _blocks(self, side: Side) -> list[str]:
        return [name for name, whose in self._model.block_sides.items() if whose == side]

    def _grow(self, side: Side, n_rows: int) -> None:
        """Room for more rows, in a copy."""
        for name in self._blocks(side):
            before = self._state[name]
            after = self._empty(before, n_rows)
            for score, rows in enumerate(before):
                after[score][: len(rows)] = rows
            self._state[name] = after

    def _learn(self, side: Side, where: NDArray[np.integer[Any]], rows: Rows, n_others: int) -> None:
        """Puts rows learned from these ratings in their places."""
        model = self._model
        mine = {name: self._empty(self._state[name], len(where)) for name in self._blocks(side)}
        model.draw({"U": [], "V": []} | {name: list(block) for name, block in mine.items()}, self._rng())
        nothing = Rows(np.zeros(n_others + 1, dtype=np.int64), rows.indices[:0], rows.score_index[:0])
        ratings = OneSide(rows, nothing) if side == "user" else OneSide(nothing, rows)
        with closing(self._engine.place(model.family, self._state | mine, ratings)) as run:
            before = np.nan
            for step in model.fold_steps(side, self._facts):
                objective = model.side_objective(side, run.step(step))
                if abs(objective - before) <= ENOUGH * abs(objective):
                    break
                before = objective
            learned = run.fetch()
        for name in mine:
            for whole, rows_of_score in zip(self._state[name], learned[name], strict=True):
                whole[where] = rows_of_score

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self._model.random_state)


def _indexed(known: Vocabulary, given: Vocabulary, index: NDArray[np.int32]) -> tuple[Vocabulary, NDArray[np.int32]]:
    """The vocabulary with the ids that are rated, and their indexes in it."""
    used, local = np.unique(index, return_inverse=True)
    grown, place = known.with_more(given.take(used))
    return grown, place[local]


def _padded(counts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    return np.append(counts, np.zeros(n - len(counts), dtype=counts.dtype))
