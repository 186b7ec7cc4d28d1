"""java.util.Random, whose numbers made the published split and initial factors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MULTIPLIER = 0x5DEECE66D
INCREMENT = 0xB
MASK = (1 << 48) - 1


class JavaRandom:
    """A linear congruential generator of 48 bits: x ← (x · 0x5DEECE66D + 0xB) mod 2⁴⁸.

    >>> JavaRandom(43).floats(2).round(4)
    array([0.7275, 0.3237], dtype=float32)
    """

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ MULTIPLIER) & MASK

    def floats(self, n: int) -> NDArray[np.float32]:
        """The next n of `nextFloat`: 24 bits each."""
        return (self._next(n) >> np.uint64(24)).astype(np.float32) / np.float32(1 << 24)

    def doubles(self, *shape: int) -> NDArray[np.float64]:
        """The next numbers of `nextDouble`, 26 and 27 bits of two draws, in the order of a C array."""
        draws = self._next(2 * int(np.prod(shape))).reshape(-1, 2)
        high, low = draws[:, 0] >> np.uint64(22), draws[:, 1] >> np.uint64(21)
        return (((high << np.uint64(27)) + low).astype(np.float64) * 2.0**-53).reshape(shape)

    def _next(self, n: int) -> NDArray[np.uint64]:
        """The next n states: x_j = a_j x_0 + c_j, with a and c built up by doubling."""
        a, c = np.array([MULTIPLIER], np.uint64), np.array([INCREMENT], np.uint64)
        while len(a) < n:
            a, c = np.concatenate([a, a * a[-1] & MASK]), np.concatenate([c, (a * c[-1] + c) & MASK])
        states: NDArray[np.uint64] = (a[:n] * np.uint64(self._state) + c[:n]) & np.uint64(MASK)
        if n:
            self._state = int(states[-1])
        return states
