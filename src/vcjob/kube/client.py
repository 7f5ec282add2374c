"""The API client: requests, watch streams, and sessions that are lent to others.

Owns the connections: requests go over our own transport, everything else over aiohttp. Bodies go in as dicts or ready
bytes and come out as bytes, so nothing a user wrote is lost in a model and nothing is decoded that nobody reads. Every
refusal is one of the typed errors. The client repeats a request itself only when the server said that it did not
execute it for want of credentials (401); all other trying again is the caller's. (A GET, PUT or DELETE is also repeated
when a kept connection turns out to be closed before any answer: PUTs carry a resourceVersion and DELETEs a UID, so a
second one does no harm.)
"""

import socket
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from types import TracebackType
from typing import Any, Final, Protocol, Self

import aiohttp
import msgspec
from yarl import URL

from vcjob.kube.answers import check_deletion
from vcjob.kube.clock import ServerClock, steady
from vcjob.kube.credentials import Credentials, CredentialsError
from vcjob.kube.errors import ApiError, Forbidden, Unauthorized, Unreachable, error_from_response
from vcjob.kube.lending import Patience, Sieve
from vcjob.kube.pieces import Split, split_lines
from vcjob.kube.transport import CONNECT_TIMEOUT_S, KEEPALIVE_S, TCP_OPTIONS, Transport

__all__ = (
    "JSON",
    "JSON_PATCH",
    "MERGE_PATCH",
    "METADATA_ONLY",
    "ApiClient",
    "Body",
    "RequestObserver",
    "path_template",
)

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
# As `accept` of a create or patch: the answer has only the object's metadata, which is cheaper for both sides.
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

Body = bytes | Mapping[str, Any] | list[Any]
"""What a request carries: ready JSON, or what msgspec can encode (with `msgspec.Raw` for ready parts)."""

_FORBIDDEN: Final = 403
_STREAM_BUFFER: Final = 1024 * 1024  # bytes; fewer pauses of the socket while a burst of events is decoded


class RequestObserver(Protocol):
    """Told of each request when it has ended: `code` is the HTTP status, 0 when there was no answer."""

    def __call__(self, verb: str, template: str, code: int, seconds: float) -> None: ...


class ApiClient:
    """An API server, as this process sees it. Use as an async context manager, within a running loop."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        user_agent: str,
        observer: RequestObserver | None = None,
        on_forbidden: Callable[[], None] | None = None,
    ) -> None:
        """`observer` is told of every request, `on_forbidden` of those that lacked rights, as it seems."""
        self.credentials = credentials
        self.clock = ServerClock()
        self.refused = ""  # what the server says against our credentials; empty when it takes them
        self._user_agent = user_agent
        self._observer = observer
        self._on_forbidden = on_forbidden
        self._patience = Patience(observe=self._observe_lent)
        self._encode = msgspec.json.Encoder().encode
        self._transport = Transport(credentials.server, ssl_context=credentials.ssl_context, user_agent=user_agent)
        self._auth: Mapping[str, str] = {}
        self._lent: weakref.WeakSet[aiohttp.ClientSession] = weakref.WeakSet()
        self._connector: aiohttp.TCPConnector
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        context = self.credentials.ssl_context
        self._connector = aiohttp.TCPConnector(
            limit=0,
            ssl=True if context is None else context,
            keepalive_timeout=KEEPALIVE_S,
            socket_factory=_make_socket,
        )
        self._session = self._make_session()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.close()
        await self._session.close()
        for session in list(self._lent):
            await session.close()
        await self._connector.close()

    # Requests

    async def request(
        self,
        verb: str,
        path: str,
        *,
        body: Body | None = None,
        params: Mapping[str, str] | None = None,
        content_type: str = JSON,
        accept: str | None = None,
        timeout_s: float = 30.0,
        once: bool = False,
    ) -> bytes:
        """Send one request and return the answer's body; `path` is already percent-encoded where it must be.

        `once`: it is not repeated on any ground. Raises ApiError, by what the caller does about it.
        """
        data = body if body is None or isinstance(body, bytes) else self._encode(body)
        accepts = JSON if accept is None else f"{accept},{JSON}"  # a kind that cannot do it answers in full
        refused = False
        while True:
            await self._authenticate()
            sent = steady()
            code = 0
            try:
                answer = await self._transport.request(
                    verb,
                    path,
                    params=params,
                    body=data,
                    content_type=content_type if data is not None else "",
                    accept=accepts,
                    timeout_s=timeout_s,
                    once=once,
                )
                code = answer.status
            except OSError as error:  # a TimeoutError is one
                self.credentials.renew_trust()
                raise _unreachable(error, verb, path) from error
            finally:
                received = steady()
                if self._observer is not None:
                    self._observer(verb, path_template(path), code, received - sent)
            if (date := answer.headers.get(b"date")) is not None:
                self.clock.observe(date, sent=sent, received=received)
            if code != 401:
                self.refused = ""
            if 200 <= code < 300:
                return answer.body
            if code == 401 and not refused:
                refused = True
                await self.renew_credentials()
                continue
            failure = error_from_response(code, answer.body, answer.headers.get(b"retry-after"), verb, path)
            if code == 401:
                self.refused = failure.message
            self._note_forbidden(failure)
            raise failure

    async def get(
        self,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        accept: str | None = None,
        timeout_s: float = 30.0,
    ) -> bytes:
        """Return the object or list at `path`."""
        return await self.request("GET", path, params=params, accept=accept, timeout_s=timeout_s)

    async def create(self, path: str, body: Body, *, accept: str | None = None) -> bytes:
        """POST to the collection at `path`; return the object as stored (or as `accept` asks)."""
        return await self.request("POST", path, body=body, accept=accept)

    async def put(self, path: str, body: Body, *, once: bool = False) -> bytes:
        """Replace the object at `path`; with a resourceVersion in it, only if nobody changed it since.

        `once` is for those to whom it matters who changed it: Conflict then means that it was not this call.
        """
        return await self.request("PUT", path, body=body, once=once)

    async def merge_patch(self, path: str, body: Body, *, accept: str | None = None) -> bytes:
        """Change the object at `path` by a JSON merge patch (RFC 7386)."""
        return await self.request("PATCH", path, body=body, content_type=MERGE_PATCH, accept=accept)

    async def json_patch(self, path: str, body: Body) -> bytes:
        """Change the object at `path` by a JSON patch (RFC 6902)."""
        return await self.request("PATCH", path, body=body, content_type=JSON_PATCH)

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        accept: str | None = None,
        once: bool = False,
    ) -> bytes:
        """Delete the object at `path`; with `uid` and `resource_version` only if it is that very one (else Conflict).

        `once` is for those to whom it matters who deleted it: NotFound then means that it was not this call.

        Returns the object as it was last, or a Status. That an object comes back does not mean that it is still there:
        Pods always do. It is gone when its deletionGracePeriodSeconds is 0 and it has no finalizers. Raises ServerError
        when an answer in JSON is about anything else.
        """
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        conditions = {"uid": uid, "resourceVersion": resource_version}
        if conditions := {name: value for name, value in conditions.items() if value is not None}:
            options["preconditions"] = conditions
        if propagation is not None:
            options["propagationPolicy"] = propagation
        answer = await self.request("DELETE", path, body=options, accept=accept, once=once)
        if accept is None:
            check_deletion(answer, path=path, uid=uid)
        return answer

    # Streams

    async def stream(
        self,
        path: str,
        params: Mapping[str, str],
        *,
        split: Split = split_lines,
        accept: str | None = None,
        silence_s: float = 75.0,
    ) -> AsyncGenerator[list[bytes], None]:
        """Yield the pieces of an endless answer, lines say, as many at once as are complete; none when it begins.

        Ends when the server ends it; raises Unreachable when nothing came for `silence_s` seconds or the connection
        broke, and other ApiErrors when the server refused to start. An unfinished last piece is dropped.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=silence_s)
        try:
            refused = False
            while True:
                await self._authenticate()
                sent = steady()
                response = await self._session.request(
                    "GET",
                    URL(self.credentials.server + path, encoded=True).with_query(params),
                    headers={"Accept": accept or JSON},
                    timeout=timeout,
                    allow_redirects=False,
                    read_bufsize=_STREAM_BUFFER,
                )
                if self._observer is not None:
                    self._observer("WATCH", path_template(path), response.status, steady() - sent)
                if response.status == 200:
                    break
                answer = await response.read()
                if response.status == 401 and not refused:
                    refused = True
                    await self.renew_credentials()
                    continue
                asked = response.headers.get("Retry-After")
                failure = error_from_response(response.status, answer, asked, "WATCH", path)
                self._note_forbidden(failure)
                raise failure
            try:
                yield []
                async for pieces in split(response.content.iter_any()):
                    yield pieces
            finally:
                response.close()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.credentials.renew_trust()  # for lent sessions, too, which connect no better
            raise _unreachable(error, "WATCH", path) from error

    # Session and credentials

    def lend_session(self, *, sieve: Sieve | None = None) -> aiohttp.ClientSession:
        """Return a session over the same connections and with the same credentials, for another library.

        Closing it leaves this client alone, so it may be given away, for instance in a `kopf.AiohttpSession`. What the
        server refuses for a while is tried again beneath it, so that its user need not. Its watches show only what
        `sieve` lets through.
        """
        session = self._patience.lend(self._make_session, sieve=sieve)
        self._lent.add(session)
        return session

    @property
    def lent_heard(self) -> Mapping[str, float]:
        """By path, when a request over a lent session was last answered (steady)."""
        return self._patience.heard

    @property
    def lent_failing(self) -> Mapping[str, str]:
        """By path, why requests over lent sessions are not answered, for as long as they are not."""
        return self._patience.failing

    def _observe_lent(self, verb: str, path: str, code: int, seconds: float) -> None:
        if self._observer is not None:
            self._observer(verb, path_template(path), code, seconds)
        if code == _FORBIDDEN and self._on_forbidden is not None:
            self._on_forbidden()

    def _note_forbidden(self, failure: ApiError) -> None:
        if self._on_forbidden is not None and isinstance(failure, Forbidden) and failure.rights:
            self._on_forbidden()

    async def renew_credentials(self) -> None:
        """Ask for new credentials after the server refused the present ones. Raises Unauthorized."""
        try:
            await self.credentials.renew()
        except CredentialsError as error:
            raise Unauthorized(str(error)) from error
        await self._authenticate()

    async def _authenticate(self) -> None:
        try:
            auth = await self.credentials.headers()
        except CredentialsError as error:
            raise Unauthorized(str(error)) from error
        if auth is self._auth:
            return
        # As defaults of the sessions, so that no request carries them by hand and lent sessions follow.
        for session in (self._session, *self._lent):
            for name in self._auth:
                session.headers.pop(name, None)
            session.headers.update(auth)
        self._transport.authenticate(auth)
        self._auth = auth

    def _make_session(self, *middlewares: aiohttp.ClientMiddlewareType) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=self._connector,
            connector_owner=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            middlewares=middlewares,
            # Compressing costs the server more than the bytes are worth within a cluster.
            headers={"User-Agent": self._user_agent, "Accept": JSON, "Accept-Encoding": "identity", **self._auth},
        )


def path_template(path: str) -> str:
    """Return the plural, and the subresource if any, that an API path speaks of: "pods", "jobs/status"."""
    parts = path.split("/")  # "", "api", version, ... or "", "apis", group, version, ...
    rest = parts[3:] if parts[1] == "api" else parts[4:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    if not rest:
        return path
    return rest[0] if len(rest) < 3 else f"{rest[0]}/{rest[2]}"


def _make_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    for level, option, value in TCP_OPTIONS:
        made.setsockopt(level, option, value)
    return made


def _unreachable(error: Exception, verb: str, path: str) -> Unreachable:
    words = str(error) or ("timed out" if isinstance(error, TimeoutError) else type(error).__name__)
    return Unreachable(f"no answer to {verb} {path}: {words}", reason=type(error).__name__, verb=verb, path=path)
