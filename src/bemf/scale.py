"""The ratings themselves: numbers on a discrete scale, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bemf.errors import DataError
from bemf.vocabulary import Vocabulary
from bemf.words import counted, listed

MOST_SCORES = 256
MOST_INFERRED = 32
PART = 1 << 17  # ratings at a time, where NumPy would make 64-bit copies of all


def as_values(column: Any) -> NDArray[np.float64]:
    """A column of ratings as finite numbers."""
    import pyarrow as pa

    try:
        if isinstance(column, pa.ChunkedArray | pa.Array):
            if pa.types.is_temporal(column.type):
                raise DataError(f"ratings must be numbers; got {column.type}")
            column = column.cast(pa.float64()).to_numpy(**_COPYING[isinstance(column, pa.Array)])
        if np.asarray(column).dtype.kind in "mM":
            raise DataError(f"ratings must be numbers; got {np.asarray(column).dtype}")
        values = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:  # Arrow's own are ValueErrors too
        raise error if isinstance(error, DataError) else DataError(f"ratings must be numbers: {error}") from error
    if values.ndim != 1:
        raise DataError(f"ratings must be one column; got an array of shape {values.shape}")
    if not np.isfinite(values).all():
        where = np.flatnonzero(~np.isfinite(values))
        n_missing = int(np.isnan(values[where]).sum())
        raise DataError(
            f"{counted(len(where), 'rating')} missing or infinite ({n_missing:,} missing, {len(where) - n_missing:,} "
            f"infinite); first at row {', '.join(f'{each:,}' for each in where[:3])}. Drop these rows"
        )
    return values + 0.0 if (values == 0).any() else values  # -0 is 0


def as_dates(column: Any) -> NDArray[np.int64]:
    """Dates as integers that order them: whole numbers as they are, timestamps in the unit they have."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray | pa.Array):
        if column.null_count:
            raise DataError(f"{column.null_count:,} dates are missing; drop these rows or the date column")
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("s"))
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        column = column.to_numpy(**_COPYING[isinstance(column, pa.Array)])
    dates = np.asarray(column)
    if dates.ndim != 1:
        raise DataError(f"dates must be one column; got an array of shape {dates.shape}")
    if dates.dtype.kind == "M":
        if np.isnat(dates).any():
            raise DataError(f"{int(np.isnat(dates).sum()):,} dates are missing; drop these rows or the date column")
        days = np.datetime_data(dates.dtype)[0] in ("Y", "M", "W", "D")
        return dates.astype("datetime64[s]" if days else dates.dtype).view(np.int64)
    return _whole(dates)


def _whole(dates: NDArray[Any]) -> NDArray[np.int64]:
    if dates.dtype.kind not in "iuf":
        raise DataError(f"dates must be numbers or timestamps; got {dates.dtype}")
    if dates.dtype.kind == "f" and not np.isfinite(dates).all():
        raise DataError(f"{int((~np.isfinite(dates)).sum()):,} dates are missing or infinite; drop these rows")
    with np.errstate(invalid="ignore"):
        whole = dates.astype(np.int64)
    wrong = np.flatnonzero((whole != dates) | (whole < 0) & (dates > 0))
    if len(wrong):
        raise DataError(
            f"{len(wrong):,} dates are no whole numbers of 64 bits (first {dates[wrong[0]]!r} at row {wrong[0]:,}); "
            "round them, or give timestamps"
        )
    return whole


_COPYING = {True: {"zero_copy_only": False}, False: {}}  # how Arrow's arrays, and its chunked ones, are told to copy


def inferred_scale(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The different ratings, ascending, unless there are too many for a scale."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(values) == 0:
        raise DataError("there are no ratings, so their scale must be given: scores=…")
    scale = np.sort(pc.unique(pa.array(values)).to_numpy())
    if len(scale) > MOST_INFERRED or len(scale) > max(10, len(values) // 2):
        raise DataError(
            f"{len(scale):,} different ratings ({listed(scale)}) look continuous, not like a scale; "
            "round them, or name the scale with scores=…"
        )
    return scale


def given_scale(scores: ArrayLike) -> NDArray[np.float64]:
    """The scale somebody named, ascending."""
    try:
        scale = np.unique(np.asarray(scores, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise DataError(f"scores must be numbers; got {scores!r}") from error
    if not 1 <= len(scale) <= MOST_SCORES or not np.isfinite(scale).all():
        raise DataError(f"scores must be 1 to {MOST_SCORES} finite numbers; got {len(scale):,}")
    return scale


def score_indexes(
    values: NDArray[np.float64],
    scale: NDArray[np.float64],
    user_index: NDArray[Any],
    item_index: NDArray[Any],
    users: Vocabulary,
    items: Vocabulary,
) -> NDArray[np.uint8]:
    """Each rating's place in the scale; ratings that are not on it are refused."""
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
            f"{counted(len(wrong), 'rating')} off the scale {listed(scale)}: {shown}. "
            "Correct or drop them, or give all scores with scores=…"
        )
    return out
