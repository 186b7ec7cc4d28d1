"""Ctrl-C, wherever it comes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

AGAIN = 0.2  # seconds


@contextmanager
def heeded() -> Iterator[None]:
    """Ctrl-C ends what is done here with a KeyboardInterrupt, also in the middle of an import.

    Libraries that are being imported may swallow it, or fail in a way of their own: it is raised again until
    it is heeded, and every error after it is its own. Where it is ignored, as in the background, it stays so.
    """
    came = []

    def interrupt(number: int, _: object) -> NoReturn:
        came.append(number)
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
        raise KeyboardInterrupt

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    before = {each: signal.signal(each, interrupt) for each in (signal.SIGINT, signal.SIGALRM) if usual}
    try:
        yield
    except Exception as error:
        if came:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for each, handler in before.items():
            signal.signal(each, handler)
