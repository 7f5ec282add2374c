"""What another library's requests meet on a session that we lend: our patience instead of its own, and our sieve.

How often a library tries, what it takes for fatal, and how long it lets itself be put off by a Retry-After decides
whether a kind is watched or not; so requests that a server refuses for a while are sent again here, with the delays
that our own watches have, until there is an answer. Only GET is repeated. The same goes for what no API server says: a
list that is none is asked for again, and a watch in which something else comes ends there, as one that is too old, so
that the borrower lists anew. And what the lender knows already, such as the echo of his own writes in a watch, need not
cost the borrower anything.
"""

import asyncio
import json
import logging
import random
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, cast

import aiohttp

from vcjob.kube.answers import can_be_of, check_listing
from vcjob.kube.backoff import retry_delay
from vcjob.kube.clock import steady
from vcjob.kube.errors import ServerError
from vcjob.kube.forms import Failure, Identity, Unreadable, read_line
from vcjob.kube.pieces import split_lines

__all__ = ("Patience", "Sieve")

log = logging.getLogger(__name__)

_BACKOFF_BASE_S: Final = 0.5
_BACKOFF_CAP_S: Final = 10.0
_RETRY_AFTER_CAP_S: Final = 30.0
_WATCH_SPACING_S: Final = 0.5
_OK: Final = 200
_UNAUTHORIZED: Final = 401
_NOT_FOUND: Final = 404
_GONE: Final = 410
_OLD: Final = frozenset({"resourceVersion", "continue"})
_JSON: Final = "application/json"
_QUOTED: Final = 300  # bytes of what a server says of its failure
_DISCOVERY: Final = ("APIGroup", "APIGroupDiscoveryList", "APIGroupList", "APIResourceList", "APIVersions")

_EXPIRED: Final = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}'

Sieve = Callable[[str, Identity], bool]
"""Says of a watch's path and of which object an event in it tells whether the borrower is to see it."""


class Patience:
    """What middlewares of all lent sessions share.

    `heard` says by path when a request was last answered (steady), `failing` why it is not answered now.
    """

    def __init__(self, *, observe: Callable[[str, str, int, float], None] | None = None) -> None:
        """`observe` is told verb, path, code (0: no answer) and seconds of each request."""
        self.heard: dict[str, float] = {}
        self.failing: dict[str, str] = {}
        self._observe = observe
        self._begun: dict[str, float] = {}  # path -> when its last watch began (steady)
        self._broken: dict[str, int] = {}  # path -> how many watches in a row ended by what cannot be read

    def lend(
        self,
        make_session: Callable[[aiohttp.ClientMiddlewareType], aiohttp.ClientSession],
        *,
        sieve: Sieve | None = None,
    ) -> aiohttp.ClientSession:
        """Return a session that is patient for as long as it is open, and whose watches go through the sieve."""

        async def be_patient(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
            def is_closed() -> bool:
                return (made := lent()) is None or made.closed

            try:
                response = await self._request(request, send, is_closed=is_closed)
            except Exception as error:
                if is_closed():  # while it was being sent; what comes of that is not always said as one expects
                    raise RuntimeError("Session is closed") from error
                raise
            if response.status == _OK and request.url.query.get("watch"):
                sifted = _Sifted(response.content, self, path=request.url.path, sieve=sieve)
                response.content = cast(aiohttp.StreamReader, sifted)
            return response

        session = make_session(be_patient)
        lent = weakref.ref(session)
        return session

    async def _request(
        self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType, *, is_closed: Callable[[], bool]
    ) -> aiohttp.ClientResponse:
        if request.method != "GET":
            return await send(request)
        path, is_watch = request.url.path, bool(request.url.query.get("watch"))
        if is_watch:
            await self._space(path)
        attempt = 0
        while True:
            if is_closed():
                raise RuntimeError("Session is closed")  # as aiohttp says it
            try:
                response = await self._send(request, send, is_watch=is_watch)
            except TimeoutError:
                raise
            except (aiohttp.ClientError, OSError) as error:
                failure, asked = str(error) or type(error).__name__, None
            else:
                if response.status == _GONE and (old := _OLD.intersection(request.url.query)):
                    # Without a version a watch tells of everything that is there, and a list without the place where
                    # it was left begins anew.
                    response.close()
                    request.url = request.url.without_query_params(*old)
                    continue
                failure = await _find_fault(response, is_watch=is_watch)
                if not failure:
                    self.heard[path] = steady()
                    self.failing.pop(path, None)
                    return response
                asked = response.headers.get("Retry-After")
                if response.status == _NOT_FOUND:  # an answer, too: the kind is not there, and may come back
                    self.heard[path] = steady()
                    failure = f"not served, is its CRD installed? ({failure})"
                response.close()
            self._note(path, failure)
            await asyncio.sleep(_delay(attempt, asked))
            attempt += 1

    async def _space(self, path: str) -> None:
        """Wait a little when a watch of this path has begun just now: one that is cut again and again must not spin."""
        begun, broken = self._begun.get(path), self._broken.get(path, 0)
        spacing = _delay(broken, None) if broken else _WATCH_SPACING_S
        if begun is not None and (left := begun + spacing - steady()) > 0:
            await asyncio.sleep(left)
        self._begun[path] = steady()

    def readable(self, path: str) -> None:
        """Take note that a watch has said something that can be read."""
        self._broken.pop(path, None)

    def broke(self, path: str, failure: str) -> None:
        """Take note that a watch has ended by something else."""
        self._broken[path] = self._broken.get(path, 0) + 1
        self._note(path, failure)

    async def _send(
        self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType, *, is_watch: bool
    ) -> aiohttp.ClientResponse:
        sent, code = steady(), 0
        try:
            response = await send(request)
            if not is_watch:
                await response.read()  # here, where an answer that is cut in the middle can be asked for again
            code = response.status
            return response
        finally:
            if self._observe is not None:
                self._observe("WATCH" if is_watch else "GET", request.url.path, code, steady() - sent)

    def _note(self, path: str, failure: str) -> None:
        level = logging.DEBUG if self.failing.get(path) == failure else logging.WARNING
        self.failing[path] = failure
        log.log(level, "list or watch failed, will retry", extra={"path": path, "error": failure})


class _Sifted:
    """The lines of a watch without those that the sieve keeps back, up to the first that is none."""

    def __init__(self, content: aiohttp.StreamReader, patience: Patience, *, path: str, sieve: Sieve | None) -> None:
        self._content = content
        self._patience = patience
        self._path = path
        self._sieve = sieve

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def iter_chunked(self, n: int) -> AsyncIterator[bytes]:
        """Yield whole lines, as they come; `n` limits what is read at once, in bytes."""
        async for lines in split_lines(self._content.iter_chunked(n)):
            kept: list[bytes] = []
            for line in filter(None, lines):
                if failure := self._take(line, kept):
                    self._patience.broke(self._path, failure)
                    yield b"\n".join((*kept, _EXPIRED, b""))
                    return
            if kept:
                yield b"\n".join((*kept, b""))

    def _take(self, line: bytes, kept: list[bytes]) -> str:
        """Keep a line that is for the borrower; say why when no more can come."""
        try:
            told = read_line(line)
            if isinstance(told, Failure):
                if told.code != _GONE:
                    return f"the watch has failed: {told.status[:_QUOTED].decode(errors='replace')}"
            else:
                self._patience.readable(self._path)
            if isinstance(told, Identity):
                if not can_be_of(self._path, told.kind):
                    return f"the watch tells of a {told.kind}"
                if self._sieve is not None and not self._sieve(self._path, told):
                    return ""
            json.loads(line)  # as the borrower will, whose parser has its own limits
        except (Unreadable, ValueError, RecursionError) as error:
            return f"the watch cannot be read: {error}"
        kept.append(line)
        return ""


async def _find_fault(response: aiohttp.ClientResponse, *, is_watch: bool) -> str:
    """Return why an answer is not handed over, "" when it is; a 401 is, since who logs in is the borrower."""
    if response.status == _UNAUTHORIZED:
        return ""
    if response.status != _OK:
        return f"HTTP {response.status}"
    if is_watch:
        return ""
    if response.content_type != _JSON:
        return f"an answer in {response.content_type}"
    try:
        found = json.loads(await response.read())  # as the borrower will, whose parser has its own limits
        # Lists and discovery are all that is asked for.
        if not isinstance(found, dict) or found.get("kind") not in _DISCOVERY:
            check_listing(found, path=response.url.path)
    except (ServerError, ValueError, RecursionError) as error:
        return f"an answer that cannot be read: {error}"
    return ""


def _delay(attempt: int, asked: str | None) -> float:
    delay = retry_delay(attempt, chance=random.random(), base_s=_BACKOFF_BASE_S, cap_s=_BACKOFF_CAP_S)
    try:
        return max(delay, min(float(asked or ""), _RETRY_AFTER_CAP_S))
    except ValueError:  # the HTTP-date form, which no API server sends
        return delay
