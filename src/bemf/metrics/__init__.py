"""How good predictions and their reliabilities are.

Every function takes the truth first, then the predictions: an array or a `Forecast`.

The truth is the ratings that came, an array or `Ratings`. Where it is known how likely each rating was, as
with synthetic data, it can be a `Forecast` that holds these probabilities: each metric that is a mean over
the pairs then takes, in place of what a pair lost by the rating that came, what it loses on average. `rpi` and
`confusion` are about ratings that came, and refuse it.

Predictions that are NaN, unknown or withheld, are left out of errors and counted by `coverage`. What
measures probabilities (`brier`, `ece`, `log_loss`, `reliability_diagram`, `reliability_histogram`) takes all
known pairs, also those whose prediction is withheld.
"""

from bemf.metrics.calibration import ece, reliability_diagram, reliability_histogram
from bemf.metrics.confusion_matrix import confusion
from bemf.metrics.prediction import accuracy, coverage, mae, r2, rmse
from bemf.metrics.probability import brier, log_loss
from bemf.metrics.reliability import by_coverage, by_threshold, rpi
from bemf.metrics.scorers import scorer

__all__ = [
    "accuracy",
    "brier",
    "by_coverage",
    "by_threshold",
    "confusion",
    "coverage",
    "ece",
    "log_loss",
    "mae",
    "r2",
    "reliability_diagram",
    "reliability_histogram",
    "rmse",
    "rpi",
    "scorer",
]
