"""Hyperparameters: each written once, with its range, as a field of its model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Self, dataclass_transform

from bemf.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Range:
    """What values a hyperparameter may take."""

    kind: type | None = None
    low: float | None = None
    high: float | None = None
    above: float | None = None
    choices: tuple[Any, ...] = ()
    optional: bool = False

    def check(self, name: str, value: Any) -> None:
        """Refuses a value out of range, saying what the range is."""
        if (value is None and self.optional) or any(value is each or same(value, each) for each in self.choices):
            return
        if self.choices:
            raise ParameterError(f"{name} must be {' or '.join(map(repr, self.choices))}; got {value!r}")
        if self.kind is not None and (isinstance(value, bool) or not isinstance(value, self.kind)):
            raise ParameterError(f"{name} must be {self}; got {value!r}")
        if self.kind is not None and not self._holds(value):
            raise ParameterError(f"{name} must be {self}; got {value!r}")

    def _holds(self, value: Any) -> bool:
        return bool(
            (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
            and math.isfinite(value)
        )

    def __str__(self) -> str:
        words = ["a whole number" if self.kind is Integral else "a number"]
        if self.above is not None:
            words.append(f"above {self.above:g}")
        if self.low is not None and self.high is not None:
            words.append(f"from {self.low:g} to {self.high:g}")
        elif self.low is not None:
            words.append(f"of at least {self.low:g}")
        return " ".join(words)


def same(value: Any, choice: Any) -> bool:
    """Whether a value is a choice, and no number or array that happens to be equal to it."""
    return isinstance(value, type(choice)) and bool(value == choice)


def whole(*, default: int | None, low: int, high: int | None = None) -> Any:
    """A whole number; None, where it is the default, leaves the choice to the model."""
    return field(default=default, metadata={"range": Range(Integral, low=low, high=high, optional=default is None)})


def number(*, default: float | None, low: float | None = None, above: float | None = None) -> Any:
    """A number; None, where it is the default, leaves the choice to the model."""
    return field(default=default, metadata={"range": Range(Real, low=low, above=above, optional=default is None)})


def choice(*choices: Any, default: Any) -> Any:
    """One of a few values."""
    return field(default=default, metadata={"range": Range(choices=choices)})


def anything(*, default: Any) -> Any:
    """Checked where it is used."""
    return field(default=default, metadata={"range": Range()})


@dataclass_transform(kw_only_default=True, field_specifiers=(whole, number, choice, anything))
class Configured:
    """Hyperparameters as keyword arguments, in scikit-learn's protocol; subclasses become dataclasses."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(kw_only=True, eq=False, repr=False)(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """The hyperparameters by name, as scikit-learn wants them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **parameters: Any) -> Self:
        """Changes hyperparameters; a name that is none is an error."""
        known = self.get_params()
        for name in parameters:
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def check_parameters(self) -> None:
        """Refuses hyperparameters out of their ranges."""
        for each in fields(self):  # type: ignore[arg-type]
            each.metadata["range"].check(each.name, getattr(self, each.name))

    def changed_parameters(self) -> dict[str, Any]:
        """The hyperparameters that are not their defaults, by name."""
        given = ((each.name, getattr(self, each.name), each.default) for each in fields(self))  # type: ignore[arg-type]
        return {name: value for name, value, default in given if not (value is default or same(value, default))}

    def __repr__(self) -> str:
        changed = [f"{name}={value!r}" for name, value in self.changed_parameters().items()]
        return f"{type(self).__name__}({', '.join(changed)})"
