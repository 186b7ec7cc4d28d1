"""bemf predict: forecasts of pairs."""

from __future__ import annotations

import click

from bemf.cli.ids import kinds
from bemf.cli.options import Share, as_json, column, point, read_model, source_of, text_form, threads, titles
from bemf.cli.output import Destination, table_output


@click.command("predict", short_help="Predictions and their reliabilities for pairs of a user and an item.")
@click.argument("model", type=click.Path())
@click.argument("pairs", type=click.Path(allow_dash=True))
@click.option("--user", "user_column", metavar="COLUMN", help="The users' column, by name or number from 0.")
@click.option("--item", "item_column", metavar="COLUMN", help="The items' column.")
@text_form
@point
@click.option("--min-reliability", type=Share(), default=0.0, help="Withhold less reliable predictions.")
@click.option("--probabilities", is_flag=True, help="Add a column for the probability of each score.")
@titles
@table_output
@as_json
@threads
def command(
    model: str,
    pairs: str,
    user_column: str | None,
    item_column: str | None,
    delimiter: str | None,
    header: bool | None,
    point: str,
    min_reliability: float,
    probabilities: bool,
    titles: str | None,
    output: str | None,
    form: str | None,
    as_json: bool,
    threads: int | None,
) -> None:
    """Forecast PAIRS, a file with the columns user and item ("-": standard input), by MODEL.

    Predictions of pairs that the model does not know, or that are withheld, are left empty.
    """
    import pyarrow as pa

    from bemf.files import read_table
    from bemf.titles import titles_of

    to = Destination.of(output, form, as_json)
    made = read_model(model, threads)
    wanted: dict[str, str | int | None] = {"user": column(user_column), "item": column(item_column)}
    asked = pa.table(read_table(source_of(pairs), wanted, delimiter=delimiter, header=header, kinds=kinds(made)))
    forecast = made.forecast(asked, point=point).at_least(min_reliability)  # type: ignore[arg-type]
    table = forecast.to_frame("pyarrow", probabilities=probabilities)
    if titles:
        table = table.add_column(2, "title", titles_of(forecast.items, titles))
    to.write(table, str(forecast))
