"""The webhook configurations: who asks us what. The shape is pure; `registered` puts it into a cluster for a while.

In production the configurations are static manifests and this process only fills in whom to trust. On a developer's
machine (`--local`) they are made here, with the URL of this process, and go with it.
"""

import base64
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

from vcjob.kube.answers import read_object
from vcjob.kube.client import ApiClient
from vcjob.kube.errors import ApiError, NotFound

from .routes import Route, WebhookKind

__all__ = ("CONFIGURATION_PATHS", "configuration", "registered")

log = logging.getLogger(__name__)

CONFIGURATION_PATHS: Final = {
    WebhookKind.MUTATING: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    WebhookKind.VALIDATING: "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}
_TIMEOUT_S: Final = 10


def configuration(
    kind: WebhookKind, *, name: str, routes: Iterable[Route], url: str, authority: bytes
) -> dict[str, Any]:
    """Return the configuration of this kind that sends reviews to `url`, whose certificate `authority` (PEM) signed."""
    bundle = base64.b64encode(authority).decode("ascii")
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind.value,
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "vcjob"}},
        "webhooks": [
            {
                "name": route.name,
                "clientConfig": {"url": f"{url}{route.path}", "caBundle": bundle},
                "rules": [
                    {
                        "apiGroups": [route.group],
                        "apiVersions": [route.version],
                        "resources": [route.plural],
                        "operations": list(route.operations),
                        "scope": "*",
                    }
                ],
                "failurePolicy": "Fail",
                "matchPolicy": "Equivalent",
                "sideEffects": "None",
                "timeoutSeconds": _TIMEOUT_S,
                "admissionReviewVersions": ["v1"],
            }
            for route in routes
            if route.kind is kind
        ],
    }


@asynccontextmanager
async def registered(
    api: ApiClient, *, name: str, routes: tuple[Route, ...], url: str, authority: bytes
) -> AsyncIterator[None]:
    """Have the API server ask at `url` for the time of the block; what a killed process left is replaced.

    Raises ApiError.
    """
    await _unregister(api, name=name)
    try:
        for kind, path in CONFIGURATION_PATHS.items():
            made = configuration(kind, name=name, routes=routes, url=url, authority=authority)
            read_object(await api.create(path, made), path=f"{path}/{name}")
        log.info("webhooks registered", extra={"configuration": name, "url": url})
        yield
    finally:
        await _unregister(api, name=name)


async def _unregister(api: ApiClient, *, name: str) -> None:
    for path in CONFIGURATION_PATHS.values():
        try:
            await api.delete(f"{path}/{name}")
        except NotFound:
            pass
        except ApiError as error:
            log.error("webhook configuration stays; delete it", extra={"path": f"{path}/{name}", "error": str(error)})
