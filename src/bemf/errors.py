"""Everything the library raises on purpose.

BemfError
├── DataError           ratings or ids that cannot be used as they are
├── ParameterError      a hyperparameter or option out of its range
├── NotFittedError      a model asked for answers before it was fitted
├── DivergenceError     a fit whose objective ran away
├── EngineError         an engine that is missing or lacks a kernel
├── ModelFileError      a saved model that is damaged, foreign or too new
└── MissingExtraError   an optional library that is needed and not installed
"""

from __future__ import annotations


class BemfError(Exception):
    """The root of all errors raised here on purpose."""


class DataError(BemfError, ValueError):
    """Ratings or ids that cannot be used as they are; says how many, which, and what to do."""


class ParameterError(BemfError, ValueError):
    """A hyperparameter or option out of its range."""


class NotFittedError(BemfError, ValueError, AttributeError):
    """A model asked for answers before it was fitted."""


class DivergenceError(BemfError, ArithmeticError):
    """A fit whose objective ran away; names the iteration and the remedy."""


class EngineError(BemfError, RuntimeError):
    """An engine that is missing or lacks a kernel; names those that have it."""


class ModelFileError(BemfError, OSError):
    """A saved model that is damaged, foreign or too new."""


class MissingExtraError(BemfError, ImportError):
    """An optional library that is needed and not installed; says how to install it."""
