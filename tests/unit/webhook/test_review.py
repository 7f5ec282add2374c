"""Reading reviews and writing answers; how kopf and HTTP take part is in tests/integration/test_admission.py."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.webhook.builders import review_body

from vcjob.webhook.review import ReviewError, encode_answer, read_review, thin_request

JOB = {"metadata": {"name": "train", "uid": "x"}, "spec": {"future": {"deep": [1.5, None, "é"]}}}


def test_a_review_keeps_the_objects_as_they_came():
    review = read_review(review_body("UPDATE", new=JOB, old={"spec": {}}, dryRun=True))
    assert (review.object, review.old, review.dry_run) == (JOB, {"spec": {}}, True)
    assert (review.resource, review.user, review.namespace) == ("jobs.batch.volcano.sh", "alice", "team")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="half an object"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"{}", id="no request"),
        pytest.param(review_body(new=JOB)[:-5], id="cut off"),
        pytest.param(review_body(new=JOB).replace(b"/v1", b"/v1beta1", 1), id="another version"),
        pytest.param(review_body(new=JOB).replace(b"AdmissionReview", b"Review"), id="another kind"),
        pytest.param(review_body(new=JOB, operation=None), id="no operation"),
        pytest.param(review_body(object="text"), id="an object that is a text"),
        pytest.param(b"[" * 100_000, id="very deep"),
    ],
)
def test_what_is_no_review_is_refused_with_a_reason(body: bytes):
    with pytest.raises(ReviewError, match=r"\w"):
        read_review(body)


@given(st.binary(max_size=200))
def test_no_body_whatever_raises_anything_else(body: bytes):
    """Law: bytes are a review, or a ReviewError."""
    try:
        read_review(body)
    except ReviewError:
        pass


def test_kopf_sees_neither_the_objects_nor_a_uid_to_remember():
    thin = thin_request(read_review(review_body("UPDATE", new=JOB, old=JOB)))
    assert thin["request"]["object"] == {"metadata": {"name": "train", "namespace": "team"}}
    assert "oldObject" not in thin["request"]


def test_an_answer_carries_the_exact_patch():
    patch = ({"op": "add", "path": "/spec/queue", "value": "default"},)
    answer = json.loads(encode_answer({"response": {"uid": "u-1", "allowed": True}}, patch=patch))
    assert answer["response"]["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(answer["response"]["patch"])) == list(patch)


def test_an_answer_without_changes_has_no_patch():
    assert json.loads(encode_answer({"response": {"uid": "u-1", "allowed": True}}, patch=())) == {
        "response": {"uid": "u-1", "allowed": True}
    }
