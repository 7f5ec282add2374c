"""Reading an API server's audit log: who did what to which object.

A log grows while it is read; a mark taken before an experiment separates what the experiment did from what was before.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ("WRITES", "AuditLog", "AuditedCall", "parse_audit_line")

WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_OVER: Final = "ResponseComplete"  # a watch has a line when it begins as well


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedCall:
    """One call that is over."""

    user: str
    verb: str  # get, list, watch, create, update, patch, delete, deletecollection
    group: str  # "" for the core group
    resource: str  # the plural; with a subresource: "jobs/status"
    namespace: str
    name: str  # "" for a list, and for a create, whose name is in the body
    code: int  # HTTP status
    agent: str  # the client's User-Agent


class AuditLog:
    """The log of one API server."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def mark(self) -> int:
        """Return the present end of the log, for `calls` to begin at."""
        return self._path.stat().st_size

    def calls(
        self, *, since: int = 0, user: str | None = None, verbs: frozenset[str] = WRITES, resource: str | None = None
    ) -> tuple[AuditedCall, ...]:
        """Return the calls after a mark, in order, by default the writes of all users.

        A `resource` takes in its subresources.
        """
        return tuple(
            call
            for call in self._read(since)
            if call.verb in verbs
            and user in (None, call.user)
            and resource in (None, call.resource, call.resource.partition("/")[0])
        )

    def _read(self, since: int) -> Iterator[AuditedCall]:
        with self._path.open("rb") as file:
            file.seek(since)
            for line in file:
                # The last line may still be in the making.
                if line.endswith(b"\n") and (call := parse_audit_line(line)):
                    yield call


def parse_audit_line(line: bytes) -> AuditedCall | None:
    """Return the call of one line; None when it is not over yet, or is not about an object."""
    event: dict[str, Any] = json.loads(line)
    about = event.get("objectRef")
    if event["stage"] != _OVER or about is None:
        return None
    subresource = about.get("subresource")
    return AuditedCall(
        user=event["user"]["username"],
        verb=event["verb"],
        group=about.get("apiGroup", ""),
        resource=f"{about['resource']}/{subresource}" if subresource else about["resource"],
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        agent=event.get("userAgent", ""),
    )
