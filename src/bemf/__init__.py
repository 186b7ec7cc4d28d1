"""Recommendations that say how sure they are."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bemf import datasets, metrics, plots
    from bemf.activations import Activation
    from bemf.errors import (
        BemfError,
        DataError,
        DivergenceError,
        EngineError,
        MissingExtraError,
        ModelFileError,
        NotFittedError,
        ParameterError,
    )
    from bemf.forecast import Forecast
    from bemf.models.bemf import BeMF
    from bemf.models.pmf import NMF, PMF, BiasedMF
    from bemf.models.simplex import DirMF, ResBeMF
    from bemf.models.svdpp import SVDpp
    from bemf.persistence import load
    from bemf.progress import Iteration
    from bemf.ratings import Ratings
    from bemf.recommendations import Recommendations, Similar
    from bemf.vocabulary import Vocabulary

__version__ = "0.1.0"

_HOME = {
    "Activation": "bemf.activations",
    "BeMF": "bemf.models.bemf",
    "BemfError": "bemf.errors",
    "BiasedMF": "bemf.models.pmf",
    "DataError": "bemf.errors",
    "DirMF": "bemf.models.simplex",
    "DivergenceError": "bemf.errors",
    "EngineError": "bemf.errors",
    "Forecast": "bemf.forecast",
    "Iteration": "bemf.progress",
    "MissingExtraError": "bemf.errors",
    "ModelFileError": "bemf.errors",
    "NMF": "bemf.models.pmf",
    "NotFittedError": "bemf.errors",
    "PMF": "bemf.models.pmf",
    "ParameterError": "bemf.errors",
    "Ratings": "bemf.ratings",
    "Recommendations": "bemf.recommendations",
    "ResBeMF": "bemf.models.simplex",
    "SVDpp": "bemf.models.svdpp",
    "Similar": "bemf.recommendations",
    "Vocabulary": "bemf.vocabulary",
    "datasets": "bemf.datasets",
    "load": "bemf.persistence",
    "metrics": "bemf.metrics",
    "plots": "bemf.plots",
}

__all__ = [  # noqa: RUF022 - in the order of sorted()
    "Activation",
    "BeMF",
    "BemfError",
    "BiasedMF",
    "DataError",
    "DirMF",
    "DivergenceError",
    "EngineError",
    "Forecast",
    "Iteration",
    "MissingExtraError",
    "ModelFileError",
    "NMF",
    "NotFittedError",
    "PMF",
    "ParameterError",
    "Ratings",
    "Recommendations",
    "ResBeMF",
    "SVDpp",
    "Similar",
    "Vocabulary",
    "__version__",
    "datasets",
    "load",
    "metrics",
    "plots",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when first used."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'bemf' has no attribute {name!r}")
    module = importlib.import_module(home)
    value = module if home == f"bemf.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
