"""The embedded store: the contract, durability, and a disk that fails."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event

import pytest

from ottla.store.embedded import EmbeddedStore
from ottla.store.port import NoNode, Op, Session, SessionExpired, Set, StoreUnavailable
from ottla.store.sqlite_database import SqliteDatabase
from ottla.store.tree import Entry, Tree
from tests.store.contract import CONTRACT, Heard, Promise, keep, running, title


@pytest.mark.parametrize("promise", CONTRACT, ids=title)
@pytest.mark.real_loop
async def test_the_embedded_store_keeps_the_contract(promise: Promise, tmp_path: Path) -> None:
    await keep(store_in(tmp_path), promise)


@pytest.mark.real_loop
async def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    async with running(store_in(tmp_path)) as store:
        await store.create("/a", b"1")
        await store.create("/a/b", b"2")
        await store.set("/a", b"3")
        await store.create("/gone")
        await store.delete("/gone")
    async with running(store_in(tmp_path)) as store:
        nodes = await store.get_many(["/a", "/a/b", "/gone"])
        assert [node and (node.data, node.version) for node in nodes] == [
            (b"3", 1),
            (b"2", 0),
            None,
        ]
        assert await store.children("/a") == ["b"]


@pytest.mark.real_loop
async def test_the_store_is_in_the_data_directory_under_its_documented_name(
    tmp_path: Path,
) -> None:
    async with running(EmbeddedStore.at(tmp_path)) as store:
        await store.create("/a")
    assert files_of(tmp_path) == ["ottla-store.sqlite"]


@pytest.mark.real_loop
async def test_ephemerals_are_gone_after_a_restart(tmp_path: Path) -> None:
    async with running(store_in(tmp_path)) as store:
        await store.create("/ids")
        await store.create("/ids/0", ephemeral=True)
    async with running(store_in(tmp_path)) as store:
        assert await store.children("/ids") == []


@pytest.mark.spec("CTL-04")
@pytest.mark.real_loop
async def test_a_broker_that_registers_again_gets_a_larger_epoch(tmp_path: Path) -> None:
    epochs: list[int] = []
    for _ in range(3):
        async with running(store_in(tmp_path)) as store:
            await store.create("/0", ephemeral=True)
            node = await store.get("/0")
            assert node is not None
            epochs.append(node.created)
    assert epochs == sorted(set(epochs))


@pytest.mark.real_loop
async def test_sequential_names_go_on_after_a_restart(tmp_path: Path) -> None:
    names: list[str] = []
    for _ in range(2):
        async with running(store_in(tmp_path)) as store:
            if await store.get("/q") is None:
                await store.create("/q")
            names.append(await store.create("/q/n_", sequential=True, ephemeral=True))
    assert names == ["/q/n_0000000000", "/q/n_0000000001"]


@pytest.mark.real_loop
async def test_every_acknowledged_write_survives_a_kill(tmp_path: Path) -> None:
    dice = random.Random(7)
    acknowledged = -1
    for _ in range(3):
        acknowledged = max(acknowledged, _write_until_killed(tmp_path, dice.randint(20, 120)))
        async with running(store_in(tmp_path)) as store:
            counter = await store.get("/counter")
            assert counter is not None
            assert int(counter.data) >= acknowledged
            for number in range(acknowledged + 1):
                assert await store.get(f"/items/{number}") is not None


@pytest.mark.real_loop
async def test_writes_that_arrive_during_a_commit_share_the_next_one() -> None:
    disk = SlowDisk()

    async with running(EmbeddedStore(disk)) as store:
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(store.create("/first"))
            await disk.begun()
            for number in range(20):
                tasks.create_task(store.create(f"/{number}"))
            disk.go.set()
        assert first.result() == "/first"
        assert [len(commit) for commit in disk.commits] == [2, 21]  # each with its parent


@pytest.mark.real_loop
async def test_nobody_reads_what_is_not_yet_on_the_disk() -> None:
    disk = SlowDisk()

    async with running(EmbeddedStore(disk)) as store:
        heard = Heard()
        await store.watch_data("/a", heard)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(store.create("/a"))
            await disk.begun()
            assert await store.get("/a") is None
            assert heard.paths == []
            disk.go.set()
        assert await store.get("/a") is not None
        await heard.until(["/a"])


@pytest.mark.real_loop
async def test_a_write_whose_caller_gave_up_still_happens() -> None:
    disk = SlowDisk()

    async with running(EmbeddedStore(disk)) as store:
        async with asyncio.TaskGroup() as tasks:
            given_up = tasks.create_task(store.create("/a"))
            await disk.begun()
            given_up.cancel()
            disk.go.set()
        await store.create("/b")
        assert await store.get("/a") is not None


@pytest.mark.real_loop
async def test_a_full_disk_refuses_a_write_and_takes_the_next() -> None:
    disk = FailingDisk(errno.ENOSPC)

    async with running(EmbeddedStore(disk)) as store:
        with pytest.raises(StoreUnavailable):
            await store.create("/a")
        assert await store.get("/a") is None
        await store.create("/a")
        assert await store.get("/a") is not None


@pytest.mark.real_loop
async def test_a_disk_that_fails_to_flush_is_never_trusted_again() -> None:
    disk = FailingDisk(errno.EIO)
    states: list[Session] = []

    async with running(EmbeddedStore(disk)) as store:
        store.on_session(states.append)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await store.create("/a")
        assert await store.get("/a") is None
        assert disk.commits == 1
    assert states == [Session.SUSPENDED]


@pytest.mark.real_loop
async def test_a_closed_store_refuses_and_a_second_close_is_harmless(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with pytest.raises(SessionExpired):
        await store.get("/a")
    await store.start()
    await store.close()
    await store.close()
    with pytest.raises(SessionExpired):
        await store.create("/a")


@pytest.mark.real_loop
async def test_listeners_hear_when_the_session_begins(tmp_path: Path) -> None:
    states: list[Session] = []
    store = store_in(tmp_path)
    store.on_session(states.append)
    await store.start()
    await store.create("/a")
    assert states == [Session.CONNECTED]
    await store.close()


@pytest.mark.real_loop
async def test_a_refusal_among_grouped_writes_spares_the_others(tmp_path: Path) -> None:
    async with running(store_in(tmp_path)) as store:

        async def refused() -> None:
            ops: list[Op] = [Set("/nowhere", b"")]
            with pytest.raises(NoNode):
                await store.multi(ops)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(store.create("/a"))
            tasks.create_task(refused())
            tasks.create_task(store.create("/b"))
        assert await store.children("/") == ["a", "b"]


class FakeDisk:
    """A disk that only counts."""

    def open(self) -> Tree:
        return Tree()

    def close(self) -> None:
        pass


class SlowDisk(FakeDisk):
    """Each commit waits until the test lets it go."""

    def __init__(self) -> None:
        self.go = Event()
        self._begun = Event()
        self.commits: list[Mapping[str, Entry | None]] = []

    def commit(self, entries: Mapping[str, Entry | None], zxid: int) -> None:
        self.commits.append(entries)
        self._begun.set()
        assert self.go.wait(10)

    async def begun(self) -> None:
        assert await asyncio.to_thread(self._begun.wait, 10)


class FailingDisk(FakeDisk):
    """The first commit fails."""

    def __init__(self, code: int) -> None:
        self._code = code
        self.commits = 0

    def commit(self, entries: Mapping[str, Entry | None], zxid: int) -> None:
        self.commits += 1
        if self.commits == 1:
            raise StoreUnavailable(self._code, os.strerror(self._code))


_WRITER = """
import asyncio, sys
from pathlib import Path
from ottla.store.sqlite_database import SqliteDatabase
from ottla.store.embedded import EmbeddedStore
from ottla.store.port import Create, Set

async def main():
    store = EmbeddedStore(SqliteDatabase(Path(sys.argv[1])))
    await store.start()
    if await store.get("/items") is None:
        await store.multi([Create("/items"), Create("/counter", b"-1")])
    number = int((await store.get("/counter")).data)
    while True:
        number += 1
        ops = [Create(f"/items/{number}"), Set("/counter", str(number).encode())]
        await store.multi(ops)
        print(number, flush=True)

asyncio.run(main())
"""


def _write_until_killed(directory: Path, lines: int) -> int:
    """The last number a writer acknowledged before it was killed in the middle of its work."""
    command = [sys.executable, "-c", _WRITER, str(directory / "store")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(lines):
            line = writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().splitlines(keepends=True)
    whole = [text for text in [line, *rest] if text.endswith("\n")]
    return int(whole[-1])


def files_of(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def store_in(directory: Path) -> EmbeddedStore:
    return EmbeddedStore(SqliteDatabase(directory / "store"))
