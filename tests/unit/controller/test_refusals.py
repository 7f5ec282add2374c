"""What a refused write means for the Job."""

import pytest

from vcjob.controller.refusals import judge
from vcjob.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    Throttled,
    TooLarge,
    Unreachable,
)


@pytest.mark.parametrize(
    ("error", "reason", "kind"),
    [
        pytest.param(Conflict("changed"), "Conflict", "conflict", id="an old version"),
        pytest.param(Throttled("slow down"), "ApiServerBusy", "transient", id="429"),
        pytest.param(ServerError("etcd"), "ApiServerUnavailable", "transient", id="5xx"),
        pytest.param(Unreachable("cut"), "ApiServerUnavailable", "transient", id="no answer"),
        pytest.param(Forbidden("exceeded quota: q"), "QuotaExceeded", "wait", id="quota"),
        pytest.param(Forbidden("violates PodSecurity"), "Forbidden", "wait", id="Pod Security"),
        pytest.param(Forbidden("", reason="NamespaceTerminating"), "NamespaceTerminating", "wait", id="namespace goes"),
        pytest.param(
            Forbidden('admission webhook "x" denied the request: no', code=400),
            "AdmissionDenied",
            "wait",
            id="a webhook",
        ),
        pytest.param(Invalid("spec.containers: Required"), "Invalid", "permanent", id="422"),
        pytest.param(TooLarge("too large"), "TooLarge", "permanent", id="413"),
        pytest.param(AlreadyExists("there"), "NameConflict", "wait", id="a name that is taken"),
        pytest.param(NotFound("gone"), "NotFound", "wait", id="404"),
        pytest.param(ApiError("?", reason="Odd"), "Odd", "wait", id="anything else"),
    ],
)
def test_a_refusal_is_retried_awaited_or_final(error, reason, kind):
    refusal = judge(error, action="create pods")
    found = {
        "conflict": refusal.conflict,
        "transient": refusal.transient and not refusal.conflict,
        "permanent": refusal.permanent,
        "wait": not (refusal.transient or refusal.permanent),
    }
    assert (refusal.reason, [name for name, is_so in found.items() if is_so]) == (reason, [kind])
    assert refusal.message.startswith("create pods: ")


def test_the_server_says_how_long_to_wait():
    error = Throttled("slow down")
    error.retry_after = 7.0
    assert judge(error, action="x").retry_after == 7.0
