"""How good predictions and their reliabilities are.

Every function takes the true ratings first: an array or `Ratings`. The second is an array or a
`Forecast`; predictions that are NaN, unknown or withheld, are left out of errors and counted by `coverage`.
"""

from bemf.metrics.prediction import accuracy, coverage, log_loss, mae, rmse
from bemf.metrics.reliability import by_coverage, by_threshold, rpi

__all__ = ["accuracy", "by_coverage", "by_threshold", "coverage", "log_loss", "mae", "rmse", "rpi"]
