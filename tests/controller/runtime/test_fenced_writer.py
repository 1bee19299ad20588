"""Fenced writes, in pieces."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ottla.controller.runtime.fenced_writer import (
    ControllerFenced,
    FencedWriter,
)
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.port import (
    BATCH_BYTES,
    BATCH_OPS,
    BadVersion,
    Create,
    Delete,
    NodeExists,
    Op,
    Result,
    Set,
)


class Counting(MemoryStore):
    """Remembers how many operations each write had."""

    def __init__(self, ensemble: Ensemble) -> None:
        super().__init__(ensemble)
        self.sizes: list[int] = []

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        self.sizes.append(len(ops))
        return await super().multi(ops)


async def opened() -> tuple[Counting, FencedWriter]:
    store = Counting(Ensemble())
    await store.start()
    await store.multi(
        [Create(paths.CONTROLLER_EPOCH, b"1"), Create("/config"), Create(paths.CONFIG_TOPICS)]
    )
    store.sizes.clear()
    return store, FencedWriter(store)


@pytest.mark.spec("CTL-03", "CTL-24")
async def test_nothing_is_written_once_another_controller_was_elected() -> None:
    store, writer = await opened()
    await writer.write([Create("/a")], 0)
    await store.set(paths.CONTROLLER_EPOCH, b"2")
    with pytest.raises(ControllerFenced):
        await writer.write([Create("/b")], 0)
    assert await store.get("/b") is None
    await store.delete(paths.CONTROLLER_EPOCH)
    with pytest.raises(ControllerFenced):
        await writer.write([Create("/b")], 1)


async def test_large_steps_are_written_in_pieces_and_small_ones_at_once() -> None:
    store, writer = await opened()
    await writer.write([], 0)
    assert store.sizes == []
    await writer.write([Create(f"/n{number}") for number in range(BATCH_OPS + 1)], 0)
    assert store.sizes == [BATCH_OPS + 1, 2]


async def test_what_is_too_large_for_one_request_to_zookeeper_is_written_in_several() -> None:
    store, writer = await opened()
    half = bytes(BATCH_BYTES // 2)
    await writer.write([Create("/a", half), Create("/b", half), Create("/c")], 0)
    assert store.sizes == [2, 3]
    await writer.write([Set("/a", bytes(2 * BATCH_BYTES))], 0)  # alone: it may yet be taken
    assert store.sizes == [2, 3, 2]


async def test_what_is_gone_or_already_there_is_no_obstacle() -> None:
    store, writer = await opened()
    await store.create("/there")
    await store.create(paths.topic_config("t"), b"old")
    await writer.write(
        [Delete("/gone"), Create("/there"), Create(paths.topic_config("t"), b"new")], 0
    )
    node = await store.get(paths.topic_config("t"))
    assert node is not None and node.data == b"new"


@pytest.mark.parametrize(
    ("op", "conflict"),
    [(Set("/there", b"x", 7), BadVersion), (Create("/there", b"x"), NodeExists)],
)
async def test_anything_else_unexpected_is_a_conflict_and_nothing_is_written(
    op: Op, conflict: type[Exception]
) -> None:
    store, writer = await opened()
    await store.create("/there", b"y")
    with pytest.raises(conflict):
        await writer.write([Create("/a"), op], 0)
    assert await store.get("/a") is None
