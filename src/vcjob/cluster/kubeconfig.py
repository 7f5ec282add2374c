"""Kubeconfig files: one user and one context each, everything in the file, so that it can be copied anywhere.

Writes files, atomically and readable by their owner only.
"""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from vcjob.cluster.pki import CertificateFiles, User

__all__ = ("Endpoint", "write_certificate_kubeconfig", "write_token_kubeconfig")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An API server and who vouches for it."""

    cluster: str
    url: str
    ca: Path


def write_certificate_kubeconfig(
    path: Path, *, endpoint: Endpoint, user: User, files: CertificateFiles, namespace: str = "default"
) -> None:
    """Write the file of a user that logs in by client certificate."""
    credentials = {
        "client-certificate-data": _base64(files.client(user)),
        "client-key-data": _base64(files.client_key(user)),
    }
    _write(path, endpoint=endpoint, user=user.name, credentials=credentials, namespace=namespace)


def write_token_kubeconfig(path: Path, *, endpoint: Endpoint, user: str, token: str, namespace: str) -> None:
    """Write the file of a user that logs in by bearer token."""
    _write(path, endpoint=endpoint, user=user, credentials={"token": token}, namespace=namespace)


def _write(path: Path, *, endpoint: Endpoint, user: str, credentials: dict[str, str], namespace: str) -> None:
    context = f"vcjob-{endpoint.cluster}"
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": context,
                "cluster": {"server": endpoint.url, "certificate-authority-data": _base64(endpoint.ca)},
            }
        ],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": user, "namespace": namespace}}],
        "current-context": context,
    }
    draft = path.with_name(path.name + ".new")
    draft.touch(mode=0o600)
    draft.write_text(yaml.safe_dump(config, sort_keys=False))
    draft.replace(path)  # a reader sees the old file or the new one, never half of it


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
