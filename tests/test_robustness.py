"""Interrupts, threads, forks, copies, fits that go astray, and nonsense."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bemf
from bemf import _native
from bemf.engines.native import NativeEngine

ISAS = _native.instruction_sets()


def synthetic(n_users: int, n_items: int, n_ratings: int, n_scores: int = 5) -> bemf.Ratings:
    """About so many ratings, at random."""
    rng = np.random.default_rng(0)
    return indexed(np.unique(rng.integers(0, n_users * n_items, n_ratings)), n_users, n_items, n_scores)


def indexed(pairs: NDArray[np.int64], n_users: int, n_items: int, n_scores: int) -> bemf.Ratings:
    return bemf.Ratings.from_indexes(
        bemf.Vocabulary(np.arange(n_users), "user"),
        bemf.Vocabulary(np.arange(n_items), "item"),
        *np.divmod(pairs, n_items),
        np.random.default_rng(1).integers(1, n_scores + 1, len(pairs)).astype(float),
        scores=np.arange(1, n_scores + 1),
    )


def bits(model: bemf.BeMF) -> dict[str, Any]:
    """All that a fit finds, to the last bit."""
    return {name: np.asarray(block).tobytes() for name, block in model.state_.items()} | {"history": model.history_}


@pytest.fixture(scope="module")
def ratings() -> bemf.Ratings:
    return synthetic(3000, 400, 60_000)


@pytest.fixture(scope="module")
def large() -> bemf.Ratings:
    """So many ratings that a half-sweep with many factors takes long."""
    return synthetic(20_000, 1_000, 800_000)


# -- progress and callbacks ------------------------------------------------------------------------


class StopError(Exception):
    """Raised by the callbacks below."""


@pytest.mark.parametrize("n_threads", [1, 2])
def test_progress_rises_to_the_end(large: bemf.Ratings, n_threads: int) -> None:
    shares: list[float] = []
    model = bemf.BeMF(n_factors=40, n_iterations=2, solver="mm", n_threads=n_threads, random_state=0)
    began = time.monotonic()
    model.fit(large, progress=shares.append)
    lasted = time.monotonic() - began
    assert np.all(np.diff(shares) >= 0)
    assert 0 <= shares[0] < 0.5
    assert shares[-1] == 1
    assert 5 <= len(shares) <= 2 + 20 * lasted
    for quarter in range(4):
        assert any(quarter / 4 <= share <= (quarter + 1) / 4 for share in shares)


def test_progress_on_the_reference_engine() -> None:
    shares: list[float] = []
    some = synthetic(600, 300, 30_000)
    bemf.BeMF(engine="reference", n_iterations=4, random_state=0).fit(some, progress=shares.append)
    assert np.all(np.diff(shares) >= 0)
    assert 0 < shares[0] < shares[-1] == 1
    assert len(shares) >= 3


def test_progress_of_many_short_iterations() -> None:
    """Half-sweeps far shorter than the time between two reports are reported all the same."""
    shares: list[float] = []
    few = synthetic(20, 10, 80)
    began = time.monotonic()
    bemf.BeMF(n_iterations=8_000, random_state=0).fit(few, progress=shares.append)
    assert 3 <= len(shares) <= 2 + 20 * (time.monotonic() - began)
    assert np.all(np.diff(shares) >= 0)


def test_progress_and_callbacks_change_nothing(large: bemf.Ratings) -> None:
    setting: dict[str, Any] = {"n_factors": 12, "n_iterations": 2, "random_state": 0}
    watched = bemf.BeMF(**setting).fit(large, progress=lambda _: True, callbacks=[lambda _: None])
    assert bits(watched) == bits(bemf.BeMF(**setting).fit(large))


@pytest.mark.parametrize("fitted_before", [False, True])
def test_an_exception_in_progress_comes_out(large: bemf.Ratings, fitted_before: bool) -> None:
    """Out of the middle of a half-sweep, and the model is as it was."""

    def stop(share: float) -> None:
        shares.append(share)
        if share > 0.1:
            raise error

    shares: list[float] = []
    error = StopError()
    model = bemf.BeMF(n_factors=40, n_iterations=2, random_state=0)
    before = bits(model.fit(large.select(np.arange(5000)))) if fitted_before else None
    with pytest.raises(StopError) as caught:
        model.fit(large, progress=stop)
    assert caught.value is error
    assert shares[-1] == max(shares) < 0.5
    assert (bits(model) if fitted_before else getattr(model, "state_", None)) == before
    model.set_params(n_iterations=1).fit(large)
    assert model.n_iter_ == 1


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_an_exception_in_a_callback_comes_out(engine: str) -> None:
    def stop(iteration: bemf.Iteration) -> None:
        seen.append(iteration.number)
        if iteration.number == 2:
            raise error

    seen: list[int] = []
    error = StopError()
    model = bemf.BeMF(engine=engine, random_state=0)
    with pytest.raises(StopError) as caught:
        model.fit(synthetic(20, 10, 80), callbacks=[stop])
    assert caught.value is error
    assert seen == [1, 2]
    with pytest.raises(bemf.NotFittedError):
        model.forecast([(1, 1)])


# -- the same for any number of threads --------------------------------------------------------------


@pytest.fixture(scope="module")
def lopsided() -> bemf.Ratings:
    """A user and an item with so many ratings that their rows are cut in pieces; most others have one or two."""
    n_users, n_items = 46_000, 51_000
    rng = np.random.default_rng(0)
    by_one_user = rng.permutation(n_items)[:50_000]
    of_one_item = rng.permutation(n_users)[:45_000] * n_items
    others = rng.integers(0, n_users * n_items, 20_000)
    pairs = np.unique(np.concatenate([by_one_user + 7 * n_items, of_one_item + 11, others]))
    ratings = indexed(pairs, n_users, n_items, n_scores=10)
    assert min(ratings.by_user.counts.max(), ratings.by_item.counts.max()) > 40_000
    return ratings


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("solver", [{"solver": "mm"}, {"solver": "gd", "learning_rate": 1e-5}], ids=["mm", "gd"])
def test_the_number_of_threads_changes_no_bit(
    lopsided: bemf.Ratings, solver: dict[str, Any], biases: bool, dtype: str
) -> None:
    setting: dict[str, Any] = {**solver, "biases": biases, "dtype": dtype, "n_factors": 3, "n_iterations": 3}
    models = {n: bemf.BeMF(**setting, random_state=0, n_threads=n).fit(lopsided) for n in (1, 2, 3, 7)}
    forecasts = {n: model.forecast(lopsided).probabilities.tobytes() for n, model in models.items()}
    for n in (2, 3, 7):
        assert bits(models[n]) == bits(models[1])
        assert forecasts[n] == forecasts[1]


def test_fits_in_several_python_threads_are_those_alone(ratings: bemf.Ratings) -> None:
    def fit(seed: int) -> dict[str, Any]:
        learning_rate = 1e-4 if seed % 2 else None
        model = bemf.BeMF(learning_rate=learning_rate, n_iterations=5, random_state=seed, n_threads=1 + seed % 3)
        return bits(model.fit(ratings))

    alone = [fit(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, range(8)))
    assert together == alone


def test_forecasts_in_several_python_threads_are_those_alone(ratings: bemf.Ratings) -> None:
    model = bemf.BeMF(n_iterations=2, random_state=0).fit(ratings)
    alone = copy.deepcopy(model).forecast(ratings).probabilities
    with ThreadPoolExecutor(4) as pool:
        for together in pool.map(lambda _: model.forecast(ratings).probabilities, range(12)):
            np.testing.assert_array_equal(together, alone)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fit_after_a_fork_is_the_same(ratings: bemf.Ratings) -> None:
    def fit() -> dict[str, Any]:
        return bits(bemf.BeMF(n_iterations=3, random_state=0, n_threads=3).fit(ratings))

    def fit_there(answer: Any) -> None:
        answer.send(fit())

    here = fit()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=fit_there, args=(sender,))
    child.start()
    try:
        assert receiver.poll(60), "the fit hangs in the child"
        assert receiver.recv() == here
        child.join(10)
        assert child.exitcode == 0
    finally:
        child.kill()
    assert fit() == here


# -- copies ----------------------------------------------------------------------------------------

COPIERS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "old pickle": lambda model: pickle.loads(pickle.dumps(model, 2)),
    "pickle": lambda model: pickle.loads(pickle.dumps(model, pickle.HIGHEST_PROTOCOL)),
}


@pytest.mark.parametrize("copier", COPIERS.values(), ids=COPIERS.keys())
@pytest.mark.parametrize("n_scores", [5, 40], ids=["one block of lanes", "several"])
def test_a_copy_is_a_model_of_its_own(copier: Callable[[Any], Any], n_scores: int) -> None:
    ratings = synthetic(30, 20, 200, n_scores)
    model = bemf.BeMF(n_iterations=2, random_state=0, warm_start=True, dtype="float64").fit(ratings)
    before, forecast = bits(model), model.forecast(ratings).probabilities
    twin = copier(model)
    assert bits(twin) == before
    np.testing.assert_array_equal(twin.forecast(ratings).probabilities, forecast)
    twin.fit(ratings)
    assert bits(twin) != before
    assert bits(model) == before
    np.testing.assert_array_equal(model.forecast(ratings).probabilities, forecast)
    assert bits(model.fit(ratings)) == bits(twin)
    assert not np.array_equal(model.forecast(ratings).probabilities, forecast)


@pytest.mark.parametrize("copier", COPIERS.values(), ids=COPIERS.keys())
def test_a_copy_of_an_unfitted_model(copier: Callable[[Any], Any]) -> None:
    ratings = synthetic(30, 20, 200)
    model = bemf.BeMF(n_factors=3, random_state=4)
    twin = copier(model)
    assert repr(twin) == repr(model)
    with pytest.raises(bemf.NotFittedError):
        twin.forecast(ratings)
    assert bits(twin.fit(ratings)) == bits(model.fit(ratings))


# -- fits that go astray -----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning:bemf.engines.reference")
def test_a_diverging_fit_leaves_the_model_as_it_was(engine: str) -> None:
    ratings = synthetic(60, 40, 1200)
    seen: list[bemf.Iteration] = []
    wild = bemf.BeMF(learning_rate=50, engine=engine, random_state=0)
    with pytest.raises(bemf.DivergenceError) as caught:
        wild.fit(ratings, callbacks=[seen.append])
    assert f"in iteration {len(seen)}:" in str(caught.value)
    assert re.search(r"lower learning_rate.*solver='mm'", str(caught.value))
    assert not hasattr(wild, "state_")
    model = bemf.BeMF(learning_rate=0.001, engine=engine, random_state=0, warm_start=True, n_iterations=3).fit(ratings)
    before, forecast = bits(model), model.forecast(ratings).probabilities
    for warm_start in (True, False):
        model.set_params(learning_rate=50, n_iterations=150, warm_start=warm_start)
        with pytest.raises(bemf.DivergenceError):
            model.fit(ratings)
        assert bits(model) == before
        np.testing.assert_array_equal(model.forecast(ratings).probabilities, forecast)


# -- nonsense --------------------------------------------------------------------------------------

NAN, INFINITY = float("nan"), float("inf")
WRONG: dict[str, list[Any]] = {
    "n_factors": [0, -1, 65, 2.0, NAN, "2", True, [2]],
    "n_iterations": [0, -1, 1.5, INFINITY, "10", False],
    "learning_rate": [0, -0.1, NAN, -INFINITY, "0.1", True, [0.1]],
    "regularization": [-1, NAN, "much", (1, -1), (NAN, 1), (1, 2, 3), (1,), (), {}, [1, None]],
    "solver": ["", "MM", "sgd", None, 1],
    "activation": ["", "softmax", None, 1],
    "biases": ["yes", 2, -1, []],
    "n_threads": [0, -1, 1.0, NAN, "2", True],
    "engine": ["", "gpu", "Native"],
    "dtype": ["", "float16", "f4", None, np.float32],
    "warm_start": ["yes", 2, None],
}
WRONG_SETTINGS = [(name, value) for name, values in WRONG.items() for value in values]


@pytest.mark.parametrize(("name", "value"), WRONG_SETTINGS, ids=lambda each: repr(each))
def test_a_wrong_hyperparameter_is_named_and_changes_nothing(name: str, value: Any) -> None:
    ratings = synthetic(30, 20, 200)
    setting: dict[str, Any] = {name: value}
    with pytest.raises(bemf.ParameterError, match=name):
        bemf.BeMF(**setting).fit(ratings)
    model = bemf.BeMF(random_state=0).fit(ratings)
    before = bits(model)
    model.set_params(**setting)
    with pytest.raises(bemf.ParameterError, match=name):
        model.fit(ratings)
    assert bits(model) == before


def test_hyperparameters_at_the_ends_of_their_ranges() -> None:
    ratings = synthetic(30, 20, 200)
    for solver in ({"solver": "mm"}, {"learning_rate": 1e-300, "regularization": 0}, {"regularization": (1e-3, 1e3)}):
        setting: dict[str, Any] = {**solver, "n_factors": 64, "n_iterations": 1, "n_threads": 300}
        assert np.isfinite(bemf.BeMF(**setting).fit(ratings).forecast(ratings).probabilities).all()


def test_misspelt_hyperparameters() -> None:
    wrong: dict[str, Any] = {"n_factor": 3}
    with pytest.raises(TypeError, match="n_factor"):
        bemf.BeMF(**wrong)
    with pytest.raises(bemf.ParameterError, match=r"no parameter 'n_factor'; it has .*n_factors"):
        bemf.BeMF().set_params(**wrong)
    positional: Any = bemf.BeMF
    with pytest.raises(TypeError, match="positional"):
        positional(3)


def test_no_threads_is_no_number_of_threads() -> None:
    for n in (0, -3):
        with pytest.raises(bemf.ParameterError, match=f"at least 1; got {n}"):
            NativeEngine(n_threads=n)


# -- instruction sets ------------------------------------------------------------------------------


def test_an_unknown_instruction_set_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    says = rf"no instruction set 'mmx'; it has {', '.join(ISAS)}"
    with pytest.raises(bemf.ParameterError, match=says):
        NativeEngine(isa="mmx")
    monkeypatch.setenv("BEMF_ISA", "mmx")
    with pytest.raises(bemf.ParameterError, match=says):
        bemf.BeMF().fit(synthetic(30, 20, 200))
    assert NativeEngine(isa=ISAS[0]).isa == ISAS[0]


@pytest.mark.parametrize("isa", ISAS)
def test_the_instruction_set_can_be_chosen(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEMF_ISA", isa)
    assert NativeEngine().isa == isa
    monkeypatch.setenv("BEMF_ISA", "")
    assert NativeEngine().isa == ISAS[0]


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-4), ("float64", 1e-10)])
@pytest.mark.parametrize("n_scores", [2, 5, 20])
@pytest.mark.parametrize(
    "setting", [{"solver": "mm"}, {"solver": "gd"}, {"activation": "probit"}], ids=["mm", "gd", "probit"]
)
def test_instruction_sets_agree(setting: dict[str, Any], n_scores: int, dtype: str, tolerance: float) -> None:
    ratings = synthetic(300, 100, 6_000, n_scores)
    engines = [NativeEngine(isa=isa) for isa in ISAS]
    models = [
        bemf.BeMF(**setting, n_iterations=5, dtype=dtype, engine=engine, random_state=0).fit(ratings)
        for engine in engines
    ]
    first, *others = (model.forecast(ratings).probabilities for model in models)
    assert np.ptp(first) > 0.03
    for other in others:
        np.testing.assert_allclose(other, first, rtol=0, atol=tolerance)
    for engine in engines[1:]:  # and a model goes from one to another
        moved = copy.deepcopy(models[0]).set_params(engine=engine)
        np.testing.assert_allclose(moved.forecast(ratings).probabilities, first, rtol=0, atol=tolerance)
