"""What notebooks show: small pieces of HTML, in which everything that comes from outside is escaped.

Texts keep the page's own colour, on dark pages as on light ones; styles are written on the elements, and
nothing is fetched or run.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from numpy.typing import NDArray

MOST_LETTERS = 40
MOST_LABELS, MOST_GAPS = 12, 40  # bars that have their labels below them, and gaps between them
BAR = "#2f87c1"  # at least three times lighter than black and darker than white
CELL = "text-align: left; padding: .1em 1.2em .1em 0; background: none"
QUIET = "opacity: .75"
NUMBER = f"{CELL}; text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums"


class Html(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


def text(given: Any) -> Html:
    """Anything as text: escaped, without control characters, shortened, and of its own direction.

    >>> text("<script>"), text(Html("<b>"))
    ('<bdi>&lt;script&gt;</bdi>', '<b>')
    """
    if isinstance(given, Html):
        return given
    whole = "".join("\ufffd" if unicodedata.category(letter) == "Cc" else letter for letter in str(given))
    shown = whole if len(whole) <= MOST_LETTERS else whole[: MOST_LETTERS - 1] + "…"
    return Html(f"<bdi>{escape(shown)}</bdi>")


def card(title: str, *parts: str) -> str:
    """A title and what is below it."""
    return f'<div style="line-height: 1.4"><strong>{escape(title)}</strong>{"".join(parts)}</div>'


def note(words: str) -> Html:
    """A quiet line."""
    return Html(f'<div style="{QUIET}">{escape(words)}</div>')


def facts(named: Mapping[str, Any]) -> Html:
    """Names and what they stand for, one a line.

    >>> "<bdi>users</bdi></th>" in facts({"users": 3})
    True
    """
    rows = (
        f'<th scope="row" style="{CELL}; {QUIET}; font-weight: normal">{text(name)}</th>'
        f'<td style="{CELL}">{text(value)}</td>'
        for name, value in named.items()
    )
    return _table(_rows(rows))


def table(columns: Mapping[str, Sequence[Any]], numbers: Sequence[str] = (), n_more: int = 0) -> Html:
    """Columns by name, those of numbers flush right, and how many rows are not shown.

    >>> table({"user": ["<ann>"]}).count("&lt;ann&gt;")
    1
    """
    style = {name: NUMBER if name in numbers else CELL for name in columns}
    head = "".join(f'<th scope="col" style="{style[name]}">{text(name)}</th>' for name in columns)
    rows = (
        "".join(f'<td style="{style[name]}">{text(cell)}</td>' for name, cell in zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    )
    more = note(f"… {n_more:,} more") if n_more > 0 else ""
    return Html(_table(f"<thead><tr>{head}</tr></thead>" + _rows(rows)) + more)


def share(part: float) -> Html:
    """A number from 0 to 1, and a bar as long as it says.

    >>> "0.60" in share(0.6)
    True
    """
    width = f"{100 * min(max(part, 0), 1):.0f}%"
    bar = f'<span style="display: inline-block; height: .7em; width: {width}; background: {BAR}"></span>'
    frame = f"display: inline-block; width: 6em; text-align: left; outline: 1px solid {BAR}; line-height: .7"
    return Html(f'{part:.2f} <span aria-hidden="true" style="{frame}">{bar}</span>')


def chart(labels: Sequence[str], counts: NDArray[Any]) -> Html:
    """Counts as upright bars over their labels; over the first and the last where they are many."""
    n, shares, most = len(labels), counts / max(counts.sum(), 1), max(counts.max(initial=0), 1)
    told = ", ".join(f"{label}: {part:.0%}" for label, part in zip(labels, shares, strict=True))
    bars = (
        _bar(
            label if n <= MOST_LABELS or place in (0, n - 1) else " ", f"{label}: {count:,} ({part:.1%})", count / most
        )
        for place, (label, count, part) in enumerate(zip(labels, counts, shares, strict=True))
    )
    frame = f"display: flex; gap: {2 if n <= MOST_GAPS else 0}px; width: {min(2.4 * n, 30):g}em; font-size: smaller"
    return Html(f'<div role="img" aria-label="{escape(told)}" style="{frame}">{"".join(bars)}</div>')


def _bar(label: str, hint: str, part: float) -> str:
    """A column of a chart, as high as a part of the room there is."""
    bar = f'<div style="width: 100%; height: {100 * part:.1f}%; background: {BAR}"></div>'
    room = f'<div style="height: 3.5em; display: flex; align-items: flex-end">{bar}</div>'
    style = "flex: 1 1 0; min-width: 0; text-align: center; white-space: nowrap"
    return f'<div style="{style}" title="{escape(hint)}">{room}{escape(label)}</div>'


def _table(inside: str) -> Html:
    return Html(f'<table style="border-collapse: collapse; margin: .2em 0; width: auto">{inside}</table>')


def _rows(rows: Iterable[str]) -> str:
    return "<tbody>" + "".join(f'<tr style="background: none">{row}</tr>' for row in rows) + "</tbody>"
