"""svc: Pods of a Job find each other by name. Pure.

The Job gets a headless Service, a ConfigMap with every host and a NetworkPolicy; each container sees the hosts as files
in /etc/volcano and, where Linux can pass them, as environment. What exceeds a limit is left out and named in a note: a
variable that the kernel would refuse, then keys of the ConfigMap that repeat others, then the longest host files.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from vcjob.api.names import LABEL_JOB_NAME, LABEL_JOB_NAMESPACE

from .base import Flag, Manifest, Note, ObjectRef, Plugin, PodDraft, Reason, WantedObject
from .hosts import ENV_ENTRY_MAX, OBJECT_DATA_MAX, fits_env, host_label, hosts, is_label, volume_name

__all__ = ("MOUNT_PATH", "Svc", "host_file")

MOUNT_PATH: Final = "/etc/volcano"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """The hosts of a Job, cut to what fits: ConfigMap data, env names in order, and what was left out."""

    data: dict[str, str]
    env: tuple[str, ...]
    notes: tuple[Note, ...]


class Svc(Plugin):
    """Stable host names: a headless Service, and the hosts of every task as files and environment."""

    name = "svc"
    flags = (
        Flag(
            name="publish-not-ready-addresses",
            kind=bool,
            default=False,
            help="Whether DNS answers with the address of a Pod before it is ready.",
        ),
        Flag(
            name="disable-network-policy",
            kind=bool,
            default=False,
            help="Whether to do without the NetworkPolicy that lets only Pods of the same Job in.",
        ),
        Flag(
            name="inject-hosts-env",
            kind=bool,
            default=True,
            help="Whether containers get the variables `VC_<TASK>_HOSTS` and `VC_<TASK>_NUM`.",
        ),
    )

    def problems(self) -> tuple[str, ...]:
        name = self.job.name
        found: list[str] = []
        if not is_label(name) or name[0].isdigit():
            found.append(
                f"svc: the Job name {name} cannot be the name of a Service: at most 63 lower-case letters, digits and "
                "dashes, beginning with a letter"
            )
        for task in self.job.spec.tasks:
            last = host_label(self.job, task=task, index=max(task.replicas - 1, 0))
            if task.replicas and len(last) > 63:
                found.append(
                    f"svc: the hostname {last} of task {task.name} has {len(last)} characters, 63 at most; shorten the "
                    "name of the Job or of the task"
                )
        return tuple(found)

    def notes(self) -> tuple[Note, ...]:
        return (*super().notes(), *self._listing.notes)

    def on_job_add(self) -> tuple[WantedObject, ...]:
        name = self.job.name
        selector = {LABEL_JOB_NAME: name, LABEL_JOB_NAMESPACE: self.job.namespace}
        config_map = WantedObject(
            ref=ObjectRef(api_version="v1", kind="ConfigMap", name=self._config_map),
            manifest={"apiVersion": "v1", "kind": "ConfigMap", "data": self._listing.data},
            follow=(("data",),),
        )
        service_spec: dict[str, Any] = {"clusterIP": "None", "selector": selector}
        if self.args["publish-not-ready-addresses"]:
            service_spec["publishNotReadyAddresses"] = True
        service = WantedObject(
            ref=ObjectRef(api_version="v1", kind="Service", name=name),
            manifest={"apiVersion": "v1", "kind": "Service", "spec": service_spec},
        )
        if self.args["disable-network-policy"]:
            return (config_map, service)
        same_job = {"podSelector": {"matchLabels": selector}}
        policy = WantedObject(
            ref=ObjectRef(api_version="networking.k8s.io/v1", kind="NetworkPolicy", name=name),
            manifest={
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "spec": {**same_job, "ingress": [{"from": [same_job]}], "policyTypes": ["Ingress"]},
            },
        )
        return (config_map, service, policy)

    def on_pod_create(self, pod: PodDraft) -> None:
        spec = pod.spec
        if not spec.get("hostname"):
            spec["hostname"] = pod.name
        if not spec.get("subdomain"):
            spec["subdomain"] = self.job.name
        pod.add_env(*self._env)
        pod.attach(self._volume, mount=self._mount, plugin=self.name)

    @property
    def _config_map(self) -> str:
        return f"{self.job.name}-svc"

    @cached_property
    def _volume(self) -> Manifest:
        return {"name": volume_name(self.job, "svc"), "configMap": {"name": self._config_map}}

    @cached_property
    def _mount(self) -> Manifest:
        return {"name": volume_name(self.job, "svc"), "mountPath": MOUNT_PATH}

    @cached_property
    def _env(self) -> tuple[Manifest, ...]:
        if not self.args["inject-hosts-env"]:
            return ()
        return tuple(
            {"name": name, "valueFrom": {"configMapKeyRef": {"name": self._config_map, "key": name}}}
            for name in self._listing.env
        )

    @cached_property
    def _listing(self) -> _Listing:
        data: dict[str, str] = {}
        env: list[str] = []
        host_lists: dict[str, str] = {}  # key of the ConfigMap -> the file that holds the same hosts
        notes: list[Note] = []
        for task in self.job.spec.tasks:
            names = hosts(self.job, task=task)
            upper = task.name.replace("-", "_").upper()
            host_list, count, file = f"VC_{upper}_HOSTS", f"VC_{upper}_NUM", host_file(task.name)
            data |= {file: "\n".join(names), host_list: ",".join(names), count: str(len(names))}
            host_lists[host_list] = file
            env += (host_list, count)
            if self.args["inject-hosts-env"] and not fits_env(host_list, data[host_list]):
                env.remove(host_list)
                what = f"variable {host_list} ({len(data[host_list])} bytes, Linux allows {ENV_ENTRY_MAX})"
                notes.append(_left_out(what, file))
        by_size = sorted(host_lists, key=lambda key: -len(data[key]))
        for key in (*by_size, *(host_lists[key] for key in by_size)):
            if sum(map(len, data.values())) <= OBJECT_DATA_MAX:
                break
            what = f"key {key} of the ConfigMap ({len(data.pop(key))} bytes; all values may have {OBJECT_DATA_MAX})"
            notes.append(_left_out(what, host_lists.get(key)))
            if key in env:  # a reference to a key that is not there would keep the container from starting
                env.remove(key)
        return _Listing(data=data, env=tuple(env), notes=tuple(notes))


def host_file(task_name: str) -> str:
    """Return the name of the file in /etc/volcano that lists a task's hosts, one a line."""
    return f"{task_name.replace('-', '_')}.host"


def _left_out(what: str, file: str | None) -> Note:
    remedy = f"read {MOUNT_PATH}/{file}" if file else "ask DNS for the host names, they are <job>-<task>-<index>.<job>"
    return Note(reason=Reason.LIMIT, message=f"svc: {what} is left out; {remedy}")
