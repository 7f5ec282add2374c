"""What the view takes out of lists."""

import json
from typing import Any, cast

from vcjob.controller.view import Listener, View
from vcjob.gang.volcano import VolcanoGang
from vcjob.kube.client import ApiClient


class Lists:
    """An API server that has one Queue and no Job."""

    async def get(self, path: str, **_: Any) -> bytes:
        kind = "QueueList" if path.endswith("/queues") else "JobList"
        items = [queue("kept", 30)] if kind == "QueueList" else []
        return json.dumps({"kind": kind, "metadata": {"resourceVersion": "50"}, "items": items}).encode()


class Silence:
    def hear(self, *_: Any, **__: Any) -> None: ...


def queue(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid of {name}", "resourceVersion": str(version)}, "spec": {}}


async def test_a_queue_that_vanished_while_nobody_watched_is_forgotten():
    view = View(cast(ApiClient, Lists()), gang=VolcanoGang(), namespaces=(), listener=cast(Listener, Silence()))
    for name, version in (("gone", 40), ("made meanwhile", 60)):
        view.take_queue(name, queue(name, version))
    await view.read_jobs()
    known = [view.queue_of(name) is not None for name in ("kept", "gone", "made meanwhile")]
    assert known == [True, False, True]
