"""What a pass over a Job looks at and whom it tells: the ports of the reconciler."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Protocol

from vcjob.api.job import Phase
from vcjob.gang.base import Group
from vcjob.lifecycle.outcome import EventNote
from vcjob.lifecycle.pod import Pod
from vcjob.lifecycle.status import Status

from .jobs import JobRecord

__all__ = ("Observer", "PassResult", "Surroundings")


class PassResult(StrEnum):
    """How a pass over a Job ended, in controller-runtime's words."""

    SUCCESS = "success"  # nothing is to be done before something happens
    REQUEUE_AFTER = "requeue_after"  # the Job is to be looked at again at some time
    ERROR = "error"


class Observer(Protocol):
    """Told what happened, for Events and metrics, after it has happened."""

    def event(self, record: JobRecord, note: EventNote) -> None: ...

    def phase_changed(self, record: JobRecord, old: Phase | None, new: Status) -> None: ...

    def pods_created(self, record: JobRecord, count: int, latency_s: float) -> None: ...

    def job_gone(self, record: JobRecord) -> None: ...

    def pass_began(self, waited_s: float) -> None: ...

    def passing(self, key: tuple[str, str]) -> AbstractContextManager[Any]: ...

    def pass_ended(self, result: PassResult, took_s: float) -> None: ...


class Surroundings(Protocol):
    """What a pass looks at besides the Job's own record."""

    def job(self, key: tuple[str, str]) -> JobRecord | None: ...

    def put_job(self, raw: dict[str, Any]) -> None: ...

    def drop_job(self, record: JobRecord) -> None: ...

    async def read_job(self, record: JobRecord) -> None: ...

    async def read_pods(self, record: JobRecord) -> None: ...

    def pods_of(self, record: JobRecord) -> Mapping[str, Pod]: ...

    def group_of(self, record: JobRecord) -> Group | None: ...

    def queue_of(self, name: str) -> Mapping[str, Any] | None: ...

    def knows_queues(self) -> bool: ...

    def priorities(self) -> Mapping[str, int]: ...

    def now(self) -> float: ...

    def is_busy(self) -> bool:
        """Return whether so many writes are under way that what can wait should."""
        ...

    def await_quiet(self, key: tuple[str, str]) -> None:
        """Have the Job looked at when that is over."""
        ...
