"""ray: containers without a command of their own start a Ray head or join it, and a Service leads to the head. Pure."""

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from vcjob.api.job import Task
from vcjob.api.names import LABEL_JOB_NAME, LABEL_JOB_NAMESPACE, LABEL_TASK_SPEC

from .base import Flag, Manifest, Note, ObjectRef, Plugin, PodDraft, Reason, WantedObject
from .flags import PORT_MAX
from .hosts import host, is_label

__all__ = ("Ray",)

PORTS: Final = (("gcs", "port"), ("dashboard", "dashboardPort"), ("client-server", "clientPort"))  # name, flag


class Ray(Plugin):
    """`ray start` on head and workers, the head's ports, and a Service for them."""

    name = "ray"
    requires = ("svc",)
    flags = (
        Flag(name="head", kind=str, default="head", help="Task of the head."),
        Flag(name="headContainer", kind=str, default="head", help="Container of the head task that runs Ray."),
        Flag(name="worker", kind=str, default="worker", help="Task of the workers."),
        Flag(name="workerContainer", kind=str, default="worker", help="Container of the worker task that runs Ray."),
        Flag(name="port", kind=int, default=6379, minimum=1, maximum=PORT_MAX, help="Port of the control store (GCS)."),
        Flag(
            name="dashboardPort",
            kind=int,
            default=8265,
            minimum=1,
            maximum=PORT_MAX,
            help="Port of the dashboard and of the job API.",
        ),
        Flag(
            name="clientPort",
            kind=int,
            default=10001,
            minimum=1,
            maximum=PORT_MAX,
            aliases=("clientServerPort",),
            help="Port of the Ray client server.",
        ),
    )

    def problems(self) -> tuple[str, ...]:
        found: list[str] = []
        if self._head is None:
            found.append(f"ray: no task is named {self.args['head']}; name the head task with --head")
        if not is_label(self._service):
            found.append(
                f"ray: the Service name {self._service} must be a DNS label of at most 63 characters; rename the Job"
            )
        return tuple(found)

    def notes(self) -> tuple[Note, ...]:
        found = list(super().notes())
        if self._head and self._head.replicas > 1:
            text = f"ray: task {self._head.name} has {self._head.replicas} replicas, each a cluster of its own"
            found.append(Note(reason=Reason.TASK, message=f"{text}; workers join the first, so set its replicas to 1"))
        for task, flag in ((self._head, "headContainer"), (self.job.task(self.args["worker"]), "workerContainer")):
            if task and not _named(PodDraft(name="", task=task, index=0, labels={}, annotations={}), self.args[flag]):
                text = f"ray: task {task.name} has no container named {self.args[flag]}, so Ray is not started there"
                found.append(Note(reason=Reason.TASK, message=f"{text}; name the container with --{flag}"))
        for number, count in Counter(self.args[flag] for _, flag in PORTS).items():
            if count > 1:
                text = f"ray: port {number} is given to {count} of port, dashboardPort and clientPort; set them apart"
                found.append(Note(reason=Reason.ARGUMENT, message=text))
        return tuple(found)

    def on_job_add(self) -> tuple[WantedObject, ...]:
        labels = {LABEL_JOB_NAME: self.job.name, LABEL_JOB_NAMESPACE: self.job.namespace}
        service = WantedObject(
            ref=ObjectRef(api_version="v1", kind="Service", name=self._service),
            manifest={
                "apiVersion": "v1",
                "kind": "Service",
                "spec": {"selector": {**labels, LABEL_TASK_SPEC: self.args["head"]}, "ports": self._service_ports()},
            },
        )
        return (service,)

    def on_pod_create(self, pod: PodDraft) -> None:
        if self._head is None:
            return
        if pod.task.name == self._head.name:
            self._open_ports(pod)
            _fill_command(pod, container=self.args["headContainer"], command=self._head_command)
        elif pod.task.name == self.args["worker"]:
            _fill_command(pod, container=self.args["workerContainer"], command=self._worker_command)

    @cached_property
    def _head(self) -> Task | None:
        return self.job.task(self.args["head"])

    @property
    def _service(self) -> str:
        return f"{self.job.name}-head-svc"

    @cached_property
    def _head_command(self) -> list[str]:
        port, dashboard, client = (self.args[flag] for _, flag in PORTS)
        start = "ray start --head --block --dashboard-host=0.0.0.0"
        return ["sh", "-c", f"{start} --port={port} --dashboard-port={dashboard} --ray-client-server-port={client}"]

    @cached_property
    def _worker_command(self) -> list[str]:
        address = f"{host(self.job, task=self._head, index=0)}:{self.args['port']}" if self._head else ""
        return ["sh", "-c", f"ray start --block --address={address}"]

    def _open_ports(self, pod: PodDraft) -> None:
        for container in _named(pod, self.args["headContainer"]):
            for name, flag in PORTS:
                pod.add_port(container, name=name, number=self.args[flag])

    def _service_ports(self) -> list[Manifest]:
        """Return the ports of the Service, each aimed at the name that the head's Pod has for the number.

        A number is the target where a name would not lead there: nameless, or first declared with another number.
        """
        names: dict[str, int] = {}
        if self._head:
            pod = PodDraft(name="", task=self._head, index=0, labels={}, annotations={})
            self._open_ports(pod)
            names = _port_names(pod)
        by_number = {number: name for name, number in reversed(names.items())}
        ports: dict[int, Manifest] = {}
        for name, flag in PORTS:
            number = self.args[flag]
            target = name if names.get(name) == number else by_number.get(number, number)
            ports.setdefault(number, {"name": name, "port": number, "protocol": "TCP", "targetPort": target})
        return list(ports.values())


def _named(pod: PodDraft, name: str) -> tuple[Manifest, ...]:
    return tuple(container for container in pod.containers if container.get("name") == name)


def _fill_command(pod: PodDraft, *, container: str, command: list[str]) -> None:
    for found in _named(pod, container):
        if found.get("command"):
            continue
        if found.get("args"):
            pod.note(
                Reason.CONFLICT,
                f"ray: container {container} of task {pod.task.name} has args but no command; `ray start` runs without "
                "them, so set a command of your own to use them",
            )
        found["command"] = command


def _port_names(pod: PodDraft) -> dict[str, int]:
    """Return which number each TCP port name of a Pod leads to: the first container that declares it counts."""
    names: dict[str, int] = {}
    for port in _declared_ports(pod):
        if port.get("name") and (port.get("protocol") or "TCP") == "TCP":
            names.setdefault(port["name"], port["containerPort"])
    return names


def _declared_ports(pod: PodDraft) -> Iterator[Manifest]:
    for container in (*pod.containers, *pod.init_containers):
        yield from container.get("ports") or ()
