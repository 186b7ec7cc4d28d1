"""bemf fit: learn from ratings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from bemf.cli.options import as_json, column, columns, parsed, progress, read_ratings, text_form, threads
from bemf.cli.output import lines, write_json
from bemf.cli.quality import in_words, quality, threshold_table
from bemf.errors import DataError

if TYPE_CHECKING:
    from bemf.progress import Progress
    from bemf.ratings import Ratings
    from bemf.recommender import Recommender

FEWEST = 20  # ratings of which a part is held out


@click.command("fit", short_help="Learn a model from ratings.")
@click.argument("ratings", type=click.Path(allow_dash=True))
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to write the model.")
@columns
@click.option("--date", "date_column", metavar="COLUMN", help="The dates' column.")
@text_form
@click.option("--scores", help='All scores there are, as "1,2,3,4,5"; by default those that occur.')
@click.option("--duplicates", type=click.Choice(["error", "first", "last"]), default="error", show_default=True,
              help="What to do with a user's second rating of an item.")  # fmt: skip
@click.option("--model", "kind", default="BeMF", show_default=True, help="Which model.")
@click.option("-p", "settings", multiple=True, metavar="NAME=VALUE", help="A hyperparameter; may be given often.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the initial factors.")
@click.option("--validation", type=click.FloatRange(0, 1, max_open=True), default=0.1, show_default=True,
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
    scores: str | None,
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
    _check_output(output)
    started = time.perf_counter()
    data = read_ratings(
        ratings,
        user=column(user_column),
        item=column(item_column),
        rating=column(rating_column),
        date=column(date_column),
        delimiter=delimiter,
        header=header,
        scores=[float(each) for each in scores.split(",")] if scores else None,
        duplicates=duplicates,
    )
    read_in = time.perf_counter() - started
    make = _maker(kind, {"random_state": seed, "n_threads": threads} | parsed(settings))
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
        click.echo(_summary(facts, data))


def _check_output(path: str) -> None:
    """Fails before the work, not after it, where there is no such folder."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        raise DataError(f"{path} is a folder; name a file to write the model to")
    if not os.path.isdir(folder):
        raise DataError(f"{folder} is no folder, so {path} cannot be written")


def _maker(kind: str, parameters: dict[str, Any]) -> Callable[[], Recommender]:
    """Makes models of a kind, which is looked up now."""
    from bemf.models import MODELS, model_class

    if kind not in MODELS:
        raise click.BadParameter(f"{kind!r} is none of {', '.join(MODELS)}", param_hint="--model")
    made = model_class(kind)
    known = made().get_params()
    for name in parameters:
        if name not in known:
            raise click.BadParameter(f"{kind} has no parameter {name!r}; it has {', '.join(known)}", param_hint="-p")
    return lambda: made(**parameters)


def _measured(
    model: Recommender, data: Ratings, share: float, seed: int, progress: Progress | None
) -> dict[str, Any] | None:
    from bemf.datasets import holdout

    if share == 0 or len(data) < FEWEST:
        return None
    training, held_out = holdout(data, share, random_state=seed)
    return quality(held_out, model.fit(training, progress=progress).forecast(held_out))


def _part(bar: Callable[[float], object] | None, start: float, end: float) -> Callable[[float], object] | None:
    """A stretch of a progress bar as one of its own."""
    return (lambda share: bar(start + share * (end - start))) if bar else None


def _summary(facts: dict[str, Any], data: Ratings) -> str:
    told = {
        "ratings": repr(data).removeprefix("Ratings(").removesuffix(")"),
        "model": f"{facts['model']}, {facts['iterations']:,} iterations",
        "saved": f"{facts['output']}, {facts['bytes'] / 1e6:.1f} MB, after {facts['seconds']:.1f} s "
        f"({facts['seconds_to_read']:.1f} s to read)",
    }
    if not facts["validation"]:
        return lines(told)
    measured = facts["validation"]
    held_out = f"\n\nOn {measured['ratings']:,} ratings held out, before it learned from all:\n"
    return lines(told) + held_out + lines(in_words(measured)) + "\n\n" + threshold_table(measured)
