"""What a fit tells while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration that has just ended.

    `objective` is the one the iteration started from; what it reached is known when the next one sweeps
    over the data. `validation` is the log-loss on the validation part, or None.
    """

    number: int
    total: int
    objective: float
    validation: float | None


Callback = Callable[[Iteration], object]
"""Called after each iteration; returning True ends the fit there."""

Progress = Callable[[float], object]
"""Called about twenty times a second with the share of the fit that is done."""
