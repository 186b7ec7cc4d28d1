"""Model files: what comes back, and what is left when a save goes wrong."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

import bemf
from bemf.persistence import FORMAT

GOLDEN = Path(__file__).with_name("golden")


def small_model(**setting: Any) -> bemf.BeMF:
    users, items = ["ann", "ann", "bob", "bob", "cem"], [1, 2, 1, 3, 2]
    ratings = bemf.Ratings.from_arrays(users, items, [1, 2, 2, 1, 1])
    return bemf.BeMF(**({"n_factors": 1, "n_iterations": 1, "random_state": 0} | setting)).fit(ratings)


def everything(model: bemf.BeMF) -> dict[str, Any]:
    """All that a model says of every pair it knows and of itself, to the last bit."""
    pairs = [(user, item) for user in model.users_ for item in model.items_]
    forecast = model.forecast(pairs)
    blocks = {
        name: (np.asarray(block).dtype, np.shape(block), np.asarray(block).tobytes())
        for name, block in model.state_.items()
    }
    facts = ("classes_", "prior_", "user_counts_", "item_counts_")
    return {
        "probabilities": (forecast.probabilities.dtype, forecast.probabilities.tobytes()),
        "known": forecast.known.tolist(),
        "users": list(model.users_),
        "items": list(model.items_),
        "parameters": model.get_params(),
        "history": model.history_,
        "n_iter": model.n_iter_,
        "fingerprint": model.fingerprint_,
        "blocks": blocks,
        "facts": {name: getattr(model, name).tolist() for name in facts},
    }


@pytest.fixture(scope="module")
def model() -> bemf.BeMF:
    return small_model()


@pytest.fixture(scope="module")
def content(model: bemf.BeMF, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("small") / "model.bemf"
    model.save(path)
    return path.read_bytes()


# -- what comes back -------------------------------------------------------------------------------

INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6, unique=True)
STRINGS = st.lists(st.text(st.characters(codec="utf-8"), max_size=9), min_size=1, max_size=6, unique=True)


@st.composite
def fitted_models(draw: st.DrawFn) -> bemf.BeMF:
    user_ids, item_ids = np.array(draw(INTEGERS | STRINGS), object), np.array(draw(INTEGERS | STRINGS), object)
    rated = draw(st.lists(st.integers(0, len(user_ids) * len(item_ids) - 1), min_size=1, max_size=20, unique=True))
    users, items = np.divmod(rated, len(item_ids))
    scale = draw(st.sampled_from([[3.0], [1.0, 2.0], [0.5, 1.0, 4.5], [*range(1, 11)], [*range(20)]]))
    values = draw(st.lists(st.sampled_from(scale), min_size=len(rated), max_size=len(rated)))
    ratings = bemf.Ratings.from_arrays(user_ids[users].tolist(), item_ids[items].tolist(), values, scores=scale)
    setting: dict[str, Any] = {
        "solver": draw(st.sampled_from(["gd", "mm"])),
        "biases": draw(st.booleans()),
        "dtype": draw(st.sampled_from(["float32", "float64"])),
        "n_factors": draw(st.integers(1, 3)),
        "regularization": draw(st.sampled_from([None, 0.3, (0.5, 2.0)])),
        "random_state": draw(st.integers(0, 99)),
    }
    validation = ratings if draw(st.booleans()) else None
    return bemf.BeMF(n_iterations=3, **setting).fit(ratings, validation=validation)


@given(fitted_models())
@settings(max_examples=60)
def test_what_was_saved_comes_back_to_the_last_bit(model: bemf.BeMF) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.bemf")
        model.save(path)
        loaded = bemf.load(path)
    assert type(loaded) is bemf.BeMF
    assert everything(loaded) == everything(model)


def test_a_loaded_model_goes_on(tmp_path: Path) -> None:
    ratings = bemf.Ratings.from_arrays(["a", "a", "b", "b", "c"], [1, 2, 1, 2, 1], [1, 2, 2, 1, 2])
    whole = bemf.BeMF(n_iterations=5, random_state=0).fit(ratings)
    bemf.BeMF(n_iterations=2, random_state=0, warm_start=True).fit(ratings).save(tmp_path / "half")
    loaded = bemf.load(tmp_path / "half").set_params(n_iterations=3).fit(ratings)
    np.testing.assert_array_equal(loaded.user_factors_, whole.user_factors_)
    assert len(loaded.history_["objective"]) == 6


@pytest.mark.parametrize("path_type", [str, Path])
@pytest.mark.parametrize(
    "setting",
    [
        {"n_factors": np.int64(2), "regularization": np.float64(0.25), "random_state": np.int32(3)},
        {"regularization": (np.float32(1), np.float32(2))},
        {"scores": tuple(np.arange(1, 3))},
    ],
)
def test_numpy_numbers_as_hyperparameters(
    setting: dict[str, Any], path_type: Callable[[Path], Any], tmp_path: Path
) -> None:
    model = small_model(**setting)
    model.save(path_type(tmp_path / "model.bemf"))
    loaded = bemf.load(path_type(tmp_path / "model.bemf"))
    assert loaded.get_params() == model.get_params()
    assert type(loaded.n_factors) is int


@pytest.mark.parametrize("scores", [np.array([1, 2]), range(1, 3), [1, 2]], ids=["array", "range", "list"])
def test_scales_come_back_as_tuples(scores: Any, tmp_path: Path) -> None:
    small_model(scores=scores).save(tmp_path / "model.bemf")
    assert bemf.load(tmp_path / "model.bemf").scores == (1, 2)


def test_the_file_is_safetensors_with_readable_metadata(tmp_path: Path, model: bemf.BeMF) -> None:
    path = tmp_path / "model.bemf"
    model.save(path)
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert {name: metadata.pop(name) for name in ("format", "bemf", "model", "n_iter", "data")} == {
        "format": "1",
        "bemf": bemf.__version__,
        "model": "BeMF",
        "n_iter": "1",
        "data": model.fingerprint_,
    }
    assert json.loads(metadata.pop("parameters")) == model.get_params()
    assert json.loads(metadata.pop("history")) == model.history_
    checksum = metadata.pop("sha256").encode()
    assert hashlib.sha256(path.read_bytes().replace(checksum, b"0" * 64)).hexdigest().encode() == checksum
    assert metadata == {}
    np.testing.assert_array_equal(tensors["state.U"], model.state_["U"])
    np.testing.assert_array_equal(tensors["fact.classes_"], [1, 2])
    np.testing.assert_array_equal(tensors["items.ids"], [1, 2, 3])
    assert tensors["users.bytes"].tobytes() == b"annbobcem"
    np.testing.assert_array_equal(tensors["users.offsets"], [0, 3, 6, 9])


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.bemf")), ids=lambda path: path.name)
def test_golden_files_still_say_the_same(path: Path) -> None:
    said = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    model = bemf.load(path)
    forecast = model.forecast([tuple(pair) for pair in said["pairs"]])
    np.testing.assert_allclose(forecast.probabilities, said["probabilities"], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(forecast.prediction, said["prediction"])
    assert model.history_ == said["history"]
    assert model.fingerprint_ == said["fingerprint"]
    parameters = model.get_params()
    assert {name: parameters[name] for name in said["parameters"]} == said["parameters"]


def test_every_format_has_its_golden_files() -> None:
    assert {path.name for path in GOLDEN.glob("*.bemf")} == {f"bemf-format-{n}.bemf" for n in range(1, FORMAT + 1)}


# -- saves that go wrong ---------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path, model: bemf.BeMF) -> Path:
    """A folder with one file in it, an older model."""
    path = tmp_path / "models" / "model.bemf"
    path.parent.mkdir()
    model.save(path)
    return path


def assert_untouched(path: Path, model: bemf.BeMF) -> None:
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert everything(bemf.load(path)) == everything(model)


def test_a_save_in_the_middle_of_a_load_mixes_nothing(
    saved: Path, model: bemf.BeMF, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_and_parse(text: Any) -> Any:
        other.save(saved)
        return parse(text)

    other, parse = small_model(random_state=1), json.loads
    with monkeypatch.context() as patch:
        patch.setattr(json, "loads", save_and_parse)
        loaded = bemf.load(saved)
    assert everything(loaded) == everything(model)
    assert_untouched(saved, other)


def test_a_name_may_be_as_long_as_the_file_system_allows(model: bemf.BeMF, tmp_path: Path) -> None:
    model.save(tmp_path / ("m" * 255))
    assert_untouched(tmp_path / ("m" * 255), model)


NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


def failing(failure: BaseException) -> Callable[..., None]:
    def fail(*_: Any, **__: Any) -> None:
        raise failure

    return fail


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("failure", [NO_SPACE, KeyboardInterrupt()], ids=repr)
def test_a_save_that_fails_leaves_the_old_file(
    saved: Path, model: bemf.BeMF, monkeypatch: pytest.MonkeyPatch, call: str, failure: BaseException
) -> None:
    other = small_model(random_state=1)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(failure))
        with pytest.raises(type(failure)):
            other.save(saved)
    assert_untouched(saved, model)
    other.save(saved)
    assert_untouched(saved, other)


def test_a_disk_that_is_full_leaves_the_old_file(saved: Path, model: bemf.BeMF) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            small_model(random_state=1).save(saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_untouched(saved, model)


def test_a_failed_first_save_leaves_nothing(model: bemf.BeMF, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(NO_SPACE))
    with pytest.raises(OSError, match="No space"):
        model.save(tmp_path / "model.bemf")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_or_takes_no_files(model: bemf.BeMF, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        model.save(tmp_path / "nowhere" / "model.bemf")
    with pytest.raises(OSError, match="/proc"):
        model.save("/proc/model.bemf")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        model.save(tmp_path / "file" / "model.bemf")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_in_the_way(model: bemf.BeMF, tmp_path: Path) -> None:
    (tmp_path / "model.bemf").mkdir()
    with pytest.raises(IsADirectoryError):
        model.save(tmp_path / "model.bemf")
    assert [path.is_dir() for path in tmp_path.iterdir()] == [True]


def test_an_activation_of_ones_own_is_refused(tmp_path: Path) -> None:
    class Steep(bemf.Activation):
        def value(self, x: Any) -> Any:
            return 1 / (1 + np.exp(-2 * x))

        def derivative(self, x: Any) -> Any:
            return 2 * self.value(x) * (1 - self.value(x))

    model = small_model(activation=Steep(), engine="reference", solver="gd")
    with pytest.raises(bemf.ParameterError, match="activation of your own cannot be saved"):
        model.save(tmp_path / "model.bemf")
    assert list(tmp_path.iterdir()) == []


def test_a_built_in_activation_is_saved_by_name(tmp_path: Path) -> None:
    model = small_model(activation="probit", solver="gd")
    model.save(tmp_path / "model.bemf")
    assert everything(bemf.load(tmp_path / "model.bemf")) == everything(model)


# -- links and permissions -------------------------------------------------------------------------


def test_a_link_is_followed_and_stays(saved: Path, tmp_path: Path) -> None:
    other = small_model(random_state=1)
    link, absent = tmp_path / "link.bemf", saved.with_name("absent.bemf")
    link.symlink_to(Path("models", saved.name))
    other.save(link)
    assert os.readlink(link) == f"models/{saved.name}"
    assert_untouched(saved, other)
    link.unlink()
    link.symlink_to(absent)
    other.save(link)
    assert link.is_symlink()
    assert everything(bemf.load(absent)) == everything(other)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.bemf", "models"]


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o000])
def test_new_files_have_the_usual_permissions(
    model: bemf.BeMF, tmp_path: Path, umask: Callable[[int], int], mask: int
) -> None:
    umask(mask)
    (tmp_path / "plain").touch()
    model.save(tmp_path / "model.bemf")
    assert mode(tmp_path / "model.bemf") == mode(tmp_path / "plain") == 0o666 & ~mask
    assert umask(0) == mask


@pytest.mark.parametrize("old", [0o600, 0o644, 0o664, 0o400])
def test_replaced_files_keep_their_permissions(
    saved: Path, model: bemf.BeMF, umask: Callable[[int], int], old: int
) -> None:
    umask(0o022)
    saved.chmod(old)
    model.save(saved)
    assert mode(saved) == old


# -- a process that is killed ----------------------------------------------------------------------

NURSERY = """
import itertools, os, signal, sys
import bemf
first, second, target = sys.argv[1:]
models = [bemf.load(first), bemf.load(second)]
print("ready", flush=True)
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # in case nobody is left to kill it
        for model in itertools.cycle(models):
            model.save(target)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


@pytest.mark.slow
def test_a_killed_save_leaves_the_old_model_or_the_new(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pairs = rng.choice(200 * 100, 4000, replace=False)
    ratings = bemf.Ratings.from_arrays(pairs // 100, pairs % 100, rng.integers(1, 6, 4000))
    paths = [tmp_path / "first", tmp_path / "second"]
    for seed, path in enumerate(paths):
        bemf.BeMF(n_factors=8, n_iterations=1, random_state=seed).fit(ratings).save(path)
    target = tmp_path / "models" / "model.bemf"
    target.parent.mkdir()
    bemf.load(paths[0]).save(target)
    assert set(kill_savers(paths, target, n_times=40)) == {0, 1}
    assert any(target.parent.glob(".*.part")), "no save was caught in the middle"


def kill_savers(paths: list[Path], target: Path, n_times: int) -> Iterator[int]:
    """Which model, by its seed, is there each time a process that saves both in turn has been killed."""
    contents = [everything(bemf.load(path)) for path in paths]
    when = random.Random(0)
    command = [sys.executable, "-c", NURSERY, *map(str, (*paths, target))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as nursery:
        assert nursery.stdin
        assert nursery.stdout
        assert nursery.stdout.readline() == "ready\n"
        for _ in range(n_times):
            nursery.stdin.write("next\n")
            child = int(nursery.stdout.readline())
            time.sleep(when.uniform(0.005, 0.08))
            os.kill(child, signal.SIGKILL)
            assert nursery.stdout.readline() == "gone\n"
            yield contents.index(everything(bemf.load(target)))
        nursery.stdin.close()
