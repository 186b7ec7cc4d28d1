"""Ratings drawn from probabilities that are known, so that reliabilities can be held to the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bemf.errors import ParameterError
from bemf.forecast import Forecast, Point
from bemf.hyperparameters import Range
from bemf.pairs import Pairs
from bemf.ratings import Ratings
from bemf.scale import PART, given_scale
from bemf.vocabulary import Vocabulary

Floats = NDArray[np.float64]
Indexes = NDArray[np.int32]

# The spreads of what is drawn, in units of the noise of an average user (a logistic variable).
STRICTNESS = 0.8  # how much lower than others a user rates everything
DRIFT = 1.0  # how much stricter the last user is than the first
STRETCH = 0.35  # of the logarithm: how far apart a user's limits between the scores are
NOISE = 0.5  # of the logarithm: how little a user's ratings follow their liking
QUALITY = 0.8  # how much better than others an item is, to everybody
TASTE = 1.0  # how much more somebody likes an item than others do
CHOICE = 0.5  # how much liking an item adds to the logarithm of the chance that it is rated
POPULARITY = 1.4  # of the logarithm: how often an item is rated
FAME = 0.5  # the correlation of popularity and quality
ACTIVITY = 1.0  # of the logarithm: how much a user rates beyond the minimum

MINIMUM = 20  # ratings of everybody, where there are enough
FIRST_DAY, FIVE_YEARS, MONTH = 1_420_070_400, 157_788_000, 2_629_800  # in seconds; the day is that of 2015
KEYS = 1 << 20  # pairs of users and items that are looked at together


@dataclass(frozen=True, eq=False)
class Truth:
    """The probabilities that ratings were drawn from.

    Somebody likes an item by `user_factors[u] @ item_factors[i]`, and rates it with at most the d-th score
    with probability 1 / (1 + exp(liking − limits[u, d])).

    Attributes
    ----------
    users, items : Vocabulary
    scores : array of float64
        The scale, ascending.
    limits : array (users, scores − 1)
        Where each user's scores meet, ascending.
    user_factors, item_factors : arrays (users or items, 1 + n_factors)
        Column 0 is the item's quality, the others are taste.
    """

    users: Vocabulary
    items: Vocabulary
    scores: Floats
    limits: Floats
    user_factors: Floats
    item_factors: Floats

    def forecast(self, pairs: Any, *, point: Point = "mode") -> Forecast:
        """The true probabilities of every score for pairs, one row a pair, as a model would give them.

        >>> truth = synthetic(20, 10, 100, random_state=0).truth
        >>> truth.forecast([(1, 2), (1, 99)]).known
        array([ True, False])
        """
        asked = Pairs.of(pairs)
        users, items = asked.index(self.users, self.items)
        known = (users >= 0) & (items >= 0)
        probabilities = np.full((len(asked), len(self.scores)), np.nan)
        for part in _parts(len(asked)):
            below = self._at_most(users[part], items[part])
            probabilities[part] = np.maximum(np.diff(below, axis=1, prepend=0, append=1), 0)
        probabilities[~known] = np.nan
        return Forecast(asked.users, asked.items, probabilities, self.scores, known, point)

    def _at_most(self, users: Indexes, items: Indexes) -> Floats:
        """The probability of each score but the last, or a lower one, for inner indexes."""
        liking = _dot(self.user_factors[users], self.item_factors[items])
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.exp(liking[:, None] - self.limits[users])))


class Synthetic(NamedTuple):
    """Ratings and the probabilities they were drawn from."""

    ratings: Ratings
    truth: Truth


def synthetic(
    n_users: int = 1_000,
    n_items: int = 500,
    n_ratings: int = 50_000,
    *,
    scores: Sequence[float] = (1, 2, 3, 4, 5),
    n_factors: int = 4,
    random_state: int | None = None,
) -> Synthetic:
    """Ratings like real ones, and the probabilities they are one draw from.

    An item has a quality, which all see, and properties, which people like or dislike. Everybody has their
    own limits between the scores: some are lenient, some use the ends of the scale, some hardly follow
    their own liking. Few items are popular, mostly good ones; few users rate much, nobody less than a third
    of the average or 20, whichever is less; people rate what they probably like. Users come over five years
    and are numbered as they come; the later they come, the stricter they are. Once here they rate within a
    few months. Ids are whole numbers from 1; an item may have no ratings.

    >>> ratings, truth = synthetic(100, 50, 1_000, random_state=0)
    >>> ratings
    Ratings(1,000 ratings by 100 users of 50 items, scores 1, 2, 3, 4, 5)
    >>> truth.forecast(ratings).probabilities.shape
    (1000, 5)
    """
    scale = given_scale(scores)
    _check(n_users, n_items, n_ratings, n_factors, len(scale))
    rng = np.random.default_rng(random_state)
    wants, offers = _factors(rng, n_users, n_items, n_factors)
    user, item = _rated(rng, wants, offers, _activity(rng, n_users, n_items, n_ratings))
    arrival = np.sort(rng.random(n_users))
    habits = _Habits.drawn(rng, arrival)
    some = rng.integers(0, n_ratings, PART)
    common = _common_limits(rng, _dot(wants[user[some]], offers[item[some]]), habits.of(user[some]), len(scale))
    people, things = Vocabulary(np.arange(1, n_users + 1), "user"), Vocabulary(np.arange(1, n_items + 1), "item")
    truth = Truth(people, things, scale, habits.limits(common), wants / habits.noise[:, None], offers)
    values = scale[_drawn(rng, truth, user, item)]
    dates = FIRST_DAY + (FIVE_YEARS * arrival[user] + rng.exponential(MONTH, n_ratings)).astype(np.int64)
    return Synthetic(Ratings.from_indexes(people, things, user, item, values, dates=dates, scores=scale), truth)


def _check(n_users: int, n_items: int, n_ratings: int, n_factors: int, n_scores: int) -> None:
    for name, value, low in (("n_users", n_users, 1), ("n_items", n_items, 1), ("n_factors", n_factors, 0)):
        Range(Integral, low=low).check(name, value)
    if n_scores < 2:
        raise ParameterError("scores must be at least 2 different numbers")
    Range(Integral, low=n_users, high=n_users * n_items).check("n_ratings", n_ratings)


# -- who rates what ----------------------------------------------------------------------------------


def _factors(rng: np.random.Generator, n_users: int, n_items: int, n_factors: int) -> tuple[Floats, Floats]:
    """What users want and what items offer; of quality, column 0, everybody wants the same."""
    spread = TASTE / np.sqrt(max(n_factors, 1))
    wants = np.column_stack([np.ones(n_users), rng.normal(0, spread, (n_users, n_factors))])
    return wants, rng.normal(0, [QUALITY, *[1] * n_factors], (n_items, 1 + n_factors))


def _activity(rng: np.random.Generator, n_users: int, n_items: int, n_ratings: int) -> NDArray[np.int64]:
    """How many ratings each user gives: a few rate much, nobody more than there is."""
    minimum = max(1, min(MINIMUM, n_ratings // n_users // 3))
    room, total = n_items - minimum, n_ratings - minimum * n_users
    weight = np.exp(rng.normal(0, ACTIVITY, n_users))
    share = np.zeros(n_users)
    while (left := total - share.sum()) > 0.25:  # what those with no room left cannot take goes to the others
        free = share < room
        share[free] += weight[free] * left / weight[free].sum()
        np.minimum(share, room, out=share)
    counts = minimum + share.astype(np.int64)
    largest_rests = np.argsort(np.floor(share) - share, kind="stable")
    counts[largest_rests[: n_ratings - counts.sum()]] += 1
    return counts


def _rated(
    rng: np.random.Generator, wants: Floats, offers: Floats, counts: NDArray[np.int64]
) -> tuple[Indexes, Indexes]:
    """Which items each user rates: those for which an exponential waiting time is over first."""
    fame = FAME * offers[:, 0] / QUALITY + np.sqrt(1 - FAME**2) * rng.normal(size=len(offers))
    chosen = []
    step = max(1, KEYS // len(offers))
    for start in range(0, len(wants), step):
        rate = np.exp(CHOICE * (wants[start : start + step] @ offers.T) + POPULARITY * fame)
        waits = rng.standard_exponential(rate.shape) / rate
        chosen += [np.argpartition(wait, n - 1)[:n] for wait, n in zip(waits, counts[start:], strict=False)]
    return np.repeat(np.arange(len(wants), dtype=np.int32), counts), np.concatenate(chosen).astype(np.int32)


# -- how they rate it --------------------------------------------------------------------------------


class _Habits(NamedTuple):
    """How each user uses the scale."""

    strictness: Floats
    stretch: Floats
    noise: Floats

    @classmethod
    def drawn(cls, rng: np.random.Generator, arrival: Floats) -> _Habits:
        """Habits that depend on the time of arrival, from 0 to 1, by their strictness."""
        strictness, stretch, noise = rng.normal(0, [[STRICTNESS], [STRETCH], [NOISE]], (3, len(arrival)))
        return cls(strictness + DRIFT * (arrival - 0.5), np.exp(stretch), np.exp(noise))

    def of(self, users: Indexes) -> _Habits:
        """The habits of some users."""
        return _Habits(*(each[users] for each in self))

    def limits(self, common: Floats) -> Floats:
        """Each user's own limits between the scores, in units of their noise, from the common ones."""
        strictness, stretch, noise = (each[:, None] for each in self)
        return np.asarray((common * stretch + strictness) / noise)


def _common_limits(rng: np.random.Generator, liking: Floats, habits: _Habits, n_scores: int) -> Floats:
    """The limits that give the scores their usual shares in a draw made for this alone.

    The share of the lower x of the scale is 1 − (1 − x^2.6)^1.8: of five scores 4 is then the most frequent
    with a third, and 1 the rarest.
    """
    shares = 1 - (1 - (np.arange(1, n_scores) / n_scores) ** 2.6) ** 1.8
    felt = liking + habits.noise * rng.logistic(size=len(liking))
    return np.asarray(np.quantile((felt - habits.strictness) / habits.stretch, shares))


def _drawn(rng: np.random.Generator, truth: Truth, users: Indexes, items: Indexes) -> NDArray[np.uint8]:
    """A score's place in the scale for each pair, by its probabilities."""
    drawn = np.empty(len(users), dtype=np.uint8)
    for part in _parts(len(users)):
        below = truth._at_most(users[part], items[part])
        drawn[part] = (below < rng.random(len(below))[:, None]).sum(axis=1)
    return drawn


def _dot(left: Floats, right: Floats) -> Floats:
    return np.asarray(np.einsum("nk,nk->n", left, right))


def _parts(n: int) -> Iterator[slice]:
    """Slices that together are all n."""
    return (slice(start, start + PART) for start in range(0, n, PART))
