"""What a refused write means for the Job."""

import pytest

from vcjob.controller.refusals import judge, wait_after
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
        pytest.param(Invalid("spec.containers: Required"), "InvalidSpec", "permanent", id="422"),
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
    assert judge(throttled(7.0), action="x").retry_after == 7.0


def throttled(retry_after: float) -> Throttled:
    error = Throttled("slow down")
    error.retry_after = retry_after
    return error


@pytest.mark.parametrize(
    ("error", "longest_s"),
    [
        pytest.param(ServerError("etcd"), 5.0, id="a server that may be well again at any moment"),
        pytest.param(Unreachable("cut"), 5.0, id="no answer"),
        pytest.param(Throttled("slow down"), 5.0, id="429"),
        pytest.param(throttled(2.0), 2.0, id="what the server asks for"),
        pytest.param(throttled(7200.0), 60.0, id="what the server cannot mean"),
        pytest.param(Forbidden("exceeded quota: q"), 10.0, id="what nobody will tell of"),
        pytest.param(Forbidden("no"), 60.0, id="what somebody has to mend"),
    ],
)
def test_waits_get_longer_up_to_what_the_reason_is_worth(error: ApiError, longest_s: float):
    refusal = judge(error, action="create pod p")
    waits = [wait_after(refusal, attempt=attempt, chance=0.9999) for attempt in range(20)]
    assert waits == sorted(waits)
    assert waits[0] <= max(0.25, refusal.retry_after or 0.0)
    assert waits[-1] == pytest.approx(longest_s, rel=0.01)
