"""Data sets by name."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from bemf.datasets.splits import cf4j
from bemf.errors import DataError, ParameterError
from bemf.files import read_table
from bemf.ratings import Ratings


@dataclass(frozen=True)
class Dataset:
    """A data set that can be had by name.

    `repeated` names the ratings that the benchmark's makers kept where a user rated an item twice.
    """

    name: str
    repeated: dict[tuple[int, int], float] = field(default_factory=dict)


DATASETS = {
    each.name: each
    for each in (
        Dataset("ml100k"),
        Dataset("ml1m"),
        Dataset("filmtrust", {(308, 207): 3.5, (308, 235): 1.5, (308, 12): 4.0}),
        Dataset("anime-sample5k"),
    )
}


@overload
def load(name: str, *, split: None = None) -> Ratings: ...
@overload
def load(name: str, *, split: Literal["cf4j"]) -> tuple[Ratings, Ratings]: ...
def load(name: str, *, split: Literal["cf4j"] | None = None) -> Ratings | tuple[Ratings, Ratings]:
    """A data set from the folder `$BEMF_DATA`: its ratings, or with split="cf4j" the paper's train and test.

    >>> load("nothing")
    Traceback (most recent call last):
    ...
    bemf.errors.ParameterError: no data set is called 'nothing'; there are ml100k, ml1m, filmtrust, anime-sample5k
    """
    if name not in DATASETS:
        raise ParameterError(f"no data set is called {name!r}; there are {', '.join(DATASETS)}")
    if split not in (None, "cf4j"):
        raise ParameterError(f"split must be 'cf4j' or None; got {split!r}")
    columns = _without_repeats(_columns(name), DATASETS[name].repeated)
    ratings = np.asarray(columns["rating"], dtype=np.float64)
    if split == "cf4j":
        return cf4j(columns["user"], columns["item"], ratings)
    return Ratings.from_arrays(columns["user"], columns["item"], ratings, dates=columns.get("date"))


def _columns(name: str) -> dict[str, Any]:
    folder = os.environ.get("BEMF_DATA")
    path = Path(folder or ".") / f"{name}.parquet"
    if not folder or not path.exists():
        raise DataError(f"{path.name} is not there: put it in a folder and set BEMF_DATA to that folder")
    return read_table(path, {"user": None, "item": None, "rating": None, "date": None})


def _without_repeats(columns: dict[str, Any], repeated: dict[tuple[int, int], float]) -> dict[str, Any]:
    """Keeps the first row of each repeated pair, with the rating that the benchmark has."""
    if not repeated:
        return columns
    arrays = {name: np.asarray(column).copy() for name, column in columns.items()}
    keep = np.ones(len(arrays["user"]), dtype=bool)
    for (user, item), rating in repeated.items():
        rows = np.flatnonzero((arrays["user"] == user) & (arrays["item"] == item))
        arrays["rating"][rows[:1]] = rating
        keep[rows[1:]] = False
    return {name: array[keep] for name, array in arrays.items()}
