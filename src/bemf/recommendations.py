"""What to recommend: the best items of each user, and items like others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bemf.engines import Wish
from bemf.errors import ParameterError
from bemf.forecast import Forecast, PointForecast
from bemf.titles import shown, titles_of
from bemf.words import counted, table

if TYPE_CHECKING:
    import pyarrow as pa

    from bemf.progress import Progress
    from bemf.recommender import Recommender
    from bemf.vocabulary import Vocabulary

By = Literal["p_like", "mean"]
Frame = Literal["pandas", "polars", "pyarrow"]
SHOWN = 20
AT_ONCE = 512  # items that are compared with all others together
UPPER = 0.75  # of the scale: who rates as high as this likes the item


@dataclass(frozen=True, eq=False)
class Recommendations:
    """Items for users, best first, each with its forecast.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2, 3], [1, 2, 1, 2, 1], [1, 2, 1, 2, 1])
    >>> best = bemf.BeMF(random_state=0).fit(ratings).recommend(3)
    >>> best
    Recommendations(1 item for 1 user, by p_like of 2)
    >>> best.to_frame("pyarrow").column_names
    ['user', 'item', 'rank', 'prediction', 'reliability', 'p_like']

    Attributes
    ----------
    forecast : Forecast
        Of the pairs of a user and a recommended item.
    rank : array of int64
        From 1 for each user.
    like : float
        The lowest score that counts as liking.
    by : "p_like" or "mean"
        What they are ordered by.
    unknown : Arrow array
        The users asked for who have no rating in training; nothing is recommended to them.
    titles : Arrow array, or None
        The items' titles.
    """

    forecast: Forecast
    rank: NDArray[np.int64]
    like: float
    by: By
    unknown: pa.Array
    titles: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def users(self) -> pa.Array:
        """Whom each is for."""
        return self.forecast.users

    @property
    def items(self) -> pa.Array:
        """What is recommended."""
        return self.forecast.items

    @property
    def prediction(self) -> NDArray[np.float64]:
        """The rating to expect."""
        return self.forecast.prediction

    @property
    def reliability(self) -> NDArray[np.float64]:
        """ρ, the probability that the prediction is right."""
        return self.forecast.reliability

    @property
    def p_like(self) -> NDArray[np.float64]:
        """The probability of a rating of at least `like`."""
        return self.forecast.p_like(self.like)

    def __repr__(self) -> str:
        n_users = int(np.count_nonzero(self.rank == 1))
        unknown = f"; {counted(len(self.unknown), 'user')} not known" if len(self.unknown) else ""
        of = f"p_like of {self.like:g}" if self.by == "p_like" else "mean"
        return f"Recommendations({counted(len(self), 'item')} for {counted(n_users, 'user')}, by {of}{unknown})"

    def __str__(self) -> str:
        """The first rows as a table."""
        columns = self._first_rows()
        for name in ("reliability", "p_like"):
            columns[name] = [f"{one:.2f}" for one in columns[name]]
        return table(columns, len(self) - SHOWN)

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        from bemf import html

        columns = self._first_rows()
        for name in ("reliability", "p_like"):
            columns[name] = [html.share(one) for one in columns[name]]
        numbers = ["rank", "prediction", "reliability", "p_like"]
        return html.card(repr(self), html.table(columns, numbers, len(self) - SHOWN))

    def _first_rows(self) -> dict[str, list[Any]]:
        n = min(len(self), SHOWN)
        return {
            "user": [str(one) for one in self.users[:n].to_pylist()],
            "rank": [str(one) for one in self.rank[:n]],
            "item": shown(self.items[:n], self.titles[:n] if self.titles is not None else None),
            "prediction": [f"{one:g}" for one in self.prediction[:n]],
            "reliability": self.reliability[:n].tolist(),
            "p_like": self.p_like[:n].tolist(),
        }

    def to_frame(self, kind: Frame = "pandas") -> Any:
        """One row a recommendation: user, item, title where given, rank, prediction, reliability, p_like."""
        from bemf.files import to_frame

        title = {"title": self.titles} if self.titles is not None else {}
        columns = {"user": self.users, "item": self.items, **title, "rank": self.rank, "prediction": self.prediction}
        return to_frame(columns | {"reliability": self.reliability, "p_like": self.p_like}, kind)


@dataclass(frozen=True, eq=False)
class Similar:
    """Items like others, most alike first.

    Attributes
    ----------
    items, similar : Arrow arrays
        The item asked for, and one like it.
    rank : array of int64
        From 1 for each item asked for.
    similarity : array
        The cosine of the angle between their factors, of all scores: 1 for the same tastes, −1 for opposite ones.
    unknown : Arrow array
        The items asked for that have no rating in training.
    titles, similar_titles : Arrow arrays, or None
    """

    items: pa.Array
    similar: pa.Array
    rank: NDArray[np.int64]
    similarity: NDArray[np.float64]
    unknown: pa.Array
    titles: pa.Array | None = None
    similar_titles: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.rank)

    def __repr__(self) -> str:
        unknown = f"; {counted(len(self.unknown), 'item')} not known" if len(self.unknown) else ""
        of = counted(int(np.count_nonzero(self.rank == 1)), "other")
        return f"Similar({counted(len(self), 'item')} like {of}{unknown})"

    def __str__(self) -> str:
        """The first rows as a table."""
        n = min(len(self), SHOWN)
        titles = [each[:n] if each is not None else None for each in (self.titles, self.similar_titles)]
        columns = {
            "item": shown(self.items[:n], titles[0]),
            "rank": [str(one) for one in self.rank[:n]],
            "similar": shown(self.similar[:n], titles[1]),
            "similarity": [f"{one:.2f}" for one in self.similarity[:n]],
        }
        return table(columns, len(self) - n)

    def to_frame(self, kind: Frame = "pandas") -> Any:
        """One row a pair: item, similar, similar_title where given, rank, similarity."""
        from bemf.files import to_frame

        title = {"similar_title": self.similar_titles} if self.similar_titles is not None else {}
        columns = {"item": self.items, "similar": self.similar, **title}
        return to_frame(columns | {"rank": self.rank, "similarity": self.similarity}, kind)


# -- recommending ------------------------------------------------------------------------------------


def recommend(
    model: Recommender,
    users: Any,
    n: int,
    *,
    like: float | None,
    by: By | None,
    min_reliability: float,
    exclude_seen: bool,
    items: Any,
    titles: Any,
    progress: Progress | None,
) -> Recommendations:
    """See `Recommender.recommend`."""
    import pyarrow as pa

    if n < 1:
        raise ParameterError(f"n must be at least 1; got {n}")
    by = _order(model, by, min_reliability)
    like = usual_like(model.classes_) if like is None else like
    asked = _asked(users, model.users_, model.user_counts_)
    index = _known(asked, model.users_, model.user_counts_)
    candidates = _known(_asked(items, model.items_, model.item_counts_), model.items_, model.item_counts_)
    candidates = np.sort(candidates[candidates >= 0])
    wish = Wish(
        n=min(n, max(len(candidates), 1)),
        candidates=candidates,
        worths=(model.classes_ >= like).astype(np.float64) if by == "p_like" else model.classes_.astype(np.float64),
        min_reliability=min_reliability,
        min_worth=min_reliability if by == "p_like" else -np.inf,
        seen=model.seen() if exclude_seen else None,
    )
    best = model.rank(index, wish, progress)
    row, place = np.nonzero(best >= 0)
    pairs = pa.table({"user": asked.take(pa.array(row)), "item": model.items_.take(best[row, place])})
    forecast, rank = _in_order(model.forecast(pairs), row, wish)
    unknown = asked.filter(pa.array(index < 0))
    return Recommendations(forecast, rank, like, by, unknown, _titles(forecast.items, titles))


def _order(model: Recommender, by: By | None, min_reliability: float) -> By:
    """What to order by, if the model has what it takes."""
    if by is None:
        by = "p_like" if model.gives == "probabilities" else "mean"
    if by not in ("p_like", "mean"):
        raise ParameterError(f"by must be 'p_like' or 'mean'; got {by!r}")
    if by == "p_like" and model.gives == "points":
        raise ParameterError(f"{type(model).__name__} predicts points, no probabilities of liking; use by='mean'")
    if min_reliability > 0 and not model.is_reliable:
        raise ParameterError(f"{type(model).__name__} has no reliability; give it one: bemf.Reliable(model)")
    return by


def usual_like(scores: NDArray[np.float64]) -> float:
    """The lowest score in the upper quarter of a scale.

    >>> usual_like(np.array([1, 2, 3, 4, 5])), usual_like(np.array([0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4]))
    (4.0, 3.5)
    """
    return float(scores[scores >= scores[0] + UPPER * (scores[-1] - scores[0])][0])


def _in_order(forecast: Forecast, row: NDArray[np.int64], wish: Wish) -> tuple[Forecast, NDArray[np.int64]]:
    """The final say is the forecast's, whose rounding may differ from the ranking's."""
    worth = forecast.points if isinstance(forecast, PointForecast) else forecast.probabilities @ wish.worths
    order = np.lexsort((-worth, row))
    sure = ~(forecast.reliability[order] < wish.min_reliability)  # one that is not known is no obstacle
    kept = order[sure & (worth[order] >= wish.min_worth)]
    row = row[kept]
    starts = np.flatnonzero(np.append(True, row[1:] != row[:-1])) if len(row) else np.empty(0, dtype=np.int64)
    rank = np.arange(len(row)) - np.repeat(starts, np.diff(np.append(starts, len(row)))) + 1
    return forecast.take(kept), rank


def similar_items(model: Recommender, items: Any, n: int, titles: Any) -> Similar:
    """See `Recommender.similar_items`."""
    import pyarrow as pa

    if n < 1:
        raise ParameterError(f"n must be at least 1; got {n}")
    asked = _asked(items, model.items_, model.item_counts_)
    index = _known(asked, model.items_, model.item_counts_)
    rated = np.flatnonzero(model.item_counts_ > 0)
    best, similarity = _nearest(model.item_vectors()[rated], np.searchsorted(rated, index[index >= 0]), n)
    of = asked.filter(pa.array(index >= 0)).take(pa.array(np.repeat(np.arange(len(best)), best.shape[1])))
    similar = model.items_.take(rated[best.ravel()])
    return Similar(
        items=of,
        similar=similar,
        rank=np.tile(np.arange(1, best.shape[1] + 1), len(best)),
        similarity=similarity.ravel(),
        unknown=asked.filter(pa.array(index < 0)),
        titles=_titles(of, titles),
        similar_titles=_titles(similar, titles),
    )


def _nearest(vectors: NDArray[Any], asked: NDArray[Any], n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows nearest to each of those asked for, by cosine, and how near they are."""
    n = min(n, len(vectors) - 1)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.where(length > 0, length, 1)
    best = np.empty((len(asked), n), dtype=np.int64)
    for start in range(0, len(asked), AT_ONCE):
        rows = asked[start : start + AT_ONCE]
        cosine = directions[rows] @ directions.T
        cosine[np.arange(len(rows)), rows] = -np.inf
        best[start : start + len(rows)] = np.argsort(-cosine, axis=1, kind="stable")[:, :n]
    similarity = np.einsum("ac,anc->an", directions[asked], directions[best], dtype=np.float64)
    return best, similarity.clip(-1, 1)


def _asked(given: Any, vocabulary: Vocabulary, counts: NDArray[np.int64]) -> pa.Array:
    """Ids asked for: one, many, or if none are given all that have ratings; each once."""
    from bemf.vocabulary import as_ids

    if given is None:
        return vocabulary.take(np.flatnonzero(counts > 0))
    one = isinstance(given, str | int | np.integer)
    return as_ids([given] if one else given, vocabulary.what).unique()


def _known(ids: pa.Array, vocabulary: Vocabulary, counts: NDArray[np.int64]) -> NDArray[np.int32]:
    """Inner indexes, −1 where there is no rating in training."""
    index = vocabulary.index(ids)
    return np.where(np.append(counts, 0)[index] > 0, index, -1).astype(np.int32)


def _titles(items: pa.Array, given: Any) -> pa.Array | None:
    return None if given is None else titles_of(items, given)
