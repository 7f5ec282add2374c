"""Free loopback ports for a new cluster.

A port is free when it can be bound now; between that and the component's own bind, another program may take it, so `up`
tries again with other ports when a component says so.
"""

import random
import socket
from typing import Final

from vcjob.cluster.components import Ports
from vcjob.cluster.errors import ClusterError

__all__ = ("choose_ports",)

# Below the ports that the kernel gives to outgoing connections (by default 32768 and up), which come and go.
_RANGE: Final = range(20000, 30000)
_TRIES: Final = 200


def choose_ports() -> Ports:
    """Return ports that are free now; raises ClusterError when the machine has none."""
    free: list[int] = []
    for port in random.sample(_RANGE, _TRIES):
        if _is_free(port):
            free.append(port)
        if len(free) == 3:
            return Ports(apiserver=free[0], controller_manager=free[1], scheduler=free[2])
    raise ClusterError(f"no free loopback ports between {_RANGE.start} and {_RANGE.stop}")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Without it, a port whose last connection is in TIME_WAIT looks taken; servers set it as well.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
