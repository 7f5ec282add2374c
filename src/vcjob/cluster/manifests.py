"""What `up` puts into a new cluster: the project's CRDs and rights, and the operator's identity.

Reads deploy/crds and deploy/rbac of the checkout or of the installed package; whichever is not there is left out.
"""

from collections.abc import Iterator
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final

import yaml

from vcjob.cluster.api import ApiServer, Manifest, wait_until
from vcjob.cluster.errors import ClusterError
from vcjob.cluster.paths import project_file

__all__ = ("OPERATOR_NAMESPACE", "OPERATOR_USER", "Crds", "apply_project_manifests", "request_operator_token")

OPERATOR_NAMESPACE: Final = "vcjob-system"
OPERATOR_ACCOUNT: Final = "vcjob-operator"
OPERATOR_USER: Final = f"system:serviceaccount:{OPERATOR_NAMESPACE}:{OPERATOR_ACCOUNT}"  # as audit logs name it

_ESTABLISHED_TIMEOUT_S: Final = 20.0
_TOKEN_LIFE_S: Final = 365 * 24 * 3600
_FOLDERS: Final = ("deploy/crds", "deploy/rbac")
# An object may need another of an earlier kind; kinds that are not listed come last, in the order of the files.
_FIRST_KINDS: Final = ("Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role")
# The C parser reads the CRDs, with the Pod template's schema in them, 15 times faster.
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Crds(Enum):
    """Whether the project's CRDs are installed; a test of their absence leaves them out."""

    INSTALL = "install"
    LEAVE_OUT = "leave out"


def apply_project_manifests(api: ApiServer, *, crds: Crds) -> tuple[str, ...]:
    """Apply the operator's identity, rights and CRDs, wait until the CRDs are served, and return the CRDs' names.

    Raises ClusterError.
    """
    manifests = sorted(_manifests(), key=_rank)
    if crds is Crds.LEAVE_OUT:
        manifests = [manifest for manifest in manifests if manifest["kind"] != "CustomResourceDefinition"]
    for manifest in manifests:
        api.apply(manifest)
    definitions = [manifest for manifest in manifests if manifest["kind"] == "CustomResourceDefinition"]
    for definition in definitions:
        check = partial(_is_established, api, path=api.path_of(definition))
        if not wait_until(check, timeout_s=_ESTABLISHED_TIMEOUT_S):
            raise ClusterError(f"the API server does not serve the CRD {definition['metadata']['name']}")
    return tuple(definition["metadata"]["name"] for definition in definitions)


def request_operator_token(api: ApiServer) -> str:
    """Return a bearer token of the operator's ServiceAccount, good for a year."""
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/serviceaccounts/{OPERATOR_ACCOUNT}/token"
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_LIFE_S},
    }
    return str(api.call("POST", path, body=request)["status"]["token"])


def _manifests() -> Iterator[Manifest]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR_NAMESPACE}}
    account = {"name": OPERATOR_ACCOUNT, "namespace": OPERATOR_NAMESPACE}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}
    for folder in _FOLDERS:
        if found := project_file(folder):
            for path in sorted(found.glob("*.yaml")):
                yield from _read(path)


def _read(path: Path) -> Iterator[Manifest]:
    try:
        documents = list(yaml.load_all(path.read_text(), Loader=_Loader))
    except yaml.YAMLError as error:
        raise ClusterError(f"{path} is not YAML: {error}") from error
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict) or not {"apiVersion", "kind", "metadata"} <= document.keys():
            raise ClusterError(f"{path} holds something that is not a Kubernetes object")
        yield document


def _rank(manifest: Manifest) -> int:
    kind = manifest["kind"]
    return _FIRST_KINDS.index(kind) if kind in _FIRST_KINDS else len(_FIRST_KINDS)


def _is_established(api: ApiServer, *, path: str) -> bool:
    # The list is null for the moment between the CRD's creation and the first look of its controllers.
    conditions = api.call("GET", path).get("status", {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
