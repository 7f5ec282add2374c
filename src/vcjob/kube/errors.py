"""Errors of API calls, by what the caller does about them.

Pure. The client makes them of refusals, everybody else only reads them.

    ApiError
    ├── Transient          retry with back-off: the server or the way to it is not well
    │   ├── Unreachable      no answer (connection refused, cut, timed out)
    │   ├── Throttled        429
    │   ├── ServerError      500, 502, 503, 504
    │   ├── Conflict         409 on an update: read again, decide again
    │   ├── NotServed        404 that names no object: the kind is not served (yet, or any more), or a proxy is lost
    │   └── Unauthorized     401: the credentials are being renewed
    ├── AlreadyExists      409 on a create: look who owns it
    ├── NotFound           404 in the API server's own words: the object is not there
    ├── Gone               410: the watch's or list's version is too old
    ├── Forbidden          403; `quota`, `terminating` and `policy` tell them from missing rights
    ├── Invalid            422 or 400: the object can never be accepted as it is
    └── TooLarge           413

A refusal by an admission webhook or policy is `Forbidden` whatever its code: it says something about the cluster's
rules of today, not about the object for ever. Servers send 400 and 422 for it as well as 403.
"""

import msgspec

from vcjob.kube.protobuf import DecodeError, Status, is_protobuf, unwrap

__all__ = (
    "AlreadyExists",
    "ApiError",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "NotFound",
    "NotServed",
    "ServerError",
    "Throttled",
    "TooLarge",
    "Transient",
    "Unauthorized",
    "Unreachable",
    "error_from_response",
    "may_have_happened",
)


class ApiError(Exception):
    """An API call that failed.

    `code` is the HTTP status (0: no answer), `reason` the API's CamelCase word, `message` its sentence, `verb` and
    `path` the call.
    """

    def __init__(self, message: str, *, code: int = 0, reason: str = "", verb: str = "", path: str = "") -> None:
        self.message = message
        self.code = code
        self.reason = reason
        self.verb = verb
        self.path = path
        super().__init__(message)


class Transient(ApiError):
    """The same call may succeed later. `retry_after` is in seconds, None when the server named none."""

    retry_after: float | None = None


class Unreachable(Transient):
    """No answer came: whether a write took effect is unknown."""


class Throttled(Transient):
    """429: the server has more to do than it can."""


class ServerError(Transient):
    """5xx."""


class Conflict(Transient):
    """The object changed since it was read."""


class NotServed(Transient):
    """404 without a word of an object: nothing is known of any object, and nothing must be concluded."""


class Unauthorized(Transient):
    """The credentials were refused."""


class AlreadyExists(ApiError):
    """An object of that name is there."""


class NotFound(ApiError):
    """The object or its namespace is not there."""


class WentBack(Exception):
    """The API server went back in time, as after a restore of its store: whatever is newer is known here only.

    It is seen where a version is older than one before it, which the API promises never to happen. Watches do not tell:
    they are silent until the server has come as far as it was.
    """

    def __init__(self, path: str, *, version: int, after: int) -> None:
        super().__init__(f"the API server went back: {path} has version {version} after {after}")


class Gone(ApiError):
    """The version asked for has been compacted away: list again."""


class Forbidden(ApiError):
    """403: missing rights, an exceeded quota, Pod Security, a terminating namespace or an admission plugin."""

    @property
    def quota(self) -> bool:
        """A ResourceQuota has no room: it may have when other objects go."""
        return "exceeded quota" in self.message

    @property
    def terminating(self) -> bool:
        """The namespace is being deleted: nothing new will ever be created in it."""
        return self.reason == "NamespaceTerminating" or "because it is being terminated" in self.message

    @property
    def policy(self) -> bool:
        """An admission webhook or a ValidatingAdmissionPolicy said no."""
        return _denied(self.message)

    @property
    def rights(self) -> bool:
        """It is for none of these reasons, so that rights may be missing."""
        return not (self.quota or self.terminating or self.policy)


class Invalid(ApiError):
    """The server's validation refuses the object."""


class TooLarge(ApiError):
    """The object is above the server's size limit."""


def may_have_happened(error: ApiError) -> bool:
    """Return whether a write that ended so may have taken effect: its answer is missing, or says nothing of it."""
    return isinstance(error, Unreachable | ServerError)


class _Cause(msgspec.Struct, gc=False):
    reason: str | None = None


class _Details(msgspec.Struct, gc=False):
    causes: list[_Cause] | None = None
    retry_seconds: int | None = msgspec.field(name="retryAfterSeconds", default=None)


class _Status(msgspec.Struct, gc=False):
    message: str | None = None
    reason: str | None = None
    details: _Details | None = None


_decode_json = msgspec.json.Decoder(_Status).decode

_BY_CODE: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    408: ServerError,
    410: Gone,
    413: TooLarge,
    422: Invalid,
    429: Throttled,
}
# The store's own limit comes as a 500 in etcd's words.
_TOO_LARGE = ("etcdserver: request is too large", "trying to send message larger than max")
_MESSAGE_MAX = 4096  # characters
_PAGE_MAX = 200  # bytes; a proxy may answer with a page of HTML


def error_from_response(status: int, body: bytes, retry_after: str | None, verb: str, path: str) -> ApiError:
    """Return the error that an answer of HTTP `status` means; `retry_after` is the header's text."""
    try:
        answer = _decode_protobuf(body) if is_protobuf(body) else _decode_json(body)
    except (msgspec.MsgspecError, DecodeError):
        answer = _Status()
    message = (answer.message or _describe(status, body, verb, path))[:_MESSAGE_MAX]
    reason = answer.reason or ""
    details = answer.details or _Details()
    if any(cause.reason == "NamespaceTerminating" for cause in details.causes or ()):
        reason = "NamespaceTerminating"
    error = _error_class(status, reason=reason, message=message)(
        message, code=status, reason=reason, verb=verb, path=path
    )
    if isinstance(error, Transient):
        error.retry_after = _seconds(retry_after, details)
    return error


def _describe(status: int, body: bytes, verb: str, path: str) -> str:
    """Return what can be said of an answer that says nothing in the API's own way."""
    page = "" if body.lstrip().startswith(b"{") else body[:_PAGE_MAX].decode(errors="replace").strip()
    return f"HTTP {status} to {verb} {path}{': ' if page else ''}{page}"


def _decode_protobuf(body: bytes) -> _Status:
    told = Status.FromString(unwrap(body)[1])
    details = _Details(
        causes=[_Cause(reason=cause.reason) for cause in told.details.causes],
        retry_seconds=told.details.retry_after_seconds or None,  # a number that is not there is a zero
    )
    return _Status(message=told.message, reason=told.reason, details=details)


def _error_class(status: int, *, reason: str, message: str) -> type[ApiError]:
    if _denied(message):
        return Forbidden  # whatever the code: a policy's 429 or 503 says nothing of the server, its 409 of no object
    if status == 409:
        return AlreadyExists if reason == "AlreadyExists" else Conflict
    if status == 404:
        return NotFound if reason == "NotFound" else NotServed
    if status >= 500:
        return TooLarge if any(words in message for words in _TOO_LARGE) else ServerError
    return _BY_CODE.get(status, ApiError)


def _denied(message: str) -> bool:
    return ("admission webhook " in message and " denied the request" in message) or (
        message.startswith("ValidatingAdmissionPolicy ") or (" ValidatingAdmissionPolicy " in message)
    )


def _seconds(header: str | None, details: _Details) -> float | None:
    """Kubernetes sends whole seconds; the HTTP-date form is taken as "not named"."""
    try:
        return max(0.0, float(header or ""))
    except ValueError:
        return None if details.retry_seconds is None else max(0.0, float(details.retry_seconds))
