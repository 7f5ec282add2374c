"""An API server of one Secret and two webhook configurations: versions, conflicts, and its bad days."""

import base64
import copy
import json
from typing import Any

from vcjob.kube.errors import AlreadyExists, Conflict, Invalid, NotFound, ServerError
from vcjob.webhook.registration import CONFIGURATION_PATHS

__all__ = ("SECRET", "MemoryApi")

SECRET = "/api/v1/namespaces/system/secrets/cert"


class MemoryApi:
    """What the keeper needs of an ApiClient."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.writes: list[str] = []
        self.mute = ""  # calls of paths that contain it fail
        self._version = 0
        for path in CONFIGURATION_PATHS.values():
            service = {"service": {"name": "hook", "namespace": "system"}}
            webhooks = [{"name": name, "clientConfig": copy.deepcopy(service)} for name in ("a", "b")]
            self.put_object(f"{path}/vcjob", {"metadata": {"name": "vcjob"}, "webhooks": webhooks})

    @property
    def bundles(self) -> set[bytes]:
        """What the webhooks trust: one entry as long as all agree."""
        return {
            base64.b64decode(webhook["clientConfig"].get("caBundle", ""))
            for path, found in self.objects.items()
            if path != SECRET
            for webhook in found["webhooks"]
        }

    def put_object(self, path: str, item: dict[str, Any]) -> bytes:
        """Store an object under a new version."""
        self._version += 1
        item["metadata"] |= {"uid": path, "resourceVersion": str(self._version)}
        if path == SECRET:
            item["metadata"]["namespace"] = "system"
        self.objects[path] = item
        return json.dumps(item).encode()

    async def get(self, path: str) -> bytes:
        return json.dumps(self._find(path)).encode()

    async def create(self, path: str, body: dict[str, Any]) -> bytes:
        self._answer(path)
        full = f"{path}/{body['metadata']['name']}"
        if full in self.objects:
            raise AlreadyExists("it is there", code=409)
        self.writes.append(full)
        return self.put_object(full, copy.deepcopy(body))

    async def put(self, path: str, body: dict[str, Any]) -> bytes:
        if body["metadata"]["resourceVersion"] != self._find(path)["metadata"]["resourceVersion"]:
            raise Conflict("it was changed", code=409)
        self.writes.append(path)
        return self.put_object(path, copy.deepcopy(body))

    async def json_patch(self, path: str, body: list[dict[str, Any]]) -> bytes:
        item = copy.deepcopy(self._find(path))
        for operation in body:
            *parents, last = operation["path"].strip("/").split("/")
            place: Any = item
            for part in parents:
                place = place[int(part) if isinstance(place, list) else part]
            if operation["op"] == "test" and place[last] != operation["value"]:
                raise Invalid("testing value failed", code=422)
            place[last] = operation["value"]
        if item["metadata"]["resourceVersion"] != self.objects[path]["metadata"]["resourceVersion"]:
            raise Conflict("it was changed", code=409)
        self.writes.append(path)
        return self.put_object(path, item)

    def _find(self, path: str) -> dict[str, Any]:
        self._answer(path)
        if path not in self.objects:
            raise NotFound("it is not there", code=404)
        return self.objects[path]

    def _answer(self, path: str) -> None:
        if self.mute and self.mute in path:
            raise ServerError("out of order", code=500)
