"""The API server as the tests see it: raw objects in, raw objects out.

It shares no code with the operator's client, so that a fault there cannot hide itself.
"""

import asyncio
import base64
import inspect
import io
import json
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp
import yaml

Object = dict[str, Any]
T = TypeVar("T")

_TIMEOUT_S: Final = 15.0  # of one call
_PATCHES: Final = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind of objects, as paths name it."""

    version: str  # "v1", "batch.volcano.sh/v1alpha1"
    plural: str
    namespaced: bool = True

    def path(self, namespace: str | None, *, name: str | None = None, subresource: str | None = None) -> str:
        parts = ["/apis" if "/" in self.version else "/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        return "/".join([*parts, self.plural, *filter(None, (name, subresource))])


PODS: Final = Resource(version="v1", plural="pods")
SERVICES: Final = Resource(version="v1", plural="services")
CONFIG_MAPS: Final = Resource(version="v1", plural="configmaps")
SECRETS: Final = Resource(version="v1", plural="secrets")
CLAIMS: Final = Resource(version="v1", plural="persistentvolumeclaims")
QUOTAS: Final = Resource(version="v1", plural="resourcequotas")
EVENTS: Final = Resource(version="v1", plural="events")
SERVICE_ACCOUNTS: Final = Resource(version="v1", plural="serviceaccounts")
NODES: Final = Resource(version="v1", plural="nodes", namespaced=False)
NAMESPACES: Final = Resource(version="v1", plural="namespaces", namespaced=False)
NETWORK_POLICIES: Final = Resource(version="networking.k8s.io/v1", plural="networkpolicies")
LEASES: Final = Resource(version="coordination.k8s.io/v1", plural="leases")
PRIORITY_CLASSES: Final = Resource(version="scheduling.k8s.io/v1", plural="priorityclasses", namespaced=False)
CLUSTER_ROLES: Final = Resource(version="rbac.authorization.k8s.io/v1", plural="clusterroles", namespaced=False)
CRDS: Final = Resource(version="apiextensions.k8s.io/v1", plural="customresourcedefinitions", namespaced=False)
JOBS: Final = Resource(version="batch.volcano.sh/v1alpha1", plural="jobs")
COMMANDS: Final = Resource(version="bus.volcano.sh/v1alpha1", plural="commands")
POD_GROUPS: Final = Resource(version="scheduling.volcano.sh/v1beta1", plural="podgroups")
QUEUES: Final = Resource(version="scheduling.volcano.sh/v1beta1", plural="queues", namespaced=False)


class Refused(Exception):
    """The API server's answer was an error."""

    def __init__(self, code: int, *, message: str, body: Object) -> None:
        self.code = code
        self.message = message
        self.body = body
        super().__init__(f"{code}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """One line of a watch."""

    type: str
    object: Object


class Api:
    """One API server, seen by the user of a kubeconfig."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    @classmethod
    @asynccontextmanager
    async def connected(cls, kubeconfig: Path) -> AsyncIterator["Api"]:
        """Yield an Api for the first user and cluster of a kubeconfig."""
        config = yaml.safe_load(await asyncio.to_thread(kubeconfig.read_text))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        headers = {}
        if "token" in user:
            headers["Authorization"] = f"Bearer {user['token']}"
        else:
            with tempfile.NamedTemporaryFile() as pem:  # Python's TLS reads client certificates from files only
                pem.write(base64.b64decode(user["client-certificate-data"]))
                pem.write(base64.b64decode(user["client-key-data"]))
                pem.flush()
                context.load_cert_chain(pem.name)
        async with aiohttp.ClientSession(
            base_url=cluster["server"],
            headers=headers,
            connector=aiohttp.TCPConnector(ssl=context, limit=200),
            timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S),
        ) as session:
            yield cls(session)

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Any:
        """Make one call and return the answer's object, or text; raises Refused."""
        data = None if body is None else io.BytesIO(json.dumps(body).encode())
        headers = {"Content-Type": content_type}
        async with self._session.request(method, path, data=data, params=params, headers=headers) as response:
            is_json = response.content_type == "application/json"
            answer = await (response.json() if is_json else response.text())
            if response.status >= 400:
                message = answer.get("message", "") if is_json else answer
                raise Refused(response.status, message=message, body=answer if is_json else {})
            return answer

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """Return an object; raises Refused (404) when it is not there."""
        found: Object = await self.call("GET", resource.path(namespace, name=name))
        return found

    async def find(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        """Return an object, None when it is not there."""
        try:
            return await self.get(resource, name, namespace)
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    async def list(
        self, resource: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> list[Object]:
        """Return the objects of a namespace, or of all when it is None."""
        params = {"labelSelector": labels, "fieldSelector": fields}
        answer = await self.call("GET", resource.path(namespace), params={k: v for k, v in params.items() if v})
        items: list[Object] = answer["items"]
        return items

    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        """Create an object; apiVersion and kind may be left to the caller's manifest."""
        found: Object = await self.call("POST", resource.path(namespace), body=body)
        return found

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Any,
        namespace: str | None = None,
        *,
        kind: str = "merge",
        subresource: str | None = None,
    ) -> Object:
        """Patch an object; `kind` is merge, strategic, json or apply."""
        found: Object = await self.call(
            "PATCH",
            resource.path(namespace, name=name, subresource=subresource),
            body=body,
            params={"fieldManager": "test", "force": "true"} if kind == "apply" else None,
            content_type=_PATCHES[kind],
        )
        return found

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        propagation: str = "Background",
        grace_s: int | None = None,
    ) -> None:
        """Delete an object; raises Refused (404) when it is not there."""
        body: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        await self.call("DELETE", resource.path(namespace, name=name), body=body)

    async def set_status(self, resource: Resource, name: str, status: Object, namespace: str | None = None) -> Object:
        """Merge into the status of an object, as a kubelet or a scheduler would."""
        return await self.patch(resource, name, {"status": status}, namespace, subresource="status")

    async def watch(
        self, resource: Resource, namespace: str | None = None, *, since: str = "", labels: str = ""
    ) -> AsyncIterator[WatchEvent]:
        """Yield changes until the caller has seen enough, or the server ends the watch."""
        params = {"watch": "true", "resourceVersion": since, "labelSelector": labels}
        wanted = {k: v for k, v in params.items() if v}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_TIMEOUT_S)
        async with self._session.get(resource.path(namespace), params=wanted, timeout=timeout) as response:
            response.raise_for_status()
            buffer = b""
            async for chunk in response.content.iter_any():
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    yield WatchEvent(type=event["type"], object=event["object"])


async def eventually(
    check: Callable[[], Awaitable[T] | T], *, timeout_s: float = 20.0, every_s: float = 0.05, what: str = ""
) -> T:
    """Return the first true value of `check`, asked again and again; false values and AssertionErrors mean not yet.

    Raises AssertionError, with the last reason, after `timeout_s` seconds.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        reason: object
        try:
            value = check()
            found: Any = await value if inspect.isawaitable(value) else value
            if found:
                return found  # type: ignore[no-any-return]
            reason = f"the last value was {found!r}"
        except AssertionError as error:
            reason = error
        if time.monotonic() > deadline:
            raise AssertionError(f"{what or 'what was awaited'} did not come within {timeout_s:.0f} s: {reason}")
        await asyncio.sleep(every_s)


async def never(check: Callable[[], Awaitable[T] | T], *, within_s: float, every_s: float = 0.05) -> None:
    """Ask again and again, and raise AssertionError as soon as `check` gives a true value."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        value = check()
        found: Any = await value if inspect.isawaitable(value) else value
        assert not found, f"this was not to be: {found!r}"
        await asyncio.sleep(every_s)
