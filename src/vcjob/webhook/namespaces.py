"""Namespaces, as the API server has them, for PodGroups that name no Queue.

Asked for one at a time and never kept: a Namespace may have got its annotation a moment ago. Where it cannot be read
the PodGroup goes to the default Queue.
"""

import logging
from typing import Any, Final

import msgspec

from vcjob.kube.client import ApiClient
from vcjob.kube.errors import ApiError

__all__ = ("Namespaces",)

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 2.0  # the API server waits 10 s for the whole answer


class _Namespace(msgspec.Struct):
    metadata: dict[str, Any]


_decode: Final = msgspec.json.Decoder(_Namespace).decode


class Namespaces:
    """The Namespaces of the cluster."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def read(self, name: str) -> dict[str, Any]:
        """Return a Namespace; an empty one when it cannot be read."""
        try:
            found = _decode(await self._api.get(f"/api/v1/namespaces/{name}", timeout_s=_TIMEOUT_S))
        except (ApiError, msgspec.DecodeError) as error:
            log.warning("namespace cannot be read", extra={"namespace": name, "error": str(error)})
            return {}
        return {"metadata": found.metadata}
