"""Draws the pictures of these pages into docs/pictures/: python docs/pictures.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import bemf
from bemf import metrics, plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parent / "pictures"
PERSON, UNSURE, SURE = "Tezith", "The Midnight Cellar", "The Lunar Antenna"


@cache
def split() -> tuple[bemf.Ratings, bemf.Ratings]:
    """The demo's ratings, those to learn from and those to measure by."""
    return bemf.datasets.holdout(bemf.datasets.load("demo"), 0.2, random_state=0)


@cache
def model() -> bemf.BeMF:
    return bemf.BeMF(random_state=0).fit(split()[0])


@cache
def forecasts() -> dict[str, bemf.Forecast]:
    """What the model says of the ratings held out, and what their true probabilities say."""
    test = split()[1]
    return {"BeMF": model().forecast(test), "the truth itself": bemf.datasets.demo().truth.forecast(test)}


# -- pictures ----------------------------------------------------------------------------------------


def error_by_coverage() -> Axes:
    shares = np.linspace(1, 0.02, 50).tolist()
    curve = metrics.by_coverage(split()[1], forecasts()["BeMF"], shares=shares)
    return plots.mae_by_coverage(curve)


def error_by_threshold() -> Axes:
    curves = {name: metrics.by_threshold(split()[1], forecast) for name, forecast in forecasts().items()}
    return plots.mae_by_threshold(curves)


def calibration() -> Axes:
    said = forecasts()["BeMF"]
    diagrams = {
        "against the ratings": metrics.reliability_diagram(split()[1], said),
        "against the truth": metrics.reliability_diagram(forecasts()["the truth itself"], said),
    }
    return plots.reliability_diagram(diagrams)


def reliabilities() -> Axes:
    return plots.reliability_histogram(metrics.reliability_histogram(forecasts()["BeMF"]))


def confusion() -> Axes:
    return plots.confusion(metrics.confusion(split()[1], forecasts()["BeMF"].at_least(0.4)))


def two_forecasts() -> Figure:
    """The probabilities of two films for one person: the same prediction, not the same reliability."""
    from matplotlib.figure import Figure

    forecast = model().forecast([(PERSON, UNSURE), (PERSON, SURE)])
    figure = Figure(figsize=(plots.WIDTH, 2.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, film, shares, mode in zip(
        panels, (UNSURE, SURE), forecast.probabilities, forecast.prediction, strict=True
    ):
        colours = [plots.COLOURS[0] if score == mode else "0.75" for score in forecast.scores]
        bars = panel.bar(forecast.scores, shares, color=colours)
        panel.bar_label(bars, [f"{share:.0%}" for share in shares], fontsize=plots.SMALL - 1)
        panel.set_title(film, fontsize=plots.SMALL)
        panel.set_xlabel("Stars", fontsize=plots.SMALL)
        panel.tick_params(labelsize=plots.SMALL)
        panel.set_xticks(forecast.scores)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set(ylim=(0, 0.85))
    panels[0].set_ylabel("Probability", fontsize=plots.SMALL)
    return figure


PICTURES: dict[str, Callable[[], Axes | Figure]] = {
    "calibration": calibration,
    "confusion": confusion,
    "error-by-coverage": error_by_coverage,
    "error-by-threshold": error_by_threshold,
    "reliabilities": reliabilities,
    "two-forecasts": two_forecasts,
}


def main() -> None:
    """Draws them all."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        picture = plots.to_svg(draw(), title=name.replace("-", " "))
        (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
