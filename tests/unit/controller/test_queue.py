"""The work queue: one entry a key, turns for namespaces, patience. Time is the loop's, and simulated."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from vcjob.controller.queue import WorkQueue

A, B, C = ("a", "1"), ("b", "1"), ("a", "2")


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer instead of waiting for it."""

    skipped = 0.0

    def time(self) -> float:
        return 1000.0 + self.skipped

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.skipped = max(self.skipped, self._scheduled[0]._when - 1000.0)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def play(story: Callable[[WorkQueue], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        await story(WorkQueue())

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(whole())


def now() -> float:
    return asyncio.get_running_loop().time() - 1000.0


def test_a_key_is_there_once_however_often_it_is_added():
    async def story(queue: WorkQueue) -> None:
        queue.add(A)
        queue.add(A)
        assert len(queue) == 1
        assert await queue.get() == A
        assert len(queue) == 0

    play(story)


def test_a_key_that_is_worked_on_waits_until_that_is_done():
    async def story(queue: WorkQueue) -> None:
        queue.add(A)
        await queue.get()
        queue.add(A)
        assert len(queue) == 0
        queue.done(A)
        assert await queue.get() == A

    play(story)


def test_namespaces_take_turns():
    async def story(queue: WorkQueue) -> None:
        for key in (A, C, B):
            queue.add(key)
        assert [await queue.get() for _ in range(3)] == [A, B, C]

    play(story)


def test_spacing_puts_a_key_off():
    async def story(queue: WorkQueue) -> None:
        queue.add(A)
        await queue.get()
        queue.done(A, spacing_s=5.0)
        queue.add(A)
        assert await queue.get() == A
        assert now() == 5.0

    play(story)


def test_the_earliest_of_several_times_counts():
    async def story(queue: WorkQueue) -> None:
        for delay in (9.0, 3.0, 6.0):
            queue.add_after(A, delay)
        assert await queue.get() == A
        assert now() == 3.0
        queue.done(A)
        queue.add_after(B, 1.0)
        assert await queue.get() == B  # nothing is left of the later times
        assert now() == 4.0

    play(story)


def test_a_time_that_passes_while_the_key_is_worked_on_is_not_lost():
    async def story(queue: WorkQueue) -> None:
        queue.add(A)
        await queue.get()
        queue.add_after(A, 1.0)
        queue.add_after(B, 2.0)
        assert await queue.get() == B
        queue.done(A)
        assert await queue.get() == A

    play(story)


def test_a_key_that_is_forgotten_does_not_come_back():
    async def story(queue: WorkQueue) -> None:
        queue.add_after(A, 1.0)
        queue.forget(A)
        queue.add_after(B, 2.0)
        assert await queue.get() == B

    play(story)


def test_what_waits_is_counted():
    async def story(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(2.0)
        assert queue.oldest_s == 2.0
        await queue.get()
        assert (queue.working, queue.stats.taken, queue.stats.waited_s) == (1, 1, 2.0)

    play(story)


def test_a_namespace_that_takes_all_the_room_leaves_some_for_others():
    async def story(queue: WorkQueue) -> None:
        for number in range(300):
            queue.add(("crowd", str(number)))
        taken = [await queue.get() for _ in range(256)]
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        assert not waiting.done()

        for number in range(9):
            queue.add(("other", str(number)))
        assert [await waiting, *[await queue.get() for _ in range(7)]] == [("other", str(n)) for n in range(8)]
        ninth = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        assert not ninth.done()
        queue.done(("other", "0"))
        assert await ninth == ("other", "8")

        last = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        assert not last.done()
        for key in taken[:8]:  # there are no more than before only when the spare ones have gone
            queue.done(key)
        await asyncio.sleep(1)
        assert not last.done()
        queue.done(taken[8])
        assert (await last)[0] == "crowd"

    play(story)
