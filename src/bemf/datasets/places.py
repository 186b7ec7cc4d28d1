"""Where the files of data sets are."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

from bemf.errors import DataError

LARGEST_MEMBER = 4 << 30  # bytes; the largest file wanted here has .7


def cache_folder() -> Path:
    """Where downloads are kept: `$BEMF_CACHE`, or a folder in the user's cache (`$XDG_CACHE_HOME` is heeded).

    >>> cache_folder().is_absolute()
    True
    """
    if own := os.environ.get("BEMF_CACHE"):
        return Path(own).absolute()
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():
        return given / "bemf"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "bemf"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "bemf" / "cache"
    return Path.home() / ".cache" / "bemf"


def found(*names: str) -> Path | None:
    """The first of some files that is in `$BEMF_DATA`, or else in the cache folder."""
    own = os.environ.get("BEMF_DATA")
    folders = [Path(own).absolute(), cache_folder()] if own else [cache_folder()]
    paths = (folder / name for folder in folders for name in names if name)
    return next((path for path in paths if path.exists()), None)


def member(archive: Path, path: str) -> zipfile.Path:
    """A file within a zip archive, of which nothing else is looked at."""
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(path):
            size = opened.getinfo(path).file_size
    except KeyError as error:
        raise DataError(f"{archive} has no {path} in it") from error
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError) as error:  # the last if it is encrypted
        raise DataError(f"{archive} is no zip archive, or not one that can be read ({error}); remove it") from error
    if size > LARGEST_MEMBER:
        raise DataError(f"{archive} has a {path} of {size:,} bytes, which cannot be right; remove it")
    return zipfile.Path(archive, path)
