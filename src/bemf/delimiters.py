"""Delimiters of several bytes, as `::`, in place of which Arrow gets one: it can split on no others."""

from __future__ import annotations

import io
from typing import Any

UNIT_SEPARATOR = "\x1f"


def one_byte_delimiters(stream: Any, delimiter: str, block: int) -> Any:
    r"""An Arrow stream with each delimiter as a unit separator, read in blocks of so many bytes.

    >>> import pyarrow
    >>> one_byte_delimiters(pyarrow.BufferReader(b"1::2::3"), "::", 4).read(5)
    b'1\x1f2\x1f3'
    """
    import pyarrow as pa

    return pa.PythonFile(io.BufferedReader(Replacing(stream, delimiter.encode(), block), block), mode="r")


class Replacing(io.RawIOBase):
    """The bytes of a stream with a delimiter replaced, wherever its blocks end."""

    def __init__(self, stream: Any, delimiter: bytes, block: int) -> None:
        self._stream, self._delimiter, self._block = stream, delimiter, block
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._ready = self._ready or self._next()
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _next(self) -> bytes:
        part = more = self._stream.read(self._block)
        while more and part[-1:] in self._delimiter:  # the delimiter may go on in what comes
            more = self._stream.read(self._block)
            part += more
        return bytes(part.replace(self._delimiter, UNIT_SEPARATOR.encode()))
