"""bemf fit: learn from ratings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from bemf.cli.complete import hyperparameters, models, sources
from bemf.cli.options import Share, as_json, column, columns, parsed, progress, read_ratings, text_form, threads
from bemf.cli.output import check_writable, lines, write_json
from bemf.cli.quality import quality, told

if TYPE_CHECKING:
    from bemf.progress import Progress
    from bemf.ratings import Ratings
    from bemf.recommender import Recommender

FEWEST = 20  # ratings of which a part is held out
SAID_OTHERWISE = {"scores": "use --scores", "warm_start": "every fit starts anew"}


def _scale(context: click.Context, option: click.Parameter, given: str | None) -> list[float] | None:  # noqa: ARG001
    """The scores of a list with commas."""
    from bemf.scale import given_scale

    try:
        return None if given is None else list(given_scale([float(each) for each in given.split(",")]))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command("fit", short_help="Learn a model from ratings.")
@click.argument("ratings", type=click.Path(allow_dash=True), shell_complete=sources)
@click.option("-o", "--output", type=click.Path(), required=True, metavar="FILE", help="Where to write the model.")
@columns
@click.option("--date", "date_column", metavar="COLUMN", help="The dates' column.")
@text_form
@click.option("--scores", callback=_scale, help='All scores there are, as "1,2,3,4,5"; by default those that occur.')
@click.option("--duplicates", type=click.Choice(["error", "first", "last"]), default="error", show_default=True,
              help="What to do with a user's second rating of an item.")  # fmt: skip
@click.option("--model", "kind", default="BeMF", show_default=True, shell_complete=models, help="Which model.")
@click.option("-p", "settings", multiple=True, metavar="NAME=VALUE", shell_complete=hyperparameters,
              help="A hyperparameter; may be given often.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the initial factors.")
@click.option("--validation", type=Share(max_open=True), default=0.1, show_default=True,
              help="The share held out to measure by, before all is learned from; 0 to leave that out.")  # fmt: skip
@as_json
@threads
def command(
    ratings: str,
    output: str,
    user_column: str | None,
    item_column: str | None,
    rating_column: str | None,
    date_column: str | None,
    delimiter: str | None,
    header: bool | None,
    scores: list[float] | None,
    duplicates: Any,
    kind: str,
    settings: tuple[str, ...],
    seed: int,
    validation: float,
    as_json: bool,
    threads: int | None,
) -> None:
    """Learn from RATINGS, a file or a data set's name ("-": standard input), and save the model.

    \b
    bemf fit ratings.csv -o m.bemf
    bemf fit u.data -o m.bemf -p n_factors=4 -p regularization=6
    zcat ratings.csv.gz | bemf fit - -o m.bemf

    A tenth of the ratings is held out first to tell how good the forecasts are; then the model learns from all.
    """
    check_writable(output)
    make = _maker(kind, {"random_state": seed, "n_threads": threads} | parsed(settings))
    started = time.perf_counter()
    data = read_ratings(
        ratings,
        user=column(user_column),
        item=column(item_column),
        rating=column(rating_column),
        date=column(date_column),
        delimiter=delimiter,
        header=header,
        scores=scores,
        duplicates=duplicates,
    )
    read_in = time.perf_counter() - started
    with progress("Learning") as bar:
        measured = _measured(make(), data, validation, seed, _part(bar, 0, 0.5))
        model = make().fit(data, progress=_part(bar, 0.5 if measured else 0, 1))
    model.save(output)
    facts = {
        "ratings": len(data),
        "users": int((data.by_user.counts > 0).sum()),
        "items": int((data.by_item.counts > 0).sum()),
        "scores": data.scores.tolist(),
        "model": repr(model),
        "iterations": model.n_iter_,
        "objective": model.history_["objective"][-1],
        "seconds_to_read": round(read_in, 3),
        "seconds": round(time.perf_counter() - started, 3),
        "validation": measured,
        "output": output,
        "bytes": os.path.getsize(output),
    }
    if as_json:
        write_json(facts)
    else:
        click.echo(_summary(facts, data, validation))


def settable(kind: str) -> list[str]:
    """The parameters of a model that -p can set."""
    from bemf.models import model_class

    return [name for name in model_class(kind)().get_params() if name not in SAID_OTHERWISE]


def _maker(kind: str, parameters: dict[str, Any]) -> Callable[[], Recommender]:
    """Makes models of a kind, which is looked up now, with parameters that are checked now."""
    from bemf.models import MODELS, model_class

    if kind not in MODELS:
        raise click.BadParameter(f"{kind!r} is none of {', '.join(MODELS)}", param_hint="--model")
    made = model_class(kind)
    for name in parameters:
        if name not in settable(kind):
            remedy = SAID_OTHERWISE.get(name, f"it has {', '.join(settable(kind))}")
            raise click.BadParameter(f"{kind} has no parameter {name!r} here; {remedy}", param_hint="-p")
    made(**parameters).check_parameters()
    return lambda: made(**parameters)


def _measured(
    model: Recommender, data: Ratings, share: float, seed: int, progress: Progress | None
) -> dict[str, Any] | None:
    from bemf.datasets import holdout

    if share == 0 or len(data) < FEWEST:
        return None
    training, held_out = holdout(data, share, random_state=seed)
    forecast = model.fit(training, progress=progress).forecast(held_out)
    return quality(held_out, forecast) if forecast.known.any() else None


def _part(bar: Callable[[float], object] | None, start: float, end: float) -> Callable[[float], object] | None:
    """A stretch of a progress bar as one of its own."""
    return (lambda share: bar(start + share * (end - start))) if bar else None


def _summary(facts: dict[str, Any], data: Ratings, validation: float) -> str:
    about = {
        "ratings": repr(data).removeprefix("Ratings(").removesuffix(")"),
        "model": f"{facts['model']}, {facts['iterations']:,} iterations",
        "saved": f"{facts['output']}, {facts['bytes'] / 1e6:.1f} MB, after {facts['seconds']:.1f} s "
        f"({facts['seconds_to_read']:.1f} s to read)",
    }
    measured = facts["validation"]
    if measured:
        how_good = f"\n\nBy ratings that were held out before it learned from all:\n{told(measured)}"
    else:
        how_good = "\n\nThere are too few ratings to hold some out and tell how good it is." if validation else ""
    return lines(about) + how_good
