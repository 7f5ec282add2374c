"""A few blocking calls to the cluster's own API server, for the time before and after `up`'s other steps.

Plain HTTP with the administrator's certificate; manifests are applied server-side, so applying twice changes nothing.
"""

import http.client
import json
import ssl
import time
import urllib.parse
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final

from vcjob.cluster.errors import ApiCallFailed
from vcjob.cluster.pki import CertificateFiles, User

__all__ = ("ApiServer", "Manifest", "Refusal", "wait_until")

Manifest = dict[str, Any]

_MANAGER: Final = "vcjob-cluster"
_POLL_S: Final = 0.05
_TIMEOUT_S: Final = 15.0


class Refusal(Enum):
    """An answer that is as good as success to the caller."""

    MISSING = 404
    EXISTS = 409


class ApiServer:
    """One API server, seen by one user."""

    def __init__(self, url: str, *, files: CertificateFiles, user: User) -> None:
        parts = urllib.parse.urlsplit(url)
        context = ssl.create_default_context(cafile=str(files.ca))
        context.load_cert_chain(files.client(user), files.client_key(user))
        self._connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, context=context, timeout=_TIMEOUT_S
        )
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def call(
        self,
        verb: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        accept: AbstractSet[Refusal] = frozenset(),
    ) -> Manifest:
        """Make one call and return the object of the answer; raises ApiCallFailed."""
        code, answer = self._send(verb, path, body=body, content_type=content_type)
        if code >= 400 and code not in {refusal.value for refusal in accept}:
            raise ApiCallFailed(f"{verb} {path} was answered with {code}: {_sentence(answer)}", code=code)
        found: Manifest = json.loads(answer)
        return found

    def apply(self, manifest: Manifest) -> Manifest:
        """Create the object, or bring it to what the manifest says."""
        path = f"{self.path_of(manifest)}?fieldManager={_MANAGER}&force=true"
        return self.call("PATCH", path, body=manifest, content_type="application/apply-patch+yaml")

    def path_of(self, manifest: Manifest) -> str:
        """Return the path of the object of that manifest; raises ApiCallFailed when its kind is not served."""
        version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (version, kind) not in self._plurals:
            for resource in self.call("GET", root)["resources"]:
                if "/" not in resource["name"]:
                    self._plurals[version, resource["kind"]] = (resource["name"], resource["namespaced"])
        try:
            plural, namespaced = self._plurals[version, kind]
        except KeyError:
            raise ApiCallFailed(f"the API server does not serve the kind {kind} in {version}", code=404) from None
        scope = f"/namespaces/{metadata.get('namespace', 'default')}" if namespaced else ""
        return f"{root}{scope}/{plural}/{metadata['name']}"

    def says_ok(self, path: str) -> bool:
        """Say whether a health endpoint answers 200; no answer counts as no."""
        try:
            code, _ = self._send("GET", path)
        except ApiCallFailed:
            return False
        return code == 200

    def _send(
        self, verb: str, path: str, *, body: Mapping[str, Any] | None = None, content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        data = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(verb, path, body=data, headers=headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()  # the next call opens a new one
            raise ApiCallFailed(f"{verb} {path} got no answer: {error or type(error).__name__}") from error


def wait_until(check: Callable[[], bool], *, timeout_s: float, meanwhile: Callable[[], None] | None = None) -> bool:
    """Ask again and again until `check` holds, and say whether it did in time; `meanwhile` may raise to give up."""
    deadline = time.monotonic() + timeout_s
    while not check():
        if meanwhile:
            meanwhile()
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _sentence(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer[:300].decode(errors="replace")
