"""Errors of API calls, by what the caller does about them.

    ApiError
    ├── Transient          retry with back-off: the server or the way to it is not well
    │   ├── Unreachable      no answer (connection refused, cut, timed out)
    │   ├── Throttled        429; `retry_after` seconds when the server said so
    │   ├── ServerError      500, 502, 503, 504
    │   ├── Conflict         409 on an update: read again, decide again
    │   └── Unauthorized     401: the credentials are being renewed
    ├── AlreadyExists      409 on a create: look who owns it
    ├── NotFound           404
    ├── Gone               410: the watch's or list's version is too old
    ├── Forbidden          403; `quota` tells a ResourceQuota from missing rights
    ├── Invalid            422 or 400: the object can never be accepted as it is
    └── TooLarge           413
"""

__all__ = (
    "AlreadyExists",
    "ApiError",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "NotFound",
    "ServerError",
    "Throttled",
    "TooLarge",
    "Transient",
    "Unauthorized",
    "Unreachable",
)


class ApiError(Exception):
    """An API call that failed.

    `code` is the HTTP status (0: no answer), `reason` the API's CamelCase word, `message` its sentence, `verb` and `path`
    the call.
    """

    def __init__(self, message: str, *, code: int = 0, reason: str = "", verb: str = "", path: str = "") -> None:
        self.message = message
        self.code = code
        self.reason = reason
        self.verb = verb
        self.path = path
        super().__init__(message)


class Transient(ApiError):
    """The same call may succeed later."""


class Unreachable(Transient):
    """No answer came: whether a write took effect is unknown."""


class Throttled(Transient):
    """429. `retry_after` is in seconds, None when the server named none."""

    retry_after: float | None = None


class ServerError(Transient):
    """5xx."""


class Conflict(Transient):
    """The object changed since it was read."""


class Unauthorized(Transient):
    """The credentials were refused."""


class AlreadyExists(ApiError):
    """An object of that name is there."""


class NotFound(ApiError):
    """The object, its namespace or its kind is not there."""


class Gone(ApiError):
    """The version asked for has been compacted away: list again."""


class Forbidden(ApiError):
    """403: missing rights, an exceeded quota, Pod Security, a terminating namespace or an admission plugin."""


class Invalid(ApiError):
    """The server's validation refuses the object."""


class TooLarge(ApiError):
    """The object is above the server's size limit."""
