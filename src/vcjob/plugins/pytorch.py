"""pytorch: each container learns the rendezvous of torch.distributed and its rank. Pure.

Ranks run through the masters first, then through the workers; a side task gets the rendezvous but no rank.
"""

import shlex
from functools import cached_property
from typing import Final

from vcjob.api.job import Task

from .base import Flag, Manifest, Note, Plugin, PodDraft, Reason
from .flags import PORT_MAX
from .hosts import host

__all__ = ("PyTorch",)

WAIT_CONTAINER: Final = "wait-for-master"
WAIT_SCRIPT: Final = """\
echo "waiting for the master at {host}:{port}"
waited=0
until nc -z -w 2 {host} {port} 2>/dev/null || timeout 2 bash -c '</dev/tcp/{host}/{port}' 2>/dev/null; do
  if [ "$waited" -ge {timeout} ]; then
    echo "the master at {host}:{port} did not answer within {timeout} s"
    exit 1
  fi
  sleep 2
  waited=$((waited + 2))
done
echo "the master at {host}:{port} is ready"
"""


class PyTorch(Plugin):
    """MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK for torch.distributed."""

    name = "pytorch"
    requires = ("svc",)
    flags = (
        Flag(name="master", kind=str, default="master", help="Task of the master."),
        Flag(name="worker", kind=str, default="worker", help="Task of the workers."),
        Flag(
            name="port",
            kind=int,
            default=23456,
            minimum=1,
            maximum=PORT_MAX,
            help="Port of the rendezvous on the first master.",
        ),
        Flag(
            name="wait-master-enabled",
            kind=bool,
            default=False,
            help="Whether workers wait in an init container until the master accepts connections.",
        ),
        Flag(
            name="wait-master-timeout",
            kind=int,
            default=300,
            minimum=1,
            help="Seconds after which a waiting worker fails.",
        ),
        Flag(
            name="wait-master-image",
            kind=str,
            default="busybox:1.36.1",
            help="Image of the waiting container; it needs `sh`, and `nc` or `bash`.",
        ),
    )

    def notes(self) -> tuple[Note, ...]:
        if self._master:
            return super().notes()
        message = f"pytorch: no task is named {self.args['master']}, so no rendezvous is set; name it with --master"
        return (*super().notes(), Note(reason=Reason.TASK, message=message))

    def on_pod_create(self, pod: PodDraft) -> None:
        if self._master is None:
            return
        for container in pod.containers:
            pod.add_port(container, name="pytorchjob-port", number=self.args["port"])
        rank = self._rank(pod)
        entries = self._rendezvous if rank is None else (*self._rendezvous, {"name": "RANK", "value": str(rank)})
        pod.add_env(*entries, init=False)
        if pod.task.name == self.args["worker"] and self.args["wait-master-enabled"]:
            self._add_wait(pod)

    def _rank(self, pod: PodDraft) -> int | None:
        if self._master and pod.task.name == self._master.name:
            return pod.index
        if self._master and pod.task.name == self.args["worker"]:
            return self._master.replicas + pod.index
        return None

    def _add_wait(self, pod: PodDraft) -> None:
        if all(container.get("name") != WAIT_CONTAINER for container in pod.init_containers):
            pod.init_containers.append(self._wait_container)

    @cached_property
    def _master(self) -> Task | None:
        return self.job.task(self.args["master"])

    @cached_property
    def _address(self) -> str:
        return host(self.job, task=self._master, index=0) if self._master else ""

    @cached_property
    def _rendezvous(self) -> tuple[Manifest, ...]:
        members = {self.args["master"], self.args["worker"]}
        size = sum(task.replicas for task in self.job.spec.tasks if task.name in members)
        return (
            {"name": "MASTER_ADDR", "value": self._address},
            {"name": "MASTER_PORT", "value": str(self.args["port"])},
            {"name": "WORLD_SIZE", "value": str(size)},
        )

    @cached_property
    def _wait_container(self) -> Manifest:
        script = WAIT_SCRIPT.format(
            host=shlex.quote(self._address), port=self.args["port"], timeout=self.args["wait-master-timeout"]
        )
        return {"name": WAIT_CONTAINER, "image": self.args["wait-master-image"], "command": ["sh", "-c", script]}
