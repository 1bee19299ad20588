"""The tree in a SQLite file inside the broker: the backend of a single node.

Owns: the tree in memory, which serves all reads, and the queue of writes. A write is drafted over
the tree, committed on a separate thread, and only then merged: readers never see data that a power
failure could undo. Writes that arrive during a commit share the next one.

Never blocks the event loop on the disk. If the disk is full, the writes of that commit fail; any
other disk error is permanent, because the state after a failed flush is unknown.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from ottla.store.port import (
    Node,
    Op,
    Result,
    Session,
    SessionExpired,
    Store,
    StoreError,
    StoreUnavailable,
    Watch,
)
from ottla.store.sqlite_database import FILE_NAME, SqliteDatabase
from ottla.store.tree import Draft, Entry, Tree
from ottla.store.watch_registry import WatchRegistry

_SESSION = 1  # the only one


class Durable(Protocol):
    """Where the tree is stored: `sqlite_database.SqliteDatabase`."""

    def open(self) -> Tree: ...

    def commit(self, entries: Mapping[str, Entry | None], zxid: int) -> None: ...

    def close(self) -> None: ...


class _Write(NamedTuple):
    ops: Sequence[Op]
    future: asyncio.Future[list[Result]]


class _Outcome(NamedTuple):
    future: asyncio.Future[list[Result]]
    results: list[Result] | StoreError


class EmbeddedStore(Store):
    def __init__(self, durable: Durable) -> None:
        self._durable = durable
        self._tree = Tree()
        self._watches = WatchRegistry()
        self._listeners: list[Callable[[Session], None]] = []
        self._thread = ThreadPoolExecutor(1, "store")
        self._open = False
        self._queue: list[_Write] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._failure: StoreUnavailable | None = None

    @classmethod
    def at(cls, directory: Path) -> EmbeddedStore:
        """The store of the broker whose first log directory this is."""
        return cls(SqliteDatabase(directory / FILE_NAME))

    @property
    def sessions(self) -> Sequence[int]:
        return (_SESSION,) if self._open else ()

    async def start(self) -> None:
        if self._open:
            return
        loop = asyncio.get_running_loop()
        self._tree = await loop.run_in_executor(self._thread, self._durable.open)
        self._open = True
        self._notify_listeners(Session.CONNECTED)

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._watches.clear()
        await self._idle.wait()  # writes requested before are still committed
        await asyncio.get_running_loop().run_in_executor(self._thread, self._durable.close)
        self._thread.shutdown()

    def on_session(self, listener: Callable[[Session], None]) -> None:
        self._listeners.append(listener)

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        self._check(paths[0] if paths else "/")
        entries = (self._tree.find(path) for path in paths)
        return [entry.node() if entry else None for entry in entries]

    async def children(self, path: str) -> list[str]:
        self._check(path)
        return self._tree.children(path)

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        self._check(ops[0].path if ops else "/")
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        write = _Write(ops, loop.create_future())
        self._queue.append(write)
        if self._idle.is_set():
            self._idle.clear()
            loop.call_soon(self._commit)  # writes of this turn of the loop share the commit
        return await write.future

    async def watch_data(self, path: str, watch: Watch) -> Node | None:
        node = await self.get(path)
        self._watches.on_data(path, watch)
        return node

    async def watch_children(self, path: str, watch: Watch) -> list[str]:
        names = await self.children(path)
        self._watches.on_children(path, watch)
        return names

    def _check(self, path: str) -> None:
        if not self._open:
            raise SessionExpired(path)

    def _commit(self) -> None:
        """Draft all queued writes and commit them."""
        draft = Draft(self._tree)
        outcomes = [_Outcome(write.future, _attempt(draft, write.ops)) for write in self._queue]
        self._queue.clear()
        work = partial(self._durable.commit, draft.entries, draft.zxid)
        committed = asyncio.get_running_loop().run_in_executor(self._thread, work)
        committed.add_done_callback(partial(self._on_committed, draft, outcomes))

    def _on_committed(
        self, draft: Draft, outcomes: Sequence[_Outcome], committed: asyncio.Future[None]
    ) -> None:
        error = committed.exception()
        if error is None:
            self._tree.merge(draft)
            self._watches.fire(draft.changed, draft.reparented, self._call_watch)
        else:
            self._on_failure(error)
        for future, results in outcomes:
            if future.done():
                continue  # the caller was cancelled; its write is committed nevertheless
            if error is not None:
                future.set_exception(error)
            elif isinstance(results, StoreError):
                future.set_exception(results)
            else:
                future.set_result(results)
        if self._queue:
            self._commit()
        else:
            self._idle.set()

    def _on_failure(self, error: BaseException) -> None:
        if isinstance(error, StoreUnavailable) and error.errno != errno.ENOSPC:
            self._failure = error
            self._notify_listeners(Session.SUSPENDED)

    def _call_watch(self, watch: Watch, path: str) -> None:
        asyncio.get_running_loop().call_soon(watch, path)

    def _notify_listeners(self, state: Session) -> None:
        for listener in self._listeners:
            asyncio.get_running_loop().call_soon(listener, state)


def _attempt(draft: Draft, ops: Sequence[Op]) -> list[Result] | StoreError:
    try:
        return draft.apply(ops, _SESSION)
    except StoreError as error:
        return error
