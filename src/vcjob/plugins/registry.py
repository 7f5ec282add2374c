"""Which plugins there are, and which of them a Job uses.

Pure but for one look at the installed packages. Our own plugins run first, in the order below (a later one may read
what an earlier one has put into the Pod), then those of other packages by name. Such a package announces a plugin under
the entry-point group `vcjob.plugins`; one that cannot be loaded, or that raises, is reported and stops no other Job.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from vcjob.api.job import Job

from .base import Flag, Plugin
from .env import Env
from .flags import parse_arguments
from .guard import Guarded
from .hcclrank import HcclRank
from .mpi import Mpi
from .pytorch import PyTorch
from .ray import Ray
from .ssh import Ssh
from .svc import Svc
from .tensorflow import TensorFlow

__all__ = (
    "ENTRY_POINT_GROUP",
    "Catalogue",
    "broken_plugins",
    "enabled_plugins",
    "find_plugin",
    "forget_catalogue",
    "known_names",
    "load_catalogue",
    "unknown_plugins",
)

ENTRY_POINT_GROUP: Final = "vcjob.plugins"
# hcclrank reads the RANK that pytorch sets, so it comes last.
OWN: Final[tuple[type[Plugin], ...]] = (Env, Ssh, Svc, TensorFlow, Mpi, PyTorch, Ray, HcclRank)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The plugins by name, in the order in which they run, and the entry points that gave none, with the reason."""

    plugins: Mapping[str, type[Plugin]]
    broken: Mapping[str, str]


def known_names() -> tuple[str, ...]:
    """Return the names that `spec.plugins` may hold, in the order in which the plugins run."""
    return tuple(_catalogue().plugins)


def find_plugin(name: str) -> type[Plugin] | None:
    """Return the plugin of that name."""
    return _catalogue().plugins.get(name)


def broken_plugins() -> Mapping[str, str]:
    """Return the installed plugins that cannot be used, each with the reason."""
    return _catalogue().broken


def unknown_plugins(job: Job) -> tuple[str, ...]:
    """Return the names in `spec.plugins` that no plugin has."""
    return tuple(name for name in job.spec.plugins if find_plugin(name) is None)


def enabled_plugins(job: Job) -> tuple[Plugin, ...]:
    """Return the plugins of a Job, those that others require among them, in the order in which they run."""
    plugins = _catalogue().plugins
    wanted = _with_required(job.spec.plugins, plugins)
    return tuple(_instance(plugin, job) for name, plugin in plugins.items() if name in wanted)


def load_catalogue(found: Iterable[EntryPoint]) -> Catalogue:
    """Load the plugins of other packages behind our own; whatever goes wrong there stays with the plugin."""
    own = {plugin.name: plugin for plugin in OWN}
    others: dict[str, type[Plugin]] = {}
    broken: dict[str, str] = {}
    for entry in sorted(found, key=lambda entry: (entry.name, entry.value)):
        try:
            plugin = entry.load()
        except Exception as error:  # the code of another package may raise anything while it is imported
            broken[entry.name] = f"{entry.value} cannot be loaded: {type(error).__name__}: {error}"
            continue
        if entry.name in own or entry.name in others:
            broken[entry.name] = f"{entry.value} takes a name that another plugin has"
        elif defect := _defect(plugin, name=entry.name):
            broken[entry.name] = f"{entry.value} {defect}"
        else:
            others[entry.name] = plugin
    return Catalogue(plugins=own | others, broken=broken)


def forget_catalogue() -> None:
    """Look at the installed packages again at the next question."""
    _catalogue.cache_clear()


@cache
def _catalogue() -> Catalogue:
    catalogue = load_catalogue(entry_points(group=ENTRY_POINT_GROUP))
    for name, reason in catalogue.broken.items():
        log.warning("plugin cannot be used", extra={"plugin": name, "reason": reason})
    return catalogue


def _defect(plugin: object, *, name: str) -> str:
    """Say why a loaded object cannot serve as a plugin; empty when it can."""
    if not (isinstance(plugin, type) and issubclass(plugin, Plugin)):
        return "is not a subclass of vcjob.plugins.base.Plugin"
    if getattr(plugin, "name", None) != name:
        return f"calls itself {getattr(plugin, 'name', None)!r}, not {name!r}"
    if not (isinstance(plugin.flags, tuple) and all(isinstance(flag, Flag) for flag in plugin.flags)):
        return "has flags that are not a tuple of Flag"
    if not (isinstance(plugin.requires, tuple) and all(isinstance(found, str) for found in plugin.requires)):
        return "has requires that are not a tuple of names"
    return ""


def _with_required(names: Iterable[str], plugins: Mapping[str, type[Plugin]]) -> set[str]:
    wanted: set[str] = set()
    rest = [name for name in names if name in plugins]
    while rest:
        name = rest.pop()
        if name not in wanted and name in plugins:
            wanted.add(name)
            rest += plugins[name].requires
    return wanted


def _instance(plugin: type[Plugin], job: Job) -> Plugin:
    parsed = parse_arguments(job.spec.plugins.get(plugin.name, ()), plugin=plugin.name, flags=plugin.flags)
    instance = plugin(job, args=parsed.values) if plugin in OWN else Guarded(job, args=parsed.values, plugin=plugin)
    instance.argument_notes = parsed.notes
    return instance
