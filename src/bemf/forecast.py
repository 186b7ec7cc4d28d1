"""What a model says of pairs of users and items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

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
    """

    users: pa.Array
    items: pa.Array
    probabilities: NDArray[Any]
    scores: NDArray[np.float64]
    known: NDArray[np.bool_]
    point: Point = "mode"
    min_reliability: float = 0.0

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
        return f"{len(self):,} pairs, {shown:,} predicted by {self.point}{at_least}"

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
        """ρ: the probability of the most likely score; 0 where the pair is not known."""
        largest = np.take_along_axis(self.probabilities, self._mode[:, None].astype(np.intp), axis=1)[:, 0]
        return np.nan_to_num(largest.astype(np.float64), nan=0.0)

    @cached_property
    def prediction(self) -> NDArray[np.float64]:
        """R̂: the predicted rating; NaN where the pair is not known or its reliability too low."""
        if self.point == "mean":
            value = self.probabilities @ self.scores
        else:
            value = self.scores[self._mode if self.point == "mode" else _median(self.probabilities)]
        answered = ~np.isnan(self.probabilities[:, 0]) & (self.reliability >= self.min_reliability)
        return np.where(answered, value, np.nan)

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
        return replace(self, users=users, items=items, probabilities=self.probabilities[rows], known=self.known[rows])

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
