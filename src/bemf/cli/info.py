"""bemf info: what a model is."""

from __future__ import annotations

import click

from bemf.cli.options import as_json, read_model
from bemf.cli.output import lines, write_json


@click.command("info", short_help="What a saved model is: its data, parameters and fit.")
@click.argument("model", type=click.Path())
@as_json
def command(model: str, as_json: bool) -> None:
    """Tell what MODEL, a file that `bemf fit` wrote, was made from and how."""
    from bemf.words import counted, listed

    made = read_model(model)
    n_users, n_items = (int((counts > 0).sum()) for counts in (made.user_counts_, made.item_counts_))
    facts = {
        "model": type(made).__name__,
        "parameters": made.get_params(),
        "users": n_users,
        "items": n_items,
        "ratings": int(made.user_counts_.sum()),
        "scores": made.classes_.tolist(),
        "iterations": made.n_iter_,
        "objective": made.history_["objective"][-1],
        "keeps_ratings": made.rated_ is not None,
        "data": made.fingerprint_,
    }
    if as_json:
        write_json(facts)
        return
    keeps = "yes" if made.rated_ is not None else "no: it cannot tell what users have seen"
    told = {
        "model": repr(made),
        "learned from": f"{counted(facts['ratings'], 'rating')} by {counted(n_users, 'user')} "
        f"of {counted(n_items, 'item')}",
        "scores": listed(made.classes_),
        "iterations": f"{made.n_iter_:,}, objective {made.history_['objective'][-1]:.6g}",
        "keeps ratings": keeps,
        "data": made.fingerprint_[:16],
    }
    click.echo(lines(told))
