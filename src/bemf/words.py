"""How counts and scales are put in messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def counted(n: int, what: str) -> str:
    """A number and its noun.

    >>> counted(1, "rating"), counted(2000, "rating")
    ('1 rating', '2,000 ratings')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def listed(scores: Sequence[float] | NDArray[Any]) -> str:
    """A scale, its middle left out where it is long.

    >>> listed([1, 2, 3, 4, 5, 6])
    '1, 2, 3, … 6'
    """
    shown = [f"{each:g}" for each in scores]
    return ", ".join(shown if len(shown) <= 5 else [*shown[:3], "… " + shown[-1]])


HOW_SURE = ((0.9, "almost certainly"), (0.75, "very likely"), (0.6, "likely"), (0.45, "probably"), (0.3, "perhaps"))
UNSURE = "hard to say, maybe"


def how_sure(probability: float) -> str:
    """A probability in words.

    >>> how_sure(0.8), how_sure(0.1)
    ('very likely', 'hard to say, maybe')
    """
    return next((words for least, words in HOW_SURE if probability >= least), UNSURE)


def table(columns: Mapping[str, Sequence[str]], n_more: int = 0) -> str:
    """Columns of text as a table, and how many rows are not shown.

    >>> print(table({"user": ["ann"], "rating": ["4"]}, 2))
    user  rating
    ann   4
    … 2 more
    """
    widths = [max(map(len, (name, *cells))) for name, cells in columns.items()]
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join(lines + [f"… {n_more:,} more"] * (n_more > 0))
