"""ψ: what turns the product of two factors into a probability."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bemf.errors import ParameterError

Floats = NDArray[np.float64]


class Activation(ABC):
    """A smooth increasing function from the reals to (0, 1), given by value and derivative.

    The engines know the built-in ones by name; one of your own runs on the reference engine.

    >>> class Softsign(Activation):
    ...     def value(self, x):
    ...         return 0.5 + 0.5 * x / (1 + np.abs(x))
    ...     def derivative(self, x):
    ...         return 0.5 / (1 + np.abs(x)) ** 2
    >>> float(Softsign().value(np.array(1.0)))
    0.75
    """

    name: str = "custom"

    @abstractmethod
    def value(self, x: Floats) -> Floats:
        """ψ(x)."""

    @abstractmethod
    def derivative(self, x: Floats) -> Floats:
        """ψ'(x)."""

    def complement(self, x: Floats) -> Floats:
        """1 − ψ(x); override it where the difference would lose digits."""
        return 1 - self.value(x)


class _Symmetric(Activation):
    """ψ(−x) = 1 − ψ(x)."""

    def complement(self, x: Floats) -> Floats:
        return self.value(-x)


class Logistic(_Symmetric):
    """1 / (1 + exp(−x)), the one of all the paper's experiments."""

    name = "logistic"

    def value(self, x: Floats) -> Floats:
        small = np.exp(-np.abs(x))
        return np.asarray(np.where(x >= 0, 1, small) / (1 + small))

    def derivative(self, x: Floats) -> Floats:
        return self.value(x) * self.value(-x)


class Probit(_Symmetric):
    """The normal distribution function."""

    name = "probit"

    def value(self, x: Floats) -> Floats:
        return np.asarray(0.5 * _erfc(-x / math.sqrt(2)))

    def derivative(self, x: Floats) -> Floats:
        return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


class Cauchit(_Symmetric):
    """The Cauchy distribution function, with the heaviest tails of the three."""

    name = "cauchit"

    def value(self, x: Floats) -> Floats:
        return np.asarray(np.arctan2(1.0, -x) / math.pi)

    def derivative(self, x: Floats) -> Floats:
        return 1 / (math.pi * (1 + x * x))


_erfc: Callable[[Any], Any] = np.vectorize(math.erfc, otypes=[np.float64])

BUILT_IN: dict[str, Activation] = {each.name: each for each in (Logistic(), Probit(), Cauchit())}


def activation(given: str | Activation) -> Activation:
    """The activation of a name, or the one given.

    >>> float(activation("logistic").value(np.array(0.0)))
    0.5
    """
    if isinstance(given, Activation):
        return given
    if isinstance(given, str) and given in BUILT_IN:
        return BUILT_IN[given]
    raise ParameterError(f"activation must be {', '.join(BUILT_IN)} or an Activation; got {given!r}")
