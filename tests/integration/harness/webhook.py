"""The webhook as a real process, and the identity that deploy/rbac gives it."""

import asyncio
import base64
import io
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from tests.integration.harness.api import Api
from tests.integration.harness.operator import VCJOB, OperatorProcess, free_port

__all__ = ("WebhookProcess", "certificate_of", "webhook_configuration", "write_webhook_kubeconfig")


class WebhookProcess(OperatorProcess):
    """One `vcjob webhook` on a loopback port."""

    def __init__(self, *, kubeconfig: Path, log: Path, flags: Sequence[str]) -> None:
        super().__init__(kubeconfig=kubeconfig, log=log, env={})
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self._command = (
            VCJOB,
            "webhook",
            f"--kubeconfig={kubeconfig}",
            f"--webhook-bind-address=127.0.0.1:{self.port}",
            f"--health-bind-address={self.health_url.removeprefix('http://')}",
            f"--metrics-bind-address={self.metrics_url.removeprefix('http://')}",
            "--log-level=debug",
            *flags,
        )

    async def post(self, path: str, body: bytes) -> tuple[int, str]:
        """Send a body as somebody who trusts whatever certificate there is."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
            session.post(self.url + path, data=io.BytesIO(body)) as response,
        ):
            return response.status, await response.text()


def webhook_configuration(kind: str, *, name: str, namespace: str, path: str, webhook: str, url: str) -> dict[str, Any]:
    """A static configuration as an administrator writes it, for one namespace, without anybody to trust."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": webhook,
                "clientConfig": {"url": url + path},
                "rules": [
                    {
                        "apiGroups": ["batch.volcano.sh"],
                        "apiVersions": ["v1alpha1"],
                        "resources": ["jobs"],
                        "operations": ["CREATE", "UPDATE"] if path.endswith("validate") else ["CREATE"],
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": 10,
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


async def write_webhook_kubeconfig(api: Api, path: Path, *, like: Path) -> Path:
    """Write a kubeconfig of the ServiceAccount of deploy/rbac/webhook.yaml; `like` is one for the same server."""
    answer = await api.call(
        "POST",
        "/api/v1/namespaces/vcjob-system/serviceaccounts/vcjob-webhook/token",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}},
    )
    config = yaml.safe_load(await asyncio.to_thread(like.read_text))
    config["users"][0]["user"] = {"token": answer["status"]["token"]}
    await asyncio.to_thread(path.write_text, yaml.safe_dump(config))
    return path


async def certificate_of(url: str, *, bundle: str) -> bytes:
    """Connect anew, trusting a caBundle only, and return the certificate shown; raises ssl.SSLError."""
    context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
    host, _, port = url.removeprefix("https://").partition(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    try:
        shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return shown
    finally:
        writer.close()
