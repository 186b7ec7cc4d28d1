"""bemf similar: items like others."""

from __future__ import annotations

import click

from bemf.cli.ids import as_ids_of, tell_unknown
from bemf.cli.options import as_json, read_model, threads, titles
from bemf.cli.output import Destination, table_output


@click.command("similar", short_help="Items that are like others.")
@click.argument("model", type=click.Path())
@click.argument("items", nargs=-1, required=True)
@click.option("-n", type=click.IntRange(min=1), default=10, show_default=True, help="How many for each.")
@titles
@table_output
@as_json
@threads
def command(
    model: str,
    items: tuple[str, ...],
    n: int,
    titles: str | None,
    output: str | None,
    form: str | None,
    as_json: bool,
    threads: int | None,
) -> None:
    """Find the items most like each of ITEMS, by what MODEL learned of them."""
    to = Destination.of(output, form, as_json)
    made = read_model(model, threads)
    asked = as_ids_of(made.items_, items)
    found = made.similar_items(asked, n, titles=titles)
    tell_unknown(found.unknown, "item", asked)
    to.write(found.to_frame("pyarrow"), str(found))
