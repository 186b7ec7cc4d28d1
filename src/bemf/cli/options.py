"""What several commands ask for, and how they read it."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from bemf.ratings import Ratings
    from bemf.recommender import Recommender

Command = TypeVar("Command", bound=Callable[..., Any])
AS_PYTHON_HAS_IT = {"True": True, "False": False, "None": None}
USUAL = (None, "error")  # what options of reading are when they are not given


def together(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order in which help shows them."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


class Share(click.FloatRange):
    """A number from 0 to 1, which "nan" is not, though it compares as if it were."""

    def __init__(self, **open_ends: bool) -> None:
        super().__init__(0, 1, **open_ends)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        share: float = super().convert(value, param, ctx)
        return share if not math.isnan(share) else self.fail(f"{value} is no number.", param, ctx)


columns = together(
    click.option("--user", "user_column", metavar="COLUMN", help="The users' column, by name or number from 0."),
    click.option("--item", "item_column", metavar="COLUMN", help="The items' column."),
    click.option("--rating", "rating_column", metavar="COLUMN", help="The ratings' column."),
)
text_form = together(
    click.option("--delimiter", help="What divides the columns, if it is not found."),
    click.option("--header/--no-header", default=None, help="Whether the first line names the columns."),
)
as_json = click.option("--json", "as_json", is_flag=True, help="Answer in JSON, for machines.")
threads = click.option("--threads", type=click.IntRange(1, 4096), help="How many threads to use; all cores by default.")
titles = click.option("--titles", type=click.Path(), metavar="FILE", help="A file with the columns item and title.")
like = click.option("--like", type=float, help="The lowest score that counts as liking.")
point = click.option(
    "--point",
    type=click.Choice(["mode", "median", "mean"]),
    default="mode",
    show_default=True,
    help="Predict what is likeliest, has the least absolute error, or the least squared error.",
)


# -- reading -----------------------------------------------------------------------------------------


def column(given: str | None) -> str | int | None:
    """A column's name, or its number.

    >>> column("movieId"), column("2")
    ('movieId', 2)
    """
    return int(given) if given is not None and given.isascii() and given.isdigit() else given


def source_of(given: str) -> Any:
    """A file's path, or the standard input for "-", to be read by Arrow."""
    import pyarrow as pa

    pa.enable_signal_handlers(False)  # its own lose a Ctrl-C that comes when a file has almost been read
    return sys.stdin.buffer if given == "-" else given


def read_ratings(source: str, **reading: Any) -> Ratings:
    """Ratings from a file or the standard input, or of a data set with that name."""
    from bemf.datasets import load
    from bemf.datasets.catalogue import DATASETS
    from bemf.ratings import Ratings

    if source not in DATASETS or os.path.exists(source):
        return Ratings.read(source_of(source), **reading)
    given = [f"--{name}" for name, value in reading.items() if value not in USUAL]
    if given:
        raise click.UsageError(f"{source!r} is a data set, whose form is known; leave out {', '.join(given)}")
    with downloading() as bar:
        return load(source, progress=bar)


def read_model(path: str, n_threads: int | None = None) -> Recommender:
    """A model, told how many threads to use."""
    from bemf.persistence import load

    model: Recommender = load(path)
    model.n_threads = n_threads
    return model


def parsed(settings: tuple[str, ...]) -> dict[str, Any]:
    """Hyperparameters given as NAME=VALUE.

    >>> parsed(("n_factors=4", "solver=gd", "biases=True", "regularization=[0.1, 0.2]"))
    {'n_factors': 4, 'solver': 'gd', 'biases': True, 'regularization': (0.1, 0.2)}
    """
    out = {}
    for each in settings:
        name, equals, value = each.partition("=")
        if not equals:
            raise click.BadParameter(f"{each!r} must be NAME=VALUE", param_hint="-p")
        out[name] = _value(value)
    return out


def _value(text: str) -> Any:
    """A value written as JSON or Python has it, else the text itself."""
    if text in AS_PYTHON_HAS_IT:
        return AS_PYTHON_HAS_IT[text]
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return tuple(read) if isinstance(read, list) else read


# -- progress ----------------------------------------------------------------------------------------


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], object] | None]:
    """A bar on the terminal for work that takes a share from 0 to 1; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextmanager
def downloading() -> Iterator[Callable[[Any], object] | None]:
    """A bar for `bemf.datasets.load`; it stands still if the server does not say how much there will be."""
    with progress("Downloading") as bar:
        yield None if bar is None else lambda download: bar(download.n_bytes / (download.n_total or math.inf))
