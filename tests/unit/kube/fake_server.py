"""A small API server in memory: list, watch and CRUD of any kind, with the faults a real one has on its bad days.

It keeps the API's promises that clients rely on: one growing resourceVersion, optimistic updates, watches that replay
from a version or answer 410, bookmarks, label selectors. Faults are asked for by tests, one at a time and by name.
"""

import asyncio
import copy
import itertools
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

__all__ = ("Answer", "CutAnswer", "FakeServer", "LostAnswer", "Slow")

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Refuse with `code` instead of executing."""

    code: int
    reason: str = ""
    message: str = "injected"
    retry_after: str | None = None
    raw: bytes | None = None  # a body that is no Status


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAnswer:
    """Execute, then cut the connection before the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutAnswer:
    """Execute, then cut the connection in the middle of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """Execute, then wait before the answer."""

    seconds: float


Fault = Answer | CutAnswer | LostAnswer | Slow


@dataclass(slots=True, kw_only=True)
class _Injected:
    fault: Fault
    verb: str
    part: str  # of the path
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What a path speaks of."""

    collection: str  # without the namespace: "/api/v1/pods"
    namespace: str | None
    name: str | None
    subresource: str | None

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace or "", self.name or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    version: int
    collection: str
    old: Object | None
    new: Object | None
    last: Object  # the object as it is told; of a deleted one, with the version of its deletion


@dataclass(eq=False, slots=True, kw_only=True)
class _Watch:
    place: _Place
    selector: str
    queue: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    transport: asyncio.Transport | None = None


class FakeServer:
    """An API server at `url` while it is entered."""

    def __init__(self, *, ssl_context: ssl.SSLContext | None = None) -> None:
        self.url = ""
        self.token: str | None = None  # demanded when set
        self.silent = False  # watches stay open and say nothing
        self.unknown: set[str] = set()  # plurals that do not exist
        self.stale_version: int | None = None  # lists from the cache show this version of the world
        self.calls: list[tuple[str, str]] = []  # verb and path with query, as they came
        self.date: str | None = None  # the Date header, when it shall differ from the real one
        self._ssl = ssl_context
        self._objects: dict[str, dict[tuple[str, str], Object]] = {}
        self._history: list[_Change] = []
        self._oldest = 0
        self._version = itertools.count(101)
        self._uids = itertools.count(1)
        self.version = 100
        self._faults: list[_Injected] = []
        self._watches: set[_Watch] = set()
        self._came = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> "FakeServer":
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None, keepalive_timeout=90)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._ssl)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"{'https' if self._ssl else 'http'}://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end_watches()
        assert self._runner is not None
        await self._runner.cleanup()

    # For tests

    def inject(self, fault: Fault, *, verb: str = "", path: str = "", times: int = 1) -> None:
        """Let the next `times` requests of that verb (WATCH for watches), with `path` in their path, meet `fault`."""
        self._faults.append(_Injected(fault=fault, verb=verb, part=path, times=times))

    def put(self, collection: str, namespace: str, name: str, **fields: Any) -> Object:
        """Create or change an object, as another client would."""
        objects = self._objects.setdefault(collection, {})
        old = objects.get((namespace, name))
        metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
        return self._store(collection, (namespace, name), {"metadata": metadata, **fields}, old=old)

    def remove(self, collection: str, namespace: str, name: str) -> None:
        """Delete an object, as another client would."""
        self._delete(collection, (namespace, name))

    def get(self, collection: str, namespace: str, name: str) -> Object | None:
        return self._objects.get(collection, {}).get((namespace, name))

    def objects(self, collection: str) -> list[Object]:
        return list(self._objects.get(collection, {}).values())

    def compact(self) -> None:
        """Forget all history: watches from before are told 410."""
        self._history.clear()
        self._oldest = self.version

    def bookmark(self) -> None:
        """Send every watch a bookmark of the present version."""
        for watch in self._watches:
            self._say(watch, _line("BOOKMARK", {"kind": "x", "metadata": {"resourceVersion": str(self.version)}}))

    def say(self, line: bytes) -> None:
        """Send every watch these bytes as they are."""
        for watch in self._watches:
            self._say(watch, line)

    def end_watches(self) -> None:
        """End every watch in the ordinary way."""
        for watch in list(self._watches):
            watch.queue.put_nowait(None)

    def cut_watches(self) -> None:
        """Break the connection of every watch."""
        for watch in list(self._watches):
            if watch.transport is not None:
                watch.transport.abort()

    @property
    def watching(self) -> int:
        return len(self._watches)

    def count(self, verb: str, part: str = "") -> int:
        return sum(1 for v, path in self.calls if v == verb and part in path)

    async def wait_for_calls(self, verb: str, number: int, part: str = "") -> None:
        """Wait until `number` such requests have come."""
        async with self._came:
            await self._came.wait_for(lambda: self.count(verb, part) >= number)

    # Requests

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        verb = "WATCH" if request.query.get("watch") in ("1", "true") else request.method
        self.calls.append((verb, request.path_qs))
        async with self._came:
            self._came.notify_all()
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return self._refuse(401, "Unauthorized", "Unauthorized")
        fault = self._next_fault(verb, request.path)
        if isinstance(fault, Answer):
            return self._refuse(fault.code, fault.reason, fault.message, fault.retry_after, fault.raw)
        place = _place(request.path)
        if place is None or place.collection.rpartition("/")[2] in self.unknown:
            return self._refuse(404, "", "", raw=b"404 page not found\n")
        body = await request.read()
        if verb == "WATCH":
            return await self._watch(request, place)
        response = self._execute(verb, place, request.query, request.headers.get("Content-Type", ""), body)
        if isinstance(fault, LostAnswer):
            assert request.transport is not None
            request.transport.abort()
        if isinstance(fault, CutAnswer):
            assert request.transport is not None
            whole = response.body
            assert isinstance(whole, bytes)
            request.transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(whole), whole[: len(whole) // 2])
            )
            request.transport.close()
        if isinstance(fault, Slow):
            await asyncio.sleep(fault.seconds)
        return response

    def _next_fault(self, verb: str, path: str) -> Fault | None:
        for injected in self._faults:
            if injected.verb in ("", verb) and injected.part in path:
                injected.times -= 1
                if injected.times == 0:
                    self._faults.remove(injected)
                return injected.fault
        return None

    def _execute(
        self, verb: str, place: _Place, query: Mapping[str, str], content_type: str, body: bytes
    ) -> web.Response:
        objects = self._objects.setdefault(place.collection, {})
        sent = json.loads(body) if body else {}
        if verb == "POST":
            name = sent["metadata"]["name"]
            key = (place.namespace or "", name)
            if key in objects:
                return self._refuse(409, "AlreadyExists", f'"{name}" already exists')
            if place.namespace:
                sent["metadata"]["namespace"] = place.namespace
            return self._reply(self._store(place.collection, key, sent, old=None), 201)
        if place.name is None:
            return self._reply(self._list(place, query))
        old = objects.get(place.key)
        if old is None:
            return self._refuse(404, "NotFound", f'"{place.name}" not found')
        if verb == "GET":
            return self._reply(old)
        if verb == "DELETE":
            wanted = (sent.get("preconditions") or {}).get("uid")
            if wanted not in (None, old["metadata"]["uid"]):
                return self._refuse(409, "Conflict", "the UID in the precondition does not match")
            self._delete(place.collection, place.key)
            details = {"name": place.name, "uid": old["metadata"]["uid"]}
            return self._reply({"kind": "Status", "status": "Success", "details": details})
        if verb == "PATCH":
            if not content_type.startswith("application/merge-patch+json"):
                return self._refuse(415, "UnsupportedMediaType", content_type)
            sent = _merged(old, sent)
        version = sent["metadata"].get("resourceVersion")
        if version not in (None, "", old["metadata"]["resourceVersion"]):
            return self._refuse(409, "Conflict", "the object has been modified; please apply your changes")
        return self._reply(self._store(place.collection, place.key, sent, old=old))

    def _list(self, place: _Place, query: Mapping[str, str]) -> Object:
        version = self.version
        objects = self._objects.get(place.collection, {}).copy()
        if self.stale_version is not None and query.get("resourceVersion"):
            version = self.stale_version
            for change in reversed(self._history):
                if change.version > version and change.collection == place.collection:
                    key = _key(change.last)
                    objects.pop(key, None)
                    if change.old is not None:
                        objects[key] = change.old
        items = [
            item
            for (namespace, _), item in objects.items()
            if place.namespace in (None, namespace) and _matches(item, query.get("labelSelector", ""))
        ]
        return {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}, "items": items}

    def _store(self, collection: str, key: tuple[str, str], item: Object, *, old: Object | None) -> Object:
        self.version = next(self._version)
        made = {
            "uid": f"uid-{next(self._uids)}",
            "creationTimestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        if old is not None:
            made = {name: old["metadata"][name] for name in made}
        item = {**item, "metadata": {**item["metadata"], **made, "resourceVersion": str(self.version)}}
        self._objects.setdefault(collection, {})[key] = item
        self._tell(_Change(version=self.version, collection=collection, old=old, new=item, last=item))
        return item

    def _delete(self, collection: str, key: tuple[str, str]) -> None:
        old = self._objects[collection].pop(key)
        self.version = next(self._version)
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        self._tell(_Change(version=self.version, collection=collection, old=old, new=None, last=last))

    # Watches

    async def _watch(self, request: web.Request, place: _Place) -> web.StreamResponse:
        since = int(request.query.get("resourceVersion") or self.version)
        watch = _Watch(place=place, selector=request.query.get("labelSelector", ""))
        watch.transport = request.transport
        response = web.StreamResponse(headers=self._headers())
        response.enable_chunked_encoding()
        await response.prepare(request)
        if since < self._oldest:
            await response.write(_line("ERROR", _status(410, "Expired", "too old resource version")))
            await response.write_eof()
            return response
        for change in self._history:
            if change.version > since:
                self._forward(watch, change)
        self._watches.add(watch)
        try:
            while (line := await watch.queue.get()) is not None:
                await response.write(line)
            await response.write_eof()
        except ConnectionError:
            pass
        finally:
            self._watches.discard(watch)
        return response

    def _tell(self, change: _Change) -> None:
        self._history.append(change)
        for watch in self._watches:
            self._forward(watch, change)

    def _forward(self, watch: _Watch, change: _Change) -> None:
        if change.collection != watch.place.collection:
            return
        if watch.place.namespace not in (None, _key(change.last)[0]):
            return
        was = change.old is not None and _matches(change.old, watch.selector)
        is_now = change.new is not None and _matches(change.new, watch.selector)
        if was or is_now:
            kind = "MODIFIED" if was and is_now else "ADDED" if is_now else "DELETED"
            self._say(watch, _line(kind, change.last))

    def _say(self, watch: _Watch, line: bytes) -> None:
        if not self.silent:
            watch.queue.put_nowait(line)

    # Answers

    def _headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", **({"Date": self.date} if self.date else {})}

    def _reply(self, item: Object, code: int = 200) -> web.Response:
        return web.Response(body=json.dumps(item).encode(), status=code, headers=self._headers())

    def _refuse(
        self, code: int, reason: str, message: str, retry_after: str | None = None, raw: bytes | None = None
    ) -> web.Response:
        body = json.dumps(_status(code, reason, message)).encode() if raw is None else raw
        headers = self._headers() | ({"Retry-After": retry_after} if retry_after is not None else {})
        return web.Response(body=body, status=code, headers=headers)


def _place(path: str) -> _Place | None:
    parts = path.strip("/").split("/")
    head = 2 if parts[0] == "api" else 3
    prefix, rest = parts[:head], parts[head:]
    namespace = None
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    if not rest:
        return None
    collection = "/" + "/".join([*prefix, rest[0]])
    name, subresource = (*rest[1:3], None, None)[:2]
    return _Place(collection=collection, namespace=namespace, name=name, subresource=subresource)


def _key(item: Object) -> tuple[str, str]:
    return (item["metadata"].get("namespace", ""), item["metadata"]["name"])


def _line(kind: str, item: Object) -> bytes:
    return json.dumps({"type": kind, "object": item}, separators=(",", ":")).encode() + b"\n"


def _status(code: int, reason: str, message: str) -> Object:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


def _matches(item: Object, selector: str) -> bool:
    labels = item["metadata"].get("labels") or {}
    return all(_term(labels, term) for term in _terms(selector))


def _terms(selector: str) -> Iterator[str]:
    return (term.strip() for term in selector.split(",") if term.strip())


def _term(labels: Mapping[str, str], term: str) -> bool:
    name, equals, value = term.partition("=")
    return labels.get(name) == value if equals else name in labels


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = copy.copy(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result
