"""The few facts of a Pod that decide about a Job's life. Pure.

One value is kept for every Pod of every Job, so it is a slim struct without garbage-collector bookkeeping. Times are
seconds since the epoch in the API server's clock.
"""

from typing import Final

import msgspec

__all__ = ("FAILED", "PENDING", "RUNNING", "SUCCEEDED", "UNKNOWN", "Exit", "Pod")

PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
UNKNOWN: Final = "Unknown"


class Exit(msgspec.Struct, frozen=True, gc=False):
    """A container that has terminated. Sidecars are never listed: their end says nothing about the work."""

    container: str
    code: int
    reason: str = ""  # "OOMKilled", "Error"
    init: bool = False


class Pod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Pod that names the Job in its label; `owner_uid` tells whether it is really the Job's."""

    namespace: str
    name: str
    uid: str
    version: int = 0  # resourceVersion
    job: str = ""  # the label's value
    owner_uid: str = ""  # UID of the controlling Job; empty when nothing or something else controls it
    task: str = ""
    index: int = -1
    partition: str = ""
    job_version: int = 0  # status.version when it was made
    retry: int = 0  # status.retryCount when it was made
    phase: str = PENDING
    created: float = 0.0
    deleted: float | None = None  # when its deletion was asked for, or became certain
    orphaned: bool = False  # its Node is gone: made Failed by the Pod garbage collector, which deletes it next
    ours: bool = False  # marked by the operator before it deleted it
    ready: bool = False
    restarts: int = 0  # of all containers together
    exits: tuple[Exit, ...] = ()
    reason: str = ""  # "Evicted", "NodeLost"; of a Pod that was taken away: "EvictionByEvictionAPI"
    detail: str = ""  # why it does not start: "ErrImagePull", "Unschedulable"
    since: float | None = None  # when it entered its phase, as far as its status tells
    evicted_at: float | None = None  # it replaces a Pod that was evicted then

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)

    @property
    def signature(self) -> tuple[object, ...]:
        """Return everything that a decision can depend on and that changes during a Pod's life."""
        return (
            self.phase,
            self.deleted,
            self.ours,
            self.ready,
            self.restarts,
            self.exits,
            self.detail,
            self.task,
            self.index,
            self.job,
            self.owner_uid,
            self.partition,
            self.job_version,
            self.retry,
            self.evicted_at,
        )

    @property
    def is_finished(self) -> bool:
        return self.phase in (SUCCEEDED, FAILED)

    @property
    def is_alive(self) -> bool:
        """Whether it is neither finished nor on its way out."""
        return self.deleted is None and not self.is_finished

    @property
    def was_taken(self) -> bool:
        """Whether its deletion finds it alive; on its way out a Pod may still come to Failed or Succeeded."""
        if self.orphaned or not self.is_finished:
            return True
        return self.deleted is not None and self.since is not None and self.since >= self.deleted

    @property
    def has_failed(self) -> bool:
        """Whether it has failed, be it with its Node; what a deletion makes Failed on the way out has not."""
        return self.phase == FAILED and (self.orphaned or not self.was_taken)

    def describe_failure(self, *, code: int | None = None) -> str:
        """Return the end of the sentence `pod NAME ...`: which container ended how.

        `code` names the container that ended with it; None the first that did not end well.
        """
        ended = next((e for e in self.exits if (e.code if code is None else e.code == code)), None)
        if ended is None:
            return f"failed ({self.reason})" if self.reason else "failed"
        cause = f" ({ended.reason})" if ended.reason and ended.reason != "Error" else ""
        container = f"{'init ' if ended.init else ''}container {ended.container}"
        return f"failed: {container} ended with exit code {ended.code}{cause}"
