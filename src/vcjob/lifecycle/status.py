"""The Job's status as a value: read tolerantly, written canonically. Pure.

Zero counters are left out, as Go's `omitempty` does; `taskStatusCount` and the counters always describe the same Pods.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from vcjob.api.job import Phase

__all__ = ("Condition", "Status", "clip", "format_time", "parse_time")

_EARLIEST: Final = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LATEST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
# No Job comes near; what somebody has written there by hand must leave room to count on within an int32.
_COUNT_MAX: Final = 1_000_000_000
_MESSAGE_MAX: Final = 2048  # characters
_COUNTERS: Final = ("pending", "running", "succeeded", "failed", "terminating", "unknown")


def format_time(seconds: float) -> str:
    """Return seconds since the epoch as RFC 3339 in UTC with whole seconds, the form of metav1.Time."""
    return _format_second(int(seconds))


@lru_cache(maxsize=1024)
def _format_second(second: int) -> str:
    # Not strftime, which does not fill years up to four digits everywhere.
    return datetime.fromtimestamp(second, UTC).replace(tzinfo=None).isoformat() + "Z"


def parse_time(text: object) -> float | None:
    """Return the seconds since the epoch of an RFC 3339 time; None for anything else.

    None, too, for a time whose UTC is outside the years that RFC 3339 can write.
    """
    if not isinstance(text, str):
        return None
    try:
        seconds = (
            datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
            if text.endswith("Z")
            else datetime.fromisoformat(text).timestamp()
        )
    except (ValueError, OverflowError):
        return None
    return seconds if _EARLIEST <= seconds <= _LATEST else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """When the Job last entered a phase."""

    status: str
    last_transition: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """`status` of a Job."""

    phase: Phase | None = None  # None: the Job has never been looked at
    reason: str = ""
    message: str = ""
    last_transition: float | None = None
    min_available: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    task_counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    version: int = 0
    retry_count: int = 0
    running_duration: str = ""
    controlled: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()

    @property
    def alive(self) -> int:
        """Return how many Pods are pending, running or terminating."""
        return self.pending + self.running + self.unknown + self.terminating

    @classmethod
    def read(cls, raw: object) -> "Status":
        """Read a status from the API; what is missing or malformed counts as empty."""
        if not isinstance(raw, dict):
            return cls()
        state = raw.get("state")
        state = state if isinstance(state, dict) else {}
        try:
            phase = Phase(str(state.get("phase", "")))
        except ValueError:
            phase = None
        return cls(
            phase=phase,
            reason=_text(state.get("reason")),
            message=_text(state.get("message")),
            last_transition=parse_time(state.get("lastTransitionTime")),
            min_available=_count(raw.get("minAvailable")),
            task_counts=_task_counts(raw.get("taskStatusCount")),
            version=_count(raw.get("version")),
            retry_count=_count(raw.get("retryCount")),
            running_duration=_text(raw.get("runningDuration")),
            controlled={k: v for k, v in _mapping(raw.get("controlledResources")).items() if isinstance(v, str)},
            conditions=tuple(
                Condition(status=_text(c.get("status")), last_transition=parse_time(c.get("lastTransitionTime")))
                for c in raw.get("conditions") or ()
                if isinstance(c, dict) and c.get("status")
            )
            if isinstance(raw.get("conditions"), list)
            else (),
            **{name: _count(raw.get(name)) for name in _COUNTERS},
        )

    def write(self) -> dict[str, Any]:
        """Return the status as the API takes it."""
        state: dict[str, Any] = {"phase": str(self.phase)} if self.phase else {}
        if self.reason:
            state["reason"] = self.reason
        if self.message:
            state["message"] = self.message
        if self.last_transition is not None:
            state["lastTransitionTime"] = format_time(self.last_transition)
        out: dict[str, Any] = {"state": state}
        for name, value in (
            ("minAvailable", self.min_available),
            *((name, getattr(self, name)) for name in _COUNTERS),
            ("version", self.version),
            ("retryCount", self.retry_count),
        ):
            if value:
                out[name] = value
        if self.task_counts:
            out["taskStatusCount"] = {task: {"phase": dict(phases)} for task, phases in self.task_counts.items()}
        if self.running_duration:
            out["runningDuration"] = self.running_duration
        if self.controlled:
            out["controlledResources"] = dict(self.controlled)
        if self.conditions:
            out["conditions"] = [
                {"status": c.status}
                | ({"lastTransitionTime": format_time(c.last_transition)} if c.last_transition is not None else {})
                for c in self.conditions
            ]
        return out

    def enter(self, phase: Phase, *, reason: str, message: str, now: float) -> "Status":
        """Return the status in another phase: the transition time and the phase's condition move, and only then."""
        message = clip(message)
        if phase is self.phase:
            return replace(self, reason=reason, message=message)
        kept = tuple(c for c in self.conditions if c.status != phase)
        return replace(
            self,
            phase=phase,
            reason=reason,
            message=message,
            last_transition=now,
            conditions=(*kept, Condition(status=str(phase), last_transition=now)),
        )


def clip(message: str) -> str:
    """Return a sentence that is short enough for a status, which everybody who watches the Job gets at each change."""
    return message if len(message) <= _MESSAGE_MAX else f"{message[: _MESSAGE_MAX - 2]} …"


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _COUNT_MAX else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _task_counts(value: object) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    for task, counts in _mapping(value).items():
        phases = _mapping(_mapping(counts).get("phase"))
        if known := {phase: number for phase, number in phases.items() if _count(number)}:
            out[task] = known
    return out
