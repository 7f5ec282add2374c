"""Counters: how many Pods of each task are in which phase.

Pure; computed anew on every pass, never carried over. A Pod counts once: as terminating when it has a deletion
timestamp, otherwise by its phase. Every Pod that the Job owns counts, kept ones of an earlier run too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from .pod import FAILED, PENDING, RUNNING, SUCCEEDED, UNKNOWN, Pod

__all__ = ("Counters", "count_pods")

_KNOWN: Final = frozenset((PENDING, RUNNING, SUCCEEDED, FAILED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Numbers of Pods."""

    pending: int
    running: int
    succeeded: int
    failed: int
    terminating: int
    unknown: int
    tasks: Mapping[str, Mapping[str, int]]

    @property
    def alive(self) -> int:
        """Return how many Pods exist and are not finished."""
        return self.pending + self.running + self.unknown + self.terminating


def count_pods(pods: Iterable[Pod]) -> Counters:
    """Count the Pods given."""
    tasks: dict[str, dict[str, int]] = {}
    terminating = 0
    for pod in pods:
        if pod.deleted is not None:
            terminating += 1
            continue
        phase = pod.phase if pod.phase in _KNOWN else UNKNOWN
        counts = tasks.get(pod.task)
        if counts is None:
            counts = tasks[pod.task] = {}
        counts[phase] = counts.get(phase, 0) + 1

    def total(phase: str) -> int:
        return sum(counts.get(phase, 0) for counts in tasks.values())

    return Counters(
        pending=total(PENDING),
        running=total(RUNNING),
        succeeded=total(SUCCEEDED),
        failed=total(FAILED),
        unknown=total(UNKNOWN),
        terminating=terminating,
        tasks=tasks,
    )
