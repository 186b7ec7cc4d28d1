"""A site of one file, that can be told to misbehave."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Site:
    """What it serves and how, and what it was asked for."""

    content: bytes = b""
    status: int | None = None  # answers this, with no file
    ranges: bool = True  # knows parts of the file
    length: bool = True  # says how long the file is
    breaks: list[int] = field(default_factory=list)  # after how many bytes each of the next answers ends
    stalls: bool = False  # keeps the connection where it breaks, for as long as a test may take
    pause: float = 0.0  # seconds before each thousand bytes
    said: str | None = None  # a Content-Range of its own
    asked: list[int | None] = field(default_factory=list)  # from which byte on
    address: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    def reset(self, content: bytes, **how: Any) -> Site:
        """Another file, and good manners but for those named."""
        vars(self).update(vars(Site(content, address=self.address, over=self.over, **how)))
        return self

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        match = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range") or "")
        self.asked.append(int(match[1]) if match else None)
        start = int(match[1]) if match and self.ranges else 0
        n = len(self.content)
        if self.status or (start and start >= n):
            return self._head(handler, self.status or 416, 0)
        if match and self.ranges:
            self._head(handler, 206, n - start, self.said or f"bytes {start}-{n - 1}/{n if self.length else '*'}")
        else:
            self._head(handler, 200, n)
        return self._body(handler, self.content[start:])

    def _head(self, handler: BaseHTTPRequestHandler, status: int, length: int, part: str = "") -> None:
        handler.send_response(status)
        if self.length:
            handler.send_header("Content-Length", str(length))
        if part:
            handler.send_header("Content-Range", part)
        handler.end_headers()

    def _body(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        broken = bool(self.breaks)
        body = body[: self.breaks.pop(0)] if broken else body
        for place in range(0, len(body), 1000):
            time.sleep(self.pause)
            handler.wfile.write(body[place : place + 1000])
        if broken and self.stalls:
            self.over.wait(20)


@contextmanager
def served() -> Iterator[Site]:
    """A site on this machine, closed at the end."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                site.answer(self)
            except ConnectionError:  # the other side was killed
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.address = f"http://127.0.0.1:{server.server_address[1]}/file.zip"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        try:
            yield site
        finally:
            site.over.set()
            server.shutdown()
