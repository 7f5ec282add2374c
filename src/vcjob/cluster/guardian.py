"""The clean-up of an `up` that did not come to its end, however it ended: failed, interrupted, or killed.

`up` starts this module as a process of its own and tells it through a pipe what to undo. When the pipe closes before
the word `done`, the guardian undoes it. It holds the cluster's lock until then, so no other command sees half a
cluster.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from vcjob.cluster.processes import ProcessId, stop_all

__all__ = ("Guardian", "Undo", "undo_unless_done")

_PATIENCE_S: Final = 3.0
_DONE: Final = b"done\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """One line of the pipe: a process to end, or a file or folder to remove."""

    process: ProcessId | None = None
    path: str | None = None


class Guardian:
    """`up`'s end of the pipe."""

    def __init__(self, *, keep_open: tuple[int, ...] = ()) -> None:
        """Start the guardian; it holds these file descriptors, and with them their locks, until it ends."""
        self._popen = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=keep_open,
            start_new_session=True,  # Ctrl-C is for `up` alone
        )
        assert self._popen.stdin is not None
        self._pipe = self._popen.stdin

    def remember(self, undo: Undo) -> None:
        """Have this undone unless `dismiss` is called; it is safe as soon as this returns."""
        self._pipe.write(msgspec.json.encode(undo) + b"\n")
        self._pipe.flush()

    def dismiss(self) -> None:
        """Say that all went well."""
        self._pipe.write(_DONE)
        self._pipe.close()
        self._popen.wait()

    def clean_up(self) -> None:
        """Have everything undone now, and wait for it."""
        self._pipe.close()
        self._popen.wait()


def undo_unless_done(lines: Iterable[bytes]) -> None:
    """Read to the end of the pipe; then undo what was told, unless the last line says that all went well."""
    told: list[Undo] = []
    for line in lines:
        if line == _DONE:
            return
        told.append(msgspec.json.decode(line, type=Undo))
    # The youngest first, so that nothing loses the server it depends on before it is told to stop.
    stop_all([undo.process for undo in reversed(told) if undo.process], patience_s=_PATIENCE_S)
    for undo in told:
        if undo.path:
            _remove(Path(undo.path))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    undo_unless_done(sys.stdin.buffer)
