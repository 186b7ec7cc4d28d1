"""Ids as people type them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bemf.errors import DataError

if TYPE_CHECKING:
    from bemf.recommender import Recommender
    from bemf.vocabulary import Vocabulary


def as_ids_of(vocabulary: Vocabulary, typed: Sequence[str]) -> list[int] | list[str]:
    """Typed ids as the kind that a vocabulary has."""
    import pyarrow as pa

    if vocabulary.arrow.type != pa.int64():
        return list(typed)
    wrong = [one for one in typed if not one.lstrip("-").isdigit()]
    if wrong:
        raise DataError(f"{vocabulary.what} ids are whole numbers here; got {', '.join(map(repr, wrong[:3]))}")
    return [int(one) for one in typed]


def kinds(model: Recommender) -> dict[str, Any]:
    """What kinds of ids a model has, so that files are read so."""
    return {"user": model.users_.arrow.type, "item": model.items_.arrow.type}


def tell_unknown(unknown: Any, what: str, n_asked: int | None = None) -> None:
    """Names the ids asked for that are not known; where none is, there is nothing to answer."""
    if not len(unknown):
        return
    shown = ", ".join(map(str, unknown[:5].to_pylist())) + (", …" if len(unknown) > 5 else "")
    message = f"{len(unknown):,} {what}{'s' if len(unknown) > 1 else ''} without a rating in training: {shown}"
    if n_asked is not None and len(unknown) == n_asked:
        raise DataError(message)
    click.echo(f"bemf: {message}", err=True)
