"""Ratings on a discrete scale: validated, indexed, in both orders."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bemf import _native
from bemf.errors import DataError
from bemf.vocabulary import Vocabulary

if TYPE_CHECKING:
    pass

Duplicates = Literal["error", "first", "last"]
Column = str | int

MOST_SCORES = 256
MOST_INFERRED = 32
PART = 1 << 20  # ratings at a time, where NumPy would make 64-bit copies of all


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

    def row_of_each(self) -> NDArray[np.int32]:
        """The row of each rating."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.counts)


class Ratings:
    """Who rated what with which score: the paper's R.

    Made by `read`, `from_frame`, `from_arrays` or `from_sparse`, each of which refuses what it would
    otherwise have to guess about.

    >>> ratings = Ratings.from_arrays(["ann", "ann", "bob"], ["Alien", "Brazil", "Alien"], [5, 3, 4])
    >>> ratings
    Ratings(3 ratings by 2 users of 2 items, scores 3, 4, 5)
    >>> ratings.values
    array([5., 3., 4.])

    Attributes
    ----------
    users, items : Vocabulary
        The ids and their inner indexes.
    scores : array of float64
        The scale, ascending.
    by_user, by_item : Rows
        The same ratings in both orders. One rating stands before another if its user's index is lower,
        or its item's where the user is the same (and the other way round in `by_item`).
    dates : array of int64, or None
        The ratings' dates in the order of `by_user`.
    """

    def __init__(
        self,
        users: Vocabulary,
        items: Vocabulary,
        scores: NDArray[np.float64],
        by_user: Rows,
        by_item: Rows,
        dates: NDArray[np.int64] | None = None,
    ) -> None:
        self.users, self.items, self.scores = users, items, scores
        self.by_user, self.by_item, self.dates = by_user, by_item, dates

    # -- making ------------------------------------------------------------------------------------

    @classmethod
    def read(
        cls,
        source: str | PathLike[str] | IO[bytes],
        *,
        user: Column | None = None,
        item: Column | None = None,
        rating: Column | None = None,
        date: Column | None = None,
        scores: ArrayLike | None = None,
        duplicates: Duplicates = "error",
        delimiter: str | None = None,
        header: bool | None = None,
    ) -> Ratings:
        r"""Ratings from a file: CSV, TSV, `::`, `;` (also compressed), Parquet, Arrow or Feather.

        Columns are found by their usual names (`user_id`, `movieId`, `rating`, `timestamp`, …), or are
        the first three where there is no header; else say which by name or number.

        >>> import io
        >>> Ratings.read(io.BytesIO(b"userId,movieId,rating\n1,50,4.5\n2,50,3.0\n"))
        Ratings(2 ratings by 2 users of 1 item, scores 3, 4.5)
        """
        from bemf.files import read_table

        columns = {"user": user, "item": item, "rating": rating, "date": date}
        table = read_table(source, columns, delimiter=delimiter, header=header)
        return cls._from_columns(table, scores, duplicates)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        date: str | None = None,
        scores: ArrayLike | None = None,
        duplicates: Duplicates = "error",
    ) -> Ratings:
        """Ratings from a pandas, polars or pyarrow frame, or any other that narwhals knows.

        >>> import pandas as pd
        >>> Ratings.from_frame(pd.DataFrame({"user": [1, 2], "item": ["a", "a"], "rating": [1, 2]}))
        Ratings(2 ratings by 2 users of 1 item, scores 1, 2)
        """
        from bemf.files import frame_columns

        columns: dict[str, Column | None] = {"user": user, "item": item, "rating": rating, "date": date}
        return cls._from_columns(frame_columns(frame, columns), scores, duplicates)

    @classmethod
    def from_arrays(
        cls,
        users: Any,
        items: Any,
        ratings: ArrayLike,
        *,
        dates: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        duplicates: Duplicates = "error",
    ) -> Ratings:
        """Ratings from three columns: ids of users, ids of items, ratings.

        >>> Ratings.from_arrays([1, 1, 2], [7, 8, 7], [0.5, 4, 3.5], scores=[0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4])
        Ratings(3 ratings by 2 users of 2 items, scores 0.5, 1, 1.5, … 4)
        """
        columns = {"user": users, "item": items, "rating": ratings}
        if dates is not None:
            columns["date"] = dates
        return cls._from_columns(columns, scores, duplicates)

    @classmethod
    def from_sparse(
        cls, matrix: Any, *, scores: ArrayLike | None = None, duplicates: Duplicates = "error"
    ) -> Ratings:
        """Ratings from a scipy.sparse matrix, users by items; its stored entries are the ratings.

        >>> from scipy.sparse import csr_array
        >>> Ratings.from_sparse(csr_array([[5, 0], [3, 4]]))
        Ratings(3 ratings by 2 users of 2 items, scores 3, 4, 5)
        """
        if not hasattr(matrix, "tocoo"):
            raise DataError(f"from_sparse takes a scipy.sparse matrix; got {type(matrix).__name__}")
        coo = matrix.tocoo()
        users, items = (Vocabulary(np.arange(n), what) for n, what in zip(coo.shape, ("user", "item"), strict=True))
        values = _as_values(coo.data)
        user_index, item_index = coo.row, coo.col
        return cls.from_indexes(users, items, user_index, item_index, values, scores=scores, duplicates=duplicates)

    @classmethod
    def _from_columns(cls, columns: dict[str, Any], scores: ArrayLike | None, duplicates: Duplicates) -> Ratings:
        """Ratings from columns by name, each of which is let go of as soon as it is indexed."""
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) != 1:
            raise DataError(f"columns must be equally long; got {lengths}")
        if lengths["rating"] == 0:
            raise DataError("there are no ratings")
        values = _as_values(columns.pop("rating"))
        dates = _as_dates(columns.pop("date")) if "date" in columns else None
        user_index, users = index_ids(columns.pop("user"), "user")
        item_index, items = index_ids(columns.pop("item"), "item")
        return cls.from_indexes(
            users, items, user_index, item_index, values, dates=dates, scores=scores, duplicates=duplicates
        )

    @classmethod
    def from_indexes(
        cls,
        users: Vocabulary,
        items: Vocabulary,
        user_index: NDArray[np.integer[Any]],
        item_index: NDArray[np.integer[Any]],
        values: NDArray[np.float64],
        *,
        dates: NDArray[np.int64] | None = None,
        scores: ArrayLike | None = None,
        duplicates: Duplicates = "error",
    ) -> Ratings:
        """Ratings whose ids are indexed already; vocabularies may hold more than is rated.

        >>> people, films = Vocabulary(["ann", "bob"], "user"), Vocabulary(["Alien"], "item")
        >>> Ratings.from_indexes(people, films, np.array([1]), np.array([0]), np.array([4.0]))
        Ratings(1 rating by 1 user of 1 item, scores 4)
        """
        if duplicates not in ("error", "first", "last"):
            raise DataError(f"duplicates must be 'error', 'first' or 'last'; got {duplicates!r}")
        if not len(user_index) == len(item_index) == len(values):
            raise DataError(f"columns must be equally long; got {len(user_index)}, {len(item_index)}, {len(values)}")
        scale = _scale(values) if scores is None else _given_scale(scores)
        score_index = _score_index(values, scale, user_index, item_index, users, items)
        del values
        user_index, item_index = (np.asarray(each, dtype=np.int32) for each in (user_index, item_index))
        by_user, order = _arrange(user_index, item_index, score_index, len(users), len(items))
        kept = _kept(by_user, order, users, items, duplicates)
        dates = dates[order] if dates is not None else None
        if kept is not None:
            by_user = _only(by_user, kept)
            dates = dates[kept] if dates is not None else None
        return cls(users, items, scale, by_user, _transposed(by_user, len(items)), dates)

    # -- looking -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.by_user.indices)

    @property
    def n_scores(self) -> int:
        """How many scores the scale has: the paper's D."""
        return len(self.scores)

    @cached_property
    def score_counts(self) -> NDArray[np.int64]:
        """How many ratings each score has."""
        counts = np.zeros(self.n_scores, dtype=np.int64)
        for start in range(0, len(self), PART):
            counts += np.bincount(self.score_index[start : start + PART], minlength=self.n_scores)
        return counts

    @property
    def user_index(self) -> NDArray[np.int32]:
        """The inner index of each rating's user, in the order of `by_user`."""
        return self.by_user.row_of_each()

    @property
    def item_index(self) -> NDArray[np.int32]:
        """The inner index of each rating's item, in the order of `by_user`."""
        return self.by_user.indices

    @property
    def score_index(self) -> NDArray[np.uint8]:
        """Each rating's place in the scale, in the order of `by_user`."""
        return self.by_user.score_index

    @property
    def values(self) -> NDArray[np.float64]:
        """The ratings themselves, in the order of `by_user`."""
        return self.scores[self.score_index]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of ids, scale and ratings: the same for the same data."""
        digest = hashlib.sha256()
        rows = self.by_user
        arrays = [*self.users.to_arrays().values(), *self.items.to_arrays().values()]
        for array in (*arrays, self.scores, rows.indptr, rows.indices, rows.score_index):
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def __repr__(self) -> str:
        n_users, n_items = (int(np.count_nonzero(rows.counts)) for rows in (self.by_user, self.by_item))
        return (
            f"Ratings({_count(len(self), 'rating')} by {_count(n_users, 'user')} of {_count(n_items, 'item')}, "
            f"scores {_listed(self.scores)})"
        )

    def to_frame(self, kind: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """The ratings as a frame with user, item, rating and, where there are, dates.

        >>> Ratings.from_arrays(["ann"], ["Alien"], [5]).to_frame("pyarrow").to_pylist()
        [{'user': 'ann', 'item': 'Alien', 'rating': 5.0}]
        """
        from bemf.files import to_frame

        columns = {
            "user": self.users.take(self.user_index),
            "item": self.items.take(self.item_index),
            "rating": self.values,
        }
        if self.dates is not None:
            columns["date"] = self.dates
        return to_frame(columns, kind)

    # -- choosing ----------------------------------------------------------------------------------

    def select(self, chosen: NDArray[Any]) -> Ratings:
        """Some of the ratings, by a mask or positions in the order of `by_user`; same vocabularies and scale.

        >>> ratings = Ratings.from_arrays([1, 1, 2], [7, 8, 7], [1, 2, 2])
        >>> ratings.select(ratings.values == 2)
        Ratings(2 ratings by 2 users of 2 items, scores 1, 2)
        """
        mask = np.zeros(len(self), dtype=bool)
        mask[chosen] = True
        by_user = _only(self.by_user, mask)
        dates = self.dates[mask] if self.dates is not None else None
        return Ratings(self.users, self.items, self.scores, by_user, _transposed(by_user, len(self.items)), dates)


# -- values ----------------------------------------------------------------------------------------


def _as_values(column: Any) -> NDArray[np.float64]:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray | pa.Array):
        if column.null_count:
            column = column.fill_null(float("nan")) if pa.types.is_floating(column.type) else column.cast(pa.float64())
        column = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    try:
        values = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"ratings must be numbers: {error}") from error
    if values.ndim != 1:
        raise DataError(f"ratings must be one column; got an array of shape {values.shape}")
    if not np.isfinite(values).all():
        where = np.flatnonzero(~np.isfinite(values))
        n_missing = int(np.isnan(values[where]).sum())
        raise DataError(
            f"{_count(len(where), 'rating')} missing or infinite ({n_missing:,} missing, {len(where) - n_missing:,} "
            f"infinite); first at row {', '.join(f'{each:,}' for each in where[:3])}. Drop these rows"
        )
    return values


def _as_dates(column: Any) -> NDArray[np.int64]:
    """Dates as integers that order them; timestamps keep the unit they have."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray | pa.Array):
        if column.null_count:
            raise DataError(f"{column.null_count:,} dates are missing; drop these rows or the date column")
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("s"))
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        column = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    dates = np.asarray(column)
    if dates.dtype.kind == "M":
        dates = dates.astype("datetime64[s]").astype(np.int64)
    if dates.dtype.kind not in "iuf" or not np.isfinite(dates).all():
        raise DataError(f"dates must be numbers or timestamps without gaps; got {dates.dtype}")
    return dates.astype(np.int64)


def _scale(values: NDArray[np.float64]) -> NDArray[np.float64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    scale = np.sort(pc.unique(pa.array(values)).to_numpy())
    if len(scale) > MOST_INFERRED or len(scale) > max(10, len(values) // 2):
        raise DataError(
            f"{len(scale):,} different ratings ({_listed(scale)}) look continuous, not like a scale; "
            "round them, or name the scale with scores=…"
        )
    return scale


def _given_scale(scores: ArrayLike) -> NDArray[np.float64]:
    scale = np.unique(np.asarray(scores, dtype=np.float64))
    if not 1 <= len(scale) <= MOST_SCORES or not np.isfinite(scale).all():
        raise DataError(f"scores must be 1 to {MOST_SCORES} finite numbers; got {len(scale):,}")
    return scale


def _score_index(
    values: NDArray[np.float64],
    scale: NDArray[np.float64],
    user_index: NDArray[Any],
    item_index: NDArray[Any],
    users: Vocabulary,
    items: Vocabulary,
) -> NDArray[np.uint8]:
    out = np.empty(len(values), dtype=np.uint8)
    off = [np.empty(0, dtype=np.int64)]
    for start in range(0, len(values), PART):
        part = values[start : start + PART]
        place = np.minimum(np.searchsorted(scale, part), len(scale) - 1)
        out[start : start + len(part)] = place
        off.append(start + np.flatnonzero(scale[place] != part))
    wrong = np.concatenate(off)
    if len(wrong):
        shown = ", ".join(
            f"{values[j]:g} by user {users[user_index[j]]!r} for item {items[item_index[j]]!r} (row {j:,})"
            for j in wrong[:3]
        )
        raise DataError(
            f"{_count(len(wrong), 'rating')} off the scale {_listed(scale)}: {shown}. "
            "Correct or drop them, or give all scores with scores=…"
        )
    return out


# -- indexes ---------------------------------------------------------------------------------------


def index_ids(column: Any, what: str) -> tuple[NDArray[np.int32], Vocabulary]:
    """Inner indexes in ascending order of the ids, so that the order of the rows decides nothing."""
    import pyarrow.compute as pc

    from bemf.vocabulary import as_ids

    encoded = as_ids(column, what).dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    place = np.empty(len(order), dtype=np.int32)
    place[np.asarray(order)] = np.arange(len(order), dtype=np.int32)
    return place[np.asarray(encoded.indices)], Vocabulary(encoded.dictionary.take(order), what)


def _arrange(
    user_index: NDArray[np.int32],
    item_index: NDArray[np.int32],
    score_index: NDArray[np.uint8],
    n_users: int,
    n_items: int,
) -> tuple[Rows, NDArray[np.int64]]:
    """The ratings by user, then item, and where each came from."""
    order = _native.group(item_index, n_items)[1]
    indptr, second = _native.group(user_index[order], n_users)
    order = order[second]
    del second
    return Rows(indptr, item_index[order], score_index[order]), order


def _transposed(rows: Rows, n_columns: int) -> Rows:
    indptr, order = _native.group(rows.indices, n_columns)
    return Rows(indptr, rows.row_of_each()[order], rows.score_index[order])


def _only(rows: Rows, mask: NDArray[np.bool_]) -> Rows:
    before = np.concatenate([[0], np.cumsum(mask)])
    return Rows(before[rows.indptr], rows.indices[mask], rows.score_index[mask])


def _kept(
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
            f"{_count(len(where), 'repeated (user, item) pair')}: {shown}. "
            'Keep one rating of each with duplicates="last" or "first"'
        )
    return ~repeats if duplicates == "first" else ~np.append(repeats[1:], False)


# -- words -----------------------------------------------------------------------------------------


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _listed(scores: Sequence[float] | NDArray[Any]) -> str:
    shown = [f"{each:g}" for each in scores]
    return ", ".join(shown if len(shown) <= 5 else [*shown[:3], "… " + shown[-1]])
