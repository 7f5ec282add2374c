"""Counting calls in an audit log."""

import json
from pathlib import Path
from typing import Any

from vcjob.cluster.audit import AuditLog, parse_audit_line


def line(*, user: str = "me", verb: str = "patch", resource: str = "jobs", **changes: Any) -> bytes:
    about = {"resource": resource, "namespace": "n", "name": "j", "apiGroup": "g"} | changes.pop("about", {})
    event = {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": user},
        "objectRef": about,
        "responseStatus": {"code": 200},
    }
    return json.dumps(event | changes).encode() + b"\n"


def test_a_subresource_is_told_from_its_resource():
    call = parse_audit_line(line(about={"subresource": "status"}))
    assert call is not None
    assert (call.group, call.resource, call.name) == ("g", "jobs/status", "j")


def test_what_is_not_over_or_not_about_an_object_is_no_call():
    assert parse_audit_line(line(stage="ResponseStarted")) is None
    assert parse_audit_line(line(objectRef=None)) is None


def test_calls_are_picked_by_user_verb_and_resource_after_a_mark(tmp_path: Path):
    path = tmp_path / "audit.log"
    path.write_bytes(line(verb="create"))
    log = AuditLog(path)
    mark = log.mark()
    with path.open("ab") as file:
        file.write(
            line(about={"subresource": "status"}) + line(verb="get") + line(user="other") + line(resource="pods")
        )
        file.write(line()[:20])  # the server is writing it
    assert [call.resource for call in log.calls(since=mark, user="me")] == ["jobs/status", "pods"]
    assert [call.user for call in log.calls(since=mark, resource="jobs")] == ["me", "other"]
    assert [call.verb for call in log.calls(verbs=frozenset({"get", "create"}))] == ["create", "get"]
