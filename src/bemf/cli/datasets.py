"""bemf datasets: what data there is, and getting it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from bemf.cli.options import as_json
from bemf.cli.options import progress as share_bar
from bemf.cli.output import FORMATS, lines, write_json, write_table

if TYPE_CHECKING:
    from bemf.datasets.catalogue import Dataset


@click.command("datasets", short_help="Data sets by name: what there is; get one, write it to a file.")
@click.argument("name", required=False)
@click.option("-o", "--output", metavar="FILE", help="Write its ratings there.")
@click.option("--titles", is_flag=True, help="Its titles instead of its ratings.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="By the file's ending, else csv.")
@as_json
def command(name: str | None, output: str | None, titles: bool, form: str | None, as_json: bool) -> None:
    """List the data sets that can be had by name; with NAME get that one, downloading it if it is not here.

    \b
    bemf datasets ml1m                    where it is, what it holds, its licence
    bemf datasets demo -o ratings.csv     write its ratings to a file
    bemf datasets demo --titles -o films.csv
    """
    from bemf.datasets import available

    if name is None:
        _list(available(), as_json)
        return
    from bemf import datasets

    wanted = next((each for each in available() if each.name == name), None)
    if wanted is None:
        there = ", ".join(each.name for each in available())
        raise click.BadParameter(f"no data set is called {name!r}; there are {there}", param_hint="NAME")
    click.echo(f"{wanted.title}. Licence: {wanted.licence}", err=True)
    with _downloading() as bar:
        if titles:
            table = datasets.titles(name, progress=bar)
        else:
            ratings = datasets.load(name, progress=bar)
            table = ratings.to_frame("pyarrow") if output or form else None
    if table is not None:
        write_table(table, output, form, as_json, f"{table.num_rows:,} titles; write them with -o")
    elif as_json:
        write_json(_facts(wanted))
    else:
        click.echo(lines({"ratings": repr(ratings), "where": wanted.where, "liked from": f"{wanted.like:g}"}))


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


@contextmanager
def _downloading() -> Iterator[Callable[[Any], object] | None]:
    with share_bar("Downloading") as bar:
        yield None if bar is None else lambda download: bar(download.n_bytes / (download.n_total or 1))
