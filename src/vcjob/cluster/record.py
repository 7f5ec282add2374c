"""What a cluster writes down about itself: `cluster.json` in its folder.

The record is written before a process does anything, so `down` and `status` know of every process that may run.
"""

from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import msgspec

from vcjob.cluster.components import Ports
from vcjob.cluster.errors import ClusterError
from vcjob.cluster.processes import ProcessId

__all__ = ("Phase", "Record", "RunningComponent", "read_record", "write_record")


class Phase(Enum):
    """How far `up` came."""

    STARTING = "starting"
    UP = "up"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningComponent:
    """A component that was started."""

    name: str
    process: ProcessId
    command: tuple[str, ...]
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One cluster. Components stand in the order in which they were started."""

    name: str
    phase: Phase
    kubernetes: str  # version
    ports: Ports
    audit: bool
    controllers: bool = True  # whether a controller manager and a scheduler belong to it
    nodes: int = 0  # fake ones
    components: tuple[RunningComponent, ...] = ()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports.apiserver}"

    def with_component(self, started: RunningComponent) -> "Record":
        """Return the record with this component added, or put in the place of a former one of its name."""
        if all(c.name != started.name for c in self.components):
            return replace(self, components=(*self.components, started))
        return replace(self, components=tuple(started if c.name == started.name else c for c in self.components))


def read_record(path: Path) -> Record | None:
    """Return the record, None when there is none; raises ClusterError when it makes no sense."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise ClusterError(
            f"{path} is not a record that this version of vcjob can read ({error}); end the processes that run from "
            f"{path.parent} and remove that folder"
        ) from error


def write_record(path: Path, *, record: Record) -> None:
    """Write the record, atomically."""
    draft = path.with_suffix(".new")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2))
    draft.replace(path)
