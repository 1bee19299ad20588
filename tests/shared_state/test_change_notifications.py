"""Nodes whose changes are noted beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ottla.delay.slices import SLICE
from ottla.shared_state.change_notifications import (
    NumberedNotifications,
    delete_notifications,
    write_with_notification,
)
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.port import Create, Node, NoNode, Op, Set
from tests.fakes.control_plane import until

NOTE = Create("/notes/n_", b"changed", sequential=True)


async def opened(*paths: str) -> MemoryStore:
    store = MemoryStore(Ensemble())
    await store.start()
    for path in paths:
        await store.create(path)
    return store


def one_more(node: Node | None) -> Op:
    if node is None:
        return Create("/count", b"1")
    return Set("/count", b"%d" % (int(node.data) + 1), node.version)


async def test_writers_at_the_same_time_lose_nothing_and_each_change_is_noted() -> None:
    store = await opened("/notes")
    await asyncio.gather(
        *(write_with_notification(store, "/count", one_more, NOTE) for _ in range(10))
    )
    node = await store.get("/count")
    assert node is not None
    assert node.data == b"10"
    assert len(await store.children("/notes")) == 10


async def test_what_changes_nothing_is_not_noted() -> None:
    store = await opened("/notes")
    await write_with_notification(store, "/count", lambda _: None, NOTE)
    assert await store.children("/notes") == []


async def test_a_note_without_a_place_is_said_and_nothing_is_written() -> None:
    store = await opened()
    with pytest.raises(NoNode):
        await write_with_notification(store, "/count", one_more, NOTE)
    assert await store.get("/count") is None


async def test_the_oldest_notes_go_and_one_that_is_gone_is_no_matter() -> None:
    store = await opened("/notes")
    for _ in range(5):
        await write_with_notification(store, "/count", one_more, NOTE)
    notes = sorted(await store.children("/notes"))
    await store.delete(f"/notes/{notes[0]}")
    await delete_notifications(store, "/notes", notes, 2)
    assert sorted(await store.children("/notes")) == notes[-2:]


class Forgetful(MemoryStore):
    """Another broker deletes a note between this one's look at their names and at what they say."""

    gone = ""

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        nodes = await super().get_many(paths)
        return [
            None if path == self.gone else node for path, node in zip(paths, nodes, strict=True)
        ]


@pytest.mark.parametrize("is_gone", [False, True])
async def test_a_note_that_is_gone_before_it_was_read_has_everything_read_again(
    is_gone: bool,
) -> None:
    store = Forgetful(Ensemble())
    await store.start()
    await store.create("/notes")
    notifications = NumberedNotifications(store, "/notes", "n_", retained=1_000)
    await notifications.start()
    for _ in range(2 * SLICE):
        await store.multi([NOTE])
    names = sorted(await store.children("/notes"))
    store.gone = f"/notes/{names[-1]}" if is_gone else ""
    read: list[int | None] = []

    async def read_all() -> None:
        read.append(None)

    async def read_changed(nodes: Sequence[Node]) -> None:
        read.append(len(nodes))

    running = asyncio.create_task(notifications.run("counts", read_all, read_changed))
    await until(lambda: bool(read))
    assert read == [None if is_gone else 2 * SLICE]
    running.cancel()
