"""Ids as people type them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import click

from bemf.errors import DataError
from bemf.words import counted

if TYPE_CHECKING:
    from bemf.recommender import Recommender
    from bemf.vocabulary import Vocabulary

WHOLE = re.compile(r"-?[0-9]{1,19}")


def as_ids_of(vocabulary: Vocabulary, typed: Sequence[str]) -> list[int] | list[str]:
    """Typed ids as the kind that a vocabulary has.

    >>> from bemf import Vocabulary
    >>> as_ids_of(Vocabulary([7, 8]), ["7"]), as_ids_of(Vocabulary(["7", "8"]), ["7"])
    ([7], ['7'])
    """
    import pyarrow as pa

    if vocabulary.arrow.type != pa.int64():
        return list(typed)
    wrong = [one for one in typed if not WHOLE.fullmatch(one)]
    if wrong:
        raise DataError(f"{vocabulary.what} ids are whole numbers here; got {', '.join(map(repr, wrong[:3]))}")
    return [int(one) for one in typed]


def kinds(model: Recommender) -> dict[str, Any]:
    """What kinds of ids a model has, so that files are read so."""
    return {"user": model.users_.arrow.type, "item": model.items_.arrow.type}


def unrated(items: Any, model: Recommender) -> Any:
    """Those of some items, each once, that have no rating in training."""
    import pyarrow.compute as pc

    from bemf.vocabulary import as_ids

    asked = as_ids(items, "item").unique()
    rated = model.items_.take((model.item_counts_ > 0).nonzero()[0])
    return asked.filter(pc.invert(pc.is_in(asked, value_set=rated)))


def tell_unknown(unknown: Any, what: str, asked: Collection[Any] | None = None) -> None:
    """Names the ids that have no rating in training; where none of those asked for has, there is no answer."""
    if not len(unknown):
        return
    shown = ", ".join(map(str, unknown[:5].to_pylist())) + (", …" if len(unknown) > 5 else "")
    message = f"{counted(len(unknown), what)} without a rating in training: {shown}"
    if asked is not None and len(unknown) == len(set(asked)):
        raise DataError(message)
    click.echo(f"bemf: {message}", err=True)
