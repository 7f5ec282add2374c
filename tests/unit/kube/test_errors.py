"""Errors: what a refusal means, from code, reason and message. The codes alone are tested with the client."""

import json
from typing import Any

import pytest

from vcjob.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    ServerError,
    Throttled,
    TooLarge,
    Transient,
    error_from_response,
)


def refusal(code: int, message: str = "", *, retry_after: str | None = None, **status: Any) -> ApiError:
    body = json.dumps({"kind": "Status", "message": message, **status}).encode()
    return error_from_response(code, body, retry_after, "POST", "/api/v1/namespaces/default/pods")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refusal(409, reason="AlreadyExists"), AlreadyExists),
        (refusal(409, reason="Conflict"), Conflict),
        (refusal(409), Conflict),
        (refusal(422, "Pod is invalid: spec.containers: Required value", reason="Invalid"), Invalid),
        (refusal(400, "strict decoding error", reason="BadRequest"), Invalid),
        (refusal(400, 'admission webhook "policy.example" denied the request: no', reason="BadRequest"), Forbidden),
        (refusal(409, 'admission webhook "policy.example" denied the request: no', reason="Conflict"), Forbidden),
        (refusal(429, 'admission webhook "policy.example" denied the request: no'), Forbidden),
        (refusal(503, 'admission webhook "policy.example" denied the request: no'), Forbidden),
        (refusal(503, 'failed calling webhook "policy.example": connection refused'), ServerError),
        (
            refusal(422, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", reason="Invalid"),
            Forbidden,
        ),
        (refusal(500, 'failed calling webhook "w": connection refused', reason="InternalError"), ServerError),
        (refusal(500, "etcdserver: request is too large"), TooLarge),
        (refusal(500, "rpc error: trying to send message larger than max (9 vs. 2)"), TooLarge),
        (refusal(418), ApiError),
    ],
)
def test_what_it_is(error: ApiError, kind: type[ApiError]) -> None:
    assert type(error) is kind


def test_an_exceeded_quota_differs_from_missing_rights() -> None:
    quota = refusal(403, 'pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2')
    rights = refusal(403, 'pods is forbidden: User "u" cannot create resource "pods"', reason="Forbidden")
    assert isinstance(quota, Forbidden)
    assert isinstance(rights, Forbidden)
    assert (quota.quota, rights.quota) == (True, False)


@pytest.mark.parametrize(
    "error",
    [
        refusal(403, "unable to create new content in namespace n because it is being terminated", reason="Forbidden"),
        refusal(403, "other words", reason="Forbidden", details={"causes": [{"reason": "NamespaceTerminating"}]}),
    ],
)
def test_a_terminating_namespace_is_known(error: ApiError) -> None:
    assert isinstance(error, Forbidden)
    assert (error.terminating, error.quota, error.policy) == (True, False, False)


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("3", {}, 3.0),
        (None, {"retryAfterSeconds": 5}, 5.0),
        ("3", {"retryAfterSeconds": 5}, 3.0),
        ("-1", {}, 0.0),
        ("Wed, 01 Jan 2031 10:00:00 GMT", {}, None),
        (None, {}, None),
    ],
)
def test_how_long_the_server_asks_to_wait(header: str | None, details: dict[str, int], seconds: float | None) -> None:
    error = refusal(429, retry_after=header, details=details)
    assert isinstance(error, Throttled)
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    "body", [b"", b"<html>Bad Gateway</html>", b'{"kind":"Status","message":null}', b"[]", b"\xff"]
)
def test_any_body_will_do(body: bytes) -> None:
    error = error_from_response(502, body, None, "GET", "/x")
    assert isinstance(error, Transient)
    assert error.message
