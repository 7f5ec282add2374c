"""kubectl, as a user would type it."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one kubectl command printed."""

    code: int
    out: str
    err: str


class Kubectl:
    """kubectl with one kubeconfig and, unless a command names another, one namespace."""

    def __init__(self, program: Path, *, kubeconfig: Path, namespace: str) -> None:
        self._program = program
        self._kubeconfig = kubeconfig
        self._namespace = namespace

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run a command that must succeed, and return what it printed."""
        answer = await self.attempt(*arguments, stdin=stdin)
        assert answer.code == 0, f"kubectl {' '.join(arguments)} failed: {answer.err}"
        return answer.out

    async def attempt(self, *arguments: str, stdin: str = "") -> Answer:
        """Run a command, whatever comes of it."""
        process = await asyncio.create_subprocess_exec(
            str(self._program),
            f"--namespace={self._namespace}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "KUBECONFIG": str(self._kubeconfig)},
        )
        out, err = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return Answer(code=process.returncode, out=out.decode(), err=err.decode())
