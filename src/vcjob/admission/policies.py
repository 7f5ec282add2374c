"""Lists of lifecycle policies. Pure.

The first problem stops a list, as in Volcano. None is fatal: a policy that cannot be understood is passed over, and of
two that speak of the same event the first counts.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from vcjob.api.duration import Duration, InvalidDuration, parse_duration
from vcjob.api.policy import VALID_ACTIONS, VALID_EVENTS, Action, Event, LifecyclePolicy

from .problem import Problem, refused

__all__ = ("check_policies", "policy_warnings")

EVENTS: Final = tuple(event.value for event in Event)
ACTIONS: Final = tuple(action.value for action in Action)
CHOICES: Final = f"; {VALID_EVENTS}, {VALID_ACTIONS}"


def check_policies(policies: Sequence[LifecyclePolicy], *, field: str) -> Iterator[Problem]:
    """Yield the first problem of a list of policies; `field` is the list's path."""
    for problem in _problems(policies, field=field):
        choices = "" if problem.field.endswith((".exitCode", ".timeout")) else CHOICES
        yield refused(problem.field, problem.value, message=problem.message + choices)
        return


def policy_warnings(policies: Sequence[LifecyclePolicy], *, field: str) -> Iterator[str]:
    """Yield a sentence for each policy that is allowed and does not do what it seems to."""
    for index, policy in enumerate(policies):
        listed = _listed(policy)
        wait = _duration(policy.timeout or "0")
        if Event.POD_PENDING in listed and wait is not None and wait.nanoseconds <= 0:
            found = f"{policy.timeout} is not" if policy.timeout else "none is set"
            yield f"{field}[{index}]: PodPending fires only with a timeout above 0, and {found}"
        if set(listed) != {Event.POD_PENDING} and wait is not None and wait.nanoseconds < 0:
            yield f"{field}[{index}].timeout: {policy.timeout} is in the past, so {policy.action} is done at once"
        if Event.JOB_UPDATED in listed:
            yield f"{field}[{index}]: JobUpdated is accepted and never fires"


def _problems(policies: Sequence[LifecyclePolicy], *, field: str) -> Iterator[Problem]:
    seen_events: dict[str, int] = {}
    seen_codes: set[int] = set()
    for index, policy in enumerate(policies):
        path = f"{field}[{index}]"
        listed = _listed(policy)
        code = policy.exit_code
        if listed and code is not None:
            yield Problem(field=path, value=None, message="must not specify event and exitCode simultaneously")
        if not listed and code is None:
            yield Problem(field=path, value=None, message="either event and exitCode should be specified")
        for event in listed:
            if event not in EVENTS:
                yield Problem(field=f"{path}.event", value=event, message="invalid policy event")
            if event in seen_events:
                message = f"duplicate event {event}  across different policy: {field}[{seen_events[event]}] has it too"
                yield Problem(field=f"{path}.event", value=event, message=message)
        if policy.action not in ACTIONS:
            yield Problem(field=f"{path}.action", value=policy.action, message="invalid policy action")
        if code == 0:
            yield Problem(field=f"{path}.exitCode", value=0, message="0 is not a valid error code")
        if code is not None and code in seen_codes:
            yield Problem(field=f"{path}.exitCode", value=code, message=f"duplicate exitCode {code}")
        if policy.timeout is not None and _duration(policy.timeout) is None:
            message = "invalid policy timeout, it must be a duration such as 30s or 1h30m"
            yield Problem(field=f"{path}.timeout", value=policy.timeout, message=message)
        seen_events |= dict.fromkeys(listed, index)
        seen_codes |= {code} if code is not None else set()
    if Event.ANY in seen_events and len(seen_events) > 1:
        yield Problem(
            field=f"{field}[{seen_events[Event.ANY]}].event",
            value=Event.ANY.value,
            message="if there's * here, no other policy should be here",
        )


def _listed(policy: LifecyclePolicy) -> tuple[str, ...]:
    """Return the events of one policy, each once."""
    return tuple(dict.fromkeys(event for event in (policy.event, *policy.events) if event))


def _duration(text: str) -> Duration | None:
    try:
        return parse_duration(text)
    except InvalidDuration:
        return None
