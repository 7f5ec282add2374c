"""File locks between commands: one command at a time works on a cluster, or fills the cache.

The kernel frees a lock when the last process that holds the open file ends, so a killed command never leaves one
locked.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from vcjob.cluster.errors import Busy
from vcjob.cluster.progress import Progress

__all__ = ("locked",)

_POLL_S: Final = 0.1


@contextmanager
def locked(path: Path, *, what: str, wait_s: float, say: Progress) -> Iterator[int]:
    """Hold the lock at `path` and yield its file descriptor; raises Busy after `wait_s` seconds.

    The file may be removed by whoever holds the lock.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = _try(path)
    if descriptor is None:
        say(f"another vcjob command works on {what}; waiting for it")
        deadline = time.monotonic() + wait_s
        while (descriptor := _try(path)) is None:
            if time.monotonic() > deadline:
                raise Busy(f"another vcjob command has been working on {what} for {wait_s:.0f} s; try again later")
            time.sleep(_POLL_S)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try(path: Path) -> int | None:
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The former holder may have removed the file after we opened it: then others lock a new one.
        if os.fstat(descriptor).st_ino == path.stat().st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None
