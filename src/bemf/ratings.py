"""Ratings on a discrete scale: validated, indexed, in both orders."""

from __future__ import annotations

import hashlib
from functools import cached_property
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bemf.errors import DataError
from bemf.rows import Duplicates, Rows, arranged, kept_of_repeats, only, transposed
from bemf.scale import PART, as_dates, as_values, given_scale, inferred_scale, score_indexes
from bemf.vocabulary import Vocabulary, index_ids
from bemf.words import counted, listed

if TYPE_CHECKING:
    import zipfile

Column = str | int


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
        source: str | PathLike[str] | zipfile.Path | IO[bytes],
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

        A file within a zip archive is named by a `zipfile.Path`.

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
    def from_sparse(cls, matrix: Any, *, scores: ArrayLike | None = None, duplicates: Duplicates = "error") -> Ratings:
        """Ratings from a scipy.sparse matrix, users by items; its stored entries are the ratings.

        >>> from scipy.sparse import csr_array
        >>> Ratings.from_sparse(csr_array([[5, 0], [3, 4]]))
        Ratings(3 ratings by 2 users of 2 items, scores 3, 4, 5)
        """
        if not hasattr(matrix, "tocoo"):
            raise DataError(f"from_sparse takes a scipy.sparse matrix; got {type(matrix).__name__}")
        coo = matrix.tocoo()
        users, items = (Vocabulary(np.arange(n), what) for n, what in zip(coo.shape, ("user", "item"), strict=True))
        values = as_values(coo.data)
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
        user_index, users = index_ids(columns.pop("user"), "user")
        item_index, items = index_ids(columns.pop("item"), "item")
        dates = as_dates(columns.pop("date")) if "date" in columns else None
        values = as_values(columns.pop("rating"))
        scale = inferred_scale(values) if scores is None else given_scale(scores)
        score_index = score_indexes(values, scale, user_index, item_index, users, items)
        del values
        return cls._arranged(users, items, scale, user_index, item_index, score_index, dates, duplicates)

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
        if not len(user_index) == len(item_index) == len(values):
            raise DataError(f"columns must be equally long; got {len(user_index)}, {len(item_index)}, {len(values)}")
        for index, vocabulary in ((user_index, users), (item_index, items)):
            if len(index) and not 0 <= index.min() <= index.max() < len(vocabulary):
                raise DataError(f"{vocabulary.what} indexes must be from 0 to {len(vocabulary) - 1:,}")
        user_index, item_index = (np.asarray(each, dtype=np.int32) for each in (user_index, item_index))
        scale = inferred_scale(values) if scores is None else given_scale(scores)
        score_index = score_indexes(values, scale, user_index, item_index, users, items)
        return cls._arranged(users, items, scale, user_index, item_index, score_index, dates, duplicates)

    @classmethod
    def _arranged(
        cls,
        users: Vocabulary,
        items: Vocabulary,
        scale: NDArray[np.float64],
        user_index: NDArray[np.int32],
        item_index: NDArray[np.int32],
        score_index: NDArray[np.uint8],
        dates: NDArray[np.int64] | None,
        duplicates: Duplicates,
    ) -> Ratings:
        if duplicates not in ("error", "first", "last"):
            raise DataError(f"duplicates must be 'error', 'first' or 'last'; got {duplicates!r}")
        by_user, order = arranged(user_index, item_index, score_index, len(users), len(items))
        kept = kept_of_repeats(by_user, order, users, items, duplicates)
        dates = dates[order] if dates is not None else None
        del order
        if kept is not None:
            by_user = only(by_user, kept)
            dates = dates[kept] if dates is not None else None
        return cls(users, items, scale, by_user, transposed(by_user, len(items)), dates)

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
        n_users, n_items = self._n_rated()
        return (
            f"Ratings({counted(len(self), 'rating')} by {counted(n_users, 'user')} of {counted(n_items, 'item')}, "
            f"scores {listed(self.scores)})"
        )

    def _repr_html_(self) -> str:
        """Counts and a chart of the scores, for notebooks."""
        from bemf import html

        n_users, n_items = self._n_rated()
        counts = {"ratings": len(self), "users": n_users, "items": n_items}
        density = len(self) / max(n_users * n_items, 1)
        named = {name: f"{n:,}" for name, n in counts.items()} | {"density": f"{100 * density:.3g} %"}
        chart = html.chart([f"{score:g}" for score in self.scores], self.score_counts)
        return html.card("Ratings", html.facts(named), chart)

    def _n_rated(self) -> tuple[int, int]:
        """How many users and items have ratings."""
        n_users, n_items = (int(np.count_nonzero(rows.counts)) for rows in (self.by_user, self.by_item))
        return n_users, n_items

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
        by_user = only(self.by_user, mask)
        dates = self.dates[mask] if self.dates is not None else None
        return Ratings(self.users, self.items, self.scores, by_user, transposed(by_user, len(self.items)), dates)
