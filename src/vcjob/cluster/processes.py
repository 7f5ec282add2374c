"""Processes that outlive the command that started them, and are never mistaken for others.

A process is known by pid, start time and boot, all from the kernel, so a pid that was used again is not ours. A process
is started held: it waits at a pipe until `release`, so that it can be written down before it does anything; when
the starter dies first, the pipe closes and the held process ends by itself.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ("HeldProcess", "ProcessId", "identify", "is_alive", "start_held", "stop_all")

_POLL_S: Final = 0.02
# $1 is the working folder; the rest is the command. A closed pipe makes `read` fail, and nothing is started.
_HOLD: Final = 'cd "$1" && shift && read -r go && exec "$@" </dev/null'


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """One process among all that this machine will ever run."""

    pid: int
    started: int  # clock ticks after boot, from /proc/PID/stat
    boot: str  # the kernel's random id of this boot


class HeldProcess:
    """A process that waits for `release` before it becomes its command."""

    __slots__ = ("_popen", "id")

    def __init__(self, popen: "subprocess.Popen[bytes]", *, id: ProcessId) -> None:
        self._popen = popen
        self.id = id

    def release(self) -> None:
        """Let the command run."""
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(b"go\n")
            self._popen.stdin.close()
        except BrokenPipeError:
            pass  # it ended already; whoever waits for it will see that and read its log
        # It is meant to outlive us: without this, Popen warns that it is still running.
        self._popen.returncode = 0


def identify(pid: int) -> ProcessId | None:
    """Return the identity of a running process; None when it is gone, or dead and only waits for its parent."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the command in parentheses and may contain anything.
    state, *rest = stat.rpartition(")")[2].split()
    if state in "ZX":
        return None
    return ProcessId(pid=pid, started=int(rest[18]), boot=_boot_id())


def is_alive(process: ProcessId) -> bool:
    """Say whether that very process still runs."""
    return identify(process.pid) == process


def start_held(command: Sequence[str], *, folder: Path, log: Path, env: Mapping[str, str]) -> HeldProcess:
    """Start a command in a session of its own, held until `release`; its output is appended to `log`.

    Raises OSError when no process can be made.
    """
    with log.open("ab") as output:
        popen = subprocess.Popen(
            ["/bin/sh", "-c", _HOLD, "sh", str(folder), *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=dict(env),
            start_new_session=True,  # no Ctrl-C or hang-up of our terminal reaches it
        )
    process = identify(popen.pid)
    if process is None:
        raise ChildProcessError(f"{command[0]} could not be started; see {log}")
    return HeldProcess(popen, id=process)


def stop_all(processes: Iterable[ProcessId], *, patience_s: float) -> None:
    """End processes in the given order: SIGTERM to each at once, SIGKILL to those still there after `patience_s`."""
    waiting = [process for process in processes if _send(process, signal.SIGTERM)]
    deadline = time.monotonic() + patience_s
    while waiting := [process for process in waiting if _still_there(process)]:
        if time.monotonic() > deadline:
            for process in waiting:
                _send(process, signal.SIGKILL)
            deadline = float("inf")  # nothing survives SIGKILL; wait until the kernel has buried it
        time.sleep(_POLL_S)


def _still_there(process: ProcessId) -> bool:
    try:
        os.waitpid(process.pid, os.WNOHANG)
    except ChildProcessError:
        pass  # not our child, as is usual: another command started it
    return is_alive(process)


def _send(process: ProcessId, signal_number: signal.Signals) -> bool:
    # A pidfd pins the process: between the check of its identity and the signal, the pid cannot change hands.
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not is_alive(process):
            return False
        signal.pidfd_send_signal(handle, signal_number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
