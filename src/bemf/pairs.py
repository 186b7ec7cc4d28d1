"""Pairs of a user and an item to be forecast, in whatever form they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf.errors import DataError
from bemf.ratings import Ratings
from bemf.vocabulary import Vocabulary, as_ids

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Pairs:
    """Ids of users and items, one of each a pair."""

    users: pa.Array
    items: pa.Array

    @classmethod
    def of(cls, given: Any) -> Pairs:
        """Pairs from Ratings, a frame, an array of two columns, or a list of (user, item).

        >>> len(Pairs.of([("ann", 1), ("bob", 2)]))
        2
        """
        if isinstance(given, Ratings):
            return cls(given.users.take(given.user_index), given.items.take(given.item_index))
        if isinstance(given, np.ndarray):
            return cls._of_array(given)
        if isinstance(given, list | tuple):
            return cls._of_list(given)
        return cls._of_frame(given)

    @classmethod
    def _of_array(cls, given: NDArray[Any]) -> Pairs:
        if given.ndim != 2 or given.shape[1] != 2:
            raise DataError(f"pairs must be an array of two columns, user and item; got shape {given.shape}")
        return cls(as_ids(given[:, 0], "user"), as_ids(given[:, 1], "item"))

    @classmethod
    def _of_list(cls, given: Any) -> Pairs:
        if any(not isinstance(pair, list | tuple | np.ndarray) or len(pair) != 2 for pair in given):
            raise DataError("pairs must be a list of (user, item)")
        return cls(as_ids([pair[0] for pair in given], "user"), as_ids([pair[1] for pair in given], "item"))

    @classmethod
    def _of_frame(cls, given: Any) -> Pairs:
        from bemf.files import frame_columns

        columns = frame_columns(given, {"user": None, "item": None})
        return cls(as_ids(columns["user"], "user"), as_ids(columns["item"], "item"))

    def __len__(self) -> int:
        return len(self.users)

    def index(self, users: Vocabulary, items: Vocabulary) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The inner indexes of both sides, −1 where unknown."""
        return users.index(self.users), items.index(self.items)
