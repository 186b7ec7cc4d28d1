"""What items are called: titles to join to tables that people read."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from bemf.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def titles_of(items: pa.Array, given: Any) -> pa.Array:
    """The title of each item, null where there is none.

    `given` is a mapping from ids to titles, a frame with the columns item and title, or a file of such.

    >>> import pyarrow as pa
    >>> titles_of(pa.array([2, 1, 3]), {1: "Alien", 2: "Brazil"}).to_pylist()
    ['Brazil', 'Alien', None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from bemf.vocabulary import as_ids

    ids, titles = _columns(given, items.type)
    if len(ids) == 0:
        return pa.nulls(len(items), pa.large_string())
    known = as_ids(ids, "title")
    if known.type != items.type:
        known, items = known.cast(pa.large_string()), items.cast(pa.large_string())
    place = pc.index_in(items, value_set=known)
    return pa.array(titles, pa.large_string()).take(place)


def _columns(given: Any, kind: pa.DataType) -> tuple[Any, Any]:
    """Ids and titles; the ids of a file are texts if those of the items are: "007" is not 7."""
    import pyarrow as pa

    if isinstance(given, Mapping):
        return list(given.keys()), pa.array([str(title) for title in given.values()], pa.large_string())
    from bemf.files import frame_columns, read_table

    wanted: dict[str, str | int | None] = {"item": None, "title": None}
    if isinstance(given, str | PathLike):
        columns = read_table(given, wanted, kinds={"item": kind} if kind == pa.large_string() else None)
    else:
        columns = frame_columns(given, wanted)
    titles = columns["title"]
    titles = titles.combine_chunks() if isinstance(titles, pa.ChunkedArray) else titles
    try:
        return columns["item"], titles.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise DataError(f"titles must be text: {error}") from error


def shown(items: pa.Array, titles: pa.Array | None) -> list[str]:
    """Each item by its title, or else by its id."""
    ids = [str(one) for one in items.to_pylist()]
    if titles is None:
        return ids
    return [title if title is not None else one for one, title in zip(ids, titles.to_pylist(), strict=True)]
