"""Data sets by name: found, or downloaded, or made."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from bemf.datasets import raw
from bemf.datasets.catalogue import DATASETS, DEMO, Dataset, Member, Size
from bemf.datasets.download import fetch
from bemf.datasets.films import demo, demo_titles
from bemf.datasets.places import cache_folder, found, member
from bemf.datasets.splits import cf4j
from bemf.errors import DataError, ParameterError
from bemf.ratings import Ratings

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("bemf.datasets")


@dataclass(frozen=True, slots=True)
class Download:
    """A download as it goes on; `n_total` is None if the server does not say how many bytes there will be."""

    dataset: Dataset
    n_bytes: int
    n_total: int | None


Progress = Callable[[Download], object]
"""Called about twenty times a second while something is downloaded."""


@overload
def load(name: str, *, split: None = None, progress: Progress | None = None) -> Ratings: ...
@overload
def load(name: str, *, split: Literal["cf4j"], progress: Progress | None = None) -> tuple[Ratings, Ratings]: ...
def load(
    name: str, *, split: Literal["cf4j"] | None = None, progress: Progress | None = None
) -> Ratings | tuple[Ratings, Ratings]:
    """A data set's ratings, or with split="cf4j" the paper's train and test of them.

    It is looked for in the folder `$BEMF_DATA`, as `<name>.parquet` or as its makers give it out (the
    archive, or the file of ratings extracted from it), then in the cache folder, and downloaded into that
    if it is nowhere. Mind its licence, which is logged then, and is in `available()`.

    Parameters
    ----------
    name : one of those that `available()` lists
    split : "cf4j" for the split of the paper
    progress : called with a `Download` while it is downloaded

    >>> load("demo")
    Ratings(30,000 ratings by 600 users of 250 items, scores 1, 2, 3, 4, 5)
    """
    dataset = _named(name)
    if split not in (None, "cf4j"):
        raise ParameterError(f"split must be 'cf4j' or None; got {split!r}")
    columns = _columns(dataset, progress)
    values = np.asarray(columns["rating"], dtype=np.float64)
    if split == "cf4j":
        return cf4j(columns["user"], columns["item"], values)
    return Ratings.from_arrays(columns["user"], columns["item"], values, dates=columns.get("date"))


def titles(name: str, *, progress: Progress | None = None) -> pa.Table:
    """What a data set's items are called: a pyarrow table of item, title and genres.

    The titles are looked for, and downloaded, as the ratings are by `load`.

    >>> titles("demo")["title"][:3].to_pylist()
    ['The Painted Compass', 'The Orbital Archive', 'The Empty Verdict']
    """
    dataset = _named(name)
    if name == DEMO:
        return demo_titles()
    file = dataset.titles_file or f"{name}-movies.csv"
    if prepared := found(file):
        return raw.titles_with_names(prepared)
    if dataset.titles is None:
        if dataset.ratings is not None:
            raise DataError(f"the items of {name} have no titles")
        raise DataError(_absent(dataset, file))
    return dataset.titles.read(_source(dataset, dataset.titles, progress))


def available() -> list[Dataset]:
    """The data sets there are: name, title, size, licence, like, address, and where each is on this machine.

    >>> [each.name for each in available()]
    ['ml100k', 'ml1m', 'ml10m', 'ml25m', 'filmtrust', 'myanimelist', 'anime-sample5k', 'demo']
    >>> available()[-1].where
    'made when asked for'
    """
    return list(DATASETS.values())


def _named(name: str) -> Dataset:
    if name not in DATASETS:
        raise ParameterError(f"no data set is called {name!r}; there are {', '.join(DATASETS)}")
    return DATASETS[name]


# -- finding -----------------------------------------------------------------------------------------


def _columns(dataset: Dataset, progress: Progress | None) -> raw.Columns:
    """The columns of the ratings in the order of their file, each pair once."""
    if dataset.name == DEMO:
        frame = demo().ratings.to_frame("pyarrow")
        return {name: frame.column(name) for name in frame.column_names}
    file = f"{dataset.name}.parquet"
    if prepared := found(file):
        return _without_repeats(raw.ratings(prepared), dataset.repeated)
    if dataset.ratings is None:
        raise DataError(_absent(dataset, file))
    return _checked_columns(dataset, dataset.ratings, _source(dataset, dataset.ratings, progress))


def _absent(dataset: Dataset, file: str) -> str:
    return f"{dataset.name} cannot be downloaded {dataset.obstacle}: put {file} in a folder and set BEMF_DATA to that"


def _source(dataset: Dataset, wanted: Member, progress: Progress | None) -> raw.Source:
    """A file that the makers give out, by itself or in their archive."""
    path = found(wanted.path, dataset.archive) or _downloaded(dataset, wanted, progress)
    return member(path, wanted.path) if path.name == dataset.archive else path


def _downloaded(dataset: Dataset, wanted: Member, progress: Progress | None) -> Path:
    if dataset.obstacle:
        raise DataError(
            f"{dataset.name} cannot be downloaded {dataset.obstacle}: get {wanted.path} from {dataset.address} "
            f"and put it at {cache_folder() / wanted.path}"
        )
    logger.info("downloading %s from %s; its licence is %s", dataset.name, dataset.address, dataset.licence)

    def tell(n_bytes: int, n_total: int | None) -> None:
        if progress is not None:
            progress(Download(dataset, n_bytes, n_total))

    target = cache_folder() / dataset.archive
    fetch(dataset.address, target, partial(_check_archive, dataset), tell)
    return target


# -- checking ----------------------------------------------------------------------------------------


def _check_archive(dataset: Dataset, path: Path) -> None:
    """Refuses an archive that is not the one meant, by its checksum, or else by what is in it."""
    if dataset.checksum:
        algorithm, _, wanted = dataset.checksum.partition(":")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
        if digest != wanted:
            raise DataError(f"its {algorithm} is {digest}, not {wanted}")
    elif dataset.ratings is not None:
        _checked_columns(dataset, dataset.ratings, member(path, dataset.ratings.path))


def _checked_columns(dataset: Dataset, wanted: Member, source: raw.Source) -> raw.Columns:
    """Reads ratings as the makers give them out; refuses them if they are more, fewer or other ones."""
    import pyarrow.compute as pc

    columns = _without_repeats(wanted.read(source), dataset.repeated)
    size = Size(len(columns["rating"]), *(pc.count_distinct(columns[side]).as_py() for side in ("user", "item")))
    counts = tuple(np.unique(columns["rating"], return_counts=True)[1].tolist()) if dataset.score_counts else ()
    if size != dataset.size or counts != dataset.score_counts:
        raise DataError(
            f"{source} is not {dataset.name}, or not all of it: it has {_described(size, counts)}, "
            f"not {_described(dataset.size, dataset.score_counts)}. Remove it"
        )
    return columns


def _described(size: Size, counts: tuple[int, ...]) -> str:
    words = f"{size.ratings:,} ratings by {size.users:,} users of {size.items:,} items"
    return f"{words} (by score {', '.join(map(str, counts))})" if counts else words


def _without_repeats(columns: raw.Columns, repeated: dict[tuple[int, int], float]) -> raw.Columns:
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
