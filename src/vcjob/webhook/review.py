"""Admission reviews: what the API server asks and what it is told. Pure.

The objects in a review stay plain dicts, as they came. A body that is no review raises ReviewError and nothing else.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

__all__ = ("Review", "ReviewError", "Verdict", "encode_answer", "read_review", "thin_request")

Raw = dict[str, Any]

_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"


class ReviewError(Exception):
    """The body of a request is not an AdmissionReview; the text says why."""


class _Resource(msgspec.Struct, frozen=True):
    group: str
    version: str
    resource: str


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    operation: str
    resource: _Resource
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: _User = _User()
    dry_run: bool | None = False
    object: Raw | None = None
    old_object: Raw | None = None


class _Envelope(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _Request


_decode: Final = msgspec.json.Decoder(_Envelope).decode
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One question of the API server."""

    uid: str
    operation: str  # CREATE, UPDATE or DELETE
    group: str
    version: str
    plural: str
    subresource: str
    namespace: str
    name: str  # empty when the API server is still to generate it
    user: str
    dry_run: bool
    object: Raw | None  # as it is to be stored; None for DELETE
    old: Raw | None  # as it is stored; None for CREATE
    size: int = 0  # bytes of the whole review

    @property
    def resource(self) -> str:
        """Return `plural.group`, with the subresource if any."""
        plural = f"{self.plural}/{self.subresource}" if self.subresource else self.plural
        return f"{plural}.{self.group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is decided: denied when there is a `denial`, otherwise allowed with the changes of `patch` (RFC 6902)."""

    denial: str = ""
    warnings: tuple[str, ...] = ()
    patch: tuple[Raw, ...] = ()


def read_review(body: bytes) -> Review:
    """Return the review in the body of a request. Raises ReviewError."""
    try:
        envelope = _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReviewError(f"the body is no AdmissionReview: {error}") from error
    if (envelope.api_version, envelope.kind) != (_VERSION, _KIND):
        raise ReviewError(f"{envelope.kind} of {envelope.api_version} is not understood, only {_KIND} of {_VERSION}")
    asked = envelope.request
    return Review(
        uid=asked.uid,
        operation=asked.operation,
        group=asked.resource.group,
        version=asked.resource.version,
        plural=asked.resource.resource,
        subresource=asked.sub_resource,
        namespace=asked.namespace,
        name=asked.name,
        user=asked.user_info.username,
        dry_run=bool(asked.dry_run),
        object=asked.object,
        old=asked.old_object,
        size=len(body),
    )


def thin_request(review: Review) -> Raw:
    """Return the review for kopf, with a stub in the place of the objects.

    kopf copies and compares whole objects for every handler, which takes a hundred times longer than the decision, and
    remembers each object that it was shown with a UID for ever.
    """
    return {
        "apiVersion": _VERSION,
        "kind": _KIND,
        "request": {
            "uid": review.uid,
            "operation": review.operation,
            "resource": {"group": review.group, "version": review.version, "resource": review.plural},
            "userInfo": {"username": review.user},
            "dryRun": review.dry_run,
            "object": {"metadata": {"name": review.name, "namespace": review.namespace}},
        },
    }


def encode_answer(answer: Mapping[str, Any], *, patch: tuple[Raw, ...]) -> bytes:
    """Return kopf's answer with the operations of a JSON patch added, as the body of a response."""
    if not patch:
        return _encode(answer)
    changes = {"patchType": "JSONPatch", "patch": base64.b64encode(_encode(patch)).decode("ascii")}
    return _encode({**answer, "response": {**answer["response"], **changes}})
