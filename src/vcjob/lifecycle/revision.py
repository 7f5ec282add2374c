"""A Job compiled: everything that follows from its spec alone. Pure; made once for each revision of the spec.

The controller keeps one of these per Job, so that a pass that finds nothing new costs no parsing, hashing or checking.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from vcjob.admission.defaulting import effective_job
from vcjob.admission.validation import find_fatal
from vcjob.api.base import InvalidObject, parse
from vcjob.api.duration import InvalidDuration, parse_duration
from vcjob.api.job import Action, Event, Job, LifecyclePolicy, Task
from vcjob.plugins.base import Note, Plugin, WantedObject
from vcjob.plugins.registry import enabled_plugins

__all__ = ("CompiledPolicy", "CompiledTask", "PluginObject", "Revision", "broken_revision", "compile_job")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPolicy:
    """A lifecycle policy with its words understood."""

    action: Action
    events: frozenset[str]
    exit_code: int | None
    timeout: float  # seconds; 0: at once

    def matches_event(self, event: Event) -> bool:
        """Return whether the event is listed, or any is. PodPending asks for a timeout: every Pod starts pending."""
        if event is Event.POD_PENDING and not self.timeout:
            return False
        return event in self.events or Event.ANY in self.events


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledTask:
    """A task with the policies that apply to its Pods, its own before the Job's."""

    task: Task
    policies: tuple[CompiledPolicy, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginObject:
    """An object that a plugin wants, and a digest that tells when it changed."""

    plugin: str
    wanted: WantedObject
    digest: str

    def digest_at(self, version: int) -> str:
        """Return what is remembered once the object has been written for this `status.version`."""
        return f"{self.digest}@{version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What follows from one revision of a Job's spec."""

    job: Job
    tasks: tuple[CompiledTask, ...]
    policies: tuple[CompiledPolicy, ...]
    plugins: tuple[Plugin, ...]
    objects: tuple[PluginObject, ...]
    min_available: int
    watched: frozenset[Event]  # events that some policy reacts to
    watches_exit_codes: bool
    has_pending_timeout: bool
    notes: tuple[Note, ...]
    fatal: str  # why the Job can never run; empty when it can
    edited: bool  # the spec has changed since the Job was made
    by_name: Mapping[str, CompiledTask] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {compiled.task.name: compiled for compiled in self.tasks})

    @property
    def marks(self) -> tuple[str, ...]:
        """Return the names of the plugins that keep a mark in the status."""
        return tuple(plugin.name for plugin in self.plugins if plugin.marked)


def compile_job(raw: dict[str, Any]) -> Revision:
    """Compile a raw Job. Raises InvalidObject when its spec cannot be read at all."""
    effective = effective_job(raw)
    job = parse(Job, effective)
    fatal = find_fatal(effective)
    plugins: tuple[Plugin, ...] = ()
    objects: tuple[PluginObject, ...] = ()
    notes: tuple[Note, ...] = ()
    if not fatal:
        try:
            plugins = enabled_plugins(job)
            objects = tuple(_objects(plugins))
            notes = tuple(note for plugin in plugins for note in plugin.notes())
        except Exception as error:  # a third-party plugin may raise anything; it must cost its own Job only
            fatal = f"a plugin failed: {type(error).__name__}: {error}"
    if fatal:
        plugins, objects = _removable(job), ()
    job_policies = tuple(_compile(job.spec.policies))
    tasks = tuple(
        CompiledTask(task=task, policies=(*_compile(task.policies), *job_policies)) for task in job.spec.tasks
    )
    every = {policy for task in tasks for policy in task.policies} | set(job_policies)
    return Revision(
        job=job,
        tasks=tasks,
        policies=job_policies,
        plugins=plugins,
        objects=objects,
        min_available=job.spec.min_available,
        watched=frozenset(event for event in Event if any(policy.matches_event(event) for policy in every)),
        watches_exit_codes=any(policy.exit_code is not None for policy in every),
        has_pending_timeout=any(policy.matches_event(Event.POD_PENDING) for policy in every),
        notes=notes,
        fatal=fatal,
        edited=job.metadata.generation > 1,
    )


def _removable(job: Job) -> tuple[Plugin, ...]:
    """Return the plugins of a Job that can never run (any more), for what they once made to be removed."""
    try:
        plugins = enabled_plugins(job)
        for plugin in plugins:
            plugin.on_job_delete()
    except Exception:  # arguments that no plugin was made for
        return ()
    return plugins


def broken_revision(raw: dict[str, Any], error: InvalidObject) -> Revision:
    """Return the revision of a Job whose spec cannot be read: it fails with the reason."""
    metadata = raw.get("metadata") or {}
    names = {key: metadata.get(key) or "" for key in ("name", "namespace", "uid")}
    job = parse(Job, {"metadata": names, "spec": {}})
    return Revision(
        job=job, tasks=(), policies=(), plugins=(), objects=(), min_available=0, watched=frozenset(),
        watches_exit_codes=False, has_pending_timeout=False, notes=(), fatal=str(error), edited=True,
    )  # fmt: skip


def _compile(policies: Iterable[LifecyclePolicy]) -> Iterable[CompiledPolicy]:
    """Yield the policies that can be understood; validation names the others."""
    for policy in policies:
        try:
            action = Action(policy.action)
            timeout = parse_duration(policy.timeout).seconds if policy.timeout else 0.0
        except (ValueError, InvalidDuration):
            continue
        yield CompiledPolicy(
            action=action,
            events=frozenset((*policy.events, policy.event)) - {""},
            exit_code=policy.exit_code or None,  # 0 is success and never matches
            timeout=max(0.0, timeout),
        )


def _objects(plugins: Iterable[Plugin]) -> Iterable[PluginObject]:
    for plugin in plugins:
        for wanted in plugin.on_job_update():
            encoded = msgspec.json.encode(wanted.manifest, order="sorted")
            digest = hashlib.blake2b(encoded, digest_size=8).hexdigest()
            yield PluginObject(plugin=plugin.name, wanted=wanted, digest=digest)
