"""Ids and their inner indexes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 16  # times as many ids: fewer are better searched for than hashed


class Vocabulary:
    """The ids of one side, users or items, in the order of their inner indexes.

    Ids are integers or strings: what the caller calls them.

    >>> people = Vocabulary(["ann", "bob"])
    >>> people.index(["bob", "eve"])
    array([ 1, -1], dtype=int32)
    >>> people[1]
    'bob'
    """

    def __init__(self, ids: Any, what: str = "id") -> None:
        import pyarrow.compute as pc

        self._ids = as_ids(ids, what)
        self.what = what
        if len(pc.unique(self._ids)) < len(self._ids):
            raise DataError(f"{len(self._ids) - len(pc.unique(self._ids)):,} {what} ids stand there more than once")

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, index: int) -> int | str:
        return self._ids[int(index)].as_py()  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[int | str]:
        return iter(self._ids.to_pylist())

    def __contains__(self, one: object) -> bool:
        try:
            return bool(self.index([one])[0] >= 0)
        except DataError:
            return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and bool(self._ids.equals(other._ids))

    def __repr__(self) -> str:
        shown = ", ".join(repr(one) for one in self._ids[:3].to_pylist())
        return f"Vocabulary({len(self):,} {self.what}s: {shown}{', …' if len(self) > 3 else ''})"

    @property
    def arrow(self) -> pa.Array:
        """The ids as an Arrow array, int64 or large_string."""
        return self._ids

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The ids as a NumPy array, of int64 or of Python strings."""
        return self._ids.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

    @cached_property
    def _ascending(self) -> NDArray[np.int64] | None:
        """Integer ids in ascending order can be searched; others are hashed, each time all of them."""
        import pyarrow as pa

        if self._ids.type != pa.int64():
            return None
        ids = np.asarray(self._ids)
        return ids if bool((ids[1:] > ids[:-1]).all()) else None

    def index(self, ids: Any) -> NDArray[np.int32]:
        """The inner indexes of ids, −1 for those that are not known."""
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = as_ids(ids, self.what)
        if len(wanted) == 0:
            return np.empty(0, dtype=np.int32)
        if wanted.type != self._ids.type:
            ours, theirs = ("integers" if each.type == pa.int64() else "strings" for each in (self._ids, wanted))
            raise DataError(f"{self.what} ids are {ours} here, but {theirs} were given")
        if FEW * len(wanted) < len(self) and self._ascending is not None:
            return _found(self._ascending, np.asarray(wanted))
        found = pc.index_in(wanted, value_set=self._ids).fill_null(-1)
        return np.array(found, dtype=np.int32)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The ids as plain arrays: `ids` for integers, UTF-8 `bytes` and `offsets` for strings."""
        import pyarrow as pa

        if self._ids.type == pa.int64():
            return {"ids": np.asarray(self._ids)}
        ids = pa.concat_arrays([self._ids])  # a slice would keep its parent's bytes
        offsets = np.frombuffer(ids.buffers()[1], dtype=np.int64, count=len(ids) + 1)
        text = np.frombuffer(ids.buffers()[2] or b"", dtype=np.uint8)
        return {"bytes": text[offsets[0] : offsets[-1]], "offsets": offsets - offsets[0]}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], what: str = "id") -> Vocabulary:
        """The vocabulary that `to_arrays` took apart.

        >>> Vocabulary.from_arrays(Vocabulary(["ann", "bob"]).to_arrays())
        Vocabulary(2 ids: 'ann', 'bob')
        """
        import pyarrow as pa

        if "ids" in arrays:
            return cls(arrays["ids"].astype(np.int64), what)
        offsets = np.ascontiguousarray(arrays["offsets"], dtype=np.int64)
        text = np.ascontiguousarray(arrays["bytes"], dtype=np.uint8)
        n = len(offsets) - 1
        if n < 0 or offsets[0] != 0 or offsets[-1] != len(text) or (np.diff(offsets) < 0).any():
            raise DataError(f"the {what} ids' offsets do not fit their bytes")
        ids = pa.Array.from_buffers(pa.large_string(), n, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
        try:
            ids.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(f"the {what} ids are no UTF-8 text: {error}") from error
        return cls(ids, what)

    def with_more(self, ids: Any) -> tuple[Vocabulary, NDArray[np.int32]]:
        """The same ids, and after them those of others, all different, that are not among them; the others' indexes.

        >>> Vocabulary(["ann", "bob"]).with_more(["cem", "ann"])
        (Vocabulary(3 ids: 'ann', 'bob', 'cem'), array([2, 0], dtype=int32))
        """
        import pyarrow as pa

        more = as_ids(ids, self.what)
        index = self.index(more)
        new = np.flatnonzero(index < 0)
        if len(new) == 0:
            return self, index
        index[new] = np.arange(len(self), len(self) + len(new))
        grown = copy.copy(self)
        for cached in ("ids", "_ascending"):
            grown.__dict__.pop(cached, None)
        grown._ids = pa.concat_arrays([self._ids, more.take(pa.array(new))])
        return grown, index

    def take(self, indexes: NDArray[Any]) -> pa.Array:
        """The ids at inner indexes, as an Arrow array."""
        import pyarrow as pa

        return self._ids.take(pa.array(indexes))


def _found(ascending: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int32]:
    place = np.searchsorted(ascending, wanted)
    found = ascending[np.minimum(place, len(ascending) - 1)] == wanted
    return np.where(found, place, -1).astype(np.int32)


def index_ids(column: Any, what: str) -> tuple[NDArray[np.int32], Vocabulary]:
    """Inner indexes in ascending order of the ids, so that the order of the rows decides nothing."""
    import pyarrow.compute as pc

    encoded = _checked(column, what).dictionary_encode().unify_dictionaries()
    found = encoded.chunk(0).dictionary
    order = pc.array_sort_indices(found)
    place = np.empty(len(order), dtype=np.int32)
    place[np.asarray(order)] = np.arange(len(order), dtype=np.int32)
    index = np.empty(len(encoded), dtype=np.int32)
    start = 0
    for chunk in encoded.chunks:
        np.take(place, np.asarray(chunk.indices), out=index[start : start + len(chunk)])
        start += len(chunk)
    return index, Vocabulary(found.take(order), what)


def as_ids(values: Any, what: str) -> pa.Array:
    """Ids from any kind of column, as one Arrow array of int64 or large_string; anything else is refused.

    >>> as_ids([3.0, 4.0], "user").to_pylist()
    [3, 4]
    """
    return _checked(values, what).combine_chunks()


def _checked(values: Any, what: str) -> pa.ChunkedArray:
    """Ids as int64 or large_string, in the parts they came in: joining them would copy them all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _as_arrow(values, what)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        where = np.flatnonzero(np.asarray(pc.is_null(column)))
        raise DataError(f"{len(where):,} {what} ids are missing (first at row {_some(where)}); drop or fill these rows")
    if pa.types.is_boolean(column.type) or pa.types.is_temporal(column.type):
        raise DataError(f"{what} ids must be integers or strings; got {column.type}")
    if pa.types.is_floating(column.type):
        _refuse_fractions(column, what)
    numbers = pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_null(column.type)
    try:
        return column.cast(pa.int64() if numbers else pa.large_string())
    except pa.ArrowInvalid as error:
        raise DataError(f"{what} ids must be 64-bit integers or strings: {error}") from error
    except pa.ArrowNotImplementedError as error:
        raise DataError(f"{what} ids must be integers or strings; got {column.type}") from error


def _as_arrow(values: Any, what: str) -> pa.ChunkedArray:
    import pyarrow as pa

    if hasattr(values, "to_arrow"):
        values = values.to_arrow()
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise DataError(f"{what} ids must be one column; got an array of shape {values.shape}")
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = values if hasattr(values, "dtype") else list(values)
        try:
            values = pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
            raise DataError(f"{what} ids must be all integers or all strings ({error})") from error
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def _refuse_fractions(column: pa.Array, what: str) -> None:
    values = np.asarray(column)
    whole = np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < 2**53)
    if not whole.all():
        where = np.flatnonzero(~whole)
        raise DataError(
            f"{len(where):,} {what} ids are not whole numbers (first {values[where[0]]!r} at row {where[0]:,}); "
            "use integers or strings"
        )


def _some(where: NDArray[Any], most: int = 3) -> str:
    shown = ", ".join(f"{each:,}" for each in where[:most])
    return shown + (", …" if len(where) > most else "")
