"""Plugin objects on the API server: made once, brought up to date, removed, and never taken from somebody else.

An object of the wanted name that the Job does not control is left alone; the Job waits and says so. Secrets are read by
name only, and only when there is a doubt.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from vcjob.kube.answers import read_object
from vcjob.kube.client import METADATA_ONLY, ApiClient
from vcjob.kube.errors import AlreadyExists, Conflict, NotFound
from vcjob.lifecycle.steps import ApplyObject
from vcjob.plugins.base import ObjectRef, WantedObject

from .jobs import JobRecord
from .memory import JobMemory, Stored
from .refusals import Refusal
from .reports import Slot

__all__ = ("ObjectWriter", "collection_path", "find_difference")

_PLURALS: Final = {"NetworkPolicy": "networkpolicies", "Ingress": "ingresses"}


def collection_path(ref: ObjectRef, namespace: str) -> str:
    """Return the API path of the collection that the object is in."""
    root = f"/api/{ref.api_version}" if "/" not in ref.api_version else f"/apis/{ref.api_version}"
    plural = _PLURALS.get(ref.kind, f"{ref.kind.lower()}s")
    return f"{root}/namespaces/{namespace}/{plural}"


def find_difference(wanted: WantedObject, have: dict[str, Any]) -> dict[str, Any]:
    """Return the merge patch that makes `have` equal to `wanted` at the paths to follow; empty when it is."""
    patch: dict[str, Any] = {}
    for path in wanted.follow:
        new, old = _at(wanted.manifest, path), _at(have, path)
        if new == old:
            continue
        if isinstance(new, dict) and isinstance(old, dict):
            new = new | dict.fromkeys(old.keys() - new.keys())
        target = patch
        for part in path[:-1]:
            target = target.setdefault(part, {})
        target[path[-1]] = new
    return patch


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


class ObjectWriter:
    """Makes and removes the objects of plugins."""

    def __init__(self, api: ApiClient, *, slot: Callable[[JobRecord], Slot]) -> None:
        self._api = api
        self._slot = slot

    async def apply(self, record: JobRecord, memory: JobMemory, step: ApplyObject) -> Refusal | None:
        """Make the object, or bring the Job's own up to date. Raises ApiError."""
        wanted = step.item.wanted
        path = collection_path(wanted.ref, record.namespace)
        if step.expected and (have := await self._read(record, f"{path}/{wanted.ref.name}")) is not None:
            return await self._adopt(record, memory, step, have)
        manifest = await _complete(wanted)
        body = {
            **manifest,
            "apiVersion": wanted.ref.api_version,
            "kind": wanted.ref.kind,
            "metadata": {
                **manifest.get("metadata", {}),
                "name": wanted.ref.name,
                "namespace": record.namespace,
                "ownerReferences": [record.revision.job.owner_reference()],
            },
        }
        try:
            async with self._slot(record):
                answer = await self._api.create(path, body, accept=METADATA_ONLY)
        except AlreadyExists:
            have = await self._read(record, f"{path}/{wanted.ref.name}")
            if have is None:  # gone in between: the next pass makes it
                return Refusal(
                    reason="Conflict",
                    message=f"{wanted.ref.kind} {wanted.ref.name} was deleted",
                    conflict=True,
                    transient=True,
                )
            return await self._adopt(record, memory, step, have)
        self._remember(memory, step, read_object(answer, path=f"{path}/{wanted.ref.name}"))
        return None

    async def delete(self, record: JobRecord, memory: JobMemory, ref: ObjectRef) -> None:
        """Delete the object if the Job controls it. Raises ApiError."""
        path = f"{collection_path(ref, record.namespace)}/{ref.name}"
        key = (ref.kind, ref.name)
        known = memory.objects.get(key)
        if known is None or not await self._delete(record, path, known):
            # Not as this process has last seen it: perhaps it is somebody else's by now.
            have = await self._read(record, path)
            if have is not None and _controller_uid(have) == record.uid:
                await self._delete(record, path, Stored(uid=have["metadata"]["uid"]))
        memory.applied.pop(key, None)
        memory.objects.pop(key, None)

    async def _delete(self, record: JobRecord, path: str, known: Stored) -> bool:
        """Delete an object that is as it was; False when it is not."""
        try:
            async with self._slot(record):
                await self._api.delete(path, uid=known.uid, resource_version=known.version)
        except Conflict:
            return False
        except NotFound:
            pass
        return True

    async def _read(self, record: JobRecord, path: str) -> dict[str, Any] | None:
        try:
            async with self._slot(record):
                answer = await self._api.get(path)
        except NotFound:
            return None
        return read_object(answer, path=path)

    async def _adopt(
        self, record: JobRecord, memory: JobMemory, step: ApplyObject, have: dict[str, Any]
    ) -> Refusal | None:
        wanted = step.item.wanted
        if _controller_uid(have) != record.uid:
            sentence = (
                f"{wanted.ref.kind} {wanted.ref.name} exists and does not belong to this Job, "
                f"but plugin {step.item.plugin} needs the name; delete or rename it"
            )
            return Refusal(reason="NameConflict", message=sentence)
        if have["metadata"].get("deletionTimestamp"):
            return Refusal(
                reason="Conflict", message=f"{wanted.ref.kind} {wanted.ref.name} is being deleted", transient=True
            )
        patch = find_difference(wanted, have)
        if any(_at(have, path) is None for path in wanted.required):  # somebody has damaged it
            whole = await _complete(wanted)
            patch |= {path[0]: whole[path[0]] for path in wanted.required}
        if patch:
            patch["metadata"] = {"uid": have["metadata"]["uid"]}
            path = f"{collection_path(wanted.ref, record.namespace)}/{wanted.ref.name}"
            async with self._slot(record):
                answer = await self._api.merge_patch(path, patch)
            have = read_object(answer, path=path, uid=have["metadata"]["uid"])
        self._remember(memory, step, have)
        return None

    def _remember(self, memory: JobMemory, step: ApplyObject, stored: dict[str, Any]) -> None:
        ref = step.item.wanted.ref
        memory.applied[(ref.kind, ref.name)] = step.item.digest_at(step.version)
        memory.seen[(ref.kind, ref.name)] = self._api.clock.now().timestamp()
        meta = stored["metadata"]
        memory.objects[(ref.kind, ref.name)] = Stored(uid=meta["uid"], version=meta["resourceVersion"])


async def _complete(wanted: WantedObject) -> dict[str, Any]:
    """Return the manifest with what is made by chance."""
    return (
        wanted.manifest
        if wanted.generate is None
        else _merge(wanted.manifest, await asyncio.to_thread(wanted.generate))
    )


def _controller_uid(obj: dict[str, Any]) -> str:
    owners = obj.get("metadata", {}).get("ownerReferences") or ()
    return next((str(o.get("uid")) for o in owners if o.get("controller")), "")


def _merge(base: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in extra.items():
        known = out.get(key)
        out[key] = _merge(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return out
