"""An answer of 2xx counts only when it is one of what was asked for."""

import json
from typing import Any

import pytest

from vcjob.kube.answers import check_deletion, read_listing, read_object
from vcjob.kube.errors import ServerError

PATH = "/apis/bus.volcano.sh/v1alpha1/namespaces/ns/commands/stop"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            {"kind": "Status", "status": "Success", "details": {"name": "stop", "kind": "commands", "uid": "u"}},
            id="gone",
        ),
        pytest.param(
            {"kind": "Command", "metadata": {"name": "stop", "finalizers": ["a/b"]}}, id="held by a finalizer"
        ),
    ],
)
def test_what_tells_of_the_object_is_a_deletion(answer: dict[str, Any]):
    check_deletion(json.dumps(answer).encode(), path=PATH, uid="u")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>",
        b"null",
        b"[]",
        b"{}",
        b'{"kind":"Status","status":"Success"}',
        b'{"kind":"Status","status":"Success","details":null}',
        b'{"kind":"Status","status":"Success","details":{"name":"other"}}',
        b'{"kind":"Status","status":"Failure","details":{"name":"stop"}}',
        b'{"kind":"Command","metadata":{"name":"other"}}',
        b'{"kind":"Command","metadata":"stop"}',
        b'{"kind":"Command","metadata":{"name":"stop","uid":"another"}}',
        b'{"kind":"Status","status":"Success","details":{"name":"stop","uid":"another"}}',
    ],
)
def test_all_else_is_a_failure(answer: bytes):
    with pytest.raises(ServerError, match="commands/stop"):
        check_deletion(answer, path=PATH, uid="u")


META = {"name": "stop", "namespace": "ns", "uid": "u", "resourceVersion": "7"}


def test_an_object_is_what_it_was_asked_for():
    answer = json.dumps({"metadata": META}).encode()
    assert read_object(answer, path=PATH, uid="u") == {"metadata": META}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"metadata": None},
        {"metadata": META | {"name": "other"}},
        {"metadata": META | {"namespace": "other"}},
        {"metadata": META | {"uid": "other"}},
        {"metadata": META | {"uid": ""}},
        {"metadata": META | {"resourceVersion": "new"}},
        {"metadata": META | {"resourceVersion": 7}},
    ],
)
def test_any_other_object_is_a_failure(answer: Any):
    with pytest.raises(ServerError, match="commands/stop"):
        read_object(json.dumps(answer).encode(), path=PATH, uid="u")


JOBS_PATH = "/apis/batch.volcano.sh/v1alpha1/jobs"


@pytest.mark.parametrize("kind", ["JobList", ""])
def test_a_list_is_one_of_the_collections_kind(kind: str):
    listing = {"kind": kind, "metadata": {"resourceVersion": "7"}, "items": []}
    assert read_listing(json.dumps(listing).encode(), path=JOBS_PATH) == listing


@pytest.mark.parametrize(
    "answer",
    [
        {"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": []},
        {"kind": "Job", "metadata": {"resourceVersion": "7"}, "items": []},
        {"kind": "JobList", "metadata": {"resourceVersion": "7"}},
        {"kind": "JobList", "metadata": {}, "items": []},
    ],
)
def test_any_other_list_is_a_failure(answer: Any):
    with pytest.raises(ServerError, match="v1alpha1/jobs"):
        read_listing(json.dumps(answer).encode(), path=JOBS_PATH)
