"""What notebooks show: well-formed, with every id as text, and nothing that runs or is fetched."""

from __future__ import annotations

import html.parser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bemf
from bemf import html as ours
from test_forecast import PHI, forecast_of

VOID = {"img", "br", "hr", "input", "link", "meta"}
ALLOWED = {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "bdi", "span"}
ATTRIBUTES = {"style", "scope", "title", "role", "aria-label", "aria-hidden"}
IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


class Page(html.parser.HTMLParser):
    """Refuses tags that do not nest, and keeps texts by tag and all attributes."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in VOID
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes += attrs
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data


def shown(thing: Any) -> Page:
    page = Page(thing._repr_html_())
    assert page.tags <= ALLOWED
    assert {name for name, _ in page.attributes} <= ATTRIBUTES
    assert not any("url" in (value or "") for name, value in page.attributes if name == "style")
    return page


def seen(one: str) -> str:
    """How an id looks: control characters replaced."""
    return "".join("\ufffd" if ord(letter) < 32 or 127 <= ord(letter) < 160 else letter for letter in one)


def rated(users: Any, ratings: Any, **more: Any) -> bemf.Ratings:
    return bemf.Ratings.from_arrays(users, np.arange(len(users)), ratings, **more)


# -- ratings -----------------------------------------------------------------------------------------


def test_ratings_are_counted() -> None:
    ratings = bemf.Ratings.from_arrays([1, 1, 2, 3], [7, 8, 7, 7], [0.5, 3, 3, 3], scores=[0.5, 1, 3])
    page = shown(ratings)
    named = dict(zip(page.cells[::2], page.cells[1::2], strict=True))
    assert named == {"ratings": "4", "users": "3", "items": "2", "density": "66.7 %"}
    told = [value for name, value in page.attributes if name in ("aria-label", "title")]
    assert told == ["0.5: 25%, 1: 0%, 3: 75%", "0.5: 1 (25.0%)", "1: 0 (0.0%)", "3: 3 (75.0%)"]
    heights = [value for _, value in page.attributes if value and "height: " in value and "%" in value]
    assert [value.partition("height: ")[2].partition("%")[0] for value in heights] == ["33.3", "0.0", "100.0"]
    assert page.text.endswith("0.513")


def test_rows_without_ratings_do_not_count() -> None:
    part = rated([1, 2, 3], [1, 2, 2]).select(np.array([0]))
    assert shown(part).cells[1::2] == ["1", "1", "1", "100 %"]
    assert shown(part.select(np.array([], dtype=int))).cells[1::2] == ["0", "0", "0", "0 %"]


def test_of_many_scores_the_first_and_the_last_are_written() -> None:
    page = shown(rated(range(4), [0, 100, 50, 50], scores=range(101)))
    assert page.text.split("%")[-1].split() == ["0", "100"]


# -- forecasts ---------------------------------------------------------------------------------------


def test_forecasts_are_tables() -> None:
    page = shown(forecast_of(PHI).at_least(0.5))
    assert page.text.startswith("Forecast: 4 pairs, 2 predicted by mode with reliability ≥ 0.5")
    rows = [[cell.strip() for cell in page.cells[n : n + 4]] for n in range(0, 20, 4)]
    assert rows == [
        ["user", "item", "prediction", "reliability"],
        ["0", "0", "4", "0.60"],
        ["1", "1", "withheld", "0.40"],
        ["2", "2", "unknown", "0.00"],
        ["3", "3", "1", "0.50"],
    ]
    widths = [value for _, value in page.attributes if value and "width: " in value and "%" in value]
    assert [value.partition("width: ")[2].partition("%")[0] for value in widths] == ["60", "40", "0", "50"]


def test_only_the_first_rows_of_a_forecast_are_shown() -> None:
    page = shown(forecast_of(PHI * 300))
    assert len(page.cells) == 11 * 4
    assert page.text.endswith("… 1,190 more")
    assert not shown(forecast_of(PHI)).text.endswith("more")
    assert shown(forecast_of(np.empty((0, 2)))).cells == ["user", "item", "prediction", "reliability"]


@given(st.lists(IDS, min_size=1, max_size=5, unique=True))
def test_ids_come_out_as_text(ids: list[str]) -> None:
    ratings = rated(ids, [1] * len(ids))
    model = bemf.BeMF(n_iterations=1, n_factors=1, engine="reference").fit(ratings)
    cells = shown(model.forecast([(one, 0) for one in ids])).cells
    assert cells[4::4] == [seen(one) for one in ids]


def test_scripts_are_text() -> None:
    evil = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</td></table>", "&lt;b&gt;", "\x00\x1b"]
    model = bemf.BeMF(n_iterations=1).fit(rated(evil, [1, 2, 1, 2, 1]))
    page = shown(model.forecast([(one, 0) for one in evil]))
    assert page.cells[4::4] == [*evil[:4], "\ufffd\ufffd"]


def test_long_ids_are_shortened() -> None:
    model = bemf.BeMF(n_iterations=1).fit(rated(["a" * 10_000, "b" * 40], [1, 2]))
    first, second = shown(model.forecast([("a" * 10_000, 0), ("b" * 40, 0)])).cells[4::4]
    assert first == "a" * 39 + "…"
    assert second == "b" * 40


# -- models ------------------------------------------------------------------------------------------


def test_unfitted_models_say_so() -> None:
    assert shown(bemf.BeMF()).text == "BeMFnot fitted yet"
    scores: Any = np.array([1.0, 2.0])
    page = shown(bemf.BeMF(n_factors=3, scores=scores))
    assert page.cells == ["scores", "[1. 2.]", "n_factors", "3"]
    assert page.text.endswith("not fitted yet")


def test_fitted_models_say_what_they_found() -> None:
    ratings = rated(["ann", "bob", "cem"] * 4, [0.5, 1, 2, 2.5] * 3)
    model = bemf.BeMF(n_iterations=7, random_state=0).fit(ratings)
    cells = shown(model).cells
    named = dict(zip(cells[::2], cells[1::2], strict=True))
    first, last = model.history_["objective"][0], model.history_["objective"][-1]
    assert named == {
        "n_iterations": "7",
        "random_state": "0",
        "ratings": "12",
        "users": "3",
        "items": "12",
        "scale": "0.5, 1, 2, 2.5",
        "iterations": "7",
        "objective": f"{first:,.6g} → {last:,.6g}",
    }
    model.fit(ratings, validation=ratings)
    assert f"{min(model.history_['validation']):.4f}" in shown(model).cells


def test_parameters_are_escaped() -> None:
    class Odd(bemf.Activation):
        def value(self, x: Any) -> Any: ...

        def derivative(self, x: Any) -> Any: ...

        def __repr__(self) -> str:
            return "<script>"

    assert shown(bemf.BeMF(activation=Odd())).cells == ["activation", "<script>"]


# -- pieces ------------------------------------------------------------------------------------------


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40))
def test_text_survives_being_escaped(given: str) -> None:
    page = Page(ours.text(given) + ours.note(given) + ours.card(given) + ours.table({given: [given]}))
    assert page.text == given * 5
    assert page.tags == {"bdi", "div", "strong", "table", "thead", "tbody", "tr", "th", "td"}


@pytest.mark.parametrize(("part", "width"), [(0.256, "26%"), (1 + 1e-7, "100%"), (0.0, "0%")])
def test_bars_stay_in_their_frames(part: float, width: str) -> None:
    assert f"width: {width}" in ours.share(part)
    assert f"{part:.2f}" in ours.share(part)
