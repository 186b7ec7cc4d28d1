"""Data sets by name, and ways to split them."""

from bemf.datasets.registry import load
from bemf.datasets.splits import by_time, cf4j, holdout, k_fold, leave_n_out
from bemf.datasets.synthetic import synthetic

__all__ = ["by_time", "cf4j", "holdout", "k_fold", "leave_n_out", "load", "synthetic"]
