"""Certificates that the webhook renews itself: kept in a Secret, trusted through the webhook configurations.

Every replica runs the same loop: read the Secret, take the next step of the rotation if one is due (written under the
Secret's resourceVersion, so that one replica wins and the others read what it wrote), tell the configurations whom to
trust, and only then serve. What the steps are is decided in `certificates`.
"""

import asyncio
import base64
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from vcjob.kube.answers import read_object
from vcjob.kube.backoff import spread
from vcjob.kube.client import ApiClient
from vcjob.kube.errors import AlreadyExists, ApiError, Conflict, NotFound

from .certificates import Lifetimes, Material, advance, ends_at, may_be_served
from .registration import CONFIGURATION_PATHS
from .tls import ServingCertificate

__all__ = ("CertificateKeeper", "ForeignSecret", "KeeperSettings")

log = logging.getLogger(__name__)

_EVERY_S: Final = 10.0
_SOON_S: Final = 1.0  # as long as a configuration is still to come: until it trusts us, no Job can be made
_TRIES: Final = 5  # of a write that another replica was faster with
_AUTHORITY_KEY: Final = "ca.key"
_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"


class ForeignSecret(Exception):
    """The Secret holds something that is not ours to overwrite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperSettings:
    """Where certificates are kept and for whom."""

    names: tuple[str, ...]  # of the leaf
    namespace: str  # of the Secret
    secret: str
    configuration: str  # name of the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration
    lifetimes: Lifetimes

    @property
    def every_s(self) -> float:
        """Return the seconds between two looks; several of them must fit into the shortest step."""
        return min(_EVERY_S, self.lifetimes.settle.total_seconds() / 3)


class CertificateKeeper:
    """Keeps one replica's certificate good. `now` is the API server's time."""

    def __init__(
        self,
        api: ApiClient,
        settings: KeeperSettings,
        *,
        serving: ServingCertificate,
        now: Callable[[], datetime],
    ) -> None:
        self._api = api
        self._settings = settings
        self._serving = serving
        self._now = now
        self._all_told = False  # both configurations were there
        self._published: tuple[bytes, ...] = ()  # authorities that the configurations are known to trust

    async def run(self, *, tell: list[str]) -> None:
        """Keep, for ever; `tell` holds a sentence as long as the last round failed."""
        while True:
            sentence = ""
            try:
                await self.keep()
            except (ApiError, ForeignSecret) as error:
                sentence = str(error)
            except Exception as error:  # of any kind: without this loop, the certificate runs out one day
                sentence = type(error).__name__
                log.exception("certificates cannot be kept")
            if sentence and tell != [sentence]:
                log.warning("certificates cannot be kept, will retry", extra={"error": sentence})
            tell[:] = [sentence] if sentence else []
            pause_s = self._settings.every_s if self._all_told else min(_SOON_S, self._settings.every_s)
            await asyncio.sleep(spread(pause_s, chance=random.random()))

    async def keep(self) -> None:
        """Go round once. Raises ApiError and ForeignSecret; what could be done before is done then."""
        material = await self._advanced()
        try:
            await self._publish(material.bundle)
        finally:
            self._serve(material)

    async def _advanced(self) -> Material:
        """Return what the Secret holds, after the step that was due."""
        for _ in range(_TRIES):
            secret = await self._read()
            data = (secret or {}).get("data") or {}
            if data and _AUTHORITY_KEY not in data:
                raise ForeignSecret(
                    f"Secret {self._settings.secret} holds {', '.join(sorted(data))} of somebody else; empty it, or "
                    "serve from it with --cert-dir"
                )
            found = _read_material(data)
            # With the Secret lost, what API servers trust is the only record of the leaves that replicas serve.
            trusted = (
                self._published if found else tuple(dict.fromkeys((*await self._read_trusted(), *self._published)))
            )
            wanted = advance(
                found,
                names=self._settings.names,
                now=self._now(),
                lifetimes=self._settings.lifetimes,
                published=found is not None and found.bundle == self._published,
                trusted=trusted,
            )
            if wanted is found:
                return wanted
            try:
                await self._write(secret, wanted)
            except (Conflict, AlreadyExists):
                continue
            log.info("certificates renewed", extra={"secret": self._settings.secret, "authorities": len(wanted.bundle)})
            return wanted
        raise Conflict(f"Secret {self._settings.secret} is changed by others all the time")

    async def _read_trusted(self) -> tuple[bytes, ...]:
        """Return the authorities that the configurations trust now."""
        found: list[bytes] = []
        for collection in CONFIGURATION_PATHS.values():
            path = f"{collection}/{self._settings.configuration}"
            try:
                have = read_object(await self._api.get(path), path=path)
            except NotFound:
                continue
            for webhook in have.get("webhooks") or ():
                try:
                    found += _split_authorities(base64.b64decode(webhook["clientConfig"].get("caBundle") or ""))
                except ValueError:  # somebody wrote nonsense there; nobody serves under it
                    continue
        return tuple(found)

    async def _read(self) -> dict[str, Any] | None:
        try:
            return read_object(await self._api.get(self._secret_path), path=self._secret_path)
        except NotFound:
            return None

    async def _write(self, secret: dict[str, Any] | None, material: Material) -> None:
        settings = self._settings
        data = {key: base64.b64encode(value).decode("ascii") for key, value in _data_of(material).items()}
        if secret is None:
            meta = {"name": settings.secret, "namespace": settings.namespace}
            body = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": data}
            answer = await self._api.create(self._secret_path.rpartition("/")[0], body)
        else:
            answer = await self._api.put(self._secret_path, {**secret, "data": data})
        read_object(answer, path=self._secret_path)

    @property
    def _secret_path(self) -> str:
        return f"/api/v1/namespaces/{self._settings.namespace}/secrets/{self._settings.secret}"

    async def _publish(self, bundle: tuple[bytes, ...]) -> None:
        """Make both configurations trust the bundle. One that is not there yet needs to trust nobody."""
        wanted = base64.b64encode(b"".join(bundle)).decode("ascii")
        self._all_told, all_there = False, True
        for collection in CONFIGURATION_PATHS.values():
            path = f"{collection}/{self._settings.configuration}"
            for _ in range(_TRIES):
                try:
                    found = read_object(await self._api.get(path), path=path)
                except NotFound:
                    log.debug("webhook configuration is not there", extra={"path": path})
                    all_there = False
                    break
                operations = _trust_operations(found, wanted)
                if not operations:
                    break
                try:
                    answer = await self._api.json_patch(path, operations)
                    read_object(answer, path=path)
                except Conflict:
                    continue
                log.info("webhook configuration trusts new authorities", extra={"path": path})
                break
            else:
                raise Conflict(f"{path} is changed by others all the time")
        self._published, self._all_told = bundle, all_there

    def _serve(self, material: Material) -> None:
        serving, now = self._serving, self._now()
        if material.certificate == serving.certificate:
            return
        useless = bool(serving.find_fault(now=now))
        told = self._published == material.bundle
        if useless or (told and may_be_served(material, now=now, lifetimes=self._settings.lifetimes)):
            serving.load(material.certificate, material.key)
            log.info("certificate loaded", extra={"ends": str(ends_at(material.certificate))})


def _trust_operations(configuration: dict[str, Any], bundle: str) -> list[dict[str, Any]]:
    """Return the JSON patch after which every webhook of a configuration trusts the bundle; empty when it does."""
    operations: list[dict[str, Any]] = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
        for index, webhook in enumerate(configuration.get("webhooks") or ())
        if webhook["clientConfig"].get("caBundle") != bundle
    ]
    if not operations:
        return []
    # Places in a list are only good for the list that was read. To write its version makes another one a conflict; to
    # test for it would make it an invalid patch.
    version = configuration["metadata"]["resourceVersion"]
    return [{"op": "add", "path": "/metadata/resourceVersion", "value": version}, *operations]


def _data_of(material: Material) -> dict[str, bytes]:
    return {
        "ca.crt": b"".join(material.bundle),
        _AUTHORITY_KEY: material.authority_key,
        "tls.crt": material.certificate,
        "tls.key": material.key,
    }


def _read_material(data: dict[str, str]) -> Material | None:
    """Return what a Secret holds; None when a part is missing. Whether it fits is checked by `advance`."""
    try:
        parts = {key: base64.b64decode(data[key]) for key in ("ca.crt", _AUTHORITY_KEY, "tls.crt", "tls.key")}
    except (KeyError, ValueError):
        return None
    return Material(
        bundle=_split_authorities(parts["ca.crt"]),
        authority_key=parts[_AUTHORITY_KEY],
        certificate=parts["tls.crt"],
        key=parts["tls.key"],
    )


def _split_authorities(bundle: bytes) -> tuple[bytes, ...]:
    _, *authorities = bundle.split(_BEGIN)
    return tuple(_BEGIN + authority.rstrip() + b"\n" for authority in authorities)
