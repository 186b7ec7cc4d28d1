"""Models in files: safetensors with everything that is no array in its header. Loading runs no code.

The header's `sha256` is that of the whole file with 64 zeros in its own place, so that no byte can
change unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bemf import _native
from bemf.errors import ModelFileError, ParameterError
from bemf.models import MODELS, model_class
from bemf.recommender import Recommender, Sizes
from bemf.rows import Rows
from bemf.vocabulary import Vocabulary

FORMAT = 1
LARGEST_HEADER = 100_000_000  # as safetensors itself has it
NO_CHECKSUM = "0" * 64
VOCABULARIES = {"users": "user", "items": "item"}
RATED = ("indptr", "indices", "score_index")
FACTS = ("classes_", "prior_", "user_counts_", "item_counts_")


def save(model: Recommender, path: str | PathLike[str], ratings: bool = True) -> None:
    """Writes a fitted model to one file, atomically, with or without its training ratings."""
    from safetensors.numpy import save as to_bytes

    tensors: dict[str, NDArray[Any]] = {f"state.{name}": np.asarray(block) for name, block in model.state_.items()}
    tensors |= {f"fact.{name}": getattr(model, name) for name in FACTS}
    for side in VOCABULARIES:
        arrays = getattr(model, f"{side}_").to_arrays()
        tensors |= {f"{side}.{name}": array for name, array in arrays.items()}
    if ratings and model.rated_ is not None:
        tensors |= {f"rated.{name}": getattr(model.rated_, name) for name in RATED}
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
        return _from_bytes(Path(path).read_bytes())
    except FileNotFoundError as error:
        raise ModelFileError(f"{path}: there is no such file") from error
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror or error}") from error


def _from_bytes(content: bytes) -> Recommender:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    metadata = _checked_metadata(content)
    try:
        return _rebuilt(metadata, from_bytes(content))
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"not a model that this bemf can read ({error})") from error


def _metadata(model: Recommender) -> dict[str, str]:
    from bemf import __version__

    return {
        "format": str(FORMAT),
        "bemf": __version__,
        "model": type(model).__name__,
        "parameters": json.dumps(_plain_parameters(model), default=_plain),
        "history": json.dumps(model.history_),
        "n_iter": str(model.n_iter_),
        "data": model.fingerprint_,
        "sha256": NO_CHECKSUM,
    }


def _plain_parameters(model: Recommender) -> dict[str, Any]:
    """The hyperparameters as JSON can hold them; an object, such as an activation of one's own, it cannot."""
    parameters = model.get_params()
    for name in {"engine", "activation"} & set(parameters):
        parameters[name] = getattr(parameters[name], "name", parameters[name])
    if parameters.get("activation") == "custom":
        raise ParameterError("a model with an activation of your own cannot be saved: files hold no code")
    return parameters


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, and ranges, as JSON has them."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else list(value)


def _rebuilt(metadata: dict[str, str], tensors: dict[str, NDArray[Any]]) -> Recommender:
    name = metadata["model"]
    if name not in MODELS:
        raise ModelFileError(f"it holds a {name}, which this bemf does not know")
    parameters: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in json.loads(metadata["parameters"]).items()
    }
    model = model_class(name)(**parameters)
    for side, what in VOCABULARIES.items():
        arrays = {key.partition(".")[2]: value for key, value in tensors.items() if key.startswith(f"{side}.")}
        setattr(model, f"{side}_", Vocabulary.from_arrays(arrays, what))
    for fact in FACTS:
        setattr(model, fact, tensors[f"fact.{fact}"])
    state = {key.removeprefix("state."): value for key, value in tensors.items() if key.startswith("state.")}
    model.set_state(dict(state))
    rated = [tensors[f"rated.{name}"] for name in RATED if f"rated.{name}" in tensors]
    model.rated_ = Rows(*rated) if rated else None
    history = json.loads(metadata["history"])
    model.history_ = {name: [float(each) for each in history[name]] for name in ("objective", "validation")}
    model.n_iter_ = int(metadata["n_iter"])
    model.fingerprint_ = metadata["data"]
    model.check_parameters()
    _check_shapes(model, state)
    return model


def _check_shapes(model: Recommender, state: dict[str, NDArray[Any]]) -> None:
    """Refuses arrays that do not fit each other, however good their checksum: the kernels trust them."""
    sizes = Sizes(len(model.classes_), len(model.users_), len(model.items_))
    vectors = {"prior": (model.prior_, sizes.scores), "scores": (model.classes_, sizes.scores)}
    vectors |= {"user counts": (model.user_counts_, sizes.users), "item counts": (model.item_counts_, sizes.items)}
    for name, (vector, length) in vectors.items():
        if vector.shape != (length,) or not length:
            raise ValueError(f"{name} have shape {vector.shape}")
    if model.rated_ is not None:
        _check_rated(model.rated_, sizes)
    model.check_state(state, sizes)


def _check_rated(rated: Rows, sizes: Sizes) -> None:
    if len(rated) != sizes.users:
        raise ValueError(f"{len(rated)} rows of ratings for {sizes.users} users")
    _native.check_rows(rated.indptr, rated.indices, rated.score_index, sizes.items, sizes.scores)
    falls = np.flatnonzero(np.diff(rated.indices) <= 0) + 1
    if not np.isin(falls, rated.indptr).all():
        raise ValueError("a user's ratings are not in the order of the items")


# -- the file itself -------------------------------------------------------------------------------


def _checksum_field(value: str) -> bytes:
    return f'"sha256":"{value}"'.encode()


def _checked_metadata(content: bytes) -> dict[str, str]:
    """The header's texts, if the content is a model, whole, and of a format known here."""
    if not content:
        raise ModelFileError("not a bemf model: it is empty")
    (length,) = struct.unpack("<Q", content[:8]) if len(content) >= 8 else (0,)
    header = content[8 : 8 + length] if 2 <= length <= min(LARGEST_HEADER, len(content) - 8) else b""
    try:
        metadata = {str(key): str(value) for key, value in json.loads(header)["__metadata__"].items()}
        written_by, of_format, checksum = metadata["bemf"], int(metadata["format"]), metadata["sha256"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError("not a bemf model, or its beginning is damaged") from error
    if of_format > FORMAT:
        raise ModelFileError(
            f"written by bemf {written_by} in format {of_format}; this bemf reads up to {FORMAT}: install a newer one"
        )
    place = 8 + header.find(_checksum_field(checksum)) + len(_checksum_field("")) - 1
    digest = hashlib.sha256(content[:place] + NO_CHECKSUM.encode())
    digest.update(memoryview(content)[place + 64 :])
    if of_format < 1 or digest.hexdigest() != checksum:
        raise ModelFileError("damaged: its checksum does not fit; save the model again, or take a backup")
    return metadata


def write_atomically(path: str | PathLike[str], content: bytes | bytearray) -> None:
    """Writes a file so that at every moment the old one or the new one is there, whole."""

    def write(file: Any) -> None:
        file.write(content)

    replace_atomically(path, write)


def replace_atomically(path: str | PathLike[str], write: Callable[[Any], None]) -> None:
    """Lets `write` fill a file beside `path`, then puts it in its place; a device or pipe is written to."""
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            with open(target, "wb") as file:
                write(file)
        else:
            _replace(target, write)
    except OSError as error:
        raise type(error)(error.errno, error.strerror or str(error), os.fspath(path)) from error


def _replace(target: Path, write: Callable[[Any], None]) -> None:
    handle, beside = tempfile.mkstemp(prefix=".bemf-", suffix=".part", dir=target.parent)
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
