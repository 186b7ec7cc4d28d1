from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Threads:
    def __init__(self, n: int) -> None: ...

def instruction_sets() -> list[str]: ...
def lanes(isa: str, n_scores: int, exact: bool) -> int: ...
def factors(blocks: int, rows: int, columns: int, lanes: int, exact: bool) -> NDArray[Any]: ...
def check_rows(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], scores: NDArray[np.uint8], n_columns: int, n_scores: int
) -> None: ...
def group(keys: NDArray[np.int32], n_keys: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def bernoulli_sweep(
    isa: str,
    solver: int,
    activation: int,
    biased: bool,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    scores: NDArray[np.uint8],
    self: NDArray[Any],
    other: NDArray[Any],
    offset: NDArray[Any],
    one_hot: NDArray[Any],
    learning_rate: float,
    regularization: float,
    threads: Threads,
    progress: Callable[[float], object] | None,
) -> tuple[float, float]: ...
def bernoulli_forecast(
    isa: str,
    activation: int,
    biased: bool,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    user_factors: NDArray[Any],
    item_factors: NDArray[Any],
    offset: NDArray[Any],
    probabilities: NDArray[Any],
    threads: Threads,
    progress: Callable[[float], object] | None,
) -> None: ...
