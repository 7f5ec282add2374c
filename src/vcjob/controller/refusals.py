"""What a refused write means for the Job: wait and try again, or give up. Pure."""

from dataclasses import dataclass

from vcjob.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
    TooLarge,
    Transient,
)

__all__ = ("Refusal", "judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A step that did not happen. `reason` goes into the status as it is, `message` says what was refused and why."""

    reason: str
    message: str
    permanent: bool = False  # trying again can never help
    transient: bool = False  # the server is not well; nothing is wrong with the Job
    conflict: bool = False  # the snapshot was old: look again at once
    deletion: bool = False  # what was refused is a deletion
    retry_after: float | None = None  # seconds, as the server asked


def judge(error: ApiError, *, action: str) -> Refusal:
    """Return what an error means; `action` names the step ("create pod j-t-0")."""
    message = f"{action}: {error.message}"
    if isinstance(error, Conflict):
        return Refusal(reason="Conflict", message=message, transient=True, conflict=True)
    if isinstance(error, Throttled):
        return Refusal(reason="ApiServerBusy", message=message, transient=True, retry_after=error.retry_after)
    if isinstance(error, Transient):
        return Refusal(reason="ApiServerUnavailable", message=message, transient=True, retry_after=error.retry_after)
    if isinstance(error, Forbidden):
        if error.quota:
            return Refusal(reason="QuotaExceeded", message=message)
        if error.terminating:
            return Refusal(reason="NamespaceTerminating", message=message)
        return Refusal(reason="AdmissionDenied" if error.policy else "Forbidden", message=message)
    if isinstance(error, Invalid):
        return Refusal(reason="Invalid", message=message, permanent=True)
    if isinstance(error, TooLarge):
        return Refusal(reason="TooLarge", message=message, permanent=True)
    if isinstance(error, AlreadyExists):
        return Refusal(reason="NameConflict", message=message)
    if isinstance(error, NotFound):
        return Refusal(reason="NotFound", message=message)
    return Refusal(reason=error.reason or "Refused", message=message)
