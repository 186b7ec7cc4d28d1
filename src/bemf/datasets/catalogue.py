"""What data sets there are, where they come from, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from bemf.datasets import raw
from bemf.datasets.places import found

DEMO = "demo"


class Size(NamedTuple):
    """How many ratings a data set has, by how many users of how many items."""

    ratings: int
    users: int
    items: int


@dataclass(frozen=True)
class Member:
    """A file of a data set as its makers give it out: its path in their archive, and how it is read."""

    path: str
    read: Callable[[raw.Source], Any]


@dataclass(frozen=True)
class Dataset:
    """A data set that can be had by name.

    Attributes
    ----------
    name, title, licence : str
    size : Size
        Of what `load` gives.
    like : float
        The lowest rating that counts as liking an item.
    address : str
        Where it comes from; empty if it is nowhere to be had.
    archive, checksum : str
        The name of the zip file there, and "algorithm:digest" of it; where no checksum is known, what is in
        the archive is checked instead.
    obstacle : str
        Why it cannot be downloaded, if so.
    ratings, titles : Member
        What is wanted of the archive.
    titles_file : str
        The titles that may stand beside the ratings in `$BEMF_DATA`; by default <name>-movies.csv.
    score_counts : tuple of int
        How many ratings each score has, ascending; empty where it need not be known.
    repeated : dict
        The ratings that the benchmark's makers kept where a user rated an item twice.
    """

    name: str
    title: str
    licence: str
    size: Size
    like: float
    address: str = ""
    archive: str = ""
    checksum: str = ""
    obstacle: str = ""
    ratings: Member | None = None
    titles: Member | None = None
    titles_file: str = ""
    score_counts: tuple[int, ...] = ()
    repeated: dict[tuple[int, int], float] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The path of the file that `load` reads, "made when asked for", or "not here"."""
        if self.name == DEMO:
            return "made when asked for"
        path = found(f"{self.name}.parquet") or found(self.ratings.path if self.ratings else "", self.archive)
        return str(path or "not here")


def _movielens(
    name: str, title: str, checksum: str, size: Size, ratings: Member, titles: Member, archive: str
) -> Dataset:
    """A data set of GroupLens."""
    return Dataset(
        name,
        title=f"MovieLens {title}",
        licence="of GroupLens: for research, not to be passed on or used commercially without permission; "
        "cite Harper and Konstan (2015)",
        size=size,
        like=4,
        address=f"https://files.grouplens.org/datasets/movielens/{archive}",
        archive=archive,
        checksum=f"md5:{checksum}",
        ratings=ratings,
        titles=titles,
    )


DATASETS = {
    each.name: each
    for each in (
        _movielens(
            "ml100k",
            "100K",
            "0e33842e24a9c977be4e0107933c0723",
            Size(100_000, 943, 1_682),
            Member("ml-100k/u.data", partial(raw.ratings, date=3)),
            Member("ml-100k/u.item", raw.titles_with_flags),
            "ml-100k.zip",
        ),
        _movielens(
            "ml1m",
            "1M",
            "c4d9eecfca2ab87c1945afe126590906",
            Size(1_000_209, 6_040, 3_706),
            Member("ml-1m/ratings.dat", partial(raw.ratings, date=3)),
            Member("ml-1m/movies.dat", partial(raw.titles_with_colons, encoding="latin-1")),
            "ml-1m.zip",
        ),
        _movielens(
            "ml10m",
            "10M",
            "ce571fd55effeba0271552578f2648bd",
            Size(10_000_054, 69_878, 10_677),
            Member("ml-10M100K/ratings.dat", partial(raw.ratings, date=3)),
            Member("ml-10M100K/movies.dat", partial(raw.titles_with_colons, encoding="utf-8")),
            "ml-10m.zip",
        ),
        _movielens(
            "ml25m",
            "25M",
            "6b51fb2759a8657d3bfcbfc42b592ada",
            Size(25_000_095, 162_541, 59_047),
            Member("ml-25m/ratings.csv", raw.ratings),
            Member("ml-25m/movies.csv", raw.titles_with_names),
            "ml-25m.zip",
        ),
        Dataset(
            "filmtrust",
            title="FilmTrust",
            licence="not stated: for research; cite Guo, Zhang and Yorke-Smith (2013)",
            size=Size(35_494, 1_508, 2_071),
            like=3.5,
            address="https://guoguibing.github.io/librec/datasets/filmtrust.zip",
            archive="filmtrust.zip",
            ratings=Member("ratings.txt", partial(raw.ratings, delimiter=" ")),
            score_counts=(1_060, 1_141, 1_601, 3_113, 4_392, 7_876, 7_142, 9_169),
            repeated={(308, 207): 3.5, (308, 235): 1.5, (308, 12): 4.0},
        ),
        Dataset(
            "myanimelist",
            title="MyAnimeList",
            licence="on its page at Kaggle",
            size=Size(6_337_234, 69_600, 9_927),
            like=7,
            address="https://www.kaggle.com/datasets/CooperUnion/anime-recommendations-database",
            archive="anime-recommendations-database.zip",
            obstacle="without an account at Kaggle",
            ratings=Member("rating.csv", raw.watched),
            titles=Member("anime.csv", raw.titles_with_names),
        ),
        Dataset(
            "anime-sample5k",
            title="MyAnimeList, a sample of 5,000 users",
            licence="that of MyAnimeList",
            size=Size(419_943, 4_714, 7_157),
            like=7,
            obstacle="from anywhere",
            titles_file="anime-items.csv.gz",
        ),
        Dataset(
            DEMO,
            title="Invented films, rated by invented people",
            licence="that of bemf",
            size=Size(30_000, 600, 250),
            like=4,
        ),
    )
}
