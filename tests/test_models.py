"""Every model keeps the contract."""

from __future__ import annotations

from typing import Any

import bemf
from contract import ModelContract, ratings

__all__ = ["ratings"]


class TestBeMF(ModelContract):
    def make(self, **setting: Any) -> Any:
        return bemf.BeMF(**{"regularization": 1.0, **setting})


class TestBeMFByGradient(ModelContract):
    def make(self, **setting: Any) -> Any:
        return bemf.BeMF(**{"learning_rate": 0.02, "n_iterations": 200, **setting})


class TestBeMFOnTheReferenceEngine(ModelContract):
    def make(self, **setting: Any) -> Any:
        return bemf.BeMF(**{"engine": "reference", "regularization": 1.0, **setting})


class TestPMF(ModelContract):
    def make(self, **setting: Any) -> Any:
        return bemf.PMF(**{"n_factors": 3, **setting})


class TestBiasedMF(ModelContract):
    def make(self, **setting: Any) -> Any:
        return bemf.BiasedMF(**{"n_factors": 3, **setting})


class TestBiasedMFOnTheReferenceEngine(ModelContract):
    def make(self, **setting: Any) -> Any:
        return bemf.BiasedMF(
            **{"n_factors": 3, "engine": "reference", "n_iterations": 20, "learning_rate": 0.03, **setting}
        )


class TestNMF(ModelContract):
    def make(self, **setting: Any) -> Any:
        return bemf.NMF(**setting)


class TestSVDpp(ModelContract):
    def make(self, **setting: Any) -> Any:
        return bemf.SVDpp(**{"n_factors": 3, "n_iterations": 40, "learning_rate": 0.02, **setting})


class TestSVDppOnTheReferenceEngine(ModelContract):
    def make(self, **setting: Any) -> Any:
        return bemf.SVDpp(**{"n_factors": 2, "engine": "reference", "n_iterations": 3, "learning_rate": 0.1, **setting})


class TestResBeMF(ModelContract):
    def make(self, **setting: Any) -> Any:
        return bemf.ResBeMF(**{"learning_rate": 0.02, **setting})


class TestResBeMFOnTheReferenceEngine(ModelContract):
    def make(self, **setting: Any) -> Any:
        return bemf.ResBeMF(**{"learning_rate": 0.03, "n_iterations": 50, "engine": "reference", **setting})


class TestDirMF(ModelContract):
    def make(self, **setting: Any) -> Any:
        return bemf.DirMF(**{"learning_rate": 0.02, **setting})
