"""What a restart is about, written into the status together with the decision. Pure.

The decision to restart is one status write; everything after it follows from what was written, so a crash at any point
costs nothing. The record lives in `status.controlledResources` under the key `restart` while the restart lasts:

    job                       every Pod of an earlier version goes
    alive                     the Pods of an earlier version that are alive go, finished ones stay
    worker:0-3,7;ps:0         these indices go, where the Pod is older than `status.retryCount`
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from vcjob.api.job import PODS_MAX

from .pod import Pod

__all__ = ("RESTART_KEY", "Restart", "Targets", "restart_delay")

RESTART_KEY: Final = "restart"
BACKOFF_BASE: Final = 2.0  # seconds before the second restart; the first one is immediate
BACKOFF_CAP: Final = 300.0  # seconds

Targets = Mapping[str, frozenset[int]]  # task name -> indices


def restart_delay(retry_count: int) -> float:
    """Return the seconds between entering Restarting and making Pods again.

    The first restart is immediate, then 2, 4, 8 … 300 s: a Job that fails at once must not spin. `retry_count` is the
    number of restarts so far, this one included.
    """
    return 0.0 if retry_count <= 1 else min(BACKOFF_CAP, BACKOFF_BASE * 2.0 ** min(retry_count - 2, 16))


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """The scope of a restart."""

    whole: bool = False
    alive_only: bool = False
    targets: Targets = field(default_factory=dict)

    @classmethod
    def read(cls, text: str | None) -> "Restart | None":
        """Read a record; None when there is none. What cannot be read counts as a restart of the whole Job."""
        if text is None:
            return None
        if text == "alive":
            return cls(alive_only=True)
        try:
            return cls(
                targets={task: _read_ranges(ranges) for task, _, ranges in (p.partition(":") for p in text.split(";"))}
            )
        except ValueError:
            return cls(whole=True)

    def write(self) -> str:
        """Return the record's text."""
        if self.whole:
            return "job"
        if self.alive_only:
            return "alive"
        return ";".join(f"{task}:{_write_ranges(indices)}" for task, indices in sorted(self.targets.items()))

    def widen(self, other: "Restart") -> "Restart":
        """Return the restart that covers both."""
        if self.whole or other.whole:
            return Restart(whole=True)
        return Restart.join((self, other))

    @classmethod
    def join(cls, parts: Iterable["Restart"]) -> "Restart":
        """Return the restart of all the targets together."""
        joined: dict[str, set[int]] = {}
        for part in parts:
            for task, indices in part.targets.items():
                joined.setdefault(task, set()).update(indices)
        return cls(targets={task: frozenset(indices) for task, indices in joined.items()})

    def includes(self, other: "Restart") -> bool:
        """Return whether every target of the other is one of this; a whole restart is included in none."""
        none: frozenset[int] = frozenset()
        return not other.whole and all(found <= self.targets.get(task, none) for task, found in other.targets.items())

    def covers(self, pod: Pod, *, version: int, retry_count: int) -> bool:
        """Return whether the Pod has to go."""
        if pod.job_version < version and (self.whole or not pod.is_finished):
            return True
        return pod.index in self.targets.get(pod.task, ()) and pod.retry < retry_count


def _read_ranges(text: str) -> frozenset[int]:
    out: set[int] = set()
    left = PODS_MAX
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = int(first), int(last or first)
        left -= end - begin + 1
        if begin < 0 or end < begin or left < 0:
            raise ValueError("no indices that Pods of a Job can have")
        out.update(range(begin, end + 1))
    return frozenset(out)


def _write_ranges(indices: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for index in sorted(indices):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
