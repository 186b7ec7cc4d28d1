"""Files from the network: continued where they broke off, and in their place only when they are right."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from bemf.errors import DataError

CHUNK = 1 << 16
TIMEOUT = 30.0  # seconds without a byte
TOLD_EVERY = 0.05  # seconds

Told = Callable[[int, int | None], object]
"""Called with how many bytes are here, and how many there will be if the server says so."""


def fetch(address: str, target: Path, check: Callable[[Path], object], tell: Told) -> None:
    """Downloads a file and puts it in its place when `check` has not refused it with a DataError.

    If the connection, the disk or the process fails, what has come stays in `<target>.part` and the next
    call goes on from there. Of several processes one downloads and the others wait for it.
    """
    part = target.with_name(f"{target.name}.part")
    with _alone(part) as file:
        if target.exists():  # another process was first
            part.unlink(missing_ok=True)
            return
        try:
            _complete(address, file, lambda: check(part), tell)
        except _DownloadError as failure:
            raise DataError(
                f"{address} cannot be downloaded: {failure}. Try again, or get the file in another way "
                f"and put it at {target}"
            ) from failure
        os.fsync(file.fileno())
        os.replace(part, target)


class _DownloadError(Exception):
    """Why a download did not come to its end."""


@contextmanager
def _alone(part: Path) -> Iterator[BinaryIO]:
    """The partial file, open, for one process at a time."""
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        file = part.open("ab", buffering=0)
    except OSError as error:
        raise DataError(f"{part} cannot be written ({error.strerror}); set BEMF_CACHE to another folder") from error
    with file:
        with suppress(ImportError, OSError):  # where there are no locks, the check has to do
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _complete(address: str, file: BinaryIO, check: Callable[[], object], tell: Told) -> None:
    """Fills the file until it is right; begins anew once if it had been begun before."""
    continued = _size(file) > 0
    while True:
        _fill(address, file, tell)
        try:
            check()
        except DataError as error:
            file.truncate(0)  # not what was wanted, or two versions of it one after the other
            if not continued:
                raise _DownloadError(f"{error}; it was not kept") from error
            continued = False
        else:
            return


def _fill(address: str, file: BinaryIO, tell: Told) -> None:
    """Takes in what is missing, again and again for as long as that brings something."""
    from http.client import HTTPException
    from urllib.error import HTTPError

    while True:
        before = _size(file)
        try:
            total = _receive(address, file, before, tell)
            if total is None or _size(file) >= total:
                return
            reason = f"the connection ended after {_size(file):,} of {total:,} bytes, which are kept"
        except HTTPError as error:
            error.close()
            if error.code == 416 and before:  # there is no more than is here
                return
            raise _DownloadError(f"the server answers {error.code} {error.reason}") from error
        except (OSError, HTTPException) as error:
            reason = f"{getattr(error, 'reason', None) or error or type(error).__name__}"
        if _size(file) <= before:
            raise _DownloadError(reason)


def _receive(address: str, file: BinaryIO, start: int, tell: Told) -> int | None:
    """Appends what the server sends from `start`, or from wherever it chooses to; returns the full length."""
    from urllib.request import Request, urlopen

    headers = {"User-Agent": "bemf", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with urlopen(Request(address, headers=headers), timeout=TIMEOUT) as response:
        first, total = _extent(response, start)
        file.truncate(first)
        _copy(response, file, lambda: tell(_size(file), total))
    return total


def _extent(response: Any, start: int) -> tuple[int, int | None]:
    """The place of the first byte that the server sends, and the length of the whole file."""
    if response.status != 206:
        return 0, response.length
    said = response.headers.get("Content-Range", "")
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", said)
    if match is None or int(match[1]) > start:
        raise _DownloadError(f"the server sends another part, {said!r}, than that from byte {start:,}")
    return int(match[1]), None if match[2] == "*" else int(match[2])


def _copy(response: Any, file: BinaryIO, tell: Callable[[], object]) -> None:
    tell()
    told = time.monotonic()
    while chunk := response.read(CHUNK):
        _write(file, chunk)
        if time.monotonic() - told >= TOLD_EVERY:
            tell()
            told = time.monotonic()
    tell()


def _write(file: BinaryIO, chunk: bytes) -> None:
    rest = memoryview(chunk)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        raise _DownloadError(
            f"{file.name} cannot be written ({error.strerror}); make room, or set BEMF_CACHE to another folder; "
            f"{_size(file):,} bytes are kept"
        ) from error


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size
