"""Ratings as rows: sorted, turned, chosen from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bemf import _native
from bemf.errors import DataError
from bemf.vocabulary import Vocabulary
from bemf.words import counted

Duplicates = Literal["error", "first", "last"]


@dataclass(frozen=True, slots=True)
class Rows:
    """The ratings of one side, row after row: row r's are at indptr[r] … indptr[r + 1] − 1."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    score_index: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many ratings each row has."""
        return np.diff(self.indptr)

    def of(self, row: int) -> NDArray[np.int32]:
        """What one row has rated."""
        return self.indices[self.indptr[row] : self.indptr[row + 1]]

    def take(self, rows: NDArray[np.integer[Any]]) -> Rows:
        """Some of the rows, in the order asked."""
        starts, counts = self.indptr[rows], self.counts[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        place = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
        return Rows(indptr, self.indices[place], self.score_index[place])

    def row_of_each(self) -> NDArray[np.int32]:
        """The row of each rating."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.counts)


def arranged(
    user_index: NDArray[np.int32],
    item_index: NDArray[np.int32],
    score_index: NDArray[np.uint8],
    n_users: int,
    n_items: int,
) -> tuple[Rows, NDArray[np.int64]]:
    """The ratings by user, then item, and where each came from."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()  # what reading a file left, before this takes its own share
    order = _native.group(item_index, n_items)[1]
    indptr, second = _native.group(user_index[order], n_users)
    order = order[second]
    del second
    return Rows(indptr, item_index[order], score_index[order]), order


def transposed(rows: Rows, n_columns: int) -> Rows:
    """The same ratings by the other side."""
    indptr, order = _native.group(rows.indices, n_columns)
    return Rows(indptr, rows.row_of_each()[order], rows.score_index[order])


def only(rows: Rows, mask: NDArray[np.bool_]) -> Rows:
    """Some of the ratings, in as many rows."""
    before = np.concatenate([[0], np.cumsum(mask)])
    return Rows(before[rows.indptr], rows.indices[mask], rows.score_index[mask])


def kept_of_repeats(
    by_user: Rows, order: NDArray[np.int64], users: Vocabulary, items: Vocabulary, duplicates: Duplicates
) -> NDArray[np.bool_] | None:
    """Which ratings stay when a user rated an item more than once; None where that never happened."""
    repeats = np.zeros(len(order), dtype=bool)  # the same user and item as the rating before
    np.equal(by_user.indices[1:], by_user.indices[:-1], out=repeats[1:])
    starts = by_user.indptr[:-1]
    repeats[starts[starts < len(order)]] = False
    if not repeats.any():
        return None
    if duplicates == "error":
        where = np.flatnonzero(repeats)
        rows = by_user.row_of_each()
        shown = ", ".join(
            f"user {users[rows[j]]!r} and item {items[by_user.indices[j]]!r} (rows {order[j - 1]:,} and {order[j]:,})"
            for j in where[:3]
        )
        raise DataError(
            f"{counted(len(where), 'repeated (user, item) pair')}: {shown}. "
            'Keep one rating of each with duplicates="last" or "first"'
        )
    return ~repeats if duplicates == "first" else ~np.append(repeats[1:], False)


def with_rows(rows: Rows, where: NDArray[np.integer[Any]], instead: Rows) -> Rows:
    """Rows with others in their places, ascending; places beyond the last follow one after the other."""
    parts, after = [], 0
    for place, row in enumerate(where[where < len(rows)]):
        parts += [(rows, rows.indptr[after], rows.indptr[row]), (instead, *instead.indptr[place : place + 2])]
        after = row + 1
    n_inside = int(np.count_nonzero(where < len(rows)))
    parts += [(rows, rows.indptr[after], rows.indptr[-1]), (instead, instead.indptr[n_inside], instead.indptr[-1])]
    counts = np.append(rows.counts, instead.counts[n_inside:])
    counts[where] = instead.counts
    return Rows(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([each.indices[start:end] for each, start, end in parts]),
        np.concatenate([each.score_index[start:end] for each, start, end in parts]),
    )
