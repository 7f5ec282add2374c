"""What lists and watches say, in both forms; and refusals in protobuf."""

import json
from typing import Any

import pytest
from tests.unit.controller.binary import pod_answer, pod_list, pod_message, status_answer, watch_frame, wrap

from vcjob.kube.errors import Forbidden, Gone, Throttled, error_from_response
from vcjob.kube.forms import Bookmark, Failure, Form, JsonForm, ProtobufForm, Unreadable
from vcjob.kube.protobuf import DecodeError, Object, unwrap

POD: dict[str, Any] = {"metadata": {"name": "a", "resourceVersion": "7"}}
GONE: dict[str, Any] = {"message": "too old resource version", "reason": "Expired", "code": 410}


def name_of_line(line: bytes) -> tuple[str, str]:
    event = json.loads(line)
    return event["type"], event["object"]["metadata"]["name"]


def name_of_message(message: bytes) -> str:
    name = Object.FromString(message).metadata.name
    if not name:
        raise ValueError("it has no name")
    return str(name)


JSON_FORM: Form[str] = JsonForm(name_of_line)
PROTOBUF_FORM: Form[str] = ProtobufForm(name_of_message)


def line(kind: str, raw: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": raw}, separators=(",", ":")).encode()


EVENTS = [
    pytest.param(JSON_FORM, lambda kind: line(kind, POD), id="json"),
    pytest.param(PROTOBUF_FORM, lambda kind: watch_frame(kind, pod_answer(POD)), id="protobuf"),
]


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
@pytest.mark.parametrize(("form", "event"), EVENTS)
def test_an_event_has_a_type_and_an_object(form: Form[str], event: Any, kind: str):
    assert form.read_event(event(kind)) == (kind, "a")


@pytest.mark.parametrize(("form", "event"), EVENTS)
def test_a_bookmark_has_a_version(form: Form[str], event: Any):
    assert form.read_event(event("BOOKMARK")) == Bookmark(7)


@pytest.mark.parametrize(
    ("form", "piece"),
    [(JSON_FORM, line("ERROR", GONE)), (PROTOBUF_FORM, watch_frame("ERROR", status_answer(**GONE)))],
)
def test_a_failure_tells_what_is_wrong(form: Form[str], piece: bytes):
    failure = form.read_event(piece)
    assert isinstance(failure, Failure)
    error = error_from_response(failure.code, failure.status, None, "WATCH", "/api/v1/pods")
    assert isinstance(error, Gone)
    assert error.message == GONE["message"]


@pytest.mark.parametrize(
    ("form", "body"),
    [
        (
            JSON_FORM,
            json.dumps({"kind": "PodList", "metadata": {"resourceVersion": "12"}, "items": [POD, POD]}).encode(),
        ),
        (PROTOBUF_FORM, pod_list([pod_message(POD)] * 2, version=12)),
    ],
)
def test_a_list_has_a_version_and_items(form: Form[str], body: bytes):
    kind, version, items = form.read_list(body)
    assert (kind, version) == ("PodList", 12)
    assert [form.read_item(item) for item in items] == ["a", "a"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"<html>",
        b"k8s\x00\xff\xff",
        b'{"metadata": {"resourceVersion": "x"}, "items": []}',
        b'{"metadata": {"resourceVersion": "7"}}',
    ],
)
@pytest.mark.parametrize("form", [JSON_FORM, PROTOBUF_FORM])
def test_a_list_that_is_none_is_unreadable(form: Form[str], body: bytes):
    with pytest.raises(Unreadable):
        form.read_list(body)


def test_a_list_that_is_cut_off_is_unreadable_wherever_it_ends():
    body = pod_list([pod_message(POD)] * 2, version=12)
    for end in range(len(body)):
        with pytest.raises(Unreadable):
            PROTOBUF_FORM.read_list(body[:end])


def test_a_list_may_hold_fields_that_nobody_knows():
    _, listing = unwrap(pod_list([pod_message(POD)] * 2, version=12))
    number, eight_bytes, four_bytes, text = b"\x18\x96\x01", b"\x21" + bytes(8), b"\x2d" + bytes(4), b"\x32\x01a"
    body = wrap("PodList", number + eight_bytes + listing + four_bytes + text)
    kind, version, items = PROTOBUF_FORM.read_list(body)
    assert (kind, version) == ("PodList", 12)
    assert [PROTOBUF_FORM.read_item(item) for item in items] == ["a", "a"]


@pytest.mark.parametrize(
    ("form", "piece"),
    [
        (JSON_FORM, b'{"type":"BOOKMARK","object":{}}'),
        (PROTOBUF_FORM, b"\xff\xff"),
        (PROTOBUF_FORM, watch_frame("ADDED", b"no envelope")),
        (PROTOBUF_FORM, watch_frame("BOOKMARK", pod_answer({"metadata": {}}))),
    ],
)
def test_a_watch_that_is_none_is_unreadable(form: Form[str], piece: bytes):
    with pytest.raises(Unreadable):
        form.read_event(piece)


@pytest.mark.parametrize(
    ("form", "piece"),
    [
        (JSON_FORM, line("ADDED", {"metadata": {}})),
        (PROTOBUF_FORM, watch_frame("ADDED", pod_answer({"metadata": {}}))),
    ],
)
def test_an_object_that_is_none_says_nothing_of_the_watch(form: Form[str], piece: bytes):
    with pytest.raises((KeyError, ValueError, DecodeError)):
        form.read_event(piece)


def test_a_refusal_is_the_same_in_protobuf():
    quota = status_answer(message='pods "a" is forbidden: exceeded quota: q', reason="Forbidden", code=403)
    error = error_from_response(403, quota, None, "POST", "/api/v1/pods")
    assert isinstance(error, Forbidden)
    assert error.quota


def test_a_terminating_namespace_is_the_same_in_protobuf():
    details = {"causes": [{"reason": "NamespaceTerminating"}]}
    error = error_from_response(
        403, status_answer(message="no", reason="Forbidden", details=details), None, "POST", "/"
    )
    assert isinstance(error, Forbidden)
    assert error.terminating


@pytest.mark.parametrize(("told", "seconds"), [(3, 3.0), (0, None)])
def test_a_pause_is_the_same_in_protobuf(told: int, seconds: float | None):
    body = status_answer(message="slow down", details={"retry_after_seconds": told})
    error = error_from_response(429, body, None, "POST", "/")
    assert isinstance(error, Throttled)
    assert error.retry_after == seconds


def test_half_a_refusal_in_protobuf_is_still_one():
    error = error_from_response(403, status_answer(message="no" * 200)[:50], None, "POST", "/")
    assert isinstance(error, Forbidden)
