"""What a refused write means for the Job: wait and try again, or give up. Pure."""

from dataclasses import dataclass
from typing import Final

from vcjob.kube.backoff import retry_delay
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

__all__ = ("BACKOFF_CAP_S", "Refusal", "judge", "wait_after")

BACKOFF_CAP_S: Final = 60.0
# The server may be well again at any moment, and how much it is asked meanwhile is the limiter's matter.
_TRANSIENT_CAP_S: Final = 5.0
# For what a user is about to make and no watch tells us of: a claim, a freed name.
_UNWATCHED_CAP_S: Final = 10.0
_UNWATCHED: Final = ("ClaimNotFound", "NameConflict", "OldPodsTerminating", "QuotaExceeded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A step that did not happen. `reason` goes into the status as it is, `message` says what was refused and why."""

    reason: str
    message: str
    permanent: bool = False  # says the server: trying again can never help
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
        return Refusal(reason="InvalidSpec", message=message, permanent=True)
    if isinstance(error, TooLarge):
        return Refusal(reason="TooLarge", message=message, permanent=True)
    if isinstance(error, AlreadyExists):
        return Refusal(reason="NameConflict", message=message)
    if isinstance(error, NotFound):
        return Refusal(reason="NotFound", message=message)
    return Refusal(reason=error.reason or "Refused", message=message)


def wait_after(refusal: Refusal, *, attempt: int, chance: float) -> float:
    """Return the seconds to wait after a refusal; `attempt` counts from 0, `chance` is as of `retry_delay`."""
    if refusal.retry_after:
        return min(BACKOFF_CAP_S, refusal.retry_after)
    cap = _TRANSIENT_CAP_S if refusal.transient else BACKOFF_CAP_S
    return retry_delay(attempt, chance=chance, cap_s=_UNWATCHED_CAP_S if refusal.reason in _UNWATCHED else cap)
