"""Model files: what comes back, what is refused, and what is left when a save goes wrong."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import random
import resource
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
Header = dict[str, Any]


def small_model(**setting: Any) -> bemf.BeMF:
    users, items = ["ann", "ann", "bob", "bob", "cem"], [1, 2, 1, 3, 2]
    ratings = bemf.Ratings.from_arrays(users, items, [1, 2, 2, 1, 1])
    return bemf.BeMF(**({"n_factors": 1, "n_iterations": 1, "random_state": 0} | setting)).fit(ratings)


def everything(model: bemf.BeMF) -> dict[str, Any]:
    """All that a model says of every pair it knows and of itself, to the last bit."""
    pairs = [(user, item) for user in model.users_ for item in model.items_]
    forecast = model.forecast(pairs)
    blocks = {name: (block.dtype, block.shape, block.tobytes()) for name, block in model.state_.items()}
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
def test_numpy_numbers_as_hyperparameters(path_type: Callable[[Path], Any], tmp_path: Path) -> None:
    model = small_model(n_factors=np.int64(2), regularization=np.float64(0.25), random_state=np.int32(3))
    model.save(path_type(tmp_path / "model.bemf"))
    loaded = bemf.load(path_type(tmp_path / "model.bemf"))
    assert loaded.get_params() == model.get_params()
    assert type(loaded.n_factors) is int


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
    assert signed(path.read_bytes().replace(metadata.pop("sha256").encode(), b"0" * 64)) == path.read_bytes()
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


# -- damaged files ---------------------------------------------------------------------------------


def test_a_file_cut_anywhere_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.bemf"
    path.write_bytes(content)
    for length in reversed(range(len(content))):
        os.truncate(path, length)
        with pytest.raises(bemf.ModelFileError, match=r"cut\.bemf"):
            bemf.load(path)


@pytest.mark.parametrize("flip", [0x01, 0x02, 0x10, 0x20, 0x80, 0xFF])
def test_a_byte_changed_anywhere_is_noticed(content: bytes, tmp_path: Path, flip: int) -> None:
    path = tmp_path / "changed.bemf"
    path.write_bytes(content)
    with open(path, "r+b", buffering=0) as file:
        for place, byte in enumerate(content):
            os.pwrite(file.fileno(), bytes([byte ^ flip]), place)
            with pytest.raises(bemf.ModelFileError):
                bemf.load(path)
            os.pwrite(file.fileno(), bytes([byte]), place)
    bemf.load(path)


@pytest.mark.parametrize("more", [b"\0", b" ", b"\0" * 4096])
def test_a_longer_file_is_refused(content: bytes, tmp_path: Path, more: bytes) -> None:
    path = tmp_path / "longer.bemf"
    path.write_bytes(content + more)
    with pytest.raises(bemf.ModelFileError, match="damaged"):
        bemf.load(path)


# -- foreign and forged files ----------------------------------------------------------------------


class Armed:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def with_header(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + data


FOREIGN = {
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(200),
    "text": b"user,item,rating\n1,2,3\n",
    "one-byte": b"\0",
    "seven-bytes": bytes(7),
    "zeros": bytes(4096),
    "numpy": b"\x93NUMPY\x01\0v\0{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n" + bytes(24),
    "zip": b"PK\x03\x04" + bytes(100),
    "safetensors": with_header(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)),
    "safetensors-with-metadata": with_header(b'{"__metadata__":{"format":"pt"}}'),
    "metadata-is-text": with_header(b'{"__metadata__":"format bemf sha256"}'),
    "metadata-is-null": with_header(b'{"__metadata__":null}'),
    "header-is-a-number": with_header(b"17"),
    "header-is-no-utf-8": with_header(b'{"\xff\xfe":1}'),
    "nested-lists": with_header(b"[" * 1_000_000),
    "nested-objects": with_header(b'{"a":' * 200_000),
    "long-number": with_header(b'{"__metadata__":{"bemf":"1","sha256":"","format":"' + b"9" * 10_000 + b'"}}'),
    "format-is-a-list": with_header(b'{"__metadata__":{"bemf":"1","sha256":"","format":[]}}'),
    "header-of-2^63": struct.pack("<Q", 2**63) + b'{"__metadata__":{}}',
    "header-of-2^64-1": struct.pack("<Q", 2**64 - 1) + b'{"__metadata__":{}}',
    "header-of-2^40": struct.pack("<Q", 2**40) + b'{"__metadata__":{}}',
    "header-one-too-long": struct.pack("<Q", 20) + b'{"__metadata__":{}}',
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_files_are_refused(foreign: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(foreign)
    with little_memory(), pytest.raises(bemf.ModelFileError, match=r"foreign.*not a bemf model"):
        bemf.load(path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(bemf.ModelFileError, match=r"empty: .*it is empty"):
        bemf.load(tmp_path / "empty")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(bemf.ModelFileError, match="there is no such file"):
        bemf.load(tmp_path / "nothing")
    with pytest.raises(bemf.ModelFileError, match="directory"):
        bemf.load(tmp_path)


def test_a_pickle_is_refused_and_not_opened(tmp_path: Path, model: bemf.BeMF) -> None:
    mark = tmp_path / "mark"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for thing in (Armed(mark), model):
            (tmp_path / "model.pickle").write_bytes(pickle.dumps(thing, protocol))
            with pytest.raises(bemf.ModelFileError, match="not a bemf model"):
                bemf.load(tmp_path / "model.pickle")
    assert not mark.exists()


def signed(unsigned: bytes) -> bytes:
    """The file with its checksum in the place of 64 zeros."""
    assert unsigned.count(b'"sha256":"' + b"0" * 64 + b'"') == 1
    return unsigned.replace(b"0" * 64, hashlib.sha256(unsigned).hexdigest().encode(), 1)


def forged(content: bytes, change: Callable[[Header], object]) -> bytes:
    """The file with its header changed and a checksum that fits."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    change(header)
    header["__metadata__"]["sha256"] = "0" * 64
    return signed(with_header(json.dumps(header, separators=(",", ":")).encode(), content[8 + length :]))


def metadata(**changed: Any) -> Callable[[Header], object]:
    return lambda header: header["__metadata__"].update(changed)


def tensor(name: str, **changed: Any) -> Callable[[Header], object]:
    return lambda header: header[name].update(changed)


@contextmanager
def little_memory(most: int = 1 << 24) -> Iterator[None]:
    """Fails if much memory is allocated in between, by Python or by the process."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < most / 1024


def test_forging_makes_files_that_load(content: bytes, model: bemf.BeMF, tmp_path: Path) -> None:
    """Else the tests below would test nothing."""
    (tmp_path / "model.bemf").write_bytes(forged(content, metadata(n_iter="1")))
    assert everything(bemf.load(tmp_path / "model.bemf")) == everything(model)


FORGED = {
    "tensor-of-2^50-bytes": tensor("state.U", shape=[2**40, 256], data_offsets=[0, 2**50]),
    "tensor-of-2^34-bytes": tensor("state.U", shape=[2**32], data_offsets=[0, 2**34]),
    "shape-of-2^62": tensor("state.U", shape=[2**31, 2**31]),
    "shape-that-overflows": tensor("state.U", shape=[2**40, 2**40]),
    "negative-shape": tensor("state.U", shape=[-1]),
    "other-shape": tensor("state.U", shape=[1]),
    "beyond-the-end": tensor("state.U", data_offsets=[2**20, 2**20 + 48]),
    "backwards": tensor("state.U", data_offsets=[48, 0]),
    "unknown-dtype": tensor("state.U", dtype="F17"),
    "dtype-without-numpy": tensor("state.U", dtype="BF16", shape=[24]),
    "offsets-of-two-dimensions": tensor("users.offsets", shape=[1, 4]),
    "no-ids": lambda header: header.update({"other.ids": header.pop("items.ids")}),
    "no-fact": lambda header: header.update({"fact.other": header.pop("fact.prior_")}),
    "no-parameters": lambda header: header["__metadata__"].pop("parameters"),
    "no-model": lambda header: header["__metadata__"].pop("model"),
    "parameters-are-no-json": metadata(parameters="{"),
    "parameters-are-unknown": metadata(parameters='{"n_farctors":1}'),
    "count-is-no-number": metadata(n_iter="many"),
    "metadata-is-a-number": metadata(n_iter=1),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED.keys())
def test_forged_files_are_refused(content: bytes, change: Callable[[Header], object], tmp_path: Path) -> None:
    path = tmp_path / "forged.bemf"
    path.write_bytes(forged(content, change))
    with little_memory(), pytest.raises(bemf.ModelFileError, match=r"forged\.bemf: not a model"):
        bemf.load(path)


def test_strings_that_are_no_utf8_are_refused(content: bytes, tmp_path: Path) -> None:
    broken = content.replace(b"annbobcem", b"ann\xff\xfe\xfdcem")
    assert broken != content
    (tmp_path / "forged.bemf").write_bytes(forged(broken, metadata()))
    with pytest.raises(bemf.ModelFileError, match="not a model"):
        bemf.load(tmp_path / "forged.bemf")


@pytest.mark.parametrize("name", ["NMF", "os.system", "bemf.models.bemf", "__builtins__", "LARGEST_HEADER"])
def test_an_unknown_model_is_named(content: bytes, tmp_path: Path, name: str) -> None:
    (tmp_path / "model.bemf").write_bytes(forged(content, metadata(model=name)))
    with pytest.raises(bemf.ModelFileError, match=rf"holds a {name}, which this bemf does not know"):
        bemf.load(tmp_path / "model.bemf")


@pytest.mark.parametrize("sign", [True, False], ids=["whole", "checksum-of-another-kind"])
def test_a_newer_format_names_both_versions_and_the_remedy(content: bytes, tmp_path: Path, sign: bool) -> None:
    newer = forged(content, metadata(format=str(FORMAT + 1), bemf="7.8.9", novelty="yes"))
    (tmp_path / "model.bemf").write_bytes(newer if sign else newer + b"more")
    says = rf"bemf 7\.8\.9 in format {FORMAT + 1}.*up to {FORMAT}.*install a newer"
    with pytest.raises(bemf.ModelFileError, match=says):
        bemf.load(tmp_path / "model.bemf")


WATCHED_LOAD = """
import sys
import bemf
path, events, watching = sys.argv[1], [], False
sys.addaudithook(lambda event, _: events.append(event) if watching else None)
bemf.load(path)  # imports what there is to import
watching = True
model = bemf.load(path)
watching = False
code = ("exec", "compile", "import", "marshal", "code.", "pickle.", "os.", "subprocess.", "ctypes.", "socket.")
print([event for event in events if event.startswith(code)], len(events) > 0, model.n_iter_)
"""


def test_loading_executes_nothing(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.bemf"
    path.write_bytes(content)
    out = subprocess.run([sys.executable, "-c", WATCHED_LOAD, path], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[] True 1"


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
