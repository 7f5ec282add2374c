"""tensorflow: each container learns the cluster and its own place in it, as TF_CONFIG. Pure."""

import json
from functools import cached_property
from typing import Final

from .base import Flag, Note, Plugin, PodDraft, Reason
from .flags import PORT_MAX
from .hosts import ENV_ENTRY_MAX, fits_env, hosts
from .svc import MOUNT_PATH

__all__ = ("TensorFlow",)

CLUSTER_ORDER: Final = ("ps", "worker", "chief", "evaluator")
ROLE_ORDER: Final = ("chief", "worker", "ps", "evaluator")  # of roles that name the same task, the first counts
INDEX_DIGITS: Final = 10  # of a 32-bit index


class TensorFlow(Plugin):
    """TF_CONFIG with the hosts of the parameter servers, workers, chief and evaluator."""

    name = "tensorflow"
    requires = ("svc",)
    flags = (
        Flag(name="ps", kind=str, default="ps", help="Task of the parameter servers."),
        Flag(name="worker", kind=str, default="worker", help="Task of the workers."),
        Flag(name="chief", kind=str, default="chief", help="Task of the chief."),
        Flag(name="evaluator", kind=str, default="evaluator", help="Task of the evaluators."),
        Flag(
            name="port",
            kind=int,
            default=2222,
            minimum=1,
            maximum=PORT_MAX,
            help="Port on which each TensorFlow server listens.",
        ),
    )

    def notes(self) -> tuple[Note, ...]:
        if not self._is_distributed or self._fits:
            return super().notes()
        message = (
            f"tensorflow: variable TF_CONFIG ({len(self._cluster)} bytes, Linux allows {ENV_ENTRY_MAX}) is left out; "
            f"build it from the files in {MOUNT_PATH}"
        )
        return (*super().notes(), Note(reason=Reason.LIMIT, message=message))

    def on_pod_create(self, pod: PodDraft) -> None:
        if not self._is_distributed or not self._fits:
            return
        role = self._roles.get(pod.task.name, pod.task.name)
        value = f'{{"cluster":{self._cluster},"task":{{"type":"{role}","index":{pod.index}}}}}'
        pod.add_env({"name": "TF_CONFIG", "value": value}, init=False)

    @property
    def _is_distributed(self) -> bool:
        tasks = self.job.spec.tasks
        return not (len(tasks) == 1 and tasks[0].replicas == 1)

    @cached_property
    def _roles(self) -> dict[str, str]:
        return {self.args[role]: role for role in reversed(ROLE_ORDER)}

    @cached_property
    def _cluster(self) -> str:
        members = {
            role: [f"{host}:{self.args['port']}" for host in hosts(self.job, task=task)]
            for role in CLUSTER_ORDER
            if (task := self.job.task(self.args[role]))
        }
        return json.dumps({role: listed for role, listed in members.items() if listed}, separators=(",", ":"))

    @cached_property
    def _fits(self) -> bool:
        names = [*CLUSTER_ORDER, *(task.name for task in self.job.spec.tasks)]
        longest = '{"cluster":,"task":{"type":"","index":}}' + max(names, key=len) + "9" * INDEX_DIGITS
        return fits_env("TF_CONFIG", self._cluster + longest)
