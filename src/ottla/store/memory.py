"""One tree shared by several sessions in one process: for simulation and tests.

`Ensemble` stands for the servers, `MemoryStore` for one client's session. The order of events is
deterministic, so a seed can be replayed. Faults are injected at the ensemble: a session can be
suspended, resumed or expired.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from ottla.store.port import (
    Delete,
    Node,
    Op,
    Result,
    Session,
    SessionExpired,
    Store,
    StoreUnavailable,
    Watch,
)
from ottla.store.tree import Draft, Tree
from ottla.store.watch_registry import WatchRegistry

Pause: TypeAlias = Callable[[], Awaitable[None]]


async def _yield_once() -> None:
    await asyncio.sleep(0)


class Ensemble:
    """The tree, and the sessions that are open on it."""

    def __init__(self) -> None:
        self.tree = Tree()
        self._sessions: dict[int, MemoryStore] = {}
        self._last_session = 0

    def join(self, store: MemoryStore) -> int:
        self._last_session += 1
        self._sessions[self._last_session] = store
        return self._last_session

    def write(self, ops: Sequence[Op], session: int) -> list[Result]:
        draft = Draft(self.tree)
        results = draft.apply(ops, session)
        self._publish(draft)
        return results

    def end(self, session: int) -> None:
        """End the session: its ephemeral nodes are deleted, and watches on them fire."""
        self._sessions.pop(session, None)
        draft = Draft(self.tree)
        for path in self.tree.owned_by(session):
            draft.apply([Delete(path)], session)
        self._publish(draft)

    def expire(self, store: MemoryStore) -> None:
        """Expire the session as after a timeout; the client is notified at once."""
        self.end(store.session)
        store.turn(Session.EXPIRED)

    def _publish(self, draft: Draft) -> None:
        self.tree.merge(draft)
        for store in self._sessions.values():
            store.watches.fire(draft.changed, draft.reparented, store.call_watch)


class MemoryStore(Store):
    """One session. `pause` is awaited before each call: a simulation puts its delays there."""

    def __init__(self, ensemble: Ensemble, pause: Pause = _yield_once) -> None:
        self.watches = WatchRegistry()
        self.session = 0
        self._ensemble = ensemble
        self._pause = pause
        self._state = Session.EXPIRED
        self._listeners: list[Callable[[Session], None]] = []

    async def start(self) -> None:
        await self._pause()
        self.session = self._ensemble.join(self)
        self.turn(Session.CONNECTED)

    async def close(self) -> None:
        if self._state is not Session.EXPIRED:
            self._state = Session.EXPIRED
            self.watches.clear()
            self._ensemble.end(self.session)

    def on_session(self, listener: Callable[[Session], None]) -> None:
        self._listeners.append(listener)

    def turn(self, state: Session) -> None:
        """Set the state of the session; tests and simulations call this to suspend it."""
        if state is Session.EXPIRED:
            self.watches.clear()
        self._state = state
        for listener in self._listeners:
            asyncio.get_running_loop().call_soon(listener, state)

    def call_watch(self, watch: Watch, path: str) -> None:
        asyncio.get_running_loop().call_soon(self._deliver, watch, path)

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        await self._check_session(paths[0] if paths else "/")
        entries = (self._ensemble.tree.find(path) for path in paths)
        return [entry.node() if entry else None for entry in entries]

    async def children(self, path: str) -> list[str]:
        await self._check_session(path)
        return self._ensemble.tree.children(path)

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        await self._check_session(ops[0].path if ops else "/")
        return self._ensemble.write(ops, self.session)

    async def watch_data(self, path: str, watch: Watch) -> Node | None:
        node = await self.get(path)
        self.watches.on_data(path, watch)
        return node

    async def watch_children(self, path: str, watch: Watch) -> list[str]:
        names = await self.children(path)
        self.watches.on_children(path, watch)
        return names

    async def _check_session(self, path: str) -> None:
        await self._pause()
        if self._state is Session.EXPIRED:
            raise SessionExpired(path)
        if self._state is Session.SUSPENDED:
            raise StoreUnavailable(errno.EHOSTUNREACH, "no reply from the metadata store", path)

    def _deliver(self, watch: Watch, path: str) -> None:
        if self._state is not Session.EXPIRED:
            watch(path)
