"""Which kinds an API server serves."""

from typing import Final

import msgspec

from vcjob.kube.answers import read_typed
from vcjob.kube.client import ApiClient
from vcjob.kube.errors import NotFound, NotServed

__all__ = ("find_served",)

_ANSWER_S: Final = 10.0


class _Kind(msgspec.Struct):
    name: str


class _Kinds(msgspec.Struct):
    resources: list[_Kind]


async def find_served(api: ApiClient, group: str, version: str) -> frozenset[str]:
    """Return the plurals of the kinds that the API server serves of a group. Raises ApiError."""
    path = f"/apis/{group}/{version}"
    try:
        answer = read_typed(await api.get(path, timeout_s=_ANSWER_S), _Kinds, path=path)
    except (NotFound, NotServed):
        return frozenset()
    return frozenset(resource.name for resource in answer.resources)
