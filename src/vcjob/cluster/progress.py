"""Telling a person what takes long: one line a step on stderr, with the seconds so far.

On a terminal the line is renewed each second; elsewhere (CI logs) a line is added each half minute.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

__all__ = ("Progress",)

_TERMINAL_PERIOD_S: Final = 1.0
_LOG_PERIOD_S: Final = 30.0


class Progress:
    """Says things on a stream; calling it says one sentence."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def __call__(self, sentence: str) -> None:
        """Say one sentence, on a line of its own."""
        with self._lock:
            self._stream.write(f"{sentence}\n")
            self._stream.flush()

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Say that a step has begun, that it still goes on, and how long it took in the end."""
        began = time.monotonic()
        ended = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(what, began, ended), name="progress", daemon=True)
        if not self._stream.isatty():
            self(f"{what} …")
        ticker.start()
        outcome = "failed"
        try:
            yield
            outcome = "done"
        finally:
            ended.set()
            ticker.join()
            start = "\r" if self._stream.isatty() else ""
            self(f"{start}{what}: {outcome} after {_duration(began)}")

    def _tick(self, what: str, began: float, ended: threading.Event) -> None:
        terminal = self._stream.isatty()
        while not ended.wait(_TERMINAL_PERIOD_S if terminal else _LOG_PERIOD_S):
            with self._lock:
                self._stream.write(f"\r{what} … {_duration(began)} " if terminal else f"{what} … {_duration(began)}\n")
                self._stream.flush()


def _duration(began: float) -> str:
    minutes, seconds = divmod(int(time.monotonic() - began), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
