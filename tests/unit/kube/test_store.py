"""The store: what replaces what. Tables and a law; where the objects come from is left out."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kube.items import Item, item

from vcjob.kube.store import Key, Store


class Listener:
    def __init__(self) -> None:
        self.told: list[tuple[str, int | None, int | None]] = []

    def __call__(self, key: Key, old: Item | None, new: Item | None) -> None:
        self.told.append((key[1], old.version if old else None, new.version if new else None))


def made(*items: Item) -> tuple[Store[Item], Listener]:
    listener = Listener()
    store: Store[Item] = Store(listener, now=lambda: 0.0)
    for each in items:
        store.put(each)
    listener.told.clear()
    return store, listener


@pytest.mark.parametrize(
    ("act", "told"),
    [
        pytest.param(lambda s: s.put(item("b", 6)), [("b", None, 6)], id="a new object is added"),
        pytest.param(lambda s: s.put(item("a", 6)), [("a", 5, 6)], id="a newer version replaces"),
        pytest.param(lambda s: s.put(item("a", 5)), [], id="the echo of our own write is nothing new"),
        pytest.param(lambda s: s.put(item("a", 4)), [], id="an older version is ignored"),
        pytest.param(lambda s: s.deleted(item("a", 6)), [("a", 5, None)], id="a deletion removes"),
        pytest.param(
            lambda s: s.deleted(item("a", 5)), [("a", 5, None)], id="leaving the selector by our own write removes"
        ),
        pytest.param(
            lambda s: s.deleted(item("a", 4, uid="old")), [], id="a belated deletion of a namesake is ignored"
        ),
        pytest.param(lambda s: s.deleted(item("b", 9)), [], id="a deletion of the unknown is ignored"),
        pytest.param(lambda s: s.remove(("default", "a"), uid="u"), [("a", 5, None)], id="our own removal removes"),
        pytest.param(lambda s: s.remove(("default", "a"), uid="other"), [], id="a removal of a namesake does not"),
    ],
)
def test_one_step(act: Callable[[Store[Item]], bool], told: list[tuple[str, int | None, int | None]]) -> None:
    store, listener = made(item("a", 5))
    assert (act(store), listener.told) == (bool(told), told)


def test_a_belated_event_does_not_bring_back_what_we_removed() -> None:
    store, _ = made(item("a", 5))
    store.remove(("default", "a"), uid="u")
    store.put(item("a", 7))
    assert len(store) == 0


def test_a_new_object_of_the_same_name_comes_in_after_a_removal() -> None:
    store, _ = made(item("a", 5))
    store.remove(("default", "a"), uid="u")
    store.put(item("a", 9, uid="second"))
    store.put(item("a", 7))  # the first again, late
    store.deleted(item("a", 8))
    assert [each.uid for each in store] == ["second"]


def test_what_was_gone_before_the_removed_does_not_come_back_either() -> None:
    store, _ = made(item("a", 8, uid="second"))
    store.remove(("default", "a"), uid="second")
    store.put(item("a", 3, uid="first"))  # a watch that is far behind
    assert len(store) == 0


def test_what_a_list_does_not_hold_is_gone_unless_it_is_newer() -> None:
    store, listener = made(item("listed", 5), item("vanished", 6), item("just-written", 11))
    store.forget_absent([("default", "listed")], version=10, namespace=None)
    assert listener.told == [("vanished", 6, None)]


def test_the_list_of_one_namespace_says_nothing_of_another() -> None:
    store, _ = made(item("a", 5, namespace="one"), item("a", 6, namespace="two"))
    store.forget_absent([], version=10, namespace="one")
    assert list(store.items) == [("two", "a")]


def test_a_fault_of_the_listener_harms_nobody_else() -> None:
    def listener(key: Key, old: Item | None, new: Item | None) -> None:
        raise RuntimeError("listener")

    store: Store[Item] = Store(listener, now=lambda: 0.0)
    assert store.put(item("a", 1))


def test_tombstones_do_not_pile_up() -> None:
    now = 0.0
    store: Store[Item] = Store(lambda *_: None, now=lambda: now)
    store.remove(("default", "a"), uid="u")
    now = 1000.0
    store.deleted(item("b", 2))
    assert store.put(item("a", 1))


def test_the_late_answer_to_our_own_write_does_not_bring_back_what_the_watch_saw_go() -> None:
    store, _ = made(item("a", 5))
    store.deleted(item("a", 7))
    store.put(item("a", 6))  # the answer to our DELETE, which came after the watch event
    assert len(store) == 0


def test_an_object_that_leaves_the_selector_and_comes_back_is_seen_again() -> None:
    store, _ = made(item("a", 5))
    store.deleted(item("a", 6))  # how a watch tells that a label was taken away
    store.put(item("a", 7))
    assert len(store) == 1


class _Life:
    """The true history of one name: each version is (uid, alive)."""

    def __init__(self, steps: list[bool]) -> None:
        self.history: list[tuple[int, str, bool]] = []
        alive, life = False, 0
        for version, dies in enumerate(steps, start=1):
            if not alive:
                life += 1
            alive = not (alive and dies)
            self.history.append((version, f"life-{life}", alive))


@settings(max_examples=300)
@given(st.lists(st.booleans(), min_size=1, max_size=12), st.data())
def test_knowledge_only_grows(steps: list[bool], data: st.DataObject) -> None:
    """A watch tells the history in order; our own writes tell parts of it early. The end is always the truth.

    And on the way the store never goes back behind what one of our own writes has shown.
    """
    life = _Life(steps)
    store: Store[Item] = Store(lambda *_: None, now=lambda: 0.0)
    newest = 0
    for version, uid, alive in life.history:
        ahead = data.draw(st.integers(version, len(life.history)))
        own_version, own_uid, own_alive = life.history[ahead - 1]
        if data.draw(st.booleans()):  # a write of ours has shown the state at `ahead` already
            if own_alive and store.put(item("a", own_version, uid=own_uid)):
                newest = own_version
            elif not own_alive:
                store.remove(("default", "a"), uid=own_uid)
        if alive:
            store.put(item("a", version, uid=uid))
        else:
            store.deleted(item("a", version, uid=uid))
        known = store.get(("default", "a"))
        if known is not None:
            assert known.version >= max(newest, version)
    last_version, last_uid, last_alive = life.history[-1]
    known = store.get(("default", "a"))
    assert (known is not None) == last_alive
    if known is not None:
        assert (known.version, known.uid) == (last_version, last_uid)
