"""env: each container learns the index of its Pod. Pure."""

from functools import lru_cache

from .base import Manifest, Plugin, PodDraft

__all__ = ("Env",)


class Env(Plugin):
    """The index of the Pod within its task, as VK_TASK_INDEX and VC_TASK_INDEX."""

    name = "env"

    def on_pod_create(self, pod: PodDraft) -> None:
        pod.add_env(*_entries(pod.index))


@lru_cache(maxsize=16384)
def _entries(index: int) -> tuple[Manifest, ...]:
    # The first name is the older one; existing Jobs read either.
    return ({"name": "VK_TASK_INDEX", "value": str(index)}, {"name": "VC_TASK_INDEX", "value": str(index)})
