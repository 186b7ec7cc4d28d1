"""bemf evaluate: how good a model's forecasts are."""

from __future__ import annotations

import click

from bemf.cli.ids import kinds
from bemf.cli.options import as_json, column, columns, read_model, source_of, text_form, threads
from bemf.cli.output import write_json
from bemf.cli.quality import quality, told
from bemf.errors import DataError


@click.command("evaluate", short_help="How good a model's predictions and reliabilities are.")
@click.argument("model", type=click.Path())
@click.argument("ratings", type=click.Path(allow_dash=True))
@columns
@text_form
@as_json
@threads
def command(
    model: str,
    ratings: str,
    user_column: str | None,
    item_column: str | None,
    rating_column: str | None,
    delimiter: str | None,
    header: bool | None,
    as_json: bool,
    threads: int | None,
) -> None:
    """Compare what MODEL forecasts with RATINGS that it was not fitted to ("-": standard input)."""
    from bemf.files import read_table
    from bemf.ratings import Ratings

    made = read_model(model, threads)
    wanted = {"user": column(user_column), "item": column(item_column), "rating": column(rating_column)}
    read = read_table(source_of(ratings), wanted, delimiter=delimiter, header=header, kinds=kinds(made))
    truth = Ratings.from_arrays(read["user"], read["item"], read["rating"])
    forecast = made.forecast(truth)
    if not forecast.known.any():
        raise DataError(f"{ratings}: none of {len(truth):,} ratings is by a user and of an item that the model knows")
    facts = quality(truth, forecast)
    if as_json:
        write_json(facts)
    else:
        click.echo(told(facts))
