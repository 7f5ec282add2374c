"""Whom the passes over Jobs tell what happened."""

from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Protocol

from vcjob.api.job import Phase
from vcjob.lifecycle.outcome import EventNote
from vcjob.lifecycle.status import Status

from .jobs import JobRecord
from .requests import CommandRequest

__all__ = ("Observer", "PassResult")


class PassResult(StrEnum):
    """How a pass over a Job ended, in controller-runtime's words."""

    SUCCESS = "success"  # nothing is to be done before something happens
    REQUEUE_AFTER = "requeue_after"  # the Job is to be looked at again at some time
    ERROR = "error"


class Observer(Protocol):
    """Told what happened, for Events and metrics, after it has happened."""

    def event(self, record: JobRecord, note: EventNote) -> None: ...

    def command_dropped(self, request: CommandRequest) -> None: ...

    def phase_changed(self, record: JobRecord, old: Phase | None, new: Status) -> None: ...

    def pods_created(self, record: JobRecord, count: int, latency_s: float) -> None: ...

    def job_gone(self, record: JobRecord) -> None: ...

    def pass_began(self, waited_s: float) -> None: ...

    def passing(self, key: tuple[str, str]) -> AbstractContextManager[Any]: ...

    def pass_ended(self, result: PassResult, took_s: float) -> None: ...
