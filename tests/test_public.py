"""What the package shows of itself."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import bemf
from bemf import _native

HEAVY = [
    *("pyarrow", "pandas", "polars", "sklearn", "scipy", "matplotlib", "rich", "click", "torch", "numba"),
    *("safetensors", "narwhals"),
]
MODULES = {"bemf": bemf, "bemf.metrics": bemf.metrics, "bemf.datasets": bemf.datasets, "bemf.plots": bemf.plots}


def fresh(code: str) -> Any:
    """What a new interpreter prints as JSON."""
    return json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES.keys())
def test_every_name_can_be_had(module: ModuleType) -> None:
    assert list(module.__all__) == sorted(set(module.__all__))
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_names_are_there_before_they_are_used() -> None:
    names, listed = fresh("import bemf, json; before = dir(bemf); print(json.dumps([bemf.__all__, before]))")
    assert names == bemf.__all__
    assert listed == sorted(names)


@pytest.mark.parametrize("name", bemf.__all__)
def test_each_name_can_be_had_first(name: str) -> None:
    """Nothing leans on another name having been imported before it."""
    kind = fresh(f"from bemf import {name} as it; import json; print(json.dumps(type(it).__name__))")
    assert kind == type(getattr(bemf, name)).__name__


def test_star_import() -> None:
    names = fresh("import json; from bemf import *; print(json.dumps(dir()))")
    assert {*bemf.__all__} <= {*names}


@pytest.mark.parametrize("name", ["Bemf", "recommend", "__wrapped__", ""])
def test_other_names_cannot_be_had(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'bemf' has no attribute '{name}'"):
        getattr(bemf, name)
    assert not hasattr(bemf, name)


def test_type_checkers_see_the_same_names() -> None:
    """The imports under TYPE_CHECKING are those that are made when a name is first used."""
    tree = ast.parse(inspect.getsource(bemf))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {(each.name, node.module) for node in block.body if isinstance(node, ast.ImportFrom) for each in node.names}
    homes = {(name, "bemf" if home == f"bemf.{name}" else home) for name, home in bemf._HOME.items()}
    assert seen == homes
    assert {name for name, _ in homes} == {*bemf.__all__} - {"__version__"}


def test_version() -> None:
    assert bemf.__version__ == importlib.metadata.version("bemf")


def test_errors_have_one_root() -> None:
    errors = [getattr(bemf, name) for name in bemf.__all__ if name.endswith("Error")]
    assert len(errors) == 8
    assert all(issubclass(error, bemf.BemfError) for error in errors)
    assert issubclass(bemf.ModelFileError, OSError)
    assert issubclass(bemf.DataError, ValueError)
    assert issubclass(bemf.ParameterError, ValueError)


# -- importing -------------------------------------------------------------------------------------


def test_importing_loads_nothing_heavy() -> None:
    loaded = fresh("import bemf, json, sys; print(json.dumps(sorted(sys.modules)))")
    assert {"bemf"} == {name.partition(".")[0] for name in loaded} & {"bemf", *HEAVY}


def test_a_fit_and_a_forecast_load_nothing_they_do_not_need() -> None:
    code = """
import json, sys, bemf
model = bemf.BeMF(n_iterations=1, engine="native").fit(bemf.Ratings.from_arrays([1, 1, 2], [1, 2, 1], [1, 2, 2]))
model.forecast([(1, 2)]).prediction
print(json.dumps(sorted(sys.modules)))
"""
    needed = {"bemf", "pyarrow"}
    unneeded = {"polars", "sklearn", "matplotlib", "rich", "click", "torch", "numba", "safetensors"}
    assert {name.partition(".")[0] for name in fresh(code)} & (needed | unneeded) == needed


def cpu_time(code: str) -> float:
    """CPU seconds that a new interpreter takes, the median of five."""
    measure = "import json, resource; usage = resource.getrusage(resource.RUSAGE_SELF)"
    measured = f"{code}; {measure}; print(json.dumps(usage.ru_utime + usage.ru_stime))"
    return statistics.median(float(fresh(measured)) for _ in range(5))


@pytest.mark.slow
def test_importing_takes_hardly_longer_than_numpy() -> None:
    assert cpu_time("import bemf") - cpu_time("import numpy") <= 0.25


# -- words -----------------------------------------------------------------------------------------


def named(module_name: str, module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield f"{module_name}.{name}", thing


def members(class_name: str, owner: type) -> Iterator[tuple[str, Any]]:
    """Methods and properties, also those of its base classes here."""
    ours = {name for each in owner.__mro__ if each.__module__.startswith("bemf") for name in vars(each)}
    for name in sorted(ours):
        thing = getattr(owner, name, None)
        described = callable(thing) or isinstance(thing, property | cached_property)
        if described and not name.startswith("_"):
            yield f"{class_name}.{name}", thing


NAMED = {name: thing for module_name, module in MODULES.items() for name, thing in named(module_name, module)}
FUNCTIONS = {name: thing for name, thing in NAMED.items() if inspect.isfunction(thing)}
CLASSES = {name: thing for name, thing in NAMED.items() if inspect.isclass(thing)}
MEMBERS = {name: thing for class_name, owner in CLASSES.items() for name, thing in members(class_name, owner)}


def test_what_must_be_described_is_found() -> None:
    assert {"bemf.load", "bemf.metrics.rpi", "bemf.datasets.cf4j"} < set(FUNCTIONS)
    assert {"bemf.BeMF", "bemf.Ratings", "bemf.Iteration", "bemf.DataError"} < set(CLASSES)
    assert {
        *("bemf.BeMF.fit", "bemf.BeMF.set_params", "bemf.BeMF.steps", "bemf.BeMF.user_factors_"),
        *("bemf.Ratings.read", "bemf.Ratings.fingerprint", "bemf.Forecast.prediction", "bemf.Activation.value"),
    } < set(MEMBERS)


@pytest.mark.parametrize("name", NAMED)
def test_public_things_are_described(name: str) -> None:
    words = NAMED[name].__doc__ or ""
    assert words.strip()
    assert not words.startswith(f"{name.rpartition('.')[2]}("), "the words are those that dataclass makes up"


@pytest.mark.parametrize("name", MEMBERS)
def test_their_methods_are_described(name: str) -> None:
    """There or in the class that they override."""
    assert (inspect.getdoc(MEMBERS[name]) or "").strip()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_show_an_example(name: str) -> None:
    assert ">>> " in (FUNCTIONS[name].__doc__ or "")


@pytest.mark.parametrize("name", ["BeMF", "Ratings", "Vocabulary", "Forecast", "Activation"])
def test_main_classes_show_an_example(name: str) -> None:
    assert ">>> " in (getattr(bemf, name).__doc__ or "")


# -- the compiled module and its stub ----------------------------------------------------------------


def stub() -> list[ast.stmt]:
    source = Path(bemf.__file__).with_name("_native.pyi").read_text(encoding="utf-8")
    return ast.parse(source).body


NATIVE_FUNCTIONS = {node.name: node for node in stub() if isinstance(node, ast.FunctionDef)}
NATIVE_CLASSES = {node.name for node in stub() if isinstance(node, ast.ClassDef)}


def test_the_stub_names_the_native_functions() -> None:
    there = {name for name, thing in vars(_native).items() if callable(thing) and not name.startswith("_")}
    assert set(NATIVE_FUNCTIONS) | NATIVE_CLASSES == there


@pytest.mark.parametrize("name", NATIVE_FUNCTIONS)
def test_the_stub_has_the_native_parameters(name: str) -> None:
    """nanobind writes the signature first in the docstring."""
    function: Callable[..., Any] = getattr(_native, name)
    signature = (function.__doc__ or "").splitlines()[0]
    assert [each.arg for each in NATIVE_FUNCTIONS[name].args.args] == parameters(signature)


def parameters(signature: str) -> list[str]:
    """The names in `f(a: int, b: ndarray[shape=(*)]) -> …`, of which only those outside brackets are parameters."""
    inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
    while (less := re.sub(r"\[[^\[\]]*\]|\([^()]*\)", "", inside)) != inside:
        inside = less
    return [part.partition(":")[0].strip() for part in inside.split(",") if part.strip()]


def test_native_functions_are_described() -> None:
    for name in NATIVE_FUNCTIONS:
        assert len((getattr(_native, name).__doc__ or "").strip().splitlines()) >= 2
