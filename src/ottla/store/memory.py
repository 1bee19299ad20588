"""One tree shared by several sessions in one process: for simulation and tests.

`Ensemble` stands for the servers, `MemoryStore` for one client's session. Faults are injected by a
test (a session is suspended, reconnected or expired) or drawn from `StoreFaults`, with everything
that `port.py` warns of: lost watches, lost replies, reads that are behind. The order of events is
deterministic, so a seed can be replayed.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from ottla.store.port import (
    Delete,
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
from ottla.store.tree import Draft, Tree
from ottla.store.watch_registry import WatchRegistry

Pause: TypeAlias = Callable[[], Awaitable[None]]


async def _yield_once() -> None:
    await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class StoreFaults:
    """The faults of one session, drawn from `dice`; shares are between 0 and 1, times are upper
    bounds."""

    dice: Random
    lost_requests: float = 0.0
    """Share of calls that never reach the servers; the connection is lost with them."""
    lost_replies: float = 0.0
    """Share of writes that happen without a reply; the connection is lost with them."""
    reconnect_s: float = 0.2
    """How long a lost connection stays lost."""
    lag_s: float = 0.0
    """How far the server that this session reads from is behind the others."""
    reply_s: float = 0.0
    """How long a call takes; the connection may be lost meanwhile."""

    def draw(self, bound: float) -> float:
        return self.dice.random() * bound


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

    def has(self, session: int) -> bool:
        return session in self._sessions

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

    def expire(self, store: MemoryStore, *, keep_nodes: bool = False) -> None:
        """Expire the session as after a timeout; the client is notified at once.

        With `keep_nodes` its ephemeral nodes stay for a while, until `end` is called.
        """
        if keep_nodes:
            self._sessions.pop(store.session, None)
        else:
            self.end(store.session)
        store.turn(Session.EXPIRED)

    def _publish(self, draft: Draft) -> None:
        self.tree.merge(draft)
        for store in list(self._sessions.values()):
            store.follow(draft)


class MemoryStore(Store):
    """One session. `pause` is awaited before each call: a simulation puts its delays there."""

    def __init__(
        self,
        ensemble: Ensemble,
        pause: Pause = _yield_once,
        *,
        faults: StoreFaults | None = None,
        session_timeout_s: float | None = None,
    ) -> None:
        self.watches = WatchRegistry()
        self._ensemble = ensemble
        self._pause = pause
        self._faults = faults
        self._timeout_s = session_timeout_s
        self._server: _LaggingServer | None = None
        self._sessions: list[int] = []
        self._state = Session.EXPIRED
        self._listeners: list[Callable[[Session], None]] = []
        self._overdue: asyncio.TimerHandle | None = None
        self._context: Context = copy_context()

    @property
    def sessions(self) -> Sequence[int]:
        return self._sessions

    @property
    def session(self) -> int:
        """The current session; 0 before the first."""
        return self._sessions[-1] if self._sessions else 0

    async def start(self) -> None:
        await self._pause()
        if self._state is not Session.EXPIRED:
            return
        if self.required is not None:
            path, data = self.required
            entry = self._ensemble.tree.find(path)
            if entry is None or entry.data != data:
                raise StoreUnavailable(errno.ENODATA, "the metadata store lost its data", path)
        self._context = copy_context()
        if self._server is not None:
            self._server.stop()
        self._sessions.append(self._ensemble.join(self))
        if self._faults is not None and self._faults.lag_s:
            self._server = _LaggingServer(
                self._ensemble.tree, self._faults, self._fire_watches, self._context
            )
        self.turn(Session.CONNECTED)

    async def close(self) -> None:
        if self._state is not Session.EXPIRED:
            self._state = Session.EXPIRED
            self._cancel_overdue()
            self.watches.clear()
            self._ensemble.end(self.session)

    def on_session(self, listener: Callable[[Session], None]) -> None:
        self._listeners.append(listener)

    def turn(self, state: Session) -> None:
        """Set the state of the session; tests and simulations call this to suspend it."""
        self._cancel_overdue()
        if state is not Session.CONNECTED:
            self.watches.clear()
        if state is Session.SUSPENDED and self._timeout_s is not None:
            loop = asyncio.get_running_loop()
            self._overdue = loop.call_later(self._timeout_s, self._notify, Session.OVERDUE)
        self._state = state
        self._notify(state)

    def reconnect(self) -> None:
        """End a suspension; the client learns only now whether its session has expired."""
        if self._state is Session.SUSPENDED:
            alive = self._ensemble.has(self.session)
            self.turn(Session.CONNECTED if alive else Session.EXPIRED)

    def follow(self, draft: Draft) -> None:
        """A write of any session: the server of this session learns of it, maybe later."""
        if self._server is None:
            self._fire_watches(draft)
        else:
            self._server.follow(draft)

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        await self._check_session(paths[0] if paths else "/")
        entries = (self._view.find(path) for path in paths)
        return [entry.node() if entry else None for entry in entries]

    async def children(self, path: str) -> list[str]:
        await self._check_session(path)
        return self._view.children(path)

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        path = ops[0].path if ops else "/"
        await self._check_session(path)
        faults = self._faults
        if faults is None:
            return self._ensemble.write(ops, self.session)
        results: list[Result] | StoreError
        try:
            results = self._ensemble.write(ops, self.session)
        except StoreError as refusal:
            results = refusal
        if faults.draw(1) < faults.lost_replies:
            self._lose_connection(faults)
        elif faults.reply_s:
            await asyncio.sleep(faults.draw(faults.reply_s))
        self._check_state(path)
        if self._server is not None:
            self._server.catch_up()
        if isinstance(results, StoreError):
            raise results
        return results

    async def watch_data(self, path: str, watch: Watch) -> Node | None:
        node = await self.get(path)
        self.watches.on_data(path, watch)
        return node

    async def watch_children(self, path: str, watch: Watch) -> list[str]:
        names = await self.children(path)
        self.watches.on_children(path, watch)
        return names

    @property
    def _view(self) -> Tree:
        return self._ensemble.tree if self._server is None else self._server.tree

    async def _check_session(self, path: str) -> None:
        await self._pause()
        faults = self._faults
        if faults is not None:
            if faults.reply_s:
                await asyncio.sleep(faults.draw(faults.reply_s))
            if self._state is Session.CONNECTED and faults.draw(1) < faults.lost_requests:
                self._lose_connection(faults)
        if self._state is Session.CONNECTED and not self._ensemble.has(self.session):
            self.turn(Session.EXPIRED)  # ended by the ensemble while the client was silent
        self._check_state(path)

    def _check_state(self, path: str) -> None:
        if self._state is Session.EXPIRED:
            raise SessionExpired(path)
        if self._state is Session.SUSPENDED:
            raise StoreUnavailable(errno.EHOSTUNREACH, "no reply from the metadata store", path)

    def _lose_connection(self, faults: StoreFaults) -> None:
        self.turn(Session.SUSPENDED)
        asyncio.get_running_loop().call_later(faults.draw(faults.reconnect_s), self.reconnect)

    def _cancel_overdue(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None

    def _notify(self, state: Session) -> None:
        for listener in self._listeners:
            asyncio.get_running_loop().call_soon(listener, state, context=self._context)

    def _fire_watches(self, draft: Draft) -> None:
        self.watches.fire(draft.changed, draft.reparented, self.call_watch)

    def call_watch(self, watch: Watch, path: str) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(self._deliver, watch, path, context=self._context)

    def _deliver(self, watch: Watch, path: str) -> None:
        if self._state is not Session.EXPIRED:
            watch(path)


class _LaggingServer:
    """The server one session is connected to: it applies all writes in order, some time later."""

    def __init__(
        self,
        tree: Tree,
        faults: StoreFaults,
        on_applied: Callable[[Draft], None],
        context: Context,
    ) -> None:
        self.tree = tree.copy()
        self._faults = faults
        self._on_applied = on_applied
        self._context = context  # of the session: its timers outlive the process that wrote
        self._behind: deque[Draft] = deque()

    def follow(self, draft: Draft) -> None:
        self._behind.append(draft)
        delay_s = self._faults.draw(self._faults.lag_s)
        loop = asyncio.get_running_loop()
        loop.call_later(delay_s, self._apply_until, draft.zxid, context=self._context)

    def stop(self) -> None:
        self._behind.clear()

    def catch_up(self) -> None:
        """The session has written: it never reads anything older than that."""
        if self._behind:
            self._apply_until(self._behind[-1].zxid)

    def _apply_until(self, zxid: int) -> None:
        while self._behind and self._behind[0].zxid <= zxid:
            draft = self._behind.popleft()
            self.tree.merge(draft)
            self._on_applied(draft)
