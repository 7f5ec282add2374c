"""Namespaces, as the API server has them, for PodGroups that name no Queue.

Asked for one at a time and never kept: a Namespace may have got its annotation a moment ago. Where it cannot be read
the PodGroup goes to the default Queue.
"""

import logging
from typing import Any, Final

from vcjob.kube.answers import read_object
from vcjob.kube.client import ApiClient
from vcjob.kube.errors import ApiError

__all__ = ("Namespaces",)

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 2.0  # the API server waits 10 s for the whole answer


class Namespaces:
    """The Namespaces of the cluster."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def read(self, name: str) -> dict[str, Any]:
        """Return a Namespace; an empty one when it cannot be read."""
        path = f"/api/v1/namespaces/{name}"
        try:
            return read_object(await self._api.get(path, timeout_s=_TIMEOUT_S), path=path)
        except ApiError as error:
            log.warning("namespace cannot be read", extra={"namespace": name, "error": str(error)})
            return {}
