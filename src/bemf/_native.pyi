from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Threads:
    def __init__(self, n: int) -> None: ...

def instruction_sets() -> list[str]: ...
def blocks(isa: str, n_scores: int, exact: bool) -> list[int]: ...
def factors(rows: int, columns: int, lanes: int, exact: bool) -> NDArray[Any]: ...
def check_rows(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], scores: NDArray[np.uint8], n_columns: int, n_scores: int
) -> None: ...
def group(keys: NDArray[np.int32], n_keys: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def bernoulli_sweep(
    isa: str,
    solver: int,
    activation: int,
    measured: bool,
    n_scores: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    scores: NDArray[np.uint8],
    self: Sequence[NDArray[Any]],
    other: Sequence[NDArray[Any]],
    offset: NDArray[Any] | None,
    learning_rate: float,
    regularization: float,
    threads: Threads,
    progress: Callable[[float], object] | None,
) -> tuple[float, float]: ...
def bernoulli_forecast(
    isa: str,
    activation: int,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    user_factors: Sequence[NDArray[Any]],
    item_factors: Sequence[NDArray[Any]],
    offset: NDArray[Any] | None,
    probabilities: NDArray[Any],
    threads: Threads,
    progress: Callable[[float], object] | None,
) -> None: ...
def bernoulli_rank(
    isa: str,
    activation: int,
    users: NDArray[np.int32],
    candidates: NDArray[np.int32],
    user_factors: Sequence[NDArray[Any]],
    item_factors: Sequence[NDArray[Any]],
    offset: NDArray[Any] | None,
    worths: NDArray[Any],
    seen_indptr: NDArray[np.int64] | None,
    seen: NDArray[np.int32] | None,
    min_reliability: float,
    min_worth: float,
    out: NDArray[np.int32],
    threads: Threads,
    progress: Callable[[float], object] | None,
) -> None: ...
def point_lanes(isa: str, n_columns: int, exact: bool) -> int: ...
def point_sweep(
    isa: str,
    solver: int,
    measured: bool,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    scores: NDArray[np.uint8],
    self: NDArray[Any],
    other: NDArray[Any],
    targets: NDArray[Any],
    rates: NDArray[Any],
    regularization: float,
    threads: Threads,
    progress: Callable[[float], object] | None,
) -> tuple[float, float]: ...
def svdpp_sweep(
    isa: str,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    scores: NDArray[np.uint8],
    users: NDArray[Any],
    items: NDArray[Any],
    implicit: NDArray[Any],
    sums: NDArray[Any] | None,
    targets: NDArray[Any],
    user_rates: NDArray[Any],
    item_rates: NDArray[Any],
    implicit_rates: NDArray[Any],
    regularization: float,
    moves_implicit: bool,
    threads: Threads,
    progress: Callable[[float], object] | None,
) -> float: ...
def point_forecast(
    isa: str,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    user_factors: NDArray[Any],
    item_factors: NDArray[Any],
    predictions: NDArray[Any],
    threads: Threads,
    progress: Callable[[float], object] | None,
) -> None: ...
def simplex_sweep(
    isa: str,
    dirichlet: bool,
    moves: bool,
    n_scores: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    scores: NDArray[np.uint8],
    self: NDArray[Any],
    other: NDArray[Any],
    learning_rate: float,
    regularization: float,
    log_hit: float,
    log_miss: float,
    threads: Threads,
    progress: Callable[[float], object] | None,
) -> tuple[float, float]: ...
def simplex_forecast(
    isa: str,
    dirichlet: bool,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    user_factors: NDArray[Any],
    item_factors: NDArray[Any],
    probabilities: NDArray[Any],
    threads: Threads,
    progress: Callable[[float], object] | None,
) -> None: ...
