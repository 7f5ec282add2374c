"""The informer: keeps a store in step with the API server, for ever.

Lists a kind, then watches it from the list's version; a broken, silent or too old watch starts again by itself, with
growing delays while the server is not well. Nothing is lost on the way: what vanished while nobody watched is deleted
from the store after the next list, with the same call to the listener as for a seen deletion. A server whose store was
set back to a backup ends it: a watch of what is newer than the server would be silent, perhaps for days.

    form = ProtobufForm(decode_pod)
    informer = Informer(api, "/api/v1/pods", form=form, on_change=enqueue, params={"labelSelector": "..."})
    task = asyncio.create_task(informer.run())
    await informer.synced.wait()
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final, Generic

from vcjob.kube.answers import can_be_list_of
from vcjob.kube.backoff import retry_delay
from vcjob.kube.client import ApiClient
from vcjob.kube.clock import steady
from vcjob.kube.errors import ApiError, Gone, NotFound, NotServed, ServerError, Transient, WentBack, error_from_response
from vcjob.kube.forms import Bookmark, Failure, Form, Identity, Unreadable
from vcjob.kube.store import OnChange, Store, T

__all__ = ("Informer", "InformerStats")

log = logging.getLogger(__name__)

_LIST_TIMEOUT_S: Final = 60.0
_WATCH_S: Final = (40.0, 50.0)  # how long one watch may last; spread, so that replicas do not come back together
_SILENCE_S: Final = 55.0  # longer than any watch lasts, so that a silent one is replaced within a minute
_SLICE_S: Final = 0.002  # of decoding, then others have their turn
_BACKOFF_BASE_S: Final = 0.5
_BACKOFF_CAP_S: Final = 30.0
_HEALTHY_AFTER_S: Final = 10.0  # a watch that lasted as long ends the back-off


@dataclass(slots=True, kw_only=True)
class InformerStats:
    """Counters of one informer, for metrics."""

    events: int = 0
    bookmarks: int = 0
    lists: int = 0
    relists: int = 0  # lists after the first of each stream
    failures: int = 0
    undecodable: int = 0


class Informer(Generic[T]):
    """One kind, in the whole cluster or in some namespaces, as a store that follows it."""

    def __init__(
        self,
        api: ApiClient,
        path: str,
        *,
        form: Form[T],
        on_change: OnChange[T],
        params: Mapping[str, str] | None = None,
        namespaces: tuple[str, ...] = (),
        silence_s: float = _SILENCE_S,
    ) -> None:
        """`path` is the kind's cluster-wide collection; `namespaces` (none: all) narrows it to one stream each.

        `params` holds labelSelector and fieldSelector. The server is asked to end each watch after less than a minute,
        with a bookmark before, so a stream that is silent for `silence_s` is taken for dead.
        """
        self.store: Store[T] = Store(on_change, now=steady)
        self.synced = asyncio.Event()
        self.stats = InformerStats()
        self._streams = tuple(
            _Stream(self, api, path, namespace=namespace, form=form, params=dict(params or {}), silence_s=silence_s)
            for namespace in (namespaces or (None,))
        )
        self.path = path

    @property
    def last_heard(self) -> float:
        """The `steady` time at which the stream that is silent for longest was last heard."""
        return min(stream.last_heard for stream in self._streams)

    @property
    def fault(self) -> str:
        """What is wrong with the way to the server now; empty when all streams are well."""
        return next((stream.fault for stream in self._streams if stream.fault), "")

    @property
    def relists(self) -> int:
        return self.stats.relists

    async def run(self) -> None:
        """Follow the server until cancelled. Raises WentBack, in a group."""
        async with asyncio.TaskGroup() as group:
            for stream in self._streams:
                group.create_task(stream.run(), name=f"informer {stream.path}")

    def stream_is_ready(self) -> None:
        """Called by each stream after its first list, or when there is nothing to list."""
        if all(stream.ready for stream in self._streams):
            self.synced.set()


class _Stream(Generic[T]):
    """List and watch of one collection."""

    def __init__(
        self,
        informer: Informer[T],
        api: ApiClient,
        path: str,
        *,
        namespace: str | None,
        form: Form[T],
        params: dict[str, str],
        silence_s: float,
    ) -> None:
        self._informer = informer
        self._api = api
        self._namespace = namespace
        self._form = form
        self._params = params
        self._silence_s = silence_s
        self._stats = informer.stats
        self._store = informer.store
        self._version = 0  # the newest that this stream has been told
        self._must_list = True
        self._progress = False  # this watch has told something
        self._from_store = False  # the next list must ask the server's store, not its cache
        self._in_doubt = False  # the server may be another than before: one whose store was restored
        self._failing = ""  # kind of the last failure; a repeated one is logged at debug level
        self.path = path
        if namespace is not None:
            head, _, plural = path.rpartition("/")
            self.path = f"{head}/namespaces/{namespace}/{plural}"
        self.last_heard = steady()
        self.ready = False
        self.fault = ""

    async def run(self) -> None:
        attempt = 0
        while True:
            began = steady()
            self._progress = False
            try:
                if self._must_list:
                    await self._list()
                elif self._in_doubt:
                    await self._look_back()
                self._in_doubt = False
                await self._watch()
                failure: ApiError | None = None
            except ApiError as error:
                failure = error
            if failure is None:
                self._failing = ""
            else:
                self._in_doubt = True
                self._note(failure)
            lasted = steady() - began
            # A watch that is cut again and again, but tells something each time, need not be waited for.
            attempt = 0 if lasted >= _HEALTHY_AFTER_S or self._progress else attempt + 1
            if failure is None and attempt <= 1:
                continue  # an ordinary end: go on at once
            delay = retry_delay(
                max(attempt - 1, 0), chance=random.random(), base_s=_BACKOFF_BASE_S, cap_s=_BACKOFF_CAP_S
            )
            if isinstance(failure, Transient) and failure.retry_after is not None:
                delay = max(delay, min(failure.retry_after, _BACKOFF_CAP_S))
            await asyncio.sleep(delay)

    # List

    async def _list(self) -> None:
        # From the server's cache, but never older than what we have seen; only when that cache cannot tell
        # (it is younger than our version) from the store itself, which costs the server far more.
        version = "" if self._from_store else str(self._version)
        try:
            now_at, items = await self._ask({"resourceVersion": version} if version else {})
        except (Gone, ServerError) as error:
            self._from_store = isinstance(error, Gone) or "Too large resource version" in error.message
            raise
        if not version:
            self._check_progress(now_at)
        self._version = now_at
        present = []
        deadline = perf_counter() + _SLICE_S
        for raw in items:
            try:
                item = self._form.read_item(raw)
            except Exception as error:  # one malformed object must not blind us to all the others
                if (found := self._pass_over(partial(self._form.identify_item, raw), error)) is not None:
                    present.append(found.key)
            else:
                present.append(item.key)
                self._store.put(item)
            if perf_counter() > deadline:
                await asyncio.sleep(0)
                deadline = perf_counter() + _SLICE_S
        self._store.forget_absent(present, version=self._version, namespace=self._namespace)
        self._stats.lists += 1
        self._stats.relists += self.ready
        self._must_list = self._from_store = False
        self._be_ready()

    async def _ask(self, params: dict[str, str]) -> tuple[int, Iterable[bytes]]:
        """Return the version and the items of a list."""
        params = self._params | params
        body = await self._api.get(self.path, params=params, accept=self._form.accept, timeout_s=_LIST_TIMEOUT_S)
        self._heard()
        try:
            kind, version, items = self._form.read_list(body)
        except Unreadable as error:
            raise ServerError(f"the list of {self.path} cannot be read: {error}", path=self.path) from error
        if not can_be_list_of(self.path, kind):
            raise ServerError(f"the list of {self.path} is a {kind}", path=self.path)
        return version, items

    async def _look_back(self) -> None:
        """Ask the server's store how far it has come, as little as there is of an answer to that."""
        self._check_progress((await self._ask({"limit": "1"}))[0])

    def _check_progress(self, version: int) -> None:
        """Raise WentBack when the server's store is at a version before what it has told."""
        if 0 < version < self._version:
            raise WentBack(self.path, version=version, after=self._version)

    def _be_ready(self) -> None:
        self.ready = True
        self._informer.stream_is_ready()

    # Watch

    async def _watch(self) -> None:
        lasts = random.uniform(*_WATCH_S)
        params = self._params | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(self._version),
            "timeoutSeconds": str(int(lasts)),
        }
        deadline = perf_counter() + _SLICE_S
        stream = self._api.stream(
            self.path,
            params,
            split=self._form.split,
            accept=self._form.accept_watch,
            silence_s=self._silence_s,
        )
        async with aclosing(stream) as chunks:
            async for pieces in chunks:
                self._heard()
                for piece in pieces:
                    self._take(piece)
                    if perf_counter() > deadline:
                        await asyncio.sleep(0)
                        deadline = perf_counter() + _SLICE_S

    def _take(self, piece: bytes) -> None:
        try:
            event = self._form.read_event(piece)
        except Unreadable as error:
            raise ServerError(f"the watch of {self.path} cannot be read: {error}", path=self.path) from error
        except Exception as error:  # one malformed object must not blind us to all the others
            found = self._pass_over(partial(self._form.identify_event, piece), error)
            if found is not None and found.event == "DELETED":
                self._store.remove(found.key, uid=found.uid)
            return
        match event:
            case Bookmark(version=version):
                self._version = max(self._version, version)
                self._stats.bookmarks += 1
            case Failure(code=code, status=status):
                raise error_from_response(code or 500, status, None, "WATCH", self.path)
            case (kind, item):
                self._progress = True
                self._stats.events += 1
                if item.version > self._version:
                    self._version = item.version
                if kind == "DELETED":
                    self._store.deleted(item)
                else:
                    self._store.put(item)

    def _pass_over(self, identify: Callable[[], Identity], error: Exception) -> Identity | None:
        """Tell of an object that cannot be read, and return which it is; what was known of it stays."""
        self._stats.undecodable += 1
        try:
            found = identify()
        except Exception:
            found = None
        name = "/".join(found.key) if found else "unknown"
        log.error("object cannot be decoded", extra={"path": self.path, "object": name, "error": str(error)})
        return found

    # Health

    def _heard(self) -> None:
        self.last_heard = steady()
        self.fault = ""

    def _note(self, failure: ApiError) -> None:
        if isinstance(failure, Gone):  # an ordinary turn of things after a long silence
            self._must_list = True
            return
        self._stats.failures += 1
        if isinstance(failure, NotFound | NotServed):
            self._heard()  # an answer, too: the kind is not there, and so nothing of it
            self._must_list = True
            self._be_ready()
        self.fault = failure.message
        word = f"{type(failure).__name__} {failure.reason}"
        level = logging.DEBUG if word == self._failing else logging.WARNING
        self._failing = word
        log.log(level, "list or watch failed, will retry", extra={"path": self.path, "error": failure.message})
