"""The demo: invented people rate invented films, and the truth is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from bemf.datasets.synthetic import Synthetic, synthetic
from bemf.ratings import Ratings
from bemf.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa

N_USERS, N_FILMS, N_RATINGS = 600, 250, 30_000
STRIDE = 389  # takes names from all over their list

# In pairs, the two ends of one taste.
GENRES = ("Comedy", "Thriller", "Romance", "Science fiction", "Adventure", "Drama")
TITLES = {
    "Comedy": (
        "Borrowed Accidental Reluctant Upstairs Talkative Second-Best Unpaid Sleepy Overdressed",
        "Landlord Bagpiper Wedding-Guest Plumber Mayor Goose Locksmith Accordion Chauffeur",
    ),
    "Thriller": (
        "Ninth Silver Midnight Hollow Forgotten Locked Crooked Whispering Frozen",
        "Staircase Ledger Ferry Alibi Cellar Signal-Box Passenger Telegram Pharmacy",
    ),
    "Romance": (
        "Eleventh Quiet Summer Paper Amber Distant Rainy Unsent Slow",
        "Postcard Waltz Orchard Balcony Harbour Tramline Serenade Bookshop Platform",
    ),
    "Science fiction": (
        "Orbital Seventh Copper Magnetic Drifting Lunar Parallel Tidal Glass",
        "Archive Colony Cartographer Engine Greenhouse Antenna Satellite Reactor Gardener",
    ),
    "Adventure": (
        "Painted Sunken Roaring Stolen Wandering Emerald Southern Upside-Down Barefoot",
        "Compass Caravan Waterfall Captain Expedition Peninsula Canoe Mapmaker Lagoon",
    ),
    "Drama": (
        "Empty Unfinished Patient Winter Careful Grey Mended Inherited Sunday",
        "Verdict Violin Kitchen Schoolroom Tailor Vineyard Almanac Clinic Piano-Tuner",
    ),
}
SYLLABLES = (
    "Al Be Ca Da El Fe Gi Ha Jo Ka Li Ma Ni Or Po Ro Su Te Vi Ze",
    "bi de li mi no ro va zi",
    "ra lo nne th",
)


def demo() -> Synthetic:
    """Ratings of invented films, always the same ones, and the probabilities that they were drawn from.

    `load("demo")` gives the ratings alone, `titles("demo")` the films' genres.

    >>> ratings, truth = demo()
    >>> ratings
    Ratings(30,000 ratings by 600 users of 250 items, scores 1, 2, 3, 4, 5)
    >>> len(truth.forecast(ratings))
    30000
    """
    made = _made()
    users, items = Vocabulary(_names(), "user"), Vocabulary([title for title, _ in _films(made)], "item")
    ratings = Ratings.from_arrays(
        users.take(made.ratings.user_index),
        items.take(made.ratings.item_index),
        made.ratings.values,
        dates=made.ratings.dates,
        scores=made.ratings.scores,
    )
    return Synthetic(ratings, replace(made.truth, users=users, items=items))


def demo_titles() -> pa.Table:
    """The films of the demo, which are called by their titles, and their genres."""
    import pyarrow as pa

    films, genres = zip(*_films(_made()), strict=True)
    return pa.table({"item": films, "title": films, "genres": genres})


def _made() -> Synthetic:
    return synthetic(N_USERS, N_FILMS, N_RATINGS, n_factors=len(GENRES) // 2, random_state=43)


def _films(made: Synthetic) -> list[tuple[str, str]]:
    """The title and genre of each film; the genre is the taste it is most for or against."""
    taste = made.truth.item_factors[:, 1:]
    strongest = np.abs(taste).argmax(axis=1)
    against = np.take_along_axis(taste, strongest[:, None], axis=1)[:, 0] < 0
    before: Counter[str] = Counter()
    films = []
    for genre in (GENRES[place] for place in 2 * strongest + against):
        films.append((_title(genre, before[genre]), genre))
        before[genre] += 1
    return films


def _title(genre: str, n: int) -> str:
    """The n-th title of a genre: all pairs of its words, neighbours with no word in common."""
    firsts, seconds = (words.split() for words in TITLES[genre])
    again, place = divmod(n, len(firsts))
    return f"The {firsts[place]} {seconds[(place + again) % len(seconds)]}".replace("-", " ")


def _names() -> list[str]:
    """As many different names as there are users, in no order."""
    names = ["".join(parts) for parts in product(*map(str.split, SYLLABLES))]
    return [names[STRIDE * n % len(names)] for n in range(N_USERS)]
