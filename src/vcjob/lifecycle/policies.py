"""What the policies and Commands ask for, given what happened. Pure; it decides and touches nothing."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from vcjob.api.job import Action, Event, Phase

from .causes import Cause
from .pod import Exit
from .restart import Restart
from .revision import CompiledPolicy, CompiledTask
from .snapshot import Snapshot
from .transitions import Rule, Scope, find_rule

__all__ = ("COMMAND_ISSUED", "Decision", "Pending", "Verdict", "decide")

COMMAND_ISSUED: Final = "CommandIssued"  # reason of a decision that no policy made

_TARGETED: Final = (Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An action to carry out now, the table's rule for it, and why."""

    action: Action
    rule: Rule
    reason: str  # the event's or Command's word
    message: str
    restart: Restart


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """An action that waits for its timeout; it is dropped when its cause disappears."""

    action: Action
    due: float
    delay: float
    cause: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    """A cause whose action is due."""

    cause: Cause
    action: Action
    rule: Rule
    restart: Restart


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to do now, what later, and what was asked for in vain."""

    decision: Decision | None
    pending: tuple[Pending, ...]
    ignored: tuple[str, ...]  # one sentence each


def decide(snapshot: Snapshot, causes: Iterable[Cause]) -> Verdict:
    """Resolve the Command, else the policies, against the phase table.

    Of several causes that are due the oldest decides; targeted restarts that are due at the same time become one. A
    cause whose action means nothing in this phase is passed over.
    """
    if snapshot.command is None:
        return _decide_policies(snapshot, causes)
    commanded = _decide_command(snapshot)
    if commanded.decision is not None:
        return commanded
    verdict = _decide_policies(snapshot, causes)
    return replace(verdict, ignored=(*commanded.ignored, *verdict.ignored))


def _decide_policies(snapshot: Snapshot, causes: Iterable[Cause]) -> Verdict:
    scopes = _Scopes(snapshot)
    due: list[_Due] = []
    later: list[Pending] = []
    ignored: list[str] = []
    for cause in causes:
        policy = _resolve(snapshot, cause, scopes.task(cause))
        if policy is None or (rule := find_rule(snapshot.phase, policy.action)) is None:
            continue
        restart, widens = scopes.of(cause, policy.action)
        if rule.scope is Scope.TARGET and not restart.targets:
            ignored.append(f"{policy.action} has no task or Pod to act on: {cause.message}")
            continue
        if rule.to is Phase.RESTARTING and not widens:
            continue
        if policy.exit_code is not None and cause.event is Event.POD_FAILED:
            cause = replace(cause, message=_name_exit(snapshot, cause, policy.exit_code))
        since = cause.since if cause.since is not None else snapshot.memory.first_seen.get(cause.key, snapshot.now)
        if policy.timeout and since + policy.timeout > snapshot.now:
            later.append(Pending(action=policy.action, due=since + policy.timeout, delay=policy.timeout, cause=cause))
        else:
            due.append(_Due(cause=cause, action=policy.action, rule=rule, restart=restart))
    decision = _merge(due) if due else None
    return Verdict(decision=decision, pending=tuple(later), ignored=tuple(ignored))


def _decide_command(snapshot: Snapshot) -> Verdict:
    command = snapshot.command
    assert command is not None
    try:
        action = Action(command.action)
    except ValueError:
        return _in_vain(f"Command {command.name} asks for {command.action!r}, which is no action of a Job")
    rule = find_rule(snapshot.phase, action)
    if rule is None:
        return _in_vain(
            f"Command {command.name} asks for {action}, which means nothing while the Job is {snapshot.phase}"
        )
    if rule.scope is Scope.TARGET:
        return _in_vain(f"Command {command.name} asks for {action}, but a Command names no task or Pod")
    message = f"Command {command.name}" + (f": {command.reason}" if command.reason else "")
    restart = Restart(whole=True) if action is Action.RESTART_JOB else Restart(alive_only=action is Action.RESUME_JOB)
    if rule.to is Phase.RESTARTING and not _widens(snapshot, restart):
        why = "all Pods are being restarted already" if _may_retry(snapshot) else "all retries are used up"
        return _in_vain(f"Command {command.name} asks for {action}, but {why}")
    return Verdict(
        decision=Decision(action=action, rule=rule, reason=COMMAND_ISSUED, message=message, restart=restart),
        pending=(),
        ignored=(),
    )


def _in_vain(sentence: str) -> Verdict:
    return Verdict(decision=None, pending=(), ignored=(sentence,))


def _resolve(snapshot: Snapshot, cause: Cause, compiled: CompiledTask | None) -> CompiledPolicy | None:
    """Return the first policy that matches: those of the cause's task, then those of the Job."""
    policies = compiled.policies if compiled else snapshot.revision.policies
    return next((p for p in policies if p.matches_event(cause.event) or _matches_exit_code(p, cause)), None)


def _matches_exit_code(policy: CompiledPolicy, cause: Cause) -> bool:
    return (
        cause.event is Event.POD_FAILED
        and policy.exit_code is not None
        and _matching_exit(policy, cause.exits) is not None
    )


def _matching_exit(policy: CompiledPolicy, exits: Iterable[Exit]) -> Exit | None:
    """Return the container that ended with the policy's code; app containers are listed before init containers."""
    return next((ended for ended in exits if ended.code == policy.exit_code), None)


def _name_exit(snapshot: Snapshot, cause: Cause, code: int) -> str:
    """Return the cause's message with the container that made the policy match."""
    name = f"{snapshot.revision.job.name}-{cause.task}-{cause.index}"
    pod = snapshot.pods.get(name)
    return f"pod {name} {pod.describe_failure(code=code)}" if pod else cause.message


def _widens(snapshot: Snapshot, restart: Restart) -> bool:
    """Return whether the restart reaches further than the one that is going on, if any."""
    if snapshot.phase is not Phase.RESTARTING:
        return True
    current = snapshot.restart or Restart(alive_only=True)
    if current.alive_only:  # a resumed Job's, or the last Pods' of one that has used up its retries
        return restart.whole and _may_retry(snapshot)
    return not current.whole and not current.includes(restart)


def _may_retry(snapshot: Snapshot) -> bool:
    return snapshot.status.retry_count < snapshot.revision.job.spec.effective_max_retry


class _Scopes:
    """Which Pods an action restarts. Causes that mean the same share an answer: thousands of Pods may fail at once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._known: dict[tuple[Action, str, range], tuple[Restart, bool]] = {}

    def task(self, cause: Cause) -> CompiledTask | None:
        return self._snapshot.revision.by_name.get(cause.task)

    def of(self, cause: Cause, action: Action) -> tuple[Restart, bool]:
        """Return the restart, without targets when the cause names none, and whether it widens the present one."""
        targeted = action in _TARGETED
        name, indices = (cause.task, self._indices(cause, action)) if targeted else ("", range(0))
        key = (action, name, indices)
        if key not in self._known:
            if targeted:
                restart = Restart(targets={name: frozenset(indices)}) if indices else Restart()
            else:
                restart = Restart(whole=action is Action.RESTART_JOB, alive_only=action is Action.RESUME_JOB)
            self._known[key] = (restart, _widens(self._snapshot, restart))
        return self._known[key]

    def _indices(self, cause: Cause, action: Action) -> range:
        compiled = self.task(cause)
        if compiled is None:
            return range(0)
        task = compiled.task
        if action is Action.RESTART_TASK:
            return range(task.replicas)
        if cause.index < 0:
            return range(0)
        if action is Action.RESTART_POD:
            return range(cause.index, cause.index + 1)
        size = task.partition_policy.partition_size if task.partition_policy else 0
        first = cause.index // size * size if size > 0 else 0
        return range(first, min(first + max(size, 0), task.replicas))


def _merge(due: list[_Due]) -> Decision:
    """Return the decision of the oldest cause, together with all others that restart single Pods when it does."""
    first = due[0]
    same = [other for other in due if other.rule.scope is Scope.TARGET] if first.rule.scope is Scope.TARGET else [first]
    distinct = {id(other.restart): other.restart for other in same}
    restart = Restart.join(distinct.values()) if len(distinct) > 1 else first.restart
    more = f" (and {len(same) - 1} more)" if len(same) > 1 else ""
    return Decision(
        action=first.action,
        rule=first.rule,
        reason=str(first.cause.event),
        message=f"{first.cause.message}{more}",
        restart=restart,
    )
