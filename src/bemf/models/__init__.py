"""The models, a file each."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bemf.recommender import Recommender

MODELS = {
    "BeMF": "bemf.models.bemf",
    "BiasedMF": "bemf.models.pmf",
    "DirMF": "bemf.models.simplex",
    "NMF": "bemf.models.pmf",
    "PMF": "bemf.models.pmf",
    "ResBeMF": "bemf.models.simplex",
    "SVDpp": "bemf.models.svdpp",
}


def model_class(name: str) -> type[Recommender]:
    """The class of a model's name.

    >>> model_class("BeMF").__name__
    'BeMF'
    """
    made: type[Recommender] = getattr(importlib.import_module(MODELS[name]), name)
    return made
