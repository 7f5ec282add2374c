"""The plugin interface: what a Job plugin is given and what it gives back.

Pure. A plugin sees one revision of a Job and answers with the objects it wants and the edits it makes to a Pod; writing
them is the controller's work. One instance is made per Job revision, so a plugin may compute shared parts once.
"""

from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from vcjob.api.job import Job, Task

__all__ = ("Flag", "Note", "ObjectRef", "Plugin", "PodDraft", "WantedObject")

Value = bool | int | str
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One argument of a plugin: parsing, error texts and the docs table come from it."""

    name: str
    kind: type[bool] | type[int] | type[str]
    default: Value
    help: str
    aliases: tuple[str, ...] = ()


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

    `manifest` is complete but for the owner reference, namespace and name, which the controller sets. `follow` lists the
    paths that are brought up to date when the object exists already (empty: an existing object stays as it is).
    `generate` fills what must be made by chance (keys); it is called in a thread, only when the object is not there, and
    returns the part that is merged into the manifest.
    """

    ref: ObjectRef
    manifest: Manifest
    follow: tuple[tuple[str, ...], ...] = ()
    generate: Callable[[], Manifest] | None = field(default=None, compare=False)


class PodDraft:
    """A Pod on its way to the API server, for plugins to edit.

    The template is shared between all Pods, so nothing that came from it may be changed in place: `containers` and
    `init_containers` are fresh shallow copies, and the methods below replace lists instead of growing them.
    """

    __slots__ = ("annotations", "containers", "index", "init_containers", "labels", "name", "notes", "spec", "task")

    def __init__(self, *, name: str, task: Task, index: int, labels: dict[str, str], annotations: dict[str, str]) -> None:
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

    def add_env(self, *entries: Manifest, init: bool = True) -> None:  # noqa: FBT001
        """Append env entries to every container; `init=False` leaves the init containers out."""
        for container in self.every_container() if init else self.containers:
            container["env"] = [*(container.get("env") or ()), *entries]

    def add_volume(self, volume: Manifest) -> bool:
        """Append a Pod volume; a volume of that name in the template stays, and False says so."""
        volumes = self.spec.get("volumes") or ()
        if any(v.get("name") == volume["name"] for v in volumes):
            return False
        self.spec["volumes"] = [*volumes, volume]
        return True

    def add_mount(self, mount: Manifest, *, init: bool = True) -> None:
        """Append a volume mount to every container that mounts nothing at that path yet."""
        for container in self.every_container() if init else self.containers:
            mounts = container.get("volumeMounts") or ()
            if not any(m.get("mountPath") == mount["mountPath"] for m in mounts):
                container["volumeMounts"] = [*mounts, mount]

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


class Plugin(ABC):
    """One Job plugin. Subclasses set the class variables and override the hooks they need.

    Every hook may run any number of times with the same outcome.
    """

    name: ClassVar[str]
    flags: ClassVar[tuple[Flag, ...]] = ()
    requires: ClassVar[tuple[str, ...]] = ()  # plugins that this one brings along
    marked: ClassVar[bool] = True  # keeps `plugin-<name>` in status.controlledResources while its objects are there

    def __init__(self, job: Job, *, args: Mapping[str, Value]) -> None:
        self.job = job
        self.args = args

    def problems(self) -> tuple[str, ...]:
        """Return what makes this plugin impossible for this Job (a missing task), one sentence each."""
        return ()

    def notes(self) -> tuple[Note, ...]:
        """Return what the user should hear about the Job as a whole."""
        return ()

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
