"""What the view takes out of lists."""

import json
from typing import Any, cast

from vcjob.controller.view import Listener, View
from vcjob.gang.volcano import VolcanoGang
from vcjob.kube.client import ApiClient

KINDS = {"queues": "QueueList", "priorityclasses": "PriorityClassList", "jobs": "JobList"}


class Lists:
    """An API server that has one Queue, one PriorityClass and no Job."""

    async def get(self, path: str, **_: Any) -> bytes:
        plural = path.rpartition("/")[2]
        items = [named("kept", 30, value=7)] if plural != "jobs" else []
        listing = {"kind": KINDS[plural], "metadata": {"resourceVersion": "50"}, "items": items}
        return json.dumps(listing).encode()


class Listening:
    def hear(self, *_: Any, **__: Any) -> None: ...


def named(name: str, version: int, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid of {name}", "resourceVersion": str(version)}, **fields}


def make_view() -> View:
    return View(cast(ApiClient, Lists()), gang=VolcanoGang(), namespaces=(), listener=cast(Listener, Listening()))


async def test_a_queue_that_vanished_while_nobody_watched_is_forgotten():
    view = make_view()
    for name, version in (("gone", 40), ("made meanwhile", 60)):
        view.queues.take("ADDED", named(name, version))
    await view.read_jobs()
    known = [view.queues.get(name) is not None for name in ("kept", "gone", "made meanwhile")]
    assert known == [True, False, True]


async def test_a_priority_class_that_vanished_while_nobody_watched_is_forgotten():
    view = make_view()
    view.priority_classes.take("ADDED", named("gone", 40, value=5))
    await view.read_jobs()
    assert view.priorities == {"kept": 7}


def test_priorities_follow_their_classes():
    view = make_view()
    view.priority_classes.take("ADDED", named("a", 40, value=5))
    view.priority_classes.take("ADDED", named("b", 41, value="nonsense"))
    assert view.priorities == {"a": 5, "b": 0}
    view.priority_classes.take("MODIFIED", named("a", 42, value=6))
    view.priority_classes.take("DELETED", named("b", 43))
    assert view.priorities == {"a": 6}
