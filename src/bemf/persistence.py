"""Models in files: safetensors with everything that is no array in its header. Loading runs no code.

The header's `sha256` is that of the whole file with 64 zeros in its own place, so that no byte can
change unnoticed.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import mmap
import os
import struct
import tempfile
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bemf.errors import ModelFileError, ParameterError
from bemf.vocabulary import Vocabulary

if TYPE_CHECKING:
    from bemf.recommender import Recommender

FORMAT = 1
MODELS = {"BeMF": "bemf.models.bemf"}
LARGEST_HEADER = 100_000_000  # as safetensors itself has it
NO_CHECKSUM = "0" * 64
VOCABULARIES = {"users": "user", "items": "item"}
FACTS = ("classes_", "prior_", "user_counts_", "item_counts_")


def save(model: Recommender, path: str | PathLike[str]) -> None:
    """Writes a fitted model to one file, atomically."""
    from safetensors.numpy import save as to_bytes

    tensors: dict[str, NDArray[Any]] = {f"state.{name}": block for name, block in model.state_.items()}
    tensors |= {f"fact.{name}": getattr(model, name) for name in FACTS}
    for side in VOCABULARIES:
        arrays = getattr(model, f"{side}_").to_arrays()
        tensors |= {f"{side}.{name}": array for name, array in arrays.items()}
    tensors = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    content = bytearray(to_bytes(tensors, metadata=_metadata(model)))
    place = content.index(_checksum_field(NO_CHECKSUM)) + len(_checksum_field("")) - 1
    content[place : place + 64] = hashlib.sha256(content).hexdigest().encode()
    write_atomically(path, content)


def load(path: str | PathLike[str]) -> Any:
    """The model that `save` wrote, checked from the first byte to the last.

    >>> load("/nowhere.bemf")
    Traceback (most recent call last):
    ...
    bemf.errors.ModelFileError: /nowhere.bemf: there is no such file
    """
    try:
        return _load(Path(path))
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


def _load(path: Path) -> Recommender:
    from safetensors import SafetensorError, safe_open

    metadata = _checked_metadata(path)
    try:
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return _rebuilt(metadata, tensors)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ModelFileError(f"not a model that this bemf can read ({error})") from error


def _metadata(model: Recommender) -> dict[str, str]:
    from bemf import __version__

    return {
        "format": str(FORMAT),
        "bemf": __version__,
        "model": type(model).__name__,
        "parameters": json.dumps(_plain_parameters(model)),
        "history": json.dumps(model.history_),
        "n_iter": str(model.n_iter_),
        "data": model.fingerprint_,
        "sha256": NO_CHECKSUM,
    }


def _plain_parameters(model: Recommender) -> dict[str, Any]:
    """The hyperparameters as JSON can hold them; an object, such as an activation of one's own, it cannot."""
    out = {}
    for name, value in model.get_params().items():
        value = value.item() if isinstance(value, np.generic) else value
        value = value.tolist() if isinstance(value, np.ndarray) else value
        value = list(value) if isinstance(value, tuple | range) else value
        if name in ("engine", "activation"):
            value = getattr(value, "name", value)
            if value == "custom":
                raise ParameterError("a model with an activation of your own cannot be saved: files hold no code")
        out[name] = value
    return out


def _rebuilt(metadata: dict[str, str], tensors: dict[str, NDArray[Any]]) -> Recommender:
    name = metadata["model"]
    if name not in MODELS:
        raise ModelFileError(f"it holds a {name}, which this bemf does not know")
    made = getattr(importlib.import_module(MODELS[name]), name)
    parameters = json.loads(metadata["parameters"])
    model: Recommender = made(**{key: tuple(v) if isinstance(v, list) else v for key, v in parameters.items()})
    for side, what in VOCABULARIES.items():
        arrays = {key.partition(".")[2]: value for key, value in tensors.items() if key.startswith(f"{side}.")}
        setattr(model, f"{side}_", Vocabulary.from_arrays(arrays, what))
    for fact in FACTS:
        setattr(model, fact, tensors[f"fact.{fact}"])
    model.state_ = {key.removeprefix("state."): value for key, value in tensors.items() if key.startswith("state.")}
    model.history_ = json.loads(metadata["history"])
    model.n_iter_ = int(metadata["n_iter"])
    model.fingerprint_ = metadata["data"]
    return model


# -- the file itself -------------------------------------------------------------------------------


def _checksum_field(value: str) -> bytes:
    return f'"sha256":"{value}"'.encode()


def _checked_metadata(path: Path) -> dict[str, str]:
    """The header's texts, if the file is a model, whole, and of a format known here."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _checked(content)
    except FileNotFoundError as error:
        raise ModelFileError("there is no such file") from error
    except ValueError as error:  # an empty file cannot be mapped
        raise ModelFileError("not a bemf model: it is empty") from error
    except OSError as error:
        raise ModelFileError(f"cannot be read: {error.strerror or error}") from error


def _checked(content: mmap.mmap) -> dict[str, str]:
    (length,) = struct.unpack("<Q", content[:8]) if len(content) >= 8 else (0,)
    header = content[8 : 8 + length] if 2 <= length <= min(LARGEST_HEADER, len(content) - 8) else b""
    try:
        metadata = json.loads(header)["__metadata__"]
        written_by, of_format, checksum = metadata["bemf"], int(metadata["format"]), metadata["sha256"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError("not a bemf model, or its beginning is damaged") from error
    if of_format > FORMAT:
        raise ModelFileError(
            f"written by bemf {written_by} in format {of_format}; this bemf reads up to {FORMAT}: install a newer one"
        )
    place = header.find(_checksum_field(str(checksum))) + len(_checksum_field("")) - 1
    digest = hashlib.sha256(content[:8] + header[:place] + NO_CHECKSUM.encode() + header[place + 64 :])
    with memoryview(content) as view:
        digest.update(view[8 + length :])
    if digest.hexdigest() != checksum:
        raise ModelFileError("damaged: its checksum does not fit; save the model again, or take a backup")
    return {str(key): str(value) for key, value in metadata.items()}


def write_atomically(path: str | PathLike[str], content: bytes | bytearray) -> None:
    """Writes a file so that at every moment the old one or the new one is there, whole."""

    def write(file: Any) -> None:
        file.write(content)

    replace_atomically(path, write)


def replace_atomically(path: str | PathLike[str], write: Callable[[Any], None]) -> None:
    """Lets `write` fill a file beside `path`, then puts it in its place."""
    target = Path(os.path.realpath(path))
    handle, beside = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, _usual_mode(target))
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
    _sync_folder(target.parent)


def _usual_mode(target: Path) -> int:
    """The old file's permissions, or those any new file gets."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
