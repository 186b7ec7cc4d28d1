"""bemf demo: what the library is for, on films that do not exist."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bemf.cli.options import as_json, threads
from bemf.cli.output import check_writable, write_json
from bemf.cli.quality import quality, threshold_table, worth_showing

if TYPE_CHECKING:
    from bemf.datasets.synthetic import Truth
    from bemf.forecast import Forecast
    from bemf.ratings import Ratings
    from bemf.recommendations import Recommendations
    from bemf.recommender import Recommender

HELD_OUT = 0.2
NO_BREAK = "\N{NO-BREAK SPACE}"
NEXT = """\
Now with your own ratings, a file with the columns user, item and rating:
  bemf fit ratings.csv -o model.bemf
  bemf recommend model.bemf --min-reliability 0.5
  bemf predict model.bemf pairs.csv -o predictions.csv"""


@click.command("demo", short_help="See what it is for, on invented films.")
@click.option("-o", "--output", type=click.Path(), default="bemf-demo.html", show_default=True, metavar="FILE",
              help="The report.")  # fmt: skip
@as_json
@threads
def command(output: str, as_json: bool, threads: int | None) -> None:
    """Fit a model to ratings of invented films, whose true probabilities are known; show what it knows, and how well.

    Needs no network. Writes one HTML file with the pictures, which matplotlib draws (the extra "plot").
    """
    from bemf.persistence import write_atomically

    check_writable(output)
    shown = _fitted(threads)
    facts = quality(shown.test, shown.forecast)
    if not as_json:
        click.echo(_told(shown, facts))  # before the report, which may lack what draws it
    write_atomically(output, _report(shown, facts).encode())
    if as_json:
        write_json(facts | {"seconds": shown.seconds, "report": output, "recommendations": _rows(shown.best)})
    else:
        click.echo(f"\nThe pictures are in {output}: open it in a browser.\n\n{NEXT}")


@dataclass(frozen=True)
class Shown:
    """What the demo shows."""

    train: Ratings
    test: Ratings
    model: Recommender
    forecast: Forecast
    truth: Truth
    best: Recommendations
    seconds: float


def _fitted(threads: int | None) -> Shown:
    import bemf

    ratings, truth = bemf.datasets.demo()
    train, test = bemf.datasets.holdout(ratings, HELD_OUT, random_state=0)
    start = time.perf_counter()
    model = bemf.BeMF(random_state=0, n_threads=threads).fit(train)
    seconds = time.perf_counter() - start
    user = _somebody(model)
    return Shown(train, test, model, model.forecast(test), truth, model.recommend(user, titles=_titles()), seconds)


def _titles() -> Any:
    from bemf.datasets import titles

    return titles("demo")


def _somebody(model: Recommender) -> str | int:
    """A user who will like the ten best, of which some are much surer than others: there is most to see."""
    from itertools import groupby

    def worth(rows: list[dict[str, Any]]) -> float:
        trust = [row["reliability"] for row in rows]
        return float(sum(row["p_like"] for row in rows) / len(rows) + max(trust) - min(trust))

    by_user = groupby(_rows(model.recommend(n=10)), key=lambda row: row["user"])
    best: str | int = max((worth(list(rows)), user) for user, rows in by_user)[1]
    return best


def _rows(best: Recommendations) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = best.to_frame("pyarrow").to_pylist()
    return rows


def _columns(best: Recommendations) -> dict[str, list[str]]:
    """Recommendations as people read them."""
    from bemf.words import how_sure

    rows = _rows(best)
    return {
        "film": [row["title"] for row in rows],
        "we think": [f"{how_sure(row['reliability'])} {row['prediction']:g}{NO_BREAK}stars" for row in rows],
        "reliability": [f"{row['reliability']:.0%}" for row in rows],
        f"{best.like:g} stars or more": [f"{row['p_like']:.0%}" for row in rows],
    }


def _told(shown: Shown, facts: dict[str, Any]) -> str:
    from bemf.words import table

    user = shown.best.users[0].as_py()
    return f"""\
Learned from {len(shown.train):,} ratings of invented films in {shown.seconds:.2f} s; {len(shown.test):,} were held out.

The surer the prediction, the smaller its error:

{threshold_table(facts)}

For {user}, who has seen none of these:

{table(_columns(shown.best))}"""


# -- the report --------------------------------------------------------------------------------------


def _report(shown: Shown, facts: dict[str, Any]) -> str:
    from bemf.report import Report

    user = shown.best.users[0].as_py()
    report = Report(
        "Recommendations that say how sure they are",
        f"A model of {len(shown.train):,} ratings of invented films, tried on {len(shown.test):,} others.",
    )
    report.section(
        f"For {user}",
        "Each film with the rating to expect and how sure that is: the probability that it is exactly this one.",
    ).table(_columns(shown.best), numbers=["reliability", f"{shown.best.like:g} stars or more"])
    report.section(
        "The surer, the better",
        "Predictions below a reliability can be withheld. The mean error of those that are left falls; "
        "what it costs is the share of pairs that still have a prediction.",
    ).table(_by_threshold(facts), numbers=["mean error", "predictions kept"])
    report.section("In pictures").figures(_pictures(shown))
    report.section(
        "Does it keep its word?",
        f"Predictions said to be right in {facts['mean_reliability']:.1%} of the cases were right in "
        f"{facts['accuracy']:.1%}. These ratings were drawn from known probabilities, so the model can also be held "
        "to the truth itself, without the luck of the draw: the second line of the diagram.",
    )
    return report.html()


def _by_threshold(facts: dict[str, Any]) -> dict[str, list[str]]:
    rows = worth_showing(facts)
    return {
        "reliability of at least": [f"{row['min_reliability']:.0%}" for row in rows],
        "mean error": [f"{row['mae']:.2f} stars" for row in rows],
        "predictions kept": [f"{row['coverage']:.1%}" for row in rows],
    }


def _pictures(shown: Shown) -> dict[str, str]:
    import numpy as np

    from bemf import metrics, plots

    forecast, test = shown.forecast, shown.test
    curve = metrics.by_coverage(test, forecast, shares=np.linspace(1, 0.02, 50).tolist())
    diagrams = {
        "against the ratings": metrics.reliability_diagram(test, forecast),
        "against the truth": metrics.reliability_diagram(shown.truth.forecast(test), forecast),
    }
    drawn = {
        "Error against coverage": (plots.mae_by_coverage(curve), "The most reliable predictions have the least error."),
        "Reliabilities": (
            plots.reliability_histogram(metrics.reliability_histogram(forecast)),
            "How many predictions have which reliability.",
        ),
        "Calibration": (
            plots.reliability_diagram(diagrams),
            "What was said to be so likely came so often. On the diagonal a forecast keeps its word.",
        ),
    }
    return {plots.to_svg(ax, title=title, description=says): says for title, (ax, says) in drawn.items()}
