"""The plugin interface: what a Job plugin is given and what it gives back.

Pure. A plugin sees one revision of a Job and answers with the objects it wants and the edits it makes to a Pod; writing
them is the controller's work. One instance is made per Job revision, so a plugin may compute shared parts once.
What came from a template is shared between all Pods and never changed in place.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vcjob.api.job import Job, Task

__all__ = (
    "Flag",
    "Manifest",
    "Note",
    "ObjectRef",
    "Plugin",
    "PluginError",
    "PodDraft",
    "Reason",
    "Value",
    "WantedObject",
)

Value = bool | int | str
Manifest = dict[str, Any]


class Reason(StrEnum):
    """Why a plugin has something to say; the `reason` of its notes."""

    ARGUMENT = "PluginArgument"  # an argument was not understood
    BROKEN = "PluginBroken"  # the plugin comes from another package and raised
    CONFLICT = "PluginConflict"  # the template already holds something under that name, path or number
    LIMIT = "PluginLimit"  # a limit of Kubernetes or of the kernel was reached, and a part left out
    TASK = "PluginTask"  # a task or container that the plugin serves is not there


class PluginError(Exception):
    """A hook of a plugin of another package raised; `plugin` and `hook` say which, `__cause__` holds the original."""

    def __init__(self, plugin: str, *, hook: str, cause: Exception) -> None:
        self.plugin = plugin
        self.hook = hook
        super().__init__(f"plugin {plugin}: {hook} failed with {type(cause).__name__}: {cause}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One argument of a plugin: parsing, error texts and the docs table come from it."""

    name: str
    kind: type[bool] | type[int] | type[str]
    default: Value
    help: str
    aliases: tuple[str, ...] = ()
    minimum: int | None = None  # of an int; None: no bound
    maximum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something a user should hear: an argument that was not understood, a part that was left out.

    `reason` is one CamelCase word, `message` a sentence that names the field and the remedy.
    """

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """Name of a namespaced object in the Job's namespace."""

    api_version: str  # "v1", "networking.k8s.io/v1"
    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedObject:
    """An object that must be there before the Job's first Pod.

    `manifest` is complete but for the owner reference, namespace and name, which the controller sets. `follow` lists
    the paths that are brought up to date when the object exists already (empty: an existing object stays as it is);
    the value at such a path is replaced whole, so that keys which are gone from a map go.
    `generate` fills what must be made by chance (keys); it is called in a thread, only when the object is not there or
    lacks something that is at one of the paths `required`, and returns the part that is merged into the manifest. What
    a required path is in is then replaced whole.
    """

    ref: ObjectRef
    manifest: Manifest
    follow: tuple[tuple[str, ...], ...] = ()
    required: tuple[tuple[str, ...], ...] = ()
    generate: Callable[[], Manifest] | None = field(default=None, compare=False)


class PodDraft:
    """A Pod on its way to the API server, for plugins to edit.

    The template is shared between all Pods, so nothing that came from it may be changed in place: `containers` and
    `init_containers` are fresh shallow copies, and the methods below replace lists instead of growing them.
    """

    __slots__ = ("annotations", "containers", "index", "init_containers", "labels", "name", "notes", "spec", "task")

    def __init__(
        self, *, name: str, task: Task, index: int, labels: dict[str, str], annotations: dict[str, str]
    ) -> None:
        template = task.pod_spec
        self.name = name
        self.task = task
        self.index = index
        self.labels = labels
        self.annotations = annotations
        self.spec: Manifest = dict(template)
        self.containers: list[Manifest] = [dict(c) for c in template.get("containers") or ()]
        self.init_containers: list[Manifest] = [dict(c) for c in template.get("initContainers") or ()]
        self.notes: list[Note] = []

    def every_container(self) -> Iterator[Manifest]:
        """Yield the init containers (sidecars among them), then the app containers."""
        yield from self.init_containers
        yield from self.containers

    def add_env(self, *entries: Manifest, init: bool = True) -> None:
        """Append env entries to every container; `init=False` leaves the init containers out."""
        for container in self.containers:
            container["env"] = [*(container.get("env") or ()), *entries]
        if init:
            for container in self.init_containers:
                container["env"] = [*(container.get("env") or ()), *entries]

    def add_volume(self, volume: Manifest) -> bool:
        """Append a Pod volume; a volume of that name in the template stays, and False says so."""
        volumes = self.spec.get("volumes") or ()
        if any(v.get("name") == volume["name"] for v in volumes):
            return False
        self.spec["volumes"] = [*volumes, volume]
        return True

    def add_mount(self, mount: Manifest, *, init: bool = True) -> tuple[tuple[str, str], ...]:
        """Append a volume mount to every container that mounts nothing at that path yet.

        Returns a pair (container, volume) for each container that mounts something there already.
        """
        path = mount["mountPath"].rstrip("/")
        occupied: list[tuple[str, str]] = []
        for container in self.every_container() if init else self.containers:
            mounts = container.get("volumeMounts") or ()
            other = next((m for m in mounts if str(m.get("mountPath")).rstrip("/") == path), None)
            if other is None:
                container["volumeMounts"] = [*mounts, mount]
            else:
                occupied.append((str(container.get("name")), str(other.get("name"))))
        return tuple(occupied)

    def attach(self, volume: Manifest, *, mount: Manifest, plugin: str) -> None:
        """Add a ConfigMap or Secret volume and mount it in every container.

        A volume of that name or a mount at that path that the user has set stays: it is used when it shows the same
        object, otherwise a note says what is missing because of it.
        """
        source = _object_of(volume)
        if not self.add_volume(volume) and self._volume_object(volume["name"]) != source:
            self.note(
                Reason.CONFLICT,
                f"{plugin}: task {self.task.name} has its own volume {volume['name']}, so {source} is not mounted at "
                f"{mount['mountPath']}; give that volume another name",
            )
            return
        for container, name in self.add_mount(mount):
            if self._volume_object(name) != source:
                self.note(
                    Reason.CONFLICT,
                    f"{plugin}: container {container} of task {self.task.name} mounts volume {name} at "
                    f"{mount['mountPath']}, so {source} is not mounted there; mount yours elsewhere",
                )

    def add_port(self, container: Manifest, *, name: str, number: int) -> None:
        """Declare a TCP port in a container that does not declare it yet.

        The port goes without a name when the container uses that name for another number. On the host's network a
        number is declared once a Pod, because there each declaration claims the port of the node.
        """
        declared = container.get("ports") or ()
        where = self.every_container() if self.spec.get("hostNetwork") else (container,)
        if any(_is_tcp(port, number) for c in where for port in c.get("ports") or ()):
            return
        entry: Manifest = {"name": name, "containerPort": number}
        if any(port.get("name") == name for port in declared):
            del entry["name"]
        container["ports"] = [*declared, entry]

    def note(self, reason: str, message: str) -> None:
        """Tell the user something about this Pod; equal notes are reported once a Job."""
        self.notes.append(Note(reason=reason, message=message))

    def finished_spec(self) -> Manifest:
        """Return the Pod spec with the edited containers in it."""
        spec = self.spec
        spec["containers"] = self.containers
        if self.init_containers:
            spec["initContainers"] = self.init_containers
        return spec

    def _volume_object(self, name: str) -> str:
        volumes: list[Manifest] = self.spec.get("volumes") or []
        return next((_object_of(volume) for volume in volumes if volume.get("name") == name), "")


class Plugin:
    """One Job plugin. Subclasses set the class variables and override the hooks they need.

    Every hook may run any number of times with the same outcome.
    """

    name: str
    flags: tuple[Flag, ...] = ()
    requires: tuple[str, ...] = ()  # plugins that this one brings along
    marked: bool = True  # keeps `plugin-<name>` in status.controlledResources while its objects are there

    argument_notes: tuple[Note, ...] = ()  # set by the registry: what was wrong with the arguments

    def __init__(self, job: Job, *, args: Mapping[str, Value]) -> None:
        self.job = job
        self.args: Mapping[str, Any] = {flag.name: flag.default for flag in self.flags} | dict(args)

    def problems(self) -> tuple[str, ...]:
        """Return what makes this plugin impossible for this Job (a missing task), one sentence each."""
        return ()

    def notes(self) -> tuple[Note, ...]:
        """Return what the user should hear about the Job as a whole; an override begins with those of `super()`."""
        return self.argument_notes

    def on_job_add(self) -> tuple[WantedObject, ...]:
        """Return the objects that must be there before the first Pod."""
        return ()

    def on_job_update(self) -> tuple[WantedObject, ...]:
        """Return the objects that must follow a changed spec; by default those of `on_job_add`."""
        return self.on_job_add()

    def on_job_delete(self) -> tuple[ObjectRef, ...]:
        """Return the objects that go when the Job is finished; by default those of `on_job_add`."""
        return tuple(wanted.ref for wanted in self.on_job_add())

    def on_pod_create(self, pod: PodDraft) -> None:
        """Edit a Pod before it is created."""


def _object_of(volume: Manifest) -> str:
    """Say which ConfigMap or Secret a volume shows; empty when it is something else."""
    if config_map := volume.get("configMap"):
        return f"ConfigMap {config_map.get('name')}"
    if secret := volume.get("secret"):
        return f"Secret {secret.get('secretName')}"
    return ""


def _is_tcp(port: Manifest, number: int) -> bool:
    return port.get("containerPort") == number and (port.get("protocol") or "TCP") == "TCP"
