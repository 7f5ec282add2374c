"""The phase table: what an action does in each phase. Pure data; the lifecycle looks it up and nothing else decides it.

Rows follow the table in docs/policies.md. An action without a row leaves the Job as it is: a finished Job never starts
again, and an ending one ends. Three cells differ from Volcano on purpose: Abort, Terminate and Complete are honoured
while Restarting; an aborting or aborted Job can be terminated; resuming costs no retry.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from vcjob.api.job import Action, Phase

__all__ = ("ENDS_IN", "TRANSITIONS", "Keep", "Rule", "Scope", "find_rule")


class Keep(Enum):
    """Which Pods survive a kill."""

    NOTHING = "nothing"
    FINISHED = "finished"  # Succeeded and Failed Pods stay for inspection


class Scope(Enum):
    """Which Pods a kill is about."""

    JOB = "job"
    TARGET = "target"  # the task, Pod or partition that the cause names


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One cell of the table."""

    phase: Phase
    on: Action
    to: Phase
    scope: Scope
    keep: Keep
    retries: int  # what it costs of maxRetry


def _kill(phase: Phase, on: Action, to: Phase) -> Rule:
    return Rule(phase=phase, on=on, to=to, scope=Scope.JOB, keep=Keep.FINISHED, retries=0)


def _restart(phase: Phase, on: Action, *, retries: int) -> Rule:
    scope = Scope.JOB if on is Action.RESTART_JOB else Scope.TARGET
    return Rule(phase=phase, on=on, to=Phase.RESTARTING, scope=scope, keep=Keep.NOTHING, retries=retries)


_RESTARTS: Final = (Action.RESTART_JOB, Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION)
_ENDINGS: Final = (
    (Action.ABORT_JOB, Phase.ABORTING),
    (Action.TERMINATE_JOB, Phase.TERMINATING),
    (Action.COMPLETE_JOB, Phase.COMPLETING),
)

TRANSITIONS: Final = (
    *(_restart(phase, action, retries=1) for phase in (Phase.PENDING, Phase.RUNNING) for action in _RESTARTS),
    # A cause that turns up during a restart widens it; the retry is already paid.
    *(_restart(Phase.RESTARTING, action, retries=0) for action in _RESTARTS),
    *(
        _kill(phase, action, to)
        for phase in (Phase.PENDING, Phase.RUNNING, Phase.RESTARTING)
        for action, to in _ENDINGS
    ),
    _kill(Phase.ABORTING, Action.RESUME_JOB, Phase.RESTARTING),
    _kill(Phase.ABORTING, Action.TERMINATE_JOB, Phase.TERMINATING),
    _kill(Phase.ABORTED, Action.RESUME_JOB, Phase.RESTARTING),
    _kill(Phase.ABORTED, Action.TERMINATE_JOB, Phase.TERMINATING),
)

# Where a phase that ends a Job leads to once no Pod is alive.
ENDS_IN: Final = {
    Phase.ABORTING: Phase.ABORTED,
    Phase.TERMINATING: Phase.TERMINATED,
    Phase.COMPLETING: Phase.COMPLETED,
}

_BY_CELL: Final = {(rule.phase, rule.on): rule for rule in TRANSITIONS}


def find_rule(phase: Phase, action: Action) -> Rule | None:
    """Return the cell of the table; None when the action means nothing in that phase."""
    return _BY_CELL.get((phase, action))
