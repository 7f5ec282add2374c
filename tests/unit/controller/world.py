"""Everything around the operator that can happen to a Job, and the laws that hold whatever happens.

A life is a list of moves, each a word and a number; the number chooses the Pod, the size, the action. So hypothesis can
shrink a life to the few moves that matter.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.unit.controller.cluster import JOBS, PODGROUPS, PODS, Cluster, Crash, Key, Raw, Write
from tests.unit.controller.operator import SimLoop, SimOperator

from vcjob.api.job import Phase
from vcjob.api.names import (
    ANNOTATION_JOB_RETRY_COUNT,
    ANNOTATION_JOB_VERSION,
    ANNOTATION_OUT_OF_SYNC,
    LABEL_TASK_INDEX,
    LABEL_TASK_SPEC,
)
from vcjob.gang.base import Gang
from vcjob.lifecycle.outcome import Write as When
from vcjob.lifecycle.plan import plan
from vcjob.lifecycle.restart import Restart
from vcjob.lifecycle.status import format_time

__all__ = ("KEY", "MOVES", "Laws", "World", "run")

KEY: Final[Key] = (JOBS, "ns", "j")
ACTIONS: Final = ("AbortJob", "ResumeJob", "RestartJob", "TerminateJob", "CompleteJob", "RestartPod", "Nonsense")
LEGAL: Final[dict[str, set[str]]] = {
    "": {"Pending", "Restarting", "Aborting", "Terminating", "Completing", "Failed"},
    "Pending": {"Running", "Restarting", "Aborting", "Terminating", "Completing", "Failed"},
    "Running": {"Pending", "Restarting", "Aborting", "Terminating", "Completing", "Completed", "Failed"},
    "Restarting": {"Pending", "Failed", "Aborting", "Terminating", "Completing"},
    "Aborting": {"Aborted", "Restarting", "Terminating"},
    "Aborted": {"Restarting", "Terminating"},
    "Terminating": {"Terminated"},
    "Completing": {"Completed"},
}
FINISHED: Final = ("Completed", "Failed", "Terminated")
KILLING: Final = ("Restarting", "Aborting", "Terminating", "Completing")


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that a policy may answer to by a restart, once."""

    uid: str
    task: str
    index: int


@dataclass(slots=True)
class Laws:
    """What must hold after every write; a broken law raises AssertionError."""

    world: "World"
    phases: list[str] = field(default_factory=list)
    open: list[Incident] = field(default_factory=list)  # not answered by a restart yet
    commands: set[str] = field(default_factory=set)  # what has been said of those that were carried out

    def check(self, write: Write) -> None:
        plural = write.key[0]
        if plural == JOBS and write.verb == "status":
            self._check_status(write)
        elif plural == PODS and write.verb == "create":
            self._check_creation(write)
        elif plural == PODS and write.verb == "delete" and write.old is not None:
            self._check_deletion(write.old)

    def _check_status(self, write: Write) -> None:
        assert write.old is not None and write.new is not None
        old, new = write.old.get("status") or {}, write.new["status"]
        was, now = old.get("state", {}).get("phase", ""), new["state"]["phase"]
        assert new["state"].get("reason") and new["state"].get("message"), "every status says why"
        retries = new.get("retryCount", 0) - old.get("retryCount", 0)
        if was in FINISHED:
            assert now == was, "a finished Job never starts again"
            assert new["state"]["lastTransitionTime"] == old["state"]["lastTransitionTime"], "its times never move"
            assert new.get("conditions") == old.get("conditions"), "its times never move"
            assert new.get("runningDuration") == old.get("runningDuration"), "its times never move"
        if was == now:
            assert new["state"]["lastTransitionTime"] == old["state"]["lastTransitionTime"]
            assert retries == 0, "a retry is paid on the way into Restarting only"
            return
        assert now in LEGAL[was], f"{was} to {now}"
        self.phases.append(now)
        if new["state"]["reason"] == "CommandIssued" and now in KILLING:
            self._check_command(new["state"]["message"])
        names = [condition["status"] for condition in new.get("conditions", ())]
        assert len(names) == len(set(names)) and names[-1] == now, "one condition a phase, the last one last"
        if now == "Restarting":
            self._check_retry(was, new, retries)
        else:
            assert retries == 0
        if now in KILLING and "restart" not in new.get("controlledResources", {}) and self._kills_something():
            assert new.get("terminating", 0) > 0, "who watches sees Pods terminating"
        if now in ("Aborted", "Terminated", "Completed") and was in KILLING:
            assert not any(new.get(name) for name in ("pending", "running", "terminating", "unknown"))

    def _check_command(self, message: str) -> None:
        command = message.partition(";")[0]
        assert command not in self.commands, f"{command} is carried out twice"
        self.commands.add(command)

    def _check_retry(self, was: str, new: Raw, retries: int) -> None:
        if was in ("Aborting", "Aborted"):
            assert retries == 0, "resuming costs nothing"
            return
        assert retries == 1, "a restart costs exactly one"
        if new["state"]["reason"] in ("CommandIssued", "PodPending"):
            return
        answered = self._answered_by(Restart.read(new["controlledResources"]["restart"]))
        assert answered, f"nothing new has happened that a restart could answer: {new['state']['message']}"
        self.open = [incident for incident in self.open if incident not in answered]

    def _answered_by(self, restart: Restart | None) -> list[Incident]:
        assert restart is not None
        if not restart.targets:
            return list(self.open)
        named = [i for i in self.open if i.index in restart.targets.get(i.task, ())]
        # Of Pods that vanished while no operator was there only the number is known, not the index.
        return named or [i for i in self.open if i.task in restart.targets and not self.world.has_pod(i.uid)]

    def _kills_something(self) -> bool:
        known = self.world.operator.engine.view.pods.store
        return any(pod.is_alive and pod.owner_uid == self.world.job_uid for pod in known)

    def _check_creation(self, write: Write) -> None:
        assert write.new is not None
        job = self.world.cluster.objects.get(KEY)
        if job is None or job["metadata"].get("deletionTimestamp"):
            return  # the operator cannot know yet; the garbage collector takes it
        record = self.world.operator.engine.view.jobs.get(("ns", "j"))
        assert record is not None
        if record.uid != job["metadata"]["uid"]:
            return  # the same, of a Job in whose place there is another by now
        assert record.uid == write.new["metadata"]["ownerReferences"][0]["uid"]
        status, notes = job.get("status") or {}, write.new["metadata"]["annotations"]
        # A new Job's first status may come after its Pods while the API server is busy.
        assert _phase_in(status) in ("", "Pending", "Running"), "Pods are made in Pending and Running only"
        assert int(notes[ANNOTATION_JOB_VERSION]) == status.get("version", 0), "no Pod is made for an earlier run"
        assert int(notes[ANNOTATION_JOB_RETRY_COUNT]) == status.get("retryCount", 0)
        wanted = next(t.task.replicas for t in record.revision.tasks if t.task.name == notes[LABEL_TASK_SPEC])
        assert int(notes[LABEL_TASK_INDEX]) < wanted, "no Pod beyond the desired set"

    def _check_deletion(self, old: Raw) -> None:
        job = self.world.cluster.objects.get(KEY)
        if job is None or _phase_in(job.get("status") or {}) not in ("", "Pending", "Running"):
            return
        notes = old["metadata"]["annotations"]
        older = int(notes[ANNOTATION_JOB_VERSION]) < (job.get("status") or {}).get("version", 0)
        assert older or notes.get(ANNOTATION_OUT_OF_SYNC) == "true", "what is decided is written before it is done"


class World:
    """A cluster, an operator, and all who meddle."""

    def __init__(self, job: Raw, *, gang: Gang) -> None:
        self.cluster = Cluster()
        self.gang = gang
        self.laws = Laws(self)
        self.submitted = job
        self.job_uid: str = self.cluster.create(JOBS, job)["metadata"]["uid"]
        self.operator = self._start()
        self.stand_by: SimOperator | None = None  # a replica that has led before
        self.cluster.listeners.append(self.laws.check)
        self.commands = 0

    def _start(self) -> SimOperator:
        return SimOperator(self.cluster, gang=self.gang)

    # Looking

    def has_pod(self, uid: str) -> bool:
        return any(pod["metadata"]["uid"] == uid for pod in self.cluster.all(PODS))

    @property
    def job(self) -> Raw | None:
        return self.cluster.objects.get(KEY)

    @property
    def phase(self) -> str:
        job = self.job
        return job.get("status", {}).get("state", {}).get("phase", "") if job else ""

    def _pods(self, test: Callable[[Raw], bool]) -> list[Key]:
        return [(PODS, "ns", pod["metadata"]["name"]) for pod in self.cluster.all(PODS) if test(pod)]

    def _pick(self, number: int, *phases: str) -> Key | None:
        found = self._pods(
            lambda pod: pod["status"]["phase"] in phases and not pod["metadata"].get("deletionTimestamp")
        )
        return found[number % len(found)] if found else None

    # Moves

    async def play(self, moves: Iterable[tuple[str, int]]) -> None:
        for word, number in moves:
            self.cluster.now += 1
            result = MOVES[word](self, number)
            if result is not None:
                await result

    def _set_status(self, key: Key | None, incident: bool, **status: Any) -> None:
        if key is None:
            return

        def edit(raw: Raw) -> None:
            raw["status"] = {**raw["status"], **status}

        new = self.cluster.change(key, edit)
        if incident:
            self._note(new)

    def _note(self, pod: Raw) -> None:
        notes = pod["metadata"]["annotations"]
        self.laws.open.append(Incident(pod["metadata"]["uid"], notes[LABEL_TASK_SPEC], int(notes[LABEL_TASK_INDEX])))

    def start_pod(self, number: int) -> None:
        state = [{"name": "main", "ready": True, "restartCount": 0, "state": {"running": {}}}]
        self._set_status(self._pick(number, "Pending", "Unknown"), False, phase="Running", containerStatuses=state)

    def end_pod(self, number: int, code: int) -> None:
        ended = {"terminated": {"exitCode": code, "finishedAt": format_time(self.cluster.now)}}
        state = [{"name": "main", "restartCount": 0, "state": ended}]
        key = self._pick(number, "Running") or self._pick(number, "Pending")
        self._set_status(key, True, phase="Failed" if code else "Succeeded", containerStatuses=state)

    def restart_container(self, number: int) -> None:
        state = [{"name": "main", "ready": True, "restartCount": 5, "state": {"running": {}}}]
        self._set_status(self._pick(number, "Running"), True, containerStatuses=state)

    def lose_node(self, number: int) -> None:
        self._set_status(self._pick(number, "Running"), False, phase="Unknown")

    def lose_node_for_good(self, number: int) -> None:
        """A Pod's Node is deleted: the Pod garbage collector makes the Pod Failed, and deletes it without grace."""
        taken = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
        taken["lastTransitionTime"] = format_time(self.cluster.now)
        key = self._pick(number, "Running", "Pending", "Unknown")
        self._set_status(key, True, phase="Failed", conditions=[taken])
        if key is not None and number % 2:
            self.cluster.finish(key)

    def end_termination(self, number: int) -> None:
        leaving = self._pods(_is_leaving)
        if leaving:
            self.cluster.finish(leaving[number % len(leaving)])

    def delete_pod(self, number: int) -> None:
        key = self._pick(number, "Running", "Pending", "Unknown")
        if key is not None:
            self._note(self.cluster.objects[key])
            self.cluster.delete(key, grace=number % 3 != 0)

    def clean_up_pod(self, number: int) -> None:
        """A finished Pod is deleted, as the Pod garbage collector does."""
        if (key := self._pick(number, "Succeeded", "Failed")) is not None:
            self.cluster.delete(key)

    def move_group(self, number: int) -> None:
        for group in self.cluster.all(PODGROUPS):
            phase = group.get("status", {}).get("phase", "")
            following = {"": "Pending", "Pending": "Inqueue", "Inqueue": "Running"}.get(phase, "Running")
            if number % 5 == 0:
                following = "Unknown"
                self.laws.open.append(Incident(group["metadata"]["uid"], "", -1))
            self._group_phase(group, following)

    def _group_phase(self, group: Raw, phase: str) -> None:
        def edit(raw: Raw) -> None:
            raw["status"] = {"phase": phase}

        self.cluster.change((PODGROUPS, "ns", group["metadata"]["name"]), edit)

    def delete_group(self, number: int) -> None:
        for group in self.cluster.all(PODGROUPS):
            self.cluster.delete((PODGROUPS, "ns", group["metadata"]["name"]))

    def scale(self, number: int) -> None:
        if KEY not in self.cluster.objects:
            return

        def edit(raw: Raw) -> None:
            tasks = raw["spec"]["tasks"]
            task = tasks[number % len(tasks)]
            task["replicas"] = task["minAvailable"] = number // 2 % 4
            raw["spec"]["minAvailable"] = sum(t["replicas"] for t in tasks)

        self.cluster.change(KEY, edit)

    def command(self, number: int) -> None:
        self.commands += 1
        self.cluster.create(
            "commands",
            {
                "metadata": {"name": f"c{self.commands}"},
                "action": ACTIONS[number % len(ACTIONS)],
                "target": {"name": "j", "uid": self.job_uid},
            },
        )
        self.operator.hear_commands()

    def delete_job(self, number: int) -> None:
        if number % 4 == 0 and KEY in self.cluster.objects:
            self.cluster.delete(KEY)

    def submit_again(self, number: int) -> None:
        """Make another Job of the same name when the first one is gone; its objects need not be."""
        if KEY not in self.cluster.objects:
            self.job_uid = self.cluster.create(JOBS, self.submitted)["metadata"]["uid"]
            self.laws.open.clear()
            self.laws.commands.clear()

    def sweep(self, number: int) -> None:
        """Delete an object that the operator has made and that is no Pod."""
        others = [key for key in sorted(self.cluster.objects) if key[0] not in (JOBS, PODS, PODGROUPS, "commands")]
        if others:
            self.cluster.finish(others[number % len(others)])

    def label_job(self, number: int) -> None:
        if KEY in self.cluster.objects:
            self.cluster.change(KEY, lambda raw: raw["metadata"].update(labels={"team": str(number)}))

    def set_quota(self, number: int) -> None:
        self.cluster.pod_quota = None if number % 3 == 0 else number % 4

    async def work(self, number: int) -> None:
        for _ in range(1 + number % 3):
            if not await self._work():
                return

    async def _work(self) -> bool:
        try:
            return await self.operator.work()
        except Crash:
            self.operator = self._start()
            return True

    async def crash(self, number: int) -> None:
        """Let the process die after some writes, at the latest after the next pass."""
        self.operator.hear_all()
        self.operator.api.dies_after = self.operator.api.writes + number % 7
        await self._work()
        self.operator = self._start()

    def hand_over(self, number: int) -> None:
        """Let the lead go to another replica, and back to the first one the next time."""
        before, after = self.operator, self.stand_by or self._start()
        before.engine.forget()
        self.stand_by, self.operator = before, after
        after.api.answers_lost.clear()
        if number % 2:
            after.hear_all()
        after.lead()

    async def lose_answers(self, number: int) -> None:
        self.operator.api.answers_lost.add(self.operator.api.writes + 1 + number % 4)
        await self._work()

    async def catch_up(self, number: int) -> None:
        """Let the operator hear of everything and do all that is due."""
        for _ in range(30):
            self.operator.hear_all()
            if not await self._work():
                return

    def start_all(self, number: int) -> None:
        """Let the gang scheduler place everything."""
        for group in self.cluster.all(PODGROUPS):
            self._group_phase(group, "Running")
        while self._pick(0, "Pending"):
            self.start_pod(0)

    def hear(self, number: int) -> None:
        self.operator.hear((PODS, JOBS, PODGROUPS)[number % 3], 1 + number // 3)

    def hear_again(self, number: int) -> None:
        self.operator.hear_again((PODS, JOBS, PODGROUPS)[number % 3], number // 3)

    def list_again(self, number: int) -> None:
        self.operator.list_again((PODS, JOBS, PODGROUPS)[number % 3])

    def get_busy(self, number: int) -> None:
        """Have the API server be busy with other Jobs, or no longer."""
        self.cluster.busy = number % 3 > 0

    def wait(self, number: int) -> None:
        self.cluster.now += (1, 5, 30, 120)[number % 4]

    # The end

    async def settle(self) -> None:
        """Let everything that is under way come to its end; raises AssertionError when it never does."""
        self.cluster.pod_quota = None
        self.cluster.busy = False
        for _ in range(400):
            self.cluster.collect_garbage()
            for key in self._pods(_is_leaving):
                self.cluster.finish(key)
            for group in self.cluster.all(PODGROUPS):
                if group.get("status", {}).get("phase", "") in ("", "Pending"):
                    self._group_phase(group, "Inqueue")
            self.operator.hear_all()
            if await self._work():
                continue
            due = self.operator.queue.next_due()
            if due is None:
                self._check_rest()
                return
            self.cluster.now = max(self.cluster.now, due)
        raise AssertionError("the Job does not come to rest")

    def _check_rest(self) -> None:
        """Nothing is due and nothing to be heard: then nothing may be left to do either."""
        record = self.operator.engine.view.jobs.get(("ns", "j"))
        if self.job is None or record is None:
            assert self.job is None and record is None
            assert not self.cluster.all(PODS) and not self.cluster.all(PODGROUPS)
            return
        assert record.raw_status == self.job["status"]
        memory = self.operator.engine._memories[record.key]
        made = plan(self.operator.engine._reconciler._snapshot(record, memory, None))
        assert made.stages == () and made.write is When.REPLAN and made.wake is None, f"{made} after {record.status}"
        assert made.status is not None and str(record.status.phase) not in KILLING, record.status
        assert record.raw_status == made.status.write()
        if record.status.phase in (Phase.PENDING, Phase.RUNNING):
            have = {pod["metadata"]["name"] for pod in self.cluster.all(PODS)}
            wanted = {f"j-{t.task.name}-{i}" for t in record.revision.tasks for i in range(t.task.replicas)}
            assert have <= wanted
            if not any(t.task.depends_on for t in record.revision.tasks):
                assert have == wanted


MOVES: Final[dict[str, Callable[[World, int], Any]]] = {
    "work": World.work,
    "catch up": World.catch_up,
    "start all": World.start_all,
    "hear": World.hear,
    "start pod": World.start_pod,
    "fail pod": lambda world, number: world.end_pod(number, 1 + number % 3),
    "succeed pod": lambda world, number: world.end_pod(number, 0),
    "restart container": World.restart_container,
    "lose node": World.lose_node,
    "lose node for good": World.lose_node_for_good,
    "end termination": World.end_termination,
    "delete pod": World.delete_pod,
    "clean up pod": World.clean_up_pod,
    "move group": World.move_group,
    "delete group": World.delete_group,
    "scale": World.scale,
    "command": World.command,
    "delete job": World.delete_job,
    "submit again": World.submit_again,
    "sweep": World.sweep,
    "label job": World.label_job,
    "quota": World.set_quota,
    "crash": World.crash,
    "hand over": World.hand_over,
    "lose answers": World.lose_answers,
    "hear again": World.hear_again,
    "list again": World.list_again,
    "get busy": World.get_busy,
    "wait": World.wait,
}


def _is_leaving(pod: Raw) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return True
    return any(condition["type"] == "DisruptionTarget" for condition in pod["status"].get("conditions", ()))


def _phase_in(status: Raw) -> str:
    phase: str = (status.get("state") or {}).get("phase", "")
    return phase


def run(world: World, story: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    """Play a story by the world's clock."""
    with asyncio.Runner(loop_factory=SimLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, SimLoop)
        loop.cluster = world.cluster
        runner.run(story(world))
        loop.cluster = None
