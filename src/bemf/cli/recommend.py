"""bemf recommend: the best items for users."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import click

from bemf.cli.ids import as_ids_of, kinds, tell_unknown, unrated
from bemf.cli.options import Share, as_json, like, progress, read_model, source_of, text_form, threads, titles
from bemf.cli.output import Destination, table_output

if TYPE_CHECKING:
    from bemf.recommender import Recommender

VISITOR = "you"


@click.command("recommend", short_help="The best items for users, and how sure that is.")
@click.argument("model", type=click.Path())
@click.option(
    "-u", "--user", "users", multiple=True, metavar="ID", help="For whom; may be given often. All by default."
)
@click.option("--ratings", "mine", type=click.Path(allow_dash=True), metavar="FILE",
              help="For people by their ratings, whether they were in training or not.")  # fmt: skip
@text_form
@click.option("-n", type=click.IntRange(min=1), default=10, show_default=True, help="How many for each user.")
@like
@click.option(
    "--by",
    type=click.Choice(["p_like", "mean"]),
    help="What to order by: the probability of liking, where the model gives it, or the expected rating.",
)
@click.option("--min-reliability", type=Share(), default=0.0, help="Leave out what is less sure.")
@click.option("--items", type=click.Path(), metavar="FILE", help="A file with a column of items: the candidates.")
@click.option("--seen", is_flag=True, help="Recommend what was rated in training, too.")
@titles
@table_output
@as_json
@threads
def command(
    model: str,
    users: tuple[str, ...],
    mine: str | None,
    delimiter: str | None,
    header: bool | None,
    n: int,
    like: float | None,
    by: Any,
    min_reliability: float,
    items: str | None,
    seen: bool,
    titles: str | None,
    output: str | None,
    form: str | None,
    as_json: bool,
    threads: int | None,
) -> None:
    """Recommend items to users that MODEL knows, or to people whose ratings are in a file.

    \b
    bemf recommend m.bemf --user ann --titles films.csv
    bemf recommend m.bemf --ratings mine.csv          columns item and rating, or user, item, rating
    """
    from bemf.files import read_table

    if users and mine:
        raise click.UsageError("--user and --ratings are two ways to say for whom; give one")
    to = Destination.of(output, form, as_json)
    made = read_model(model, threads)
    asked: Any = as_ids_of(made.users_, users) if users else None
    if mine:
        asked = _take_in(made, mine, delimiter, header)
    candidates = None
    if items:
        candidates = read_table(items, {"item": None}, delimiter=delimiter, header=header, kinds=kinds(made))["item"]
        tell_unknown(unrated(candidates, made), "item", candidates)
    with progress("Recommending") as bar:
        best = made.recommend(
            asked,
            n,
            like=like,
            by=by,
            min_reliability=min_reliability,
            exclude_seen=not seen,
            items=candidates,
            titles=titles,
            progress=bar,
        )
    tell_unknown(best.unknown, "user", asked)
    to.write(best.to_frame("pyarrow"), str(best))


def _take_in(model: Recommender, source: str, delimiter: str | None, header: bool | None) -> list[Any]:
    """Folds people in by their ratings, and names them: as the file does, or as one visitor."""
    from bemf.files import read_table
    from bemf.ratings import Ratings

    wanted: dict[str, str | int | None] = {"user": None, "item": None, "rating": None}
    columns = read_table(
        source_of(source), wanted, delimiter=delimiter, header=header, optional=frozenset({"user"}), kinds=kinds(model)
    )
    items = columns["item"]
    tell_unknown(unrated(items, model), "item", items)
    users = columns["user"] if "user" in columns else [_visitor(model)] * len(items)
    ratings = Ratings.from_arrays(users, items, columns["rating"], scores=model.classes_)
    model.fold_in(ratings)
    return list(ratings.users)


def _visitor(model: Recommender) -> int | str:
    """An id that nobody has."""
    taken = set(model.users_)
    if isinstance(model.users_[0], int):
        return next(n for n in itertools.count() if n not in taken)
    names = itertools.chain([VISITOR], (f"{VISITOR} {n}" for n in itertools.count(2)))
    return next(name for name in names if name not in taken)
