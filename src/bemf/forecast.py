"""What a model says of pairs of users and items."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from bemf.errors import ParameterError
from bemf.words import table

if TYPE_CHECKING:
    import pyarrow as pa

Point = Literal["mode", "median", "mean"]
SHOWN = 10
POINTS: tuple[Point, ...] = ("mode", "median", "mean")


@dataclass(frozen=True, eq=False)
class Forecast:
    """Probabilities of every score for a list of pairs, and what follows from them.

    >>> import bemf
    >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
    >>> forecast = bemf.BeMF(random_state=0).fit(ratings).forecast([(1, 2), (1, 3)])
    >>> forecast.prediction
    array([ 2., nan])
    >>> forecast.known
    array([ True, False])
    >>> forecast.at_least(0.99).prediction
    array([nan, nan])

    Attributes
    ----------
    users, items : Arrow arrays
        The ids of the pairs.
    probabilities : array (pairs, scores)
        The paper's Φ; NaN where the pair is not known.
    scores : array
        The scale, ascending: what the columns of `probabilities` stand for.
    known : array of bool
        Whether both the user and the item have ratings in training.
    point : "mode", "median" or "mean"
        Which point of Φ is the prediction. The mode is most often right (and is the paper's), the median
        has the least absolute error, the mean the least squared error.
    min_reliability : float
        Predictions of a lower reliability are withheld (NaN).
    trust : array, or None
        How reliable the predictions are, if somebody knows it otherwise than from the probabilities.
    """

    users: pa.Array
    items: pa.Array
    probabilities: NDArray[Any]
    scores: NDArray[np.float64]
    known: NDArray[np.bool_]
    point: Point = "mode"
    min_reliability: float = 0.0
    trust: NDArray[np.float64] | None = None

    _by_pair: ClassVar[tuple[str, ...]] = ("probabilities", "known", "trust")

    def __post_init__(self) -> None:
        if self.point not in POINTS:
            raise ParameterError(f"point must be {', '.join(POINTS)}; got {self.point!r}")

    def __len__(self) -> int:
        return len(self.probabilities)

    def __repr__(self) -> str:
        return f"Forecast({self._summary()})"

    def __str__(self) -> str:
        """The first rows as a table."""
        columns = self._first_rows()
        columns["reliability"] = [f"{one:.2f}" for one in columns["reliability"]]
        return table(columns, len(self) - SHOWN)

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        from bemf import html

        columns = self._first_rows()
        columns["reliability"] = [html.share(one) for one in columns["reliability"]]
        shown = html.table(columns, ["prediction", "reliability"], len(self) - SHOWN)
        return html.card(f"Forecast: {self._summary()}", shown)

    def _summary(self) -> str:
        shown = int(np.count_nonzero(~np.isnan(self.prediction)))
        at_least = f" with reliability ≥ {self.min_reliability:g}" if self.min_reliability else ""
        by = f" by {self.point}" if not isinstance(self, PointForecast) else ""
        return f"{len(self):,} pairs, {shown:,} predicted{by}{at_least}"

    def _first_rows(self) -> dict[str, list[Any]]:
        n = min(len(self), SHOWN)
        answers = [
            f"{prediction:g}" if not np.isnan(prediction) else "withheld" if known else "unknown"
            for prediction, known in zip(self.prediction[:n], self.known[:n], strict=True)
        ]
        return {
            "user": [str(one) for one in self.users[:n].to_pylist()],
            "item": [str(one) for one in self.items[:n].to_pylist()],
            "prediction": answers,
            "reliability": self.reliability[:n].tolist(),
        }

    @cached_property
    def _mode(self) -> NDArray[np.uint8]:
        return _first_largest(self.probabilities)

    @cached_property
    def reliability(self) -> NDArray[np.float64]:
        """ρ: the probability of the most likely score, unless there is a `trust`; 0 where the pair is not known."""
        if self.trust is not None:
            return np.nan_to_num(self.trust, nan=0.0)
        largest = np.take_along_axis(self.probabilities, self._mode[:, None].astype(np.intp), axis=1)[:, 0]
        return np.nan_to_num(largest.astype(np.float64), nan=0.0)

    @cached_property
    def prediction(self) -> NDArray[np.float64]:
        """R̂: the predicted rating; NaN where the pair is not known or its reliability too low."""
        value = self._value
        return np.where(~np.isnan(value) & (self.reliability >= self.min_reliability), value, np.nan)

    @property
    def _value(self) -> NDArray[np.float64]:
        if self.point == "mean":
            value = self.probabilities @ self.scores
        else:
            value = self.scores[self._mode if self.point == "mode" else _median(self.probabilities)]
        return np.where(np.isnan(self.probabilities[:, 0]), np.nan, value)

    def at_least(self, min_reliability: float) -> Forecast:
        """The same forecast with predictions below a reliability withheld: the paper's threshold ϑ."""
        return replace(self, min_reliability=float(min_reliability))

    def by(self, point: Point) -> Forecast:
        """The same forecast with another point of Φ as the prediction."""
        return replace(self, point=point)

    def take(self, rows: NDArray[Any]) -> Forecast:
        """The same forecast of some of the pairs, by their positions."""
        import pyarrow as pa

        users, items = (ids.take(pa.array(rows)) for ids in (self.users, self.items))
        arrays = {name: getattr(self, name) for name in self._by_pair}
        chosen = {name: array[rows] for name, array in arrays.items() if array is not None}
        return replace(self, users=users, items=items, **chosen)

    def p_like(self, like: float) -> NDArray[np.float64]:
        """The probability of a rating of at least `like`; NaN where the pair is not known."""
        total = self.probabilities[:, self.scores >= like].sum(axis=1, dtype=np.float64)
        return np.where(np.isnan(self.probabilities[:, 0]), np.nan, total)

    def to_frame(self, kind: Literal["pandas", "polars", "pyarrow"] = "pandas", *, probabilities: bool = False) -> Any:
        """One row a pair: user, item, prediction, reliability, known, and if asked a column for each score.

        >>> import bemf
        >>> ratings = bemf.Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 1, 2])
        >>> bemf.BeMF(random_state=0).fit(ratings).forecast([(1, 2)]).to_frame("pyarrow").column_names
        ['user', 'item', 'prediction', 'reliability', 'known']
        """
        from bemf.files import to_frame

        columns = {
            "user": self.users,
            "item": self.items,
            "prediction": self.prediction,
            "reliability": self.reliability,
            "known": self.known,
        }
        if probabilities:
            columns |= {f"p_{score:g}": self.probabilities[:, d] for d, score in enumerate(self.scores)}
        return to_frame(columns, kind)


@dataclass(frozen=True, eq=False)
class PointForecast(Forecast):
    """A forecast of one number for each pair, of a model that gives no probabilities: these are NaN.

    Attributes
    ----------
    points : array
        The predictions; NaN where the pair is not known.

    >>> import pyarrow as pa
    >>> pairs = pa.array([1, 1]), pa.array([7, 8])
    >>> PointForecast.of(*pairs, np.array([3.6, np.nan]), np.array([3.0, 4.0]), np.array([True, False])).prediction
    array([3.6, nan])
    """

    points: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    _by_pair: ClassVar[tuple[str, ...]] = (*Forecast._by_pair, "points")

    @classmethod
    def of(
        cls,
        users: pa.Array,
        items: pa.Array,
        points: NDArray[Any],
        scores: NDArray[np.float64],
        known: NDArray[np.bool_],
        trust: NDArray[np.float64] | None = None,
    ) -> Self:
        """Points as they are."""
        nothing = np.broadcast_to(np.nan, (len(points), len(scores)))
        return cls(users, items, nothing, scores, known, trust=trust, points=points.astype(np.float64))

    @cached_property
    def reliability(self) -> NDArray[np.float64]:
        """As somebody else knows it; else NaN, and 0 where the pair is not known."""
        return super().reliability if self.trust is not None else np.where(self.known, np.nan, 0.0)

    @cached_property
    def prediction(self) -> NDArray[np.float64]:
        if self.trust is None:
            return self.points
        return np.where(self.reliability >= self.min_reliability, self.points, np.nan)

    def at_least(self, min_reliability: float) -> Forecast:
        if self.trust is None and min_reliability > 0:
            raise ParameterError("these predictions have no reliability; give their model one: bemf.Reliable(model)")
        return super().at_least(min_reliability)

    def by(self, point: Point) -> Forecast:
        raise ParameterError(f"these are points, not probabilities, which alone have a {point}")


def _first_largest(probabilities: NDArray[Any]) -> NDArray[np.uint8]:
    """The place of each row's largest, ties to the lowest score; column by column, as rows are short."""
    largest = probabilities[:, 0].copy()
    place = np.zeros(len(probabilities), dtype=np.uint8)
    for d in range(1, probabilities.shape[1]):
        better = probabilities[:, d] > largest
        place[better] = d
        np.copyto(largest, probabilities[:, d], where=better)
    return place


def _median(probabilities: NDArray[Any]) -> NDArray[np.uint8]:
    """The place of the lowest score with at least half of each row's probability at or below it."""
    place = np.zeros(len(probabilities), dtype=np.uint8)
    below = np.zeros(len(probabilities))
    for d in range(probabilities.shape[1] - 1):
        below += probabilities[:, d]
        place += below < 0.5
    return place
