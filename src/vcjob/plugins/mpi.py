"""mpi: the master learns the hosts of the workers, and every Pod opens the port of its ssh server. Pure."""

from functools import cached_property

from .base import Flag, Manifest, Note, Plugin, PodDraft, Reason
from .flags import PORT_MAX, parse_arguments
from .hosts import ENV_ENTRY_MAX, fits_env, hosts
from .ssh import Ssh
from .svc import MOUNT_PATH, host_file

__all__ = ("Mpi",)


class Mpi(Plugin):
    """MPI_HOST on the master, and a declared port for ssh on every container."""

    name = "mpi"
    requires = ("svc", "ssh")
    flags = (
        Flag(name="master", kind=str, default="master", help="Task that runs `mpiexec`."),
        Flag(name="worker", kind=str, default="worker", help="Task whose Pods `mpiexec` starts processes on."),
        Flag(
            name="port",
            kind=int,
            default=22,
            minimum=1,
            maximum=PORT_MAX,
            help="Port of the ssh servers, as declared on the containers; `--ssh-port` of ssh is set apart from it.",
        ),
    )

    def problems(self) -> tuple[str, ...]:
        master = self.args["master"]
        if self.job.task(master):
            return ()
        return (f'The specified mpi master task was not found: no task is named "{master}"; name it with --master',)

    def notes(self) -> tuple[Note, ...]:
        found = list(super().notes())
        if self._hosts is not None and not fits_env("MPI_HOST", self._hosts):
            message = (
                f"mpi: variable MPI_HOST ({len(self._hosts)} bytes, Linux allows {ENV_ENTRY_MAX}) is left out; read "
                f"{MOUNT_PATH}/{host_file(self.args['worker'])}"
            )
            found.append(Note(reason=Reason.LIMIT, message=message))
        ssh = parse_arguments(self.job.spec.plugins.get(Ssh.name, ()), plugin=Ssh.name, flags=Ssh.flags).values
        port = self.args["port"]
        if ssh["ssh-port"] != port:
            # The config gives a port to short host names only, and MPI_HOST lists the long ones.
            message = (
                f"mpi: port is {port} but the config of ssh connects to {ssh['ssh-port']}; give ssh --ssh-port={port}, "
                f"and let mpiexec run ssh with '-p {port}'"
            )
            found.append(Note(reason=Reason.ARGUMENT, message=message))
        return tuple(found)

    def on_pod_create(self, pod: PodDraft) -> None:
        if pod.task.name == self.args["master"]:
            if self._hosts is None:
                return
            if self._entry:
                pod.add_env(self._entry)
        # App containers first: on the host's network only one container of a Pod declares the port.
        for container in (*pod.containers, *pod.init_containers):
            pod.add_port(container, name="mpijob-port", number=self.args["port"])

    @cached_property
    def _hosts(self) -> str | None:
        worker = self.job.task(self.args["worker"])
        return ",".join(hosts(self.job, task=worker)) if worker else None

    @cached_property
    def _entry(self) -> Manifest | None:
        if self._hosts is None or not fits_env("MPI_HOST", self._hosts):
            return None
        return {"name": "MPI_HOST", "value": self._hosts}
