"""A fence around plugins of other packages.

Pure. What such a plugin raises never leaves as it is: before the first object is made it becomes a problem of the Job
or a note, later a PluginError that names plugin and hook. Only the removal of objects never fails, because a Job must
be able to end.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from vcjob.api.job import Job

from .base import Note, ObjectRef, Plugin, PluginError, PodDraft, Reason, Value, WantedObject

__all__ = ("Guarded",)

R = TypeVar("R")


class Guarded(Plugin):
    """Stands for one plugin of another package and passes every hook on."""

    def __init__(self, job: Job, *, args: Mapping[str, Value], plugin: type[Plugin]) -> None:
        super().__init__(job, args=args)
        self.name = plugin.name
        self.flags = plugin.flags
        self.requires = plugin.requires
        self.marked = plugin.marked
        self._failure: tuple[str, ...] = ()
        self._plugin = Plugin(job, args={})
        try:
            self._plugin = self._call("__init__", lambda: plugin(job, args=args))
        except PluginError as error:
            self._failure = (str(error),)

    def problems(self) -> tuple[str, ...]:
        try:
            return self._failure or self._call("problems", lambda: tuple(self._plugin.problems()))
        except PluginError as error:
            return (str(error),)

    def notes(self) -> tuple[Note, ...]:
        try:
            own = self._call("notes", lambda: tuple(self._plugin.notes()))
        except PluginError as error:
            own = (_broken(error),)
        try:
            self._removed()
        except PluginError as error:  # said when the Job begins, for at its end it may be too late to mend
            own = (*own, _broken(error))
        return (*self.argument_notes, *own)

    def on_job_add(self) -> tuple[WantedObject, ...]:
        return self._call("on_job_add", lambda: tuple(self._plugin.on_job_add()))

    def on_job_update(self) -> tuple[WantedObject, ...]:
        return self._call("on_job_update", lambda: tuple(self._plugin.on_job_update()))

    def on_job_delete(self) -> tuple[ObjectRef, ...]:
        for ask in (self._removed, super().on_job_delete):  # then all that the plugin has made
            try:
                return ask()
            except PluginError:
                pass
        return ()

    def on_pod_create(self, pod: PodDraft) -> None:
        self._call("on_pod_create", lambda: self._plugin.on_pod_create(pod))

    def _removed(self) -> tuple[ObjectRef, ...]:
        return self._call("on_job_delete", lambda: tuple(self._plugin.on_job_delete()))

    def _call(self, hook: str, function: Callable[[], R]) -> R:
        try:
            return function()
        except Exception as error:
            raise PluginError(self.name, hook=hook, cause=error) from error


def _broken(error: PluginError) -> Note:
    return Note(reason=Reason.BROKEN, message=str(error))
