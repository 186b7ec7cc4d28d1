"""Whether probabilities are kept: whether what is said to be 70 % sure happens in 70 % of the cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bemf.errors import DataError, ParameterError
from bemf.forecast import Forecast
from bemf.metrics.prediction import predictions
from bemf.metrics.reliability import reliabilities
from bemf.metrics.truth import Floats, Truth, expected
from bemf.words import listed

Binning = Literal["width", "mass"]


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram:
    """What was said to be how likely, and how often it came; one entry for each bin.

    Attributes
    ----------
    edges : array
        Where the bins begin and end; one more than there are bins. A bin holds its upper edge.
    predicted, observed : arrays
        The mean probability that was said, and the share of the cases in which it came (or the mean
        true probability, where that is known); NaN in an empty bin.
    counts : array of int64
        How many cases are in each bin.
    """

    edges: Floats
    predicted: Floats
    observed: Floats
    counts: NDArray[np.int64]

    @property
    def ece(self) -> float:
        """The expected calibration error: the mean distance of observed from predicted, weighted by counts."""
        filled = self.counts > 0
        gaps = np.abs(self.predicted - self.observed)[filled]
        return float(np.average(gaps, weights=self.counts[filled])) if filled.any() else float("nan")


@dataclass(frozen=True, eq=False)
class ReliabilityHistogram:
    """How many pairs have which reliability; `unknown` pairs have none and are in no bin."""

    edges: Floats
    counts: NDArray[np.int64]
    unknown: int


def ece(
    actual: Truth,
    predicted: Forecast | ArrayLike,
    reliability: ArrayLike | None = None,
    *,
    of: Literal["mode", "scores"] | float = "mode",
    like: float | None = None,
    n_bins: int = 15,
    binning: Binning = "width",
) -> float:
    """The expected calibration error, of known pairs: how far apart a `reliability_diagram` and its diagonal are.

    Parameters are those of `reliability_diagram`; of="scores" is the mean over the scores of the scale
    ("classwise").

    >>> round(ece([4, 5, 3, 1], [4, 5, 3, 3], [0.9, 0.9, 0.6, 0.6]), 4)
    0.1
    """
    options: dict[str, Any] = {"like": like, "n_bins": n_bins, "binning": binning}
    if of == "scores" and like is None and isinstance(predicted, Forecast):
        return float(np.mean([ece(actual, predicted, of=score, **options) for score in predicted.scores]))
    return reliability_diagram(actual, predicted, reliability, of=of, **options).ece  # type: ignore[arg-type]


def reliability_diagram(
    actual: Truth,
    predicted: Forecast | ArrayLike,
    reliability: ArrayLike | None = None,
    *,
    of: Literal["mode"] | float = "mode",
    like: float | None = None,
    n_bins: int = 15,
    binning: Binning = "width",
) -> ReliabilityDiagram:
    """What was said to be how likely against how often it came, in bins; of known pairs, withheld or not.

    Parameters
    ----------
    actual : the ratings that came, or a `Forecast` that holds their true probabilities
    predicted, reliability : a `Forecast`, or predictions and the probability of each that it is right
    of : "mode", whether the most likely score comes as often as said, or a score, whether that one does
    like : a rating; instead of a single score, whether one of at least this comes as often as said
    binning : bins of equal "width" on 0 to 1, or of equal "mass" (number of pairs)

    >>> diagram = reliability_diagram([4, 5, 3, 1], [4, 5, 3, 3], [0.9, 0.9, 0.6, 0.6], n_bins=2)
    >>> diagram.predicted, diagram.observed, diagram.counts
    (array([ nan, 0.75]), array([ nan, 0.75]), array([0, 4]))
    """
    said, event = _said(predicted, reliability, of, like)
    came = expected(actual, len(said), event)
    known = ~np.isnan(said)
    return _binned(said[known], came[known], n_bins, binning)


def reliability_histogram(predicted: Forecast | ArrayLike, *, n_bins: int = 20) -> ReliabilityHistogram:
    """How many pairs a `Forecast` knows with which reliability; or an array of reliabilities, NaN if unknown.

    >>> reliability_histogram([0.3, 0.8, 1.0, np.nan], n_bins=2).counts
    array([1, 2])
    """
    trust = _of_mode(predicted)[0] if isinstance(predicted, Forecast) else np.asarray(predicted, dtype=np.float64)
    known = trust[~np.isnan(trust)]
    edges = _edges(known, n_bins, "width")
    return ReliabilityHistogram(edges, np.bincount(_places(known, edges), minlength=n_bins), len(trust) - len(known))


# -- what is said ----------------------------------------------------------------------------------


def _said(
    predicted: Forecast | ArrayLike, reliability: ArrayLike | None, of: Any, like: float | None
) -> tuple[Floats, Callable[[Any], NDArray[np.bool_]]]:
    """The probability that was said for each pair, and which ratings it was said of."""
    if not isinstance(predicted, Forecast):
        return _of_arrays(predicted, reliability, of, like)
    if reliability is not None:
        raise DataError("a Forecast has its own reliability; leave the other out")
    if like is not None:
        if of != "mode":
            raise ParameterError(f"of={of!r} and like={like!r} ask for two things; leave one out")
        return predicted.p_like(like), lambda rating: rating >= like
    if of == "mode":
        trust, mode = _of_mode(predicted)
        return trust, lambda rating: rating == mode
    if isinstance(of, str) or of not in predicted.scores:
        raise ParameterError(f"of must be 'mode' or a score of the scale, {listed(predicted.scores)}; got {of!r}")
    return predicted.probabilities[:, predicted.scores == of][:, 0].astype(np.float64), lambda rating: rating == of


def _of_arrays(
    predicted: ArrayLike, reliability: ArrayLike | None, of: Any, like: float | None
) -> tuple[Floats, Callable[[Any], NDArray[np.bool_]]]:
    if of != "mode" or like is not None:
        raise DataError(
            "predictions alone have no probabilities of other ratings; give a Forecast, or leave of and like out"
        )
    answer = predictions(predicted)
    return np.where(np.isnan(answer), np.nan, reliabilities(answer, reliability)), lambda rating: rating == answer


def _of_mode(forecast: Forecast) -> tuple[Floats, Floats]:
    """The mode of each known pair and its probability, whatever the forecast's own point and threshold are."""
    plain = replace(forecast, point="mode", min_reliability=0.0)
    return np.where(np.isnan(plain.prediction), np.nan, plain.reliability), plain.prediction


# -- bins ------------------------------------------------------------------------------------------


def _binned(said: Floats, came: Floats, n_bins: int, binning: Binning) -> ReliabilityDiagram:
    edges = _edges(said, n_bins, binning)
    place = _places(said, edges)
    counts = np.bincount(place, minlength=n_bins)
    totals = (np.bincount(place, weights=weights, minlength=n_bins) for weights in (said, came))
    predicted, observed = (np.divide(total, counts, np.full(n_bins, np.nan), where=counts > 0) for total in totals)
    return ReliabilityDiagram(edges, predicted, observed, counts)


def _edges(said: Floats, n_bins: int, binning: Binning) -> Floats:
    if n_bins < 1:
        raise ParameterError(f"n_bins must be at least 1; got {n_bins}")
    if binning not in ("width", "mass"):
        raise ParameterError(f"binning must be 'width' or 'mass'; got {binning!r}")
    steps = np.arange(n_bins + 1)
    if binning == "width" or len(said) == 0:
        return steps / n_bins
    return np.sort(said)[np.maximum(steps * len(said) // n_bins - 1, 0)]


def _places(said: Floats, edges: Floats) -> NDArray[np.intp]:
    """The bin of each; what rounding put beyond an end belongs to the bin at that end."""
    return np.searchsorted(edges[1:-1], said)
