"""bemf datasets: what data there is, and getting it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bemf.cli.complete import data_sets
from bemf.cli.options import as_json, downloading
from bemf.cli.output import Destination, lines, table_output, write_json

if TYPE_CHECKING:
    from bemf.datasets.catalogue import Dataset


@click.command("datasets", short_help="Data sets by name: what there is; get one, write it to a file.")
@click.argument("name", required=False, shell_complete=data_sets)
@click.option("--titles", is_flag=True, help="Its titles instead of its ratings.")
@table_output
@as_json
def command(name: str | None, output: str | None, titles: bool, form: str | None, as_json: bool) -> None:
    """List the data sets that can be had by name; with NAME get that one, downloading it if it is not here.

    \b
    bemf datasets ml1m                    where it is, what it holds, its licence
    bemf datasets demo -o ratings.csv     write its ratings to a file
    bemf datasets demo --titles -o films.csv
    """
    from bemf import datasets

    if name is None:
        if output or form or titles:
            raise click.UsageError("say of which data set")
        _list(datasets.available(), as_json)
        return
    wanted = _named(name)
    to = Destination.of(output, form, as_json)
    with downloading() as bar:
        if titles:
            table = datasets.titles(name, progress=bar)
        else:
            ratings = datasets.load(name, progress=bar)
            table = ratings.to_frame("pyarrow") if output or form else None
    if table is not None:
        to.write(table, f"{len(table):,} titles; write them with -o")
        click.echo(f"{wanted.title}. Licence: {wanted.licence}", err=True)
    elif as_json:
        write_json(_facts(wanted))
    else:
        click.echo(_described(wanted, repr(ratings)))


def _named(name: str) -> Dataset:
    from bemf.datasets.catalogue import DATASETS

    if name not in DATASETS:
        raise click.BadParameter(f"no data set is called {name!r}; there are {', '.join(DATASETS)}", param_hint="NAME")
    return DATASETS[name]


def _described(dataset: Dataset, ratings: str) -> str:
    about = {"data set": dataset.title, "licence": dataset.licence, "ratings": ratings, "where": dataset.where}
    return lines(about | {"liked from": f"{dataset.like:g}"})


def _list(known: list[Dataset], as_json: bool) -> None:
    from bemf.words import table

    if as_json:
        write_json([_facts(each) for each in known])
        return
    columns = {
        "name": [each.name for each in known],
        "ratings": [f"{each.size.ratings:,}" for each in known],
        "users": [f"{each.size.users:,}" for each in known],
        "items": [f"{each.size.items:,}" for each in known],
        "where": [each.where for each in known],
        "what": [each.title for each in known],
    }
    click.echo(table(columns))


def _facts(each: Dataset) -> dict[str, Any]:
    facts = {name: getattr(each, name) for name in ("name", "title", "licence", "like", "address", "where")}
    return facts | each.size._asdict()
