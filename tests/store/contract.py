"""What every home of the metadata tree promises. Each function is one promise.

The test files of the homes run all of them: nothing above the store may notice which one it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import pytest

from ottla.store.port import (
    BadVersion,
    Check,
    Create,
    Delete,
    EphemeralParent,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    Owner,
    Set,
    Store,
    StoreError,
    owner_of,
)

Promise: TypeAlias = Callable[[Store], Awaitable[None]]
Interruption: TypeAlias = Callable[[], Awaitable[None]]
"""Suspends the session of a store and waits until it is connected again."""
PromiseOnSuspension: TypeAlias = Callable[[Store, Store, Interruption], Awaitable[None]]
"""On two sessions of one tree; the first is interrupted."""


@asynccontextmanager
async def running(store: Store) -> AsyncIterator[Store]:
    """The store, started, and closed at the end."""
    await store.start()
    try:
        yield store
    finally:
        await store.close()


async def keep(store: Store, promise: Promise) -> None:
    """Run one promise on a store that is started and closed around it."""
    async with running(store):
        await promise(store)


async def a_created_node_can_be_read(store: Store) -> None:
    assert await store.create("/a", b"one") == "/a"
    node = await store.get("/a")
    assert node is not None
    assert (node.data, node.version, node.ephemeral) == (b"one", 0, False)


async def a_missing_node_is_none(store: Store) -> None:
    assert await store.get("/nowhere") is None
    with pytest.raises(NoNode):
        await store.children("/nowhere")


async def many_nodes_are_read_in_the_order_asked_for(store: Store) -> None:
    await store.create("/a", b"1")
    await store.create("/b", b"2")
    nodes = await store.get_many(["/b", "/missing", "/a"])
    assert [node and node.data for node in nodes] == [b"2", None, b"1"]
    assert await store.get_many([]) == []


async def a_node_tells_which_write_changed_it_last(store: Store) -> None:
    await store.create("/first", b"1")
    await store.create("/second", b"1")
    await store.set("/first", b"2")
    first, second = await store.get_many(["/first", "/second"])
    assert first is not None
    assert second is not None
    assert first.created < second.created < first.modified
    assert second.modified == second.created


async def a_node_is_created_once(store: Store) -> None:
    await store.create("/a")
    with pytest.raises(NodeExists):
        await store.create("/a")


async def a_node_needs_its_parent(store: Store) -> None:
    with pytest.raises(NoNode):
        await store.create("/a/b")


async def children_are_listed_by_name(store: Store) -> None:
    await store.create("/a")
    for name in ("c", "a", "b"):
        await store.create(f"/a/{name}")
    await store.create("/a/b/deeper")
    assert await store.children("/a") == ["a", "b", "c"]
    await store.delete("/a/a")
    assert await store.children("/a") == ["b", "c"]
    assert await store.children("/a/c") == []


async def a_write_moves_the_version_by_one(store: Store) -> None:
    await store.create("/a")
    assert await store.set("/a", b"1") == 1
    assert await store.set("/a", b"2", version=1) == 2
    node = await store.get("/a")
    assert node is not None
    assert (node.data, node.version) == (b"2", 2)


async def a_write_that_saw_an_old_version_is_refused(store: Store) -> None:
    await store.create("/a", b"0")
    await store.set("/a", b"1")
    with pytest.raises(BadVersion):
        await store.set("/a", b"late", version=0)
    with pytest.raises(BadVersion):
        await store.delete("/a", version=0)
    node = await store.get("/a")
    assert node is not None
    assert node.data == b"1"


async def what_is_not_there_is_neither_set_nor_deleted(store: Store) -> None:
    with pytest.raises(NoNode):
        await store.set("/a", b"")
    with pytest.raises(NoNode):
        await store.delete("/a")


async def a_parent_is_not_deleted(store: Store) -> None:
    await store.create("/a")
    await store.create("/a/b")
    with pytest.raises(NotEmpty):
        await store.delete("/a")
    await store.delete("/a/b")
    await store.delete("/a")
    assert await store.get("/a") is None


async def an_ephemeral_has_no_children(store: Store) -> None:
    await store.create("/a", ephemeral=True)
    node = await store.get("/a")
    assert node is not None
    assert node.ephemeral
    with pytest.raises(EphemeralParent):
        await store.create("/a/b")


async def an_ephemeral_names_the_session_that_owns_it(store: Store) -> None:
    await store.multi([Create("/mine", ephemeral=True), Create("/kept")])
    mine, kept = await store.get_many(["/mine", "/kept"])
    assert mine is not None
    assert kept is not None
    assert mine.owner == store.sessions[-1]
    assert owner_of(mine, store) is Owner.THIS_SESSION
    assert (kept.owner, owner_of(kept, store)) == (0, Owner.ANOTHER)


async def starting_an_open_session_changes_nothing(store: Store) -> None:
    await store.create("/mine", ephemeral=True)
    sessions = list(store.sessions)
    await store.start()
    assert list(store.sessions) == sessions
    assert await store.get("/mine") is not None


async def sequential_names_grow_and_are_never_reused(store: Store) -> None:
    await store.create("/q")
    first = await store.create("/q/item_", sequential=True)
    await store.delete(first)
    second = await store.create("/q/item_", sequential=True)
    third = await store.create("/q/item_", sequential=True)
    numbers = [name.removeprefix("/q/item_") for name in (first, second, third)]
    assert all(len(number) == 10 for number in numbers)
    assert numbers[0] < numbers[1] < numbers[2]


async def creation_numbers_grow(store: Store) -> None:
    await store.create("/a")
    await store.set("/a", b"x")
    await store.create("/b")
    nodes = await store.get_many(["/a", "/b"])
    numbers = [node.created for node in nodes if node is not None]
    assert 0 < numbers[0] < numbers[1]
    await store.delete("/a")
    await store.create("/a")
    again = await store.get("/a")
    assert again is not None
    assert again.created > numbers[1]


async def a_multi_answers_for_each_operation(store: Store) -> None:
    await store.create("/a", b"")
    ops: list[Op] = [
        Check("/a", 0),
        Create("/a/n_", b"x", sequential=True),
        Set("/a", b"y"),
        Create("/b"),
        Delete("/b"),
    ]
    results = await store.multi(ops)
    assert results[0] is None
    assert isinstance(results[1], str)
    assert results[1].startswith("/a/n_")
    assert results[2:] == [1, "/b", None]
    assert await store.get("/b") is None


async def a_multi_happens_whole_or_not_at_all(store: Store) -> None:
    await store.create("/a", b"old")
    ops: list[Op] = [Create("/b"), Set("/a", b"new"), Create("/a/child"), Check("/a", 7)]
    with pytest.raises(BadVersion) as refusal:
        await store.multi(ops)
    assert refusal.value.at == 3
    assert await store.get("/b") is None
    assert await store.children("/a") == []
    node = await store.get("/a")
    assert node is not None
    assert (node.data, node.version) == (b"old", 0)


async def a_multi_sees_its_own_writes(store: Store) -> None:
    await store.multi([Create("/a"), Create("/a/b"), Set("/a", b"1", 0), Set("/a", b"2", 1)])
    node = await store.get("/a")
    assert node is not None
    assert (node.data, node.version) == (b"2", 2)
    await store.multi([Delete("/a/b"), Delete("/a")])
    assert await store.get("/a") is None


async def a_data_watch_fires_once(store: Store) -> None:
    heard = Heard()
    await store.create("/a", b"0")
    node = await store.watch_data("/a", heard)
    assert node is not None
    assert node.data == b"0"
    await store.set("/a", b"1")
    await heard.until(["/a"])
    await store.set("/a", b"2")
    await store.create("/fence")
    assert heard.paths == ["/a"]


async def a_data_watch_hears_of_creation_and_deletion(store: Store) -> None:
    heard = Heard()
    assert await store.watch_data("/a", heard) is None
    await store.create("/a")
    await heard.until(["/a"])
    await store.watch_data("/a", heard)
    await store.delete("/a")
    await heard.until(["/a", "/a"])


async def a_child_watch_hears_of_children_alone(store: Store) -> None:
    heard = Heard()
    await store.create("/a")
    assert await store.watch_children("/a", heard) == []
    await store.set("/a", b"not a child")
    await store.create("/a/b")
    await heard.until(["/a"])
    assert await store.watch_children("/a", heard) == ["b"]
    await store.set("/a/b", b"still there")
    await store.delete("/a/b")
    await heard.until(["/a", "/a"])


async def a_child_watch_needs_its_node(store: Store) -> None:
    with pytest.raises(NoNode):
        await store.watch_children("/nowhere", Heard())


async def a_refused_write_wakes_nobody(store: Store) -> None:
    heard = Heard()
    await store.create("/a")
    await store.watch_data("/a", heard)
    with pytest.raises(StoreError):
        await store.multi([Set("/a", b"x"), Check("/a", 9)])
    await store.create("/fence")
    assert heard.paths == []


async def what_was_written_is_read_when_the_watch_fires(store: Store) -> None:
    seen: asyncio.Queue[bytes | None] = asyncio.Queue()
    await store.create("/a", b"0")

    async with asyncio.TaskGroup() as tasks:

        async def read() -> None:
            node = await store.get("/a")
            seen.put_nowait(node and node.data)

        def react(path: str) -> None:
            tasks.create_task(read())

        await store.watch_data("/a", react)
        await store.set("/a", b"1")
        assert await seen.get() == b"1"


async def writes_at_once_all_succeed(store: Store) -> None:
    await store.create("/a")
    async with asyncio.TaskGroup() as tasks:
        for number in range(50):
            tasks.create_task(store.create(f"/a/{number:02d}", str(number).encode()))
    assert await store.children("/a") == [f"{number:02d}" for number in range(50)]


async def of_writes_that_saw_one_version_one_wins(store: Store) -> None:
    await store.create("/a")
    outcomes: list[str] = []

    async def attempt(number: int) -> None:
        try:
            await store.set("/a", str(number).encode(), version=0)
        except BadVersion:
            outcomes.append("refused")
        else:
            outcomes.append("won")

    async with asyncio.TaskGroup() as tasks:
        for number in range(10):
            tasks.create_task(attempt(number))
    assert sorted(outcomes) == ["refused"] * 9 + ["won"]


async def watches_are_lost_when_the_session_is_suspended(
    store: Store, other: Store, interrupt: Interruption
) -> None:
    data, children, again = Heard(), Heard(), Heard()
    await store.create("/a")
    await store.watch_data("/a", data)
    await store.watch_children("/a", children)
    await interrupt()
    await store.watch_data("/a", again)
    await other.create("/a/b")
    await other.set("/a", b"1")
    await again.until(["/a"])
    assert (data.paths, children.paths) == ([], [])


async def a_suspended_session_keeps_its_ephemerals_and_its_id(
    store: Store, other: Store, interrupt: Interruption
) -> None:
    await store.create("/mine", ephemeral=True)
    sessions = list(store.sessions)
    await interrupt()
    assert list(store.sessions) == sessions
    seen = await other.get("/mine")
    assert seen is not None
    assert owner_of(seen, store) is Owner.THIS_SESSION
    assert owner_of(seen, other) is Owner.ANOTHER


class Heard:
    """A watch that remembers what it heard."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._more = asyncio.Event()

    def __call__(self, path: str) -> None:
        self.paths.append(path)
        self._more.set()

    async def until(self, paths: list[str]) -> None:
        async with asyncio.timeout(10):
            while self.paths != paths:
                await self._more.wait()
                self._more.clear()


CONTRACT: Final[tuple[Promise, ...]] = (
    a_created_node_can_be_read,
    a_missing_node_is_none,
    many_nodes_are_read_in_the_order_asked_for,
    a_node_is_created_once,
    a_node_tells_which_write_changed_it_last,
    a_node_needs_its_parent,
    children_are_listed_by_name,
    a_write_moves_the_version_by_one,
    a_write_that_saw_an_old_version_is_refused,
    what_is_not_there_is_neither_set_nor_deleted,
    a_parent_is_not_deleted,
    an_ephemeral_has_no_children,
    an_ephemeral_names_the_session_that_owns_it,
    starting_an_open_session_changes_nothing,
    sequential_names_grow_and_are_never_reused,
    creation_numbers_grow,
    a_multi_answers_for_each_operation,
    a_multi_happens_whole_or_not_at_all,
    a_multi_sees_its_own_writes,
    a_data_watch_fires_once,
    a_data_watch_hears_of_creation_and_deletion,
    a_child_watch_hears_of_children_alone,
    a_child_watch_needs_its_node,
    a_refused_write_wakes_nobody,
    what_was_written_is_read_when_the_watch_fires,
    writes_at_once_all_succeed,
    of_writes_that_saw_one_version_one_wins,
)


CONTRACT_ON_SUSPENSION: Final[tuple[PromiseOnSuspension, ...]] = (
    watches_are_lost_when_the_session_is_suspended,
    a_suspended_session_keeps_its_ephemerals_and_its_id,
)


def title(promise: Promise | PromiseOnSuspension) -> str:
    return getattr(promise, "__name__", repr(promise))
