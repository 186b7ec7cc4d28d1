"""Model files that are damaged, foreign or forged: refused, and nothing in them is run."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import resource
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import bemf
from bemf.persistence import FORMAT
from test_persistence import content, everything, model

__all__ = ["content", "model"]

Header = dict[str, Any]


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
    with pytest.raises(bemf.ModelFileError, match=rf"^{re.escape(str(path))}: damaged"):
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
    "format-is-infinite": with_header(b'{"__metadata__":{"bemf":"1","sha256":"","format":Infinity}}'),
    "format-is-minus-infinite": with_header(b'{"__metadata__":{"bemf":"1","sha256":"","format":-Infinity}}'),
    "format-is-too-large": with_header(b'{"__metadata__":{"bemf":"1","sha256":"","format":1e999}}'),
    "format-is-nan": with_header(b'{"__metadata__":{"bemf":"1","sha256":"","format":NaN}}'),
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
    "rows-and-scores-swapped": tensor("state.U", shape=[3, 2, 2]),
    "rows-in-place-of-scores": tensor("state.V", shape=[1, 6, 2]),
    "facts-of-two-dimensions": tensor("fact.user_counts_", shape=[3, 1]),
    "factors-are-integers": tensor("state.U", dtype="I32"),
    "another-block": lambda header: header.update({"state.X": header.pop("state.V")}),
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
    "parameters-are-a-list": metadata(parameters="[]"),
    "parameters-are-null": metadata(parameters="null"),
    "parameters-are-nested": metadata(parameters="[" * 100_000),
    "parameters-are-out-of-range": metadata(parameters='{"n_factors":"x","dtype":"float99"}'),
    "history-is-a-number": metadata(history="3"),
    "history-is-nested": metadata(history="[" * 100_000),
    "count-is-no-number": metadata(n_iter="many"),
    "metadata-is-a-number": metadata(n_iter=1),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED.keys())
def test_forged_files_are_refused(content: bytes, change: Callable[[Header], object], tmp_path: Path) -> None:
    path = tmp_path / "forged.bemf"
    path.write_bytes(forged(content, change))
    with little_memory(), pytest.raises(bemf.ModelFileError, match=r"forged\.bemf: not a model"):
        bemf.load(path)


@pytest.mark.parametrize("number", ["0", "-5"])
def test_a_format_that_never_was_is_refused(content: bytes, tmp_path: Path, number: str) -> None:
    (tmp_path / "forged.bemf").write_bytes(forged(content, metadata(format=number)))
    with pytest.raises(bemf.ModelFileError, match=r"forged\.bemf: damaged"):
        bemf.load(tmp_path / "forged.bemf")


def test_strings_that_are_no_utf8_are_refused(content: bytes, tmp_path: Path) -> None:
    broken = content.replace(b"annbobcem", b"ann\xff\xfe\xfdcem")
    assert broken != content
    (tmp_path / "forged.bemf").write_bytes(forged(broken, metadata()))
    with pytest.raises(bemf.ModelFileError, match="not a model"):
        bemf.load(tmp_path / "forged.bemf")


@pytest.mark.parametrize("name", ["Oracle", "os.system", "bemf.models.bemf", "__builtins__", "LARGEST_HEADER"])
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
