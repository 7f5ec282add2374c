"""One pass: from a snapshot to the steps and the status that bring the Job closer to its spec.

Pure. The controller executes the stages in order, takes a new snapshot and asks again until a plan has no stages left;
then the status is written, once. A decision (an action by policy or Command) is the exception: its status is written
before its first step, so that after a crash the decision is known and never made twice.
"""

from collections.abc import Iterable
from dataclasses import replace

from vcjob.api.duration import Duration
from vcjob.api.job import Phase

from .causes import Cause, find_causes
from .census import Census, after_kill, take_census
from .members import mark_key, plan_members
from .outcome import NOTHING, EventNote, Plan, Write, earliest, with_counters
from .pod import Pod
from .policies import COMMAND_ISSUED, Decision, Verdict, decide
from .restart import RESTART_KEY, Restart, restart_delay
from .snapshot import Snapshot
from .status import Status, clip, format_time
from .steps import DeleteGroup, DeleteJob, DeleteObject, DeletePods, Stage, Step
from .transitions import ENDS_IN, Keep, Scope

__all__ = ("TTL_INCLUDES_ABORTED", "plan")

_WAIT_MARK = " | "  # between what started a restart and what it waits for

TTL_INCLUDES_ABORTED = "vcjob/ttl-includes-aborted"  # annotation on a Job; "true": the TTL counts from Aborted too


def plan(snapshot: Snapshot) -> Plan:
    """Say what one pass must do."""
    if snapshot.deleting:
        return NOTHING
    census = take_census(snapshot.revision.job, snapshot.pods)
    if snapshot.phase.is_finished:
        return _explain(_held(_plan_finished(snapshot, census), snapshot, census), snapshot, decide(snapshot, ()))
    if problem := _impossible(snapshot, census):
        return _plan_failure(snapshot, census, problem)
    causes = find_causes(snapshot, census)
    verdict = decide(snapshot, causes)
    if verdict.decision:
        decided = _plan_decision(snapshot, census, verdict.decision)
        return replace(decided, events=(*decided.events, *_tell_ignored(verdict)))
    return _explain(_plan_phase(snapshot, census, verdict), snapshot, verdict, causes)


def _plan_phase(snapshot: Snapshot, census: Census, verdict: Verdict) -> Plan:
    if snapshot.phase in (Phase.PENDING, Phase.RUNNING):
        return _finish_if_ended(snapshot, census, plan_members(snapshot, census, verdict))
    if snapshot.phase is Phase.RESTARTING:
        return _held(_plan_restarting(snapshot, census), snapshot, census)
    if snapshot.phase is Phase.ABORTED:
        return _held(_plan_aborted(snapshot, census), snapshot, census)
    return _held(_plan_ending(snapshot, census), snapshot, census)


def _held(made: Plan, snapshot: Snapshot, census: Census) -> Plan:
    """Return the plan without its deletions while one of them has just been refused: the Pods are still there."""
    hold = snapshot.hold
    if hold is None or not hold.deletion or not made.stages:
        return made
    status = _waiting(made.status or snapshot.status, _unmarked(hold.message))
    # What was to be removed is still there, and only its mark tells the next process so.
    marks = {key: value for key, value in snapshot.status.controlled.items() if key.startswith(mark_key(""))}
    status = with_counters(replace(status, controlled={**marks, **status.controlled}), census.counters)
    return replace(made, status=status, stages=(), write=Write.REPLAN, wake=hold.until)


def _plan_decision(snapshot: Snapshot, census: Census, decision: Decision) -> Plan:
    """Plan an action: one status write says all of it, and comes before its first deletion."""
    rule, status = decision.rule, snapshot.status
    limit = snapshot.revision.job.spec.effective_max_retry
    retries = status.retry_count + rule.retries
    restart, targeted = decision.restart, rule.scope is Scope.TARGET
    if rule.retries and retries >= limit:
        # The Job will fail. Its last Pods are what a person wants to look at, so the finished ones stay.
        restart, targeted = Restart(alive_only=True), False
    elif snapshot.phase is Phase.RESTARTING and snapshot.restart:
        restart = snapshot.restart.widen(restart)
    version = status.version + (0 if targeted else 1)
    controlled = {k: v for k, v in status.controlled.items() if k != RESTART_KEY}
    if rule.to is Phase.RESTARTING:
        controlled[RESTART_KEY] = restart.write()
        killed = tuple(pod for pod in census.owned if restart.covers(pod, version=version, retry_count=retries))
    else:
        killed = tuple(pod for pod in census.owned if not pod.is_finished or rule.keep is Keep.NOTHING)
    doomed = tuple(pod for pod in killed if pod.deleted is None)
    new = with_counters(status, after_kill(census, doomed))
    new = replace(
        new, version=version, retry_count=retries, controlled=controlled, min_available=snapshot.revision.min_available
    )
    # A restart that is widened stands on the retry that was paid for it; to resume costs none.
    paid = retries if rule.retries or snapshot.phase is Phase.RESTARTING else 0
    tries = f"; retry {retries} of {limit}" if rule.to is Phase.RESTARTING and paid else ""
    message = f"{_unmarked(decision.message)}; {decision.action}{f' {restart.write()}' if targeted else ''}{tries}"
    new = new.enter(rule.to, reason=decision.reason, message=message, now=snapshot.now)
    to_delete = killed if targeted else doomed
    stage: list[Step] = [DeletePods(pods=to_delete, mark=targeted)] if to_delete else []
    if not targeted and snapshot.group is not None and not snapshot.group.deleted:
        stage.append(DeleteGroup(group=snapshot.group))
    events = [
        EventNote(
            type="Normal",
            reason="ExecuteAction",
            message=f"Start to execute action {decision.action} : {decision.message}",
        )
    ]
    if decision.reason == COMMAND_ISSUED:
        note = f"Start to execute command {decision.action}, and clean it up to make sure it is executed only once"
        events.insert(0, EventNote(type="Normal", reason="CommandIssued", message=note))
    return Plan(
        status=new, stages=(tuple(stage),) if stage else (), write=Write.FIRST, events=tuple(events), wake=snapshot.now
    )


def _plan_restarting(snapshot: Snapshot, census: Census) -> Plan:
    status, now = snapshot.status, snapshot.now
    limit = snapshot.revision.job.spec.effective_max_retry
    restart = snapshot.restart or Restart(alive_only=True)
    covered = [p for p in census.owned if restart.covers(p, version=status.version, retry_count=status.retry_count)]
    targeted = bool(restart.targets)
    left = tuple(p for p in covered if p.deleted is None or (targeted and not p.ours and p.was_taken))
    if status.retry_count >= limit and not left:
        message = f"{_first_cause(status)}; {status.retry_count} of {limit} retries are used up"
        return _conclude(snapshot, census, Phase.FAILED, reason="MaxRetryReached", message=message)
    stage: list[Step] = [DeletePods(pods=left, mark=targeted)] if left else []
    stage += _group_removal(snapshot) if snapshot.group_is_old else []
    counters = after_kill(census, (p for p in left if p.deleted is None))
    new = with_counters(status, counters)
    if stage:
        return Plan(status=new, stages=(tuple(stage),))
    began = status.last_transition or now
    # A time that is yet to come was told by a clock that has been set back since: who knows how long ago it was.
    due = began + restart_delay(status.retry_count) if began <= now + 1 else now
    total, minimum = snapshot.revision.job.spec.total_replicas, status.min_available
    if counters.terminating and total - counters.terminating < minimum:
        return Plan(status=_waiting(new, _still_terminating(counters.terminating)))
    if snapshot.group is not None and snapshot.group_is_old:
        return Plan(status=_waiting(new, f"PodGroup {snapshot.group.name} is not gone yet"))
    if now < due and not restart.alive_only:
        return Plan(status=_waiting(new, f"Pods are made again at {format_time(due)}"), wake=due)
    controlled = {k: v for k, v in status.controlled.items() if k != RESTART_KEY}
    new = replace(new, controlled=controlled, min_available=snapshot.revision.min_available)
    new = new.enter(Phase.PENDING, reason="Restarted", message=_first_cause(status), now=now)
    return Plan(status=new, wake=now)


def _first_cause(status: Status) -> str:
    """Return why the Job is in its phase: the message without what it waits for."""
    return status.message.partition(_WAIT_MARK)[0]


def _unmarked(message: str) -> str:
    """Return what somebody else may have said without the mark, behind which everything is replaced later."""
    return message.replace(_WAIT_MARK, " / ")


def _waiting(status: Status, awaited: str) -> Status:
    """Return the status with what is awaited behind what led there; with "" nothing is."""
    cause = _first_cause(status)
    return replace(status, message=f"{cause}{_WAIT_MARK}{clip(awaited)}" if awaited else cause)


def _still_terminating(count: int) -> str:
    if not count:
        return ""
    return f"{count} Pods are still terminating" if count > 1 else "1 Pod is still terminating"


def _group_removal(snapshot: Snapshot) -> list[Step]:
    group = snapshot.group
    return [DeleteGroup(group=group)] if group is not None and not group.deleted else []


def _plan_ending(snapshot: Snapshot, census: Census) -> Plan:
    """Plan a pass over a Job in Aborting, Terminating or Completing."""
    to = ENDS_IN[snapshot.phase]
    stage = _kill_alive(snapshot, census)
    if stage:
        return Plan(status=with_counters(snapshot.status, after_kill(census, _alive(census))), stages=(stage,))
    if census.counters.alive:
        status = with_counters(snapshot.status, census.counters)
        return Plan(status=_waiting(status, _still_terminating(census.counters.terminating)))
    return _conclude(snapshot, census, to, reason=snapshot.status.reason, message=_first_cause(snapshot.status))


def _plan_aborted(snapshot: Snapshot, census: Census) -> Plan:
    status = _waiting(with_counters(snapshot.status, census.counters), _still_terminating(census.counters.terminating))
    stage = _kill_alive(snapshot, census)
    if stage:
        return Plan(status=status, stages=(stage,))
    if snapshot.revision.job.metadata.annotations.get(TTL_INCLUDES_ABORTED) == "true":
        return _with_ttl(Plan(status=status), snapshot)
    return Plan(status=status)


def _plan_finished(snapshot: Snapshot, census: Census) -> Plan:
    status = _waiting(with_counters(snapshot.status, census.counters), _still_terminating(census.counters.terminating))
    stage = _kill_alive(snapshot, census)
    if stage:
        return Plan(status=status, stages=(stage,))
    if not census.counters.alive and (leftover := _clean_up(snapshot)):
        # What comes after it, the TTL, has no event to wait for.
        return Plan(status=_without_marks(status), stages=(leftover,), write=Write.AFTER, wake=snapshot.now)
    if not census.counters.alive:
        status = _without_marks(status)
    return _with_ttl(Plan(status=status), snapshot)


def _with_ttl(plan_so_far: Plan, snapshot: Snapshot) -> Plan:
    ttl, finished = snapshot.revision.job.spec.ttl_seconds_after_finished, snapshot.status.last_transition
    if ttl is None or finished is None or plan_so_far.stages:
        return plan_so_far
    if snapshot.now >= finished + ttl:
        return replace(plan_so_far, stages=((DeleteJob(),),), write=Write.AFTER, status=None)
    return replace(plan_so_far, wake=finished + ttl)


def _impossible(snapshot: Snapshot, census: Census) -> str:
    """Return why the Job can never run; a Job with living Pods is left alone, for it was possible once."""
    if snapshot.phase not in (Phase.PENDING, Phase.RUNNING, Phase.RESTARTING):
        return ""
    if snapshot.memory.rejected and snapshot.phase is not Phase.RUNNING:
        return snapshot.memory.rejected
    return snapshot.revision.fatal if not census.counters.alive else ""


def _plan_failure(snapshot: Snapshot, census: Census, message: str) -> Plan:
    made = _held(_conclude(snapshot, census, Phase.FAILED, reason="InvalidSpec", message=message), snapshot, census)
    events = [EventNote(type="Warning", reason="InvalidSpec", message=message)]
    if command := snapshot.command:
        text = f"Command {command.name} asks for {command.action!r}, but the Job has failed"
        events.append(EventNote(type="Warning", reason="ActionIgnored", message=text, standing=True))
    return replace(made, events=tuple(events))


def _finish_if_ended(snapshot: Snapshot, census: Census, members: Plan) -> Plan:
    status = members.status
    if status is None or status.phase is None or not status.phase.is_finished:
        return members
    return _held(
        _conclude(snapshot, census, status.phase, reason=status.reason, message=status.message), snapshot, census
    )


def _conclude(snapshot: Snapshot, census: Census, phase: Phase, *, reason: str, message: str) -> Plan:
    """End the Job: at once when no Pod is alive; otherwise the phase is written first and the rest follows from it."""
    now = snapshot.now
    duration = str(Duration(nanoseconds=int(max(0.0, now - snapshot.created)) * 10**9)) if snapshot.created else ""
    controlled = {k: v for k, v in snapshot.status.controlled.items() if k != RESTART_KEY}
    new = replace(
        snapshot.status, controlled=controlled, running_duration=duration, min_available=snapshot.revision.min_available
    )
    alive, message = _alive(census), _unmarked(message)
    new = with_counters(new, after_kill(census, alive)).enter(phase, reason=reason, message=message, now=now)
    events = (EventNote(type="Warning" if phase is Phase.FAILED else "Normal", reason=f"Job{phase}", message=message),)
    if alive:
        return Plan(status=new, stages=(_kill_alive(snapshot, census),), write=Write.FIRST, events=events, wake=now)
    if phase is Phase.ABORTED or census.counters.alive:
        return Plan(
            status=new,
            stages=(tuple(removal),) if (removal := _group_removal(snapshot)) else (),
            write=Write.AFTER,
            events=events,
            wake=now,
        )
    leftover = _clean_up(snapshot)
    return Plan(
        status=_without_marks(new), stages=(leftover,) if leftover else (), write=Write.AFTER, events=events, wake=now
    )


def _alive(census: Census) -> tuple[Pod, ...]:
    return tuple(pod for pod in census.owned if pod.is_alive)


def _kill_alive(snapshot: Snapshot, census: Census) -> Stage:
    alive = _alive(census)
    return (*((DeletePods(pods=alive, mark=False),) if alive else ()), *_group_removal(snapshot))


def _clean_up(snapshot: Snapshot) -> Stage:
    """Return the steps that remove what a finished Job needs no longer: its plugins' objects and its group."""
    # What was made before a crash or a failure of its Job is known from memory, if not from a mark yet.
    objects = [
        DeleteObject(ref=ref)
        for plugin in snapshot.revision.plugins
        for ref in plugin.on_job_delete()
        if mark_key(plugin.name) in snapshot.status.controlled or (ref.kind, ref.name) in snapshot.memory.applied
    ]
    return (*objects, *_group_removal(snapshot))


def _without_marks(status: Status) -> Status:
    kept = {k: v for k, v in status.controlled.items() if not k.startswith(mark_key("")) and k != RESTART_KEY}
    return replace(status, controlled=kept)


def _tell_ignored(verdict: Verdict) -> list[EventNote]:
    return [EventNote(type="Warning", reason="ActionIgnored", message=text, standing=True) for text in verdict.ignored]


def _explain(made: Plan, snapshot: Snapshot, verdict: Verdict, causes: Iterable[Cause] = ()) -> Plan:
    """Add what was said about policies, plugins and Commands, and the timers."""
    events = list(made.events)
    events += _tell_ignored(verdict)
    told: set[tuple[str, float, str]] = set()
    for waiting in verdict.pending:
        after = Duration(nanoseconds=round(waiting.delay * 10**9))
        # A thousand Pods that pend are one thing to tell; the oldest stands for all.
        if (kind := (waiting.action, waiting.delay, waiting.cause.event)) in told:
            continue
        told.add(kind)
        text = f"Execute action {waiting.action} after {after}: {waiting.cause.message}"
        events.append(EventNote(type="Normal", reason="ExecuteAction", message=text, standing=True))
    if snapshot.status.phase is None:
        events += [
            EventNote(type="Warning", reason=note.reason, message=note.message) for note in snapshot.revision.notes
        ]
    known = snapshot.memory.first_seen
    seen = {cause.key: known.get(cause.key, snapshot.now) for cause in causes if cause.since is None}
    wake = earliest(made.wake, *(waiting.due for waiting in verdict.pending))
    if made.status is not None and made.status.phase is not snapshot.phase:
        wake = snapshot.now  # the new phase may have something to say at once, and no event will ask for it
    return replace(made, events=tuple(events), wake=wake, seen=seen)
