"""The tree of Queues: who is above and below whom, and which shares fit into it. Pure; never raises.

A Queue that names no parent is below `root`, which need not be there: it stands for the whole cluster. A resource that
a Queue does not list is not limited by it, so only what both sides list is compared.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vcjob.api.quantity import InvalidQuantity, Quantity, parse_quantity
from vcjob.api.queue import ROOT_QUEUE

from .problem import Problem, refused
from .raw import mapping, text

__all__ = ("SHARES", "QueueTree", "check_place", "check_shares", "make_tree", "parent_of", "pods_of", "share")

Raw = Mapping[str, Any]
Share = Mapping[str, Quantity]
Limit = tuple[str, Quantity]  # the Queue that sets it, and the amount

SHARES: Final[Mapping[str, tuple[str, ...]]] = {
    "capability": ("spec", "capability"),
    "deserved": ("spec", "deserved"),
    "guarantee": ("spec", "guarantee", "resource"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTree:
    """The Queues of a cluster at one moment."""

    queues: Mapping[str, Raw]
    below: Mapping[str, tuple[str, ...]]  # names of the children, by parent

    def children(self, name: str) -> tuple[str, ...]:
        """Return the names of the Queues directly below one."""
        return self.below.get(name, ())

    def above(self, name: str) -> Iterator[str]:
        """Yield a Queue's parent, the parent of that, and so on to root; a circle is gone through once."""
        seen = {name}
        while name != ROOT_QUEUE:
            name = parent_of(self.queues.get(name, {}), name=name)
            if name in seen:
                return
            seen.add(name)
            yield name

    def height(self, name: str) -> int:
        """Return how many levels are below a Queue."""
        level, height, seen = [name], 0, {name}
        while level := [child for one in level for child in self.children(one) if child not in seen]:
            seen.update(level)
            height += 1
        return height

    def replaced(self, queue: Raw) -> "QueueTree":
        """Return the tree with a new or changed Queue in it."""
        return make_tree(({**self.queues, _name_of(queue): queue}).values())


def make_tree(queues: Iterable[Raw]) -> QueueTree:
    """Return the tree of raw Queues."""
    named = {_name_of(queue): queue for queue in queues}
    below: dict[str, list[str]] = {}
    for name, queue in sorted(named.items()):
        if name != ROOT_QUEUE:
            below.setdefault(parent_of(queue, name=name), []).append(name)
    return QueueTree(queues=named, below={parent: tuple(names) for parent, names in below.items()})


def parent_of(queue: Raw, *, name: str) -> str:
    """Return the name of the Queue above the one of that name; root should have none."""
    return text(mapping(queue, "spec"), "parent") or ("" if name == ROOT_QUEUE else ROOT_QUEUE)


def pods_of(queue: Raw) -> int:
    """Return how many Pods hold resources of a Queue, as the scheduler counted them last."""
    amount = _readable(mapping(queue, "status", "allocated")).get("pods")
    return amount.value if amount else 0


def share(queue: Raw, kind: str) -> Share:
    """Return a Queue's capability, deserved or guarantee; what is no quantity is left out."""
    return _readable(mapping(queue, *SHARES[kind]))


def check_place(queue: Raw, tree: QueueTree, *, max_depth: int) -> Iterator[Problem]:
    """Yield why a Queue may not have the parent that it names; `tree` holds it already. The first problem is told."""
    name = _name_of(queue)
    parent = parent_of(queue, name=name)
    above = tuple(tree.above(name))
    depth = len(above) + tree.height(name)
    if name == ROOT_QUEUE:
        if parent:
            yield refused("spec.parent", parent, message="the root queue has no parent")
    elif parent == name:
        yield refused("spec.parent", parent, message="a queue can not be its own parent")
    elif parent != ROOT_QUEUE and parent not in tree.queues:
        message = f"unable to find parent queue: {parent}; create it first"
        yield refused("spec.parent", parent, message=message)
    elif ROOT_QUEUE not in above:
        yield refused("spec.parent", parent, message=f"queue `{parent}` is below queue `{name}` itself")
    elif depth > max_depth:
        message = f"the tree would have {depth} levels below root; {max_depth} are allowed (--max-queue-depth)"
        yield refused("spec.parent", parent, message=message)
    elif parent != ROOT_QUEUE and tree.children(parent) == (name,) and (pods := pods_of(tree.queues[parent])):
        message = f"queue `{parent}` has no child queues yet and {pods} Pods of its own; it would take no more Jobs"
        yield refused("spec.parent", parent, message=message)


def check_shares(queue: Raw, tree: QueueTree, *, before: Raw | None) -> Iterator[Problem]:
    """Yield where a Queue's share does not fit below its parent or above its children; `tree` holds it already.

    `before` is the Queue as it was at the same place, None when it is new there. What it has more of than before is
    compared with its parent, and what it has less of with its children, so that a tree that broke a rule can be mended
    in steps.
    """
    name = _name_of(queue)
    for kind in SHARES:
        new, old = share(queue, kind), share(before or {}, kind)
        raised = frozenset(resource for resource in new if resource not in old or new[resource] > old[resource])
        lowered = frozenset(resource for resource in new if resource not in old or new[resource] < old[resource])
        if kind == "capability":
            limits = _limits_above(name, tree)
            yield from _exceeding(name, {resource: new[resource] for resource in raised}, limits)
            own = {resource: (name, new[resource]) for resource in lowered}
            yield from _check_below(name, tree, limits=limits | own if before is None else own)
        else:
            yield from _check_sum(kind, parent_of(queue, name=name), tree, only=raised)
            yield from _check_sum(kind, name, tree, only=lowered)


def _limits_above(name: str, tree: QueueTree) -> dict[str, Limit]:
    """Return the capability that the Queues above one leave to it: of each resource that of the nearest."""
    limits: dict[str, Limit] = {}
    for one in reversed(tuple(tree.above(name))):
        limits |= {r: (one, amount) for r, amount in share(tree.queues.get(one, {}), "capability").items()}
    return limits


def _check_below(name: str, tree: QueueTree, *, limits: Mapping[str, Limit]) -> Iterator[Problem]:
    """Yield the resources of which a Queue below one may use more than `limits`; the first to limit it counts."""
    waiting = [(child, limits) for child in tree.children(name)]
    seen = {name}
    while waiting:
        one, above = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        own = share(tree.queues[one], "capability")
        yield from _exceeding(one, own, above)
        left = {resource: limit for resource, limit in above.items() if resource not in own}
        waiting += [(child, left) for child in tree.children(one)]


def _exceeding(name: str, own: Share, limits: Mapping[str, Limit]) -> Iterator[Problem]:
    for resource, amount in own.items():
        owner, limit = limits.get(resource, ("", amount))
        if amount > limit:
            message = f"capability[{resource}] of queue `{name}` must be <= that of queue `{owner}` above it, {limit}"
            yield refused("spec.capability", str(amount), message=message)


def _check_sum(kind: str, parent: str, tree: QueueTree, *, only: frozenset[str]) -> Iterator[Problem]:
    """Yield the resources of which the children of a Queue have more together than the Queue itself."""
    if parent in ("", ROOT_QUEUE):  # the whole cluster, whose size is that of its nodes
        return
    children = tree.children(parent)
    for resource, limit in share(tree.queues.get(parent, {}), kind).items():
        if resource not in only:
            continue
        total = Quantity(nano=0)
        for child in children:
            total += share(tree.queues[child], kind).get(resource, Quantity(nano=0))
        if total > limit:
            message = (
                f"the sum of {kind}[{resource}] of the children of queue `{parent}` ({', '.join(children)}) must be "
                f"<= its own, {limit}"
            )
            yield refused(f"spec.{kind}", str(total), message=message)


def _readable(amounts: Mapping[str, Any]) -> dict[str, Quantity]:
    found = {}
    for resource, value in amounts.items():
        try:
            found[resource] = parse_quantity(value)
        except InvalidQuantity:
            continue
    return found


def _name_of(queue: Raw) -> str:
    return text(mapping(queue, "metadata"), "name")
