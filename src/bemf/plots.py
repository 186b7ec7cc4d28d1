"""Pictures of metrics, drawn with matplotlib (the extra `plot`).

Each function takes what the function of the same name in `bemf.metrics` gives, draws it on `ax` or else on
a figure of its own, and returns the Axes. Nothing is shown or kept: `ax.figure.savefig("picture.pdf")` writes
the picture, `to_svg(ax, …)` gives it as text for a page.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import re
import textwrap
from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bemf.errors import MissingExtraError, ParameterError
from bemf.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from bemf.metrics.calibration import ReliabilityDiagram, ReliabilityHistogram
    from bemf.metrics.confusion_matrix import Confusion
    from bemf.metrics.reliability import Curve

__all__ = ["confusion", "mae_by_coverage", "mae_by_threshold", "reliability_diagram", "reliability_histogram", "to_svg"]

T = TypeVar("T")

# Okabe and Ito's colours, which the colour-blind can tell apart, without their yellow, which is lost on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")
MAE = "Mean absolute error\n(points of the scale)"
WIDTH = 3.5  # inches: a column of a printed page
SMALL, LINE = 8, 0.17  # points, and inches from one line of them to the next
LINE_STYLE = ("color", "linestyle", "linewidth")
SHORT, LONGEST = 20, 46  # characters of a name that fit half a line of a legend, and a whole one


def mae_by_coverage(curves: Curve | Mapping[str, Curve], *, ax: Axes | None = None) -> Axes:
    """The mean absolute error of the most reliable predictions against the share of the ratings they cover.

    >>> from bemf import metrics
    >>> curve = metrics.by_coverage([1, 2, 3, 4], [1, 2, 1, 1], [0.9, 0.6, 0.3, 0.1])
    >>> mae_by_coverage({"one model": curve, "the same": curve}).get_xlabel()
    'Coverage (share of the ratings)'
    """
    named = _named(curves)
    upper, _ = panels = _panels(ax, 2.4, named)
    lines = {}
    for (name, curve), style in zip(named.items(), _styles(), strict=False):
        (lines[name],) = upper.plot(curve.coverage, curve.mae, **style)
    upper.set(xlabel="Coverage (share of the ratings)", ylabel=MAE, xlim=(0, 1.02))
    return _finished(panels, lines, own=ax is None)


def mae_by_threshold(curves: Curve | Mapping[str, Curve], *, ax: Axes | None = None) -> Axes:
    """The mean absolute error of predictions with at least each reliability, and below it how many these are.

    On an `ax` of yours there is only the error.

    >>> from bemf import metrics
    >>> ax = mae_by_threshold(metrics.by_threshold([1, 2, 3], [1, 2, 1], [0.9, 0.6, 0.3]))
    >>> [panel.get_ylabel().split()[0] for panel in ax.figure.axes]
    ['Mean', 'Coverage']
    """
    named = _named(curves)
    upper, lower = panels = _panels(ax, 3.4, named, two=True)
    lines = {}
    for (name, curve), style in zip(named.items(), _styles(), strict=False):
        (lines[name],) = upper.plot(curve.cut, curve.mae, **style)
        if lower:
            lower.plot(curve.cut, curve.coverage, **style)
    upper.set_ylabel(MAE)
    if lower:
        lower.set(ylabel="Coverage", ylim=(0, 1.05))
    (lower or upper).set_xlabel("Least reliability of a prediction")
    return _finished(panels, lines, own=ax is None)


def reliability_histogram(histogram: ReliabilityHistogram, *, ax: Axes | None = None) -> Axes:
    """How many pairs have which reliability.

    >>> from bemf import metrics
    >>> reliability_histogram(metrics.reliability_histogram([0.3, 0.8, 1.0])).get_ylabel()
    'Pairs'
    """
    upper, _ = panels = _panels(ax, 2.2)
    upper.stairs(histogram.counts, histogram.edges, fill=True, color=COLOURS[0], edgecolor="black", linewidth=0.6)
    upper.set(xlabel="Reliability", ylabel="Pairs", xlim=(0, 1))
    if histogram.unknown:
        words = f"not shown: {counted(histogram.unknown, 'unknown pair')}"
        upper.set_title(words, fontsize=SMALL, loc="right")
    return _finished(panels)


def reliability_diagram(
    diagrams: ReliabilityDiagram | Mapping[str, ReliabilityDiagram], *, ax: Axes | None = None
) -> Axes:
    """What was said to be how likely against how often it came, and below it in how many cases.

    A forecast that keeps its word is on the diagonal; above it too little was said, below it too much. On
    an `ax` of yours there is no panel of cases.

    >>> from bemf import metrics
    >>> diagram = metrics.reliability_diagram([4, 5, 3, 1], [4, 5, 3, 3], [0.9, 0.9, 0.6, 0.6])
    >>> reliability_diagram({"against ratings": diagram, "against the truth": diagram}).get_ylabel()
    'Observed frequency'
    """
    named = _named(diagrams)
    upper, lower = panels = _panels(ax, 3.9, named, two=True)
    upper.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, zorder=1)
    lines = {}
    for (name, diagram), style in zip(named.items(), _styles(), strict=False):
        filled = diagram.counts > 0
        (lines[name],) = upper.plot(diagram.predicted[filled], diagram.observed[filled], clip_on=False, **style)
        if lower:
            lower.stairs(diagram.counts, diagram.edges, **{key: style[key] for key in LINE_STYLE})
    upper.set(ylabel="Observed frequency", xlim=(0, 1), ylim=(0, 1))
    if lower:
        lower.set_ylabel("Cases")
    (lower or upper).set_xlabel("Predicted probability")
    return _finished(panels, lines, own=ax is None)


def confusion(matrix: Confusion, *, ax: Axes | None = None) -> Axes:
    """Which ratings were taken for which: counts, coloured by their share of the true rating.

    Ratings without a prediction, if there are any, are a last column, "none".

    >>> from bemf import metrics
    >>> confusion(metrics.confusion([4, 4, 5], [4, 5, 5])).get_ylabel()
    'True rating'
    """
    upper, _ = panels = _panels(ax, 2.9)
    withheld = bool(matrix.withheld.any())
    counts = np.column_stack([matrix.counts, *[matrix.withheld] * withheld])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = upper.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    scores = [f"{score:g}" for score in matrix.scores]
    _ticks(upper.xaxis, scores + ["none"] * withheld)
    _ticks(upper.yaxis, scores)
    if len(scores) <= 10:
        _write_counts(upper, counts, shares)
    bar = upper.figure.colorbar(image, ax=upper)
    bar.set_label("Share of the true rating", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    upper.set(xlabel="Predicted rating", ylabel="True rating")
    return _finished(panels, grid=False)


def to_svg(picture: Figure | Axes, *, title: str, description: str = "") -> str:
    """A picture as an SVG element to put into a page: the same text whenever the same is drawn.

    `title` and `description` are what readers who do not see it are told.

    >>> from bemf import metrics
    >>> ax = reliability_histogram(metrics.reliability_histogram([0.3, 0.8, 1.0]))
    >>> to_svg(ax, title="Reliability", description="Of three pairs.")[:40]
    '<svg role="img" aria-label="Reliability"'
    """
    if not title.strip():
        raise ParameterError("a picture needs a title, for those who do not see it")
    figure: Any = getattr(picture, "figure", picture)
    content = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with _matplotlib().rc_context({"svg.hashsalt": "bemf", "svg.fonttype": "path"}):
        figure.savefig(content, format="svg", facecolor="white", metadata=nothing)
    return _embeddable(content.getvalue(), title, description)


# -- pieces ----------------------------------------------------------------------------------------


def _matplotlib(module: str = "") -> Any:
    try:
        return importlib.import_module(f"matplotlib{module}")
    except ImportError as error:
        raise MissingExtraError('plots need matplotlib; install it: pip install "bemf[plot]"') from error


def _named(things: T | Mapping[str, T]) -> Mapping[str, T]:
    named = things if isinstance(things, Mapping) else {"": things}
    if not named:
        raise ParameterError("there is nothing to draw")
    return named


def _panels(
    ax: Axes | None, height: float, named: Mapping[str, Any] | None = None, *, two: bool = False
) -> tuple[Axes, Axes | None]:
    """The Axes given; or one or two of a new figure of a column's width, with room for a legend."""
    if ax is not None:
        return ax, None
    lines = sum(max(name.count("\n") for name in row) + 1 for row in _legend_rows(named))
    size = (WIDTH, height + LINE * (lines + 1) * (lines > 0))
    figure = _matplotlib(".figure").Figure(figsize=size, layout="constrained")
    if two:
        upper, lower = figure.subplots(2, sharex=True, height_ratios=(3, 1))
        return upper, lower
    return figure.add_subplot(), None


def _styles() -> Iterator[dict[str, Any]]:
    """How the first, second, … line looks; up to eight can be told apart without colours."""
    n = 0
    while True:
        yield {
            "color": COLOURS[n % len(COLOURS)],
            "marker": MARKERS[n % len(MARKERS)],
            "linestyle": LINES[n % len(LINES)],
            "markersize": 3.5,
            "linewidth": 1.2,
        }
        n += 1


def _ticks(axis: Any, labels: list[str]) -> None:
    """All labels, or where they are many every second or third up to the last."""
    shown = range(len(labels) - 1, -1, -len(labels) // 12)[::-1]
    axis.set_ticks(shown, [labels[n] for n in shown])


def _write_counts(ax: Axes, counts: Any, shares: Any) -> None:
    few = counts.shape[1] <= 6
    for (row, column), count in np.ndenumerate(counts):
        colour = "white" if shares[row, column] > 0.55 else "black"
        form: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL - 1 if few else SMALL - 3}
        ax.text(column, row, _short(count, 9_999 if few else 999), color=colour, **form)


def _short(count: int, most: int) -> str:
    """A count, rounded to thousands or millions if it would not fit its cell."""
    if count <= most:
        return f"{count:,}"
    return f"{count / 1e3:,.0f}k" if count < 999_500 else f"{count / 1e6:,.1f}M"


def _finished(
    panels: tuple[Axes, Axes | None],
    lines: Mapping[str, Line2D] | None = None,
    *,
    own: bool = False,
    grid: bool = True,
) -> Axes:
    """Letters for a column of a page, a quiet grid, and a legend if there is more than one thing."""
    for panel in filter(None, panels):
        panel.tick_params(labelsize=SMALL)
        for label in (panel.xaxis.label, panel.yaxis.label):
            label.set_fontsize(SMALL)
        if grid:
            panel.grid(color="0.9", linewidth=0.6)
            panel.set_axisbelow(True)
            panel.spines[["top", "right"]].set_visible(False)
    if lines and len(lines) > 1:
        _legend(panels[0], lines, own)
    return panels[0]


def _legend(ax: Axes, lines: Mapping[str, Line2D], own: bool) -> None:
    """Below a figure of ours, where it hides nothing; on somebody's Axes where there is most room."""
    rows = _legend_rows(lines)
    columns = len(rows[0])
    named = list(zip(lines.values(), (name for row in rows for name in row), strict=True))
    form: dict[str, Any] = {"fontsize": SMALL, "frameon": False, "handlelength": 2.6}
    if own:
        named = [each for n in range(columns) for each in named[n::columns]]  # legends fill columns first
        legend = ax.figure.legend(*zip(*named, strict=True), loc="outside lower center", ncols=columns, **form)
    else:
        legend = ax.legend(*zip(*named, strict=True), **form)
    for name in legend.get_texts():
        name.set_parse_math(False)


def _legend_rows(named: Mapping[str, Any] | None) -> list[list[str]]:
    """The names, two in a row if they are short; none if there is but one thing."""
    if not named or len(named) == 1:
        return []
    names = ["\n".join(textwrap.wrap(name, LONGEST)) or name for name in named]
    columns = 2 if max(map(len, named)) <= SHORT else 1
    return [names[n : n + columns] for n in range(0, len(names), columns)]


def _embeddable(svg: str, title: str, description: str) -> str:
    """The element alone, its ids its own and its style not the page's, with words in place of the picture."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<!--.*?-->\n?", "", element, flags=re.DOTALL)
    element = re.sub(r"<style type=\"text/css\">\*\{(.*?)\}</style>", "", element)
    own = hashlib.sha256(element.encode()).hexdigest()[:8]
    element = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>b{own}-", element)
    words = f"<title>{escape(title)}</title>" + (f"<desc>{escape(description)}</desc>" if description else "")
    opening, _, rest = element.partition(">")
    style = 'style="stroke-linejoin: round; stroke-linecap: butt"'
    opening = opening.replace("<svg", f'<svg role="img" aria-label="{escape(title)}" {style}', 1)
    return f"{opening}>{words}{rest}"
