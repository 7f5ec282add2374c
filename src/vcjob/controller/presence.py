"""Whether an object is there: asked once more before what one answer says is gone is forgotten for good."""

from vcjob.kube.answers import read_answer, read_listing
from vcjob.kube.client import ApiClient
from vcjob.kube.errors import NotFound

from .decode import decode_uid
from .reports import Slot

__all__ = ("is_there", "list_uids")


async def is_there(api: ApiClient, slot: Slot, path: str, *, uid: str) -> bool:
    """Return whether the object at `path` is still that very one, by reading it. Raises ApiError."""
    try:
        async with slot:
            return read_answer(decode_uid, await api.get(path), path=path) == uid
    except NotFound:
        return False


async def list_uids(api: ApiClient, path: str) -> set[str]:
    """Return the UID of the object at `path` if a list has it, for when to read it is not believed. Raises ApiError."""
    collection, _, name = path.rpartition("/")
    answer = await api.get(collection, params={"fieldSelector": f"metadata.name={name}"})
    return {item["metadata"]["uid"] for item in read_listing(answer, path=collection)["items"]}
