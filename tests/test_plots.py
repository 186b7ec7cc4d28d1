"""What plots draw, name and leave alone; how they look was looked at."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

import bemf
from bemf import metrics, plots
from bemf.metrics.confusion_matrix import Confusion
from bemf.metrics.reliability import Curve
from test_forecast import forecast_of

RNG = np.random.default_rng(0)
FORECAST = forecast_of(np.vstack([RNG.dirichlet(np.ones(5), 300), [[np.nan] * 5] * 4]))
TRUTH = RNG.integers(1, 6, 304)
CURVES = {"coverage": metrics.by_coverage(TRUTH, FORECAST), "threshold": metrics.by_threshold(TRUTH, FORECAST)}
DIAGRAM = metrics.reliability_diagram(TRUTH, FORECAST)
HISTOGRAM = metrics.reliability_histogram(FORECAST)
CONFUSION = metrics.confusion(TRUTH, FORECAST)
LONG = "Ordinal factorization with continuation ratios and 16 factors, mean of 8 seeds"

Draw = Callable[..., Any]
DRAWN: dict[str, tuple[Draw, Any]] = {
    "mae_by_coverage": (plots.mae_by_coverage, CURVES["coverage"]),
    "mae_by_threshold": (plots.mae_by_threshold, CURVES["threshold"]),
    "reliability_diagram": (plots.reliability_diagram, DIAGRAM),
    "reliability_histogram": (plots.reliability_histogram, HISTOGRAM),
    "confusion": (plots.confusion, CONFUSION),
}
SEVERAL = {name: DRAWN[name] for name in list(DRAWN)[:3]}
TWO_PANELS = ("mae_by_threshold", "reliability_diagram")


def rendered(ax: Any) -> Any:
    """The figure after drawing; warnings, of texts that do not fit say, are errors."""
    ax.figure.draw_without_rendering()
    return ax.figure


def texts(figure: Any) -> list[str]:
    return [each.get_text() for legend in figure.legends for each in legend.get_texts()]


# -- what is drawn -----------------------------------------------------------------------------------


def test_axes_are_named() -> None:
    labels = {
        name: [(ax.get_xlabel(), ax.get_ylabel()) for ax in rendered(draw(it)).axes]
        for name, (draw, it) in DRAWN.items()
    }
    mae = "Mean absolute error\n(points of the scale)"
    assert labels == {
        "mae_by_coverage": [("Coverage (share of the ratings)", mae)],
        "mae_by_threshold": [("", mae), ("Least reliability of a prediction", "Coverage")],
        "reliability_diagram": [("", "Observed frequency"), ("Predicted probability", "Cases")],
        "reliability_histogram": [("Reliability", "Pairs")],
        "confusion": [("Predicted rating", "True rating"), ("", "Share of the true rating")],
    }


def test_curves_are_the_numbers() -> None:
    (line,) = plots.mae_by_coverage(CURVES["coverage"]).get_lines()
    np.testing.assert_array_equal(
        line.get_xydata(), np.column_stack([CURVES["coverage"].coverage, CURVES["coverage"].mae])
    )
    upper, lower = plots.mae_by_threshold(CURVES["threshold"]).figure.axes
    for panel, values in ((upper, CURVES["threshold"].mae), (lower, CURVES["threshold"].coverage)):
        np.testing.assert_array_equal(
            panel.get_lines()[0].get_xydata(), np.column_stack([CURVES["threshold"].cut, values])
        )


def test_the_diagram_has_its_diagonal_and_its_counts() -> None:
    upper, lower = plots.reliability_diagram(DIAGRAM).figure.axes
    diagonal, line = upper.get_lines()
    filled = DIAGRAM.counts > 0
    assert 0 < filled.sum() < len(filled)
    np.testing.assert_array_equal(line.get_xydata(), np.column_stack([DIAGRAM.predicted, DIAGRAM.observed])[filled])
    assert np.asarray(diagonal.get_xydata()).tolist() == [[0, 0], [1, 1]]
    (steps,) = lower.patches
    assert isinstance(steps, StepPatch)
    assert np.asarray(steps.get_data()[0]).tolist() == DIAGRAM.counts.tolist()
    assert (upper.get_xlim(), upper.get_ylim(), lower.get_xlim()) == ((0, 1), (0, 1), (0, 1))


def test_the_histogram_says_what_it_leaves_out() -> None:
    ax = plots.reliability_histogram(HISTOGRAM)
    (steps,) = ax.patches
    assert isinstance(steps, StepPatch)
    assert np.asarray(steps.get_data()[0]).tolist() == HISTOGRAM.counts.tolist()
    assert np.asarray(steps.get_data()[1]).tolist() == HISTOGRAM.edges.tolist()
    assert ax.get_title(loc="right") == "not shown: 4 unknown pairs"
    assert plots.reliability_histogram(metrics.reliability_histogram([0.5])).get_title(loc="right") == ""


def test_the_confusion_has_counts_in_cells_coloured_by_their_share() -> None:
    ax = plots.confusion(CONFUSION)
    counts = np.column_stack([CONFUSION.counts, CONFUSION.withheld])
    (image,) = ax.images
    np.testing.assert_allclose(np.asarray(image.get_array()), counts / counts.sum(axis=1, keepdims=True))
    written = {each.get_position(): each.get_text() for each in ax.texts}
    assert written == {(column, row): str(count) for (row, column), count in np.ndenumerate(counts)}
    assert [each.get_text() for each in ax.get_xticklabels()] == ["1", "2", "3", "4", "5", "none"]
    assert [each.get_text() for each in ax.get_yticklabels()] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("n", [1, 2, 10, 20, 101])
def test_confusions_of_few_and_many_scores(n: int) -> None:
    ax = plots.confusion(metrics.confusion(np.arange(n) / 2, np.arange(n) / 2))
    rendered(ax)
    shown = [each.get_text() for each in ax.get_xticklabels()]
    assert len(shown) <= 12
    assert shown[-1] == f"{(n - 1) / 2:g}"
    assert shown == [each.get_text() for each in ax.get_yticklabels()]
    assert len(ax.texts) == (n * n if n <= 10 else 0)


def test_large_counts_are_rounded_to_fit() -> None:
    counts = np.array([[9_999, 10_000], [999_499, 1_250_000]])
    ax = plots.confusion(Confusion(np.array([1.0, 2]), counts, np.zeros(2, int)))
    assert [each.get_text() for each in ax.texts] == ["9,999", "10k", "999k", "1.2M"]


# -- several -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("n", [1, 2, 8, 30])
@pytest.mark.parametrize("title", ["Model", LONG])
def test_legends_name_each_where_there_are_several(name: str, n: int, title: str) -> None:
    draw, it = SEVERAL[name]
    names = [f"{title} {place}" for place in range(n)]
    figure = rendered(draw(dict.fromkeys(names, it)))
    if n == 1:
        assert texts(figure) == []
        return
    assert {" ".join(each.split()) for each in texts(figure)} == {*names}
    (legend,) = figure.legends
    handles = legend.get_lines()
    lines = {
        line.get_marker() + line.get_linestyle() + str(line.get_color()): place
        for place, line in enumerate(each for each in figure.axes[0].get_lines() if each.get_marker() != "None")
    }
    for handle, text in zip(handles, texts(figure), strict=True):
        place = lines[handle.get_marker() + handle.get_linestyle() + str(handle.get_color())]
        assert " ".join(text.split()) == names[place]


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("title", ["Model", LONG])
def test_legends_hide_nothing_and_stay_inside(name: str, title: str) -> None:
    draw, it = SEVERAL[name]
    figure = rendered(draw({f"{title} {place}": it for place in range(8)}))
    legend = figure.legends[0].get_window_extent()
    assert all(not legend.overlaps(ax.get_tightbbox()) for ax in figure.axes)
    assert 0 <= legend.x0 < legend.x1 <= figure.bbox.x1
    assert legend.y0 >= 0
    assert figure.axes[0].get_window_extent().height > 100


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_is_cut_off(name: str) -> None:
    draw, it = DRAWN[name]
    figure = rendered(draw(it))
    box = figure.get_tightbbox()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= figure.get_figwidth()
    assert box.y1 <= figure.get_figheight()


def test_no_two_lines_look_alike_even_without_colour() -> None:
    lines = plots.mae_by_coverage({str(n): CURVES["coverage"] for n in range(8)}).get_lines()
    assert len({line.get_marker() for line in lines}) == 8
    for one, other in itertools.pairwise(lines):
        assert one.get_color() != other.get_color()
        assert one.get_linestyle() != other.get_linestyle()


def test_gaps_are_left_where_nothing_is_known() -> None:
    curve = Curve(np.array([0.0, 0.5, 1.0]), np.array([1.0, np.nan, np.nan]), np.array([1.0, 0.5, 0.0]))
    nothing = Curve(curve.cut, np.full(3, np.nan), curve.coverage)
    for draw in (plots.mae_by_coverage, plots.mae_by_threshold):
        lines = rendered(draw({"some": curve, "nothing": nothing})).axes[0].get_lines()
        assert [np.isnan(line.get_ydata()).sum() for line in lines] == [2, 3]
    unknown = metrics.reliability_diagram([1], forecast_of([[np.nan, np.nan]]))
    assert len(rendered(plots.reliability_diagram(unknown)).axes[0].get_lines()[1].get_xdata()) == 0


def test_nothing_to_draw_is_refused() -> None:
    for draw, _ in SEVERAL.values():
        with pytest.raises(bemf.ParameterError, match="nothing to draw"):
            draw({})


# -- where it is drawn -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DRAWN)
def test_axes_given_are_drawn_on(name: str) -> None:
    draw, it = DRAWN[name]
    ax = Figure().add_subplot()
    assert draw(it, ax=ax) is ax
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert len(ax.figure.axes) == 1 + (name == "confusion")  # its colour bar


@pytest.mark.parametrize("name", SEVERAL)
def test_axes_given_have_the_legend_themselves(name: str) -> None:
    draw, it = SEVERAL[name]
    ax = draw({"one": it, "two": it}, ax=Figure().add_subplot())
    assert texts(ax.figure) == []
    assert [each.get_text() for each in ax.get_legend().get_texts()] == ["one", "two"]
    assert draw({"one": it}, ax=Figure().add_subplot()).get_legend() is None


def test_what_is_on_the_axes_already_is_none_of_the_legend_s_business() -> None:
    ax = Figure().add_subplot()
    ax.plot([0, 1], [0, 1], color="red")
    legend: Any = plots.mae_by_coverage(dict.fromkeys(["one", "two"], CURVES["coverage"]), ax=ax).get_legend()
    assert [line.get_color() for line in legend.get_lines()] == [line.get_color() for line in ax.get_lines()[1:]]


def test_names_are_taken_as_they_are() -> None:
    names = ["$k = 2$", r"a \frac{ b $", "<b>", "two  words", "--!>"]
    figure = rendered(plots.mae_by_coverage(dict.fromkeys(names, CURVES["coverage"])))
    assert {*texts(figure)} == {*names}
    ET.fromstring(plots.to_svg(figure, title="T"))


def test_pictures_are_a_column_wide_and_light() -> None:
    for draw, it in DRAWN.values():
        figure = rendered(draw(it))
        assert figure.get_figwidth() == 3.5
        assert figure.get_facecolor() == (1, 1, 1, 1)


def test_global_state_is_left_alone() -> None:
    """Settings, and the figures that pyplot would keep; pyplot is not even loaded."""
    code = """
import json, sys
import matplotlib
from bemf import metrics, plots
def settings():  # looking at the backend would load pyplot
    return {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}
before = settings()
pictures = [plots.mae_by_coverage(metrics.by_coverage([1, 2], [1, 1], [0.9, 0.5]))]
pictures += [plots.reliability_diagram(metrics.reliability_diagram([1, 2], [1, 1], [0.9, 0.5]))]
pictures += [plots.confusion(metrics.confusion([1, 2], [1, 1]))]
texts = [plots.to_svg(each, title="A picture") for each in pictures]
print(json.dumps([settings() == before, "matplotlib.pyplot" in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [True, False]


def test_a_missing_matplotlib_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(bemf.MissingExtraError, match=r'pip install "bemf\[plot\]"'):
        plots.confusion(CONFUSION)
    with pytest.raises(ImportError, match="matplotlib"):
        plots.reliability_histogram(HISTOGRAM)


# -- SVG ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_picture_is_the_same_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, it = DRAWN[name]
    first = plots.to_svg(draw(it), title="T", description="D")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    assert plots.to_svg(draw(it).figure, title="T", description="D") == first


@pytest.mark.slow
def test_the_same_picture_is_the_same_text_in_another_process() -> None:
    code = """
import hashlib, json
from bemf import metrics, plots
curve = metrics.by_coverage([1, 2, 3], [1, 1, 3], [0.9, 0.5, 0.4])
text = plots.to_svg(plots.mae_by_coverage({"one": curve, "two": curve}), title="T")
print(json.dumps(hashlib.sha256(text.encode()).hexdigest()))
"""
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_the_element_stands_alone_on_a_page() -> None:
    """No prologue, dates or outside addresses; ids of its own; styles that do not reach the page."""
    svgs = [plots.to_svg(draw(it), title="T") for draw, it in DRAWN.values()]
    ids = [set(re.findall(r' id="([^"]*)"', svg)) for svg in svgs]
    assert all(one.isdisjoint(other) for one, other in itertools.combinations(ids, 2))
    for svg, own in zip(svgs, ids, strict=True):
        root = ET.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert {*re.findall(r'(?:href="|url\()#([^")]*)', svg)} <= own
        assert "<style" not in svg
        assert "metadata" not in svg
        outside = {*re.findall(r'https?://[^"\s]+', svg)}
        assert outside == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


PRINTED = st.characters(exclude_categories=["C"])


@settings(max_examples=20)
@given(st.text(PRINTED, min_size=1).filter(str.strip), st.text(PRINTED))
def test_words_stand_for_the_picture(title: str, description: str) -> None:
    ax = plots.reliability_histogram(HISTOGRAM, ax=Figure(figsize=(1, 1)).add_subplot())
    root = ET.fromstring(plots.to_svg(ax, title=title, description=description))
    space = "{http://www.w3.org/2000/svg}"
    assert (root.get("role"), root.get("aria-label")) == ("img", title)
    assert root[0].tag == f"{space}title"
    assert root[0].text == title
    told = root.find(f"{space}desc")
    assert (told.text if told is not None else "") == description


def test_a_picture_without_a_title_is_refused() -> None:
    with pytest.raises(bemf.ParameterError, match="a title"):
        plots.to_svg(plots.confusion(CONFUSION), title=" ")


def test_settings_of_ones_own_are_kept() -> None:
    with mpl.rc_context({"svg.hashsalt": "mine"}):
        plots.to_svg(plots.confusion(CONFUSION), title="T")
        assert mpl.rcParams["svg.hashsalt"] == "mine"
