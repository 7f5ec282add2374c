"""Commands: objects that ask for an action on a Job. Each is deleted first and carried out then, so that none is twice.

Owns those that wait and those whose deletion was not answered. What a Command does is the lifecycle's.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

from vcjob.api.names import BUS_GROUP
from vcjob.kube.answers import read_answer
from vcjob.kube.client import ApiClient
from vcjob.kube.errors import ApiError, Conflict, NotFound, ServerError, may_have_happened
from vcjob.lifecycle.outcome import EventNote
from vcjob.lifecycle.snapshot import Command

from .decode import is_going, is_gone
from .jobs import JobRecord
from .memory import JobMemory
from .observer import Observer
from .presence import list_uids
from .queue import Key
from .requests import CommandRequest

__all__ = ("Commands",)

log = logging.getLogger(__name__)


class Commands:
    """The Commands that wait for a pass over their Job."""

    def __init__(
        self,
        api: ApiClient,
        *,
        assert_leading: Callable[[], None],
        observer: Observer,
    ) -> None:
        self._api = api
        self._assert_leading = assert_leading
        self._observer = observer
        self._waiting: dict[Key, list[CommandRequest]] = {}
        self._half_deleted: set[str] = set()  # UIDs of Commands whose deletion was not answered

    def waiting(self, key: Key) -> Sequence[CommandRequest]:
        """Return the Commands that wait for a pass over the Job, oldest first."""
        return self._waiting.get(key, ())

    def take(self, request: CommandRequest) -> bool:
        """Have a Command wait; False when it did already."""
        waiting = self._waiting.setdefault((request.namespace, request.target), [])
        if any(known.uid == request.uid for known in waiting):
            return False
        waiting.append(request)
        return True

    def withdraw(self, request: CommandRequest) -> None:
        """Forget a Command that somebody has deleted; one whose deletion may have been ours is still carried out."""
        if request.uid in self._half_deleted:
            return
        key = (request.namespace, request.target)
        left = [known for known in self._waiting.get(key, ()) if known.uid != request.uid]
        if left:
            self._waiting[key] = left
        else:
            self._waiting.pop(key, None)

    def forget_doubts(self) -> None:
        """Take no unanswered deletion for ours any longer: before the next try, somebody else may lead."""
        self._half_deleted.clear()

    async def claim(self, record: JobRecord, memory: JobMemory) -> None:
        """Delete a Job's waiting Commands; those that were still there are carried out, each once. Raises ApiError."""
        requests = self._waiting.pop(record.key, ())
        for position, request in enumerate(requests):
            try:
                if not await self._delete(request):
                    continue
            except BaseException:  # a lost lead and a cancelled pass, too, leave the rest to the next one
                self._waiting[record.key] = [*requests[position:], *self._waiting.get(record.key, ())]
                raise
            if request.target_uid and request.target_uid != record.uid:
                _ignore(request, "its job is no more")
                action = request.action or "no action"
                sentence = f"Command {request.name} ({action}) was for an earlier Job of this name"
                self._observer.event(record, EventNote(type="Warning", reason="CommandIgnored", message=sentence))
                continue
            memory.commands.append(Command(action=request.action, name=request.name, reason=request.reason))

    async def drop(self, key: Key, *, is_known: Callable[[Key], Awaitable[bool]]) -> bool:
        """Delete Commands for a Job that no watch has told of; True when the API server knows it. Raises ApiError."""
        requests = self._waiting.pop(key, [])
        try:
            if requests and await is_known(key):
                return True
            while requests:
                await self._delete(requests[0])
                request = requests.pop(0)
                _ignore(request, "its job does not exist")
                self._observer.command_dropped(request)
        finally:
            if requests:
                self._waiting[key] = [*requests, *self._waiting.get(key, ())]
        return False

    async def _delete(self, request: CommandRequest) -> bool:
        """Delete it; True when this made it vanish, so that it is ours to carry out."""
        path = f"/apis/{BUS_GROUP}/v1alpha1/namespaces/{request.namespace}/commands/{request.name}"
        self._assert_leading()
        try:
            answer = await self._api.delete(path, uid=request.uid, once=True)
            if not is_gone(answer) and not read_answer(is_going, answer, path=path):
                raise ServerError("the answer to its deletion has a Command that is not being deleted", path=path)
        except (NotFound, Conflict):
            if request.uid in await list_uids(self._api, path):
                raise  # the server could not get hold of it, or a proxy is confused
            # Deleted by somebody else, who carries it out or has withdrawn it; or by us, when the answer got lost.
            ours = request.uid in self._half_deleted
            self._half_deleted.discard(request.uid)
            if not ours:
                _ignore(request, "it is gone already")
            return ours
        except ApiError as error:
            if may_have_happened(error):
                self._half_deleted.add(request.uid)
            raise
        self._half_deleted.discard(request.uid)
        return True


def _ignore(request: CommandRequest, why: str) -> None:
    extra = {"job": f"{request.namespace}/{request.target}", "command": request.name, "because": why}
    log.info("command ignored", extra=extra)
