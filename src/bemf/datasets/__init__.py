"""Data sets by name, ratings drawn from a known truth, and ways to split them."""

from bemf.datasets.films import demo
from bemf.datasets.places import cache_folder
from bemf.datasets.registry import available, load, titles
from bemf.datasets.splits import by_time, cf4j, holdout, k_fold, leave_n_out
from bemf.datasets.synthetic import synthetic

__all__ = [
    "available",
    "by_time",
    "cache_folder",
    "cf4j",
    "demo",
    "holdout",
    "k_fold",
    "leave_n_out",
    "load",
    "synthetic",
    "titles",
]
