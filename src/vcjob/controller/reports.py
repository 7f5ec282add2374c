"""What the writers of a stage share: what came of it, what each write waits for, and where its answer goes."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from vcjob.plugins.base import Note

from .refusals import Refusal

__all__ = ("Report", "Sink", "Slot")

T_contra = TypeVar("T_contra", contravariant=True)

Slot = AbstractAsyncContextManager[None]
"""What a write waits for: its turn, and that this process may still write."""


class Sink(Protocol[T_contra]):
    """Where the answers to writes go."""

    def put(self, item: T_contra) -> None: ...

    def remove(self, key: tuple[str, str], *, uid: str) -> None: ...


@dataclass(slots=True, kw_only=True)
class Report:
    """What a stage came to."""

    refusals: list[Refusal] = field(default_factory=list)
    created: int = 0  # Pods
    deleted: int = 0  # Pods
    notes: list[Note] = field(default_factory=list)
    cut: bool = False  # not all was tried: the Job was to be looked at again in between
    job: dict[str, Any] | None = None  # the Job as it is after a step changed it

    def add(self, other: "Report") -> None:
        """Take in what another report says."""
        self.refusals += other.refusals
        self.created += other.created
        self.deleted += other.deleted
        self.notes += other.notes
        self.cut = self.cut or other.cut
        self.job = other.job or self.job
