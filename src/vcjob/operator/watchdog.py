"""Ends the process when it can no longer see what it should, because only a new one can: kopf starts no watcher twice.

Outside of Kubernetes nobody asks /livez, and a process that is deaf and looks healthy is the worst of all.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from vcjob.kube.clock import steady

__all__ = ("WatcherLost", "watch_over")

_PATIENCE_S: Final = 30.0
_EVERY_S: Final = 5.0


class WatcherLost(Exception):
    """A watch is gone for good. The message says which."""


async def watch_over(
    find_fault: Callable[[], str],
    *,
    patience_s: float = _PATIENCE_S,
    every_s: float = _EVERY_S,
    now: Callable[[], float] = steady,
) -> None:
    """Ask for a fault again and again; raise WatcherLost when there has been one for longer than `patience_s`."""
    since: float | None = None
    while True:
        fault = find_fault()
        if not fault:
            since = None
        elif since is None:
            since = now()
        elif now() - since > patience_s:
            raise WatcherLost(fault)
        await asyncio.sleep(every_s)
