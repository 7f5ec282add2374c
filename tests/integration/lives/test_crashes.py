"""Wherever the operator dies, its successor brings the Job to the same end.

For each life and every k the operator's k-th write takes effect, and at that moment the process is no more: it never
sees the answer. The engine runs inside the test, so that all k are played side by side.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import pytest
from tests.integration.conftest import make_namespace
from tests.integration.harness.api import CONFIG_MAPS, JOBS, NAMESPACES, SERVICES, Api, Object, eventually
from tests.integration.harness.control_plane import ControlPlane
from tests.integration.harness.jobs import job, task
from tests.integration.lives.kubelet import Fate, Kubelet, fails, follow, succeeds
from tests.integration.lives.stage import LIFE_S, Stage

from vcjob.api.job import Phase
from vcjob.controller.engine import Engine
from vcjob.controller.jobs import JobRecord
from vcjob.controller.observer import PassResult
from vcjob.gang.base import Gang
from vcjob.gang.none import NoGang
from vcjob.gang.volcano import VolcanoGang
from vcjob.kube.client import ApiClient
from vcjob.kube.credentials import load_credentials
from vcjob.lifecycle.outcome import EventNote
from vcjob.lifecycle.status import Status

SIDE_BY_SIDE: Final = 8
NAME: Final = "j"
WITHOUT_GROUPS: Final = NoGang(gang_scheduler_name="volcano")


class Silence:
    """Tells nobody."""

    def event(self, record: JobRecord, note: EventNote) -> None: ...

    def phase_changed(self, record: JobRecord, old: Phase | None, new: Status) -> None: ...

    def pods_created(self, record: JobRecord, count: int, latency_s: float) -> None: ...

    def job_gone(self, record: JobRecord) -> None: ...

    def pass_began(self, waited_s: float) -> None: ...

    def passing(self, key: tuple[str, str]) -> AbstractContextManager[Any]:
        return nullcontext()

    def pass_ended(self, result: PassResult, took_s: float) -> None: ...


class MortalClient(ApiClient):
    """The operator's client in a process that dies with its k-th write."""

    dies_with: int | None = None
    writes: int = 0

    async def request(self, verb: str, path: str, **arguments: Any) -> bytes:
        await self._must_live()
        answer = await super().request(verb, path, **arguments)
        if verb != "GET":
            self.writes += 1
        await self._must_live()
        return answer

    @property
    def dead(self) -> bool:
        return self.dies_with is not None and self.writes >= self.dies_with

    async def _must_live(self) -> None:
        if self.dead:
            await asyncio.Event().wait()  # nobody is there to go on


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A Job, the fates of its Pods, and how it ends."""

    job: Object
    fates: dict[str, Fate] = field(default_factory=dict)
    ends: Callable[[Object, dict[str, Object]], bool]
    meddle: Callable[[Stage], Awaitable[None]] | None = None  # once it runs
    gang: Gang = WITHOUT_GROUPS


def runs_again(found: Object, pods: dict[str, Object]) -> bool:
    status = found["status"]
    return status["state"]["phase"] == "Running" and status.get("retryCount") == 1 and status["running"] == len(pods)


def is_finished(found: Object, pods: dict[str, Object]) -> bool:
    done = ("Succeeded", "Failed")
    status, phase = found["status"], found["status"]["state"]["phase"]
    return (
        phase in ("Completed", "Failed")
        and "terminating" not in status
        and all(pod["status"]["phase"] in done for pod in pods.values())
    )


async def scale_down(stage: Stage) -> None:
    await stage.scale(NAME, 1, minimum=1)


def is_smaller(found: Object, pods: dict[str, Object]) -> bool:
    return found["status"].get("running") == 1 == len(pods) and "terminating" not in found["status"]


def policy(action: str, *events: str) -> Object:
    return {"action": action, "events": list(events)}


both = (task("good", 2), task("bad", 1))
LIVES = {
    "the Job restarts": Life(
        job=job(
            NAME, *both, minAvailable=3, plugins={"svc": []}, policies=[policy("RestartJob", "PodFailed", "PodEvicted")]
        ),
        fates={"bad": fails(after_s=0.1, first_run_only=True)},
        ends=runs_again,
        gang=VolcanoGang(),
    ),
    "a Pod restarts": Life(
        job=job(
            NAME, *both, minAvailable=3, policies=[policy("RestartPod", "PodFailed"), policy("AbortJob", "PodEvicted")]
        ),
        fates={"bad": fails(after_s=0.1, first_run_only=True)},
        ends=runs_again,
    ),
    "the retries are used up": Life(
        job=job(NAME, *both, minAvailable=3, maxRetry=2, policies=[policy("RestartJob", "PodFailed", "PodEvicted")]),
        fates={"bad": fails(after_s=0.1)},
        ends=is_finished,
    ),
    "a task completes it": Life(
        job=job(NAME, *both, minAvailable=3, plugins={"svc": []}, policies=[policy("CompleteJob", "TaskCompleted")]),
        fates={"bad": succeeds(after_s=0.1)},
        ends=is_finished,
        gang=VolcanoGang(),
    ),
    "it is scaled down": Life(
        job=job(NAME, task("w", 3), minAvailable=3, plugins={"svc": []}, policies=[policy("AbortJob", "PodEvicted")]),
        ends=is_smaller,
        meddle=scale_down,
    ),
}


@asynccontextmanager
async def engine_for(plane: ControlPlane, api: Api, namespace: str, gang: Gang) -> AsyncIterator[MortalClient]:
    """Run an engine for one namespace: the operator without its rim."""
    async with MortalClient(
        load_credentials(kubeconfig=plane.operator_kubeconfig, context=None), user_agent="crash-test"
    ) as client:
        engine = Engine(client, gang=gang, observer=Silence(), namespaces=(namespace,), assert_leading=lambda: None)

        async def feed() -> None:
            async for event in follow(api, JOBS, namespace):
                (engine.view.take_deleted_job if event.type == "DELETED" else engine.view.take_job)(event.object)

        tasks = [asyncio.create_task(run) for run in (engine.view.watch(), feed(), engine.work())]
        try:
            yield client
        finally:
            for running in tasks:
                running.cancel()
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(outcome, Exception):
                    raise outcome


async def play(life: Life, api: Api, plane: ControlPlane, *, dies_with: int | None) -> tuple[Object, int]:
    """Play a life whose operator dies with that write; return how it ended and how many writes the operator made."""
    namespace = f"crash-{uuid4().hex[:8]}"
    await make_namespace(api, name=namespace)
    kubelet = Kubelet(api, namespace)
    stage = Stage(api, namespace, kubelet)
    around = [asyncio.create_task(kubelet.run()), asyncio.create_task(stage.remember())]
    meddling: asyncio.Task[None] | None = None
    try:
        await stage.begin(life.job, **life.fates)
        if life.meddle is not None:
            meddling = asyncio.create_task(meddle(life.meddle, stage))
        writes = 0
        while True:
            async with engine_for(plane, api, namespace, life.gang) as client:
                client.dies_with = dies_with
                try:
                    outcome = await eventually(
                        lambda client=client: "dead" if client.dead else ended(life, stage, meddling),
                        timeout_s=2 * LIFE_S,
                    )
                except AssertionError as error:
                    pods = {name: pod["status"]["phase"] for name, pod in (await stage.pods(NAME)).items()}
                    raise AssertionError(f"{error}\nPods: {pods}\n{stage.tell(NAME)}") from None
                writes += client.writes
            if outcome != "dead":
                return outcome, writes
            dies_with = None
    finally:
        for running in (*around, *([meddling] if meddling else [])):
            running.cancel()
        faults = await asyncio.gather(*around, return_exceptions=True)
        await api.delete(NAMESPACES, namespace)
        for fault in faults:
            if isinstance(fault, Exception):
                raise fault


async def meddle(what: Callable[[Stage], Awaitable[None]], stage: Stage) -> None:
    await stage.sees(NAME, "Running", within_s=2 * LIFE_S)
    await what(stage)


async def ended(life: Life, stage: Stage, meddling: "asyncio.Task[None] | None") -> Object | None:
    """Return what there is at the end of the life; None while it goes on."""
    if meddling is not None and not meddling.done():
        return None
    found, pods = await stage.job(NAME), await stage.pods(NAME)
    if not found.get("status", {}).get("state") or not life.ends(found, pods):
        return None
    status = found["status"]
    seen = {
        "phase": status["state"]["phase"],
        "reason": status["state"]["reason"],
        "retryCount": status.get("retryCount", 0),
        "version": status.get("version", 0),
        "counters": {key: status.get(key, 0) for key in ("running", "succeeded", "failed", "terminating")},
        "controlled": status.get("controlledResources", {}),
        "pods": {name: pod["status"]["phase"] for name, pod in sorted(pods.items())},
        "group": await stage.group(NAME) is not None,
        "objects": [
            bool(await stage.api.find(CONFIG_MAPS, f"{NAME}-svc", stage.namespace)),
            bool(await stage.api.find(SERVICES, NAME, stage.namespace)),
        ],
    }
    if seen["phase"] in ("Completed", "Failed") and (seen["group"] or any(seen["objects"])):
        return None  # still being cleaned up
    return seen


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LIVES)
async def test_the_end_is_the_same_wherever_the_operator_dies(name: str, control_plane: ControlPlane, api: Api):
    life = LIVES[name]
    usual, writes = await play(life, api, control_plane, dies_with=None)
    slots = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(k: int) -> None:
        async with slots:
            end, _ = await play(life, api, control_plane, dies_with=k)
        assert end == usual, f"after the write number {k}"

    async with asyncio.TaskGroup() as group:
        for k in range(1, writes + 1):
            group.create_task(one(k), name=f"{name} {k}")
