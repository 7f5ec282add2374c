"""What a Command object asks for."""

from dataclasses import dataclass

__all__ = ("CommandRequest",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """A Command object that names a Job."""

    namespace: str
    name: str
    uid: str
    action: str
    target: str  # the Job's name
    target_uid: str
    reason: str = ""
