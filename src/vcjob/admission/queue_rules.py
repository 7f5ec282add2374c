"""May this Queue be made, changed so, removed? And what a new one says where it is silent. Pure; never raises.

A change is judged by what it changes: a Queue that broke a rule before anybody looked can still be labelled, closed,
given another weight, and mended in steps. The tree is looked up by the caller; without it (None) only the Queue itself
is judged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from vcjob.api.base import InvalidObject, parse
from vcjob.api.names import DEFAULT_QUEUE
from vcjob.api.quantity import InvalidQuantity, Quantity, parse_quantity
from vcjob.api.queue import ROOT_QUEUE, Queue, QueueState

from .hierarchy import check_hierarchy, hierarchy_of, rooted_hierarchy
from .problem import Problem, refused
from .queue_tree import SHARES, QueueTree, check_place, check_shares, parent_of, pods_of, share
from .raw import integer, mapping, spec_patch, text

__all__ = ("QueuePolicy", "queue_patch", "validate_queue", "validate_queue_removal")

Raw = dict[str, Any]

DEFAULT_WEIGHT: Final = 1
STATES: Final = ("", QueueState.OPEN, QueueState.CLOSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePolicy:
    """What an administrator may decide about Queues."""

    max_depth: int = 5  # levels below root
    protects_root: bool = True  # the share of root stays as it is
    keeps_used: bool = False  # a Queue whose Pods hold resources may not be removed


def queue_patch(raw: Raw) -> tuple[Raw, ...]:
    """Return the defaults of a new Queue as operations of a JSON patch."""
    operations = [
        {"op": "replace", "path": f"/metadata/annotations/{key.replace('/', '~1')}", "value": value}
        for key, value in rooted_hierarchy(raw).items()
    ]
    spec = mapping(raw, "spec")
    filled: Raw = {}
    if spec.get("reclaimable") is None:
        filled["reclaimable"] = True
    if spec.get("weight") is None or integer(spec, "weight") == 0:
        filled["weight"] = DEFAULT_WEIGHT
    return (*operations, *spec_patch(raw, filled))


def validate_queue(new: Raw, *, old: Raw | None, tree: QueueTree | None, policy: QueuePolicy) -> tuple[Problem, ...]:
    """Return why a Queue may not be made (`old` is None), or changed from `old` to `new`."""
    if old is not None and _judged(old) == _judged(new):
        return ()
    try:
        parse(Queue, new)
    except InvalidObject as error:
        return (refused(error.field, None, message=error.problem),)
    if unreadable := tuple(_check_amounts(new)):
        return unreadable
    return tuple(_problems(new, old or {}, tree=tree, policy=policy))


def validate_queue_removal(old: Raw, *, tree: QueueTree | None, policy: QueuePolicy) -> tuple[Problem, ...]:
    """Return why a Queue may not be removed."""
    name = text(mapping(old, "metadata"), "name")
    children = tree.children(name) if tree else ()
    problems = []
    if name in (DEFAULT_QUEUE, ROOT_QUEUE):
        problems.append(f"`{name}` queue can not be deleted")
    elif children:
        problems.append(f"queue `{name}` has {len(children)} child queues: {', '.join(children)}; delete them first")
    elif policy.keeps_used and (pods := pods_of(old)):
        problems.append(f"{pods} Pods still hold resources of queue `{name}`; close it and let them end first")
    return tuple(refused("metadata.name", name, message=message) for message in problems)


def _judged(queue: Raw) -> tuple[object, ...]:
    """Return the part of a Queue that there are rules for."""
    return mapping(queue, "spec"), hierarchy_of(queue), text(mapping(queue, "status"), "state")


def _problems(new: Raw, old: Raw, *, tree: QueueTree | None, policy: QueuePolicy) -> Iterator[Problem]:
    name = text(mapping(new, "metadata"), "name")
    is_new = not old
    resized = is_new or any(share(old, kind) != share(new, kind) for kind in SHARES)
    moved = is_new or parent_of(old, name=name) != parent_of(new, name=name)
    if resized:
        yield from _check_own_share(new)
    # A Queue that is closing may be changed; only a state that somebody writes here must be one of two.
    state = text(mapping(new, "status"), "state")
    if state not in STATES and state != text(mapping(old, "status"), "state"):
        yield refused("status.state", state, message="queue state must be in [Open Closed]")
    if hierarchy_of(old) != hierarchy_of(new):
        others = [queue for other, queue in (tree.queues if tree else {}).items() if other != name]
        yield from check_hierarchy(new, others=others)
    if name == ROOT_QUEUE and resized and not is_new and policy.protects_root:
        message = "capability, deserved and guarantee of the root queue may not be changed: it is the whole cluster"
        yield refused("spec", None, message=message)
        return
    if tree is None or not (resized or moved):
        return
    changed = tree.replaced(new)
    misplaced = tuple(check_place(new, changed, max_depth=policy.max_depth)) if moved else ()
    yield from misplaced or check_shares(new, changed, before=None if moved else old)


def _check_amounts(queue: Raw) -> Iterator[Problem]:
    for kind, path in SHARES.items():
        for resource, value in mapping(queue, *path).items():
            field = f"{'.'.join(SHARES[kind])}[{resource}]"
            try:
                amount = parse_quantity(value)
            except InvalidQuantity as error:
                yield refused(field, None, message=str(error))
                continue
            if amount.nano < 0:
                yield refused(field, str(value), message="must be greater than or equal to 0")


def _check_own_share(queue: Raw) -> Iterator[Problem]:
    capability, deserved, guarantee = (share(queue, kind) for kind in ("capability", "deserved", "guarantee"))
    for resource, least in guarantee.items():
        amount = deserved.get(resource, Quantity(nano=0))
        if amount < least:
            message = f"deserved[{resource}] must be >= guarantee[{resource}], which is {least}"
            yield refused("spec.deserved", str(amount), message=message)
    for resource, amount in deserved.items():
        if resource in capability and amount > capability[resource]:
            message = f"deserved[{resource}] must be <= capability[{resource}], which is {capability[resource]}"
            yield refused("spec.deserved", str(amount), message=message)
