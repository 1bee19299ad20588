"""The tree on a ZooKeeper ensemble, through kazoo: the backend of a cluster.

Owns: the client, and the handover between its threads and the event loop: our code never runs on a
thread of kazoo's. Never retries: a write whose reply was lost may have happened, and only the
caller knows how to find out.

kazoo reports LOST only after it has reached ZooKeeper again; until then the session is SUSPENDED,
and every call fails at once instead of waiting.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from typing import Any, Final

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.interfaces import IAsyncResult
from kazoo.protocol.states import EventType, KazooState, WatchedEvent

from ottla.store.port import (
    BadVersion,
    Check,
    Create,
    Delete,
    EphemeralParent,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    Result,
    Session,
    SessionExpired,
    Set,
    Store,
    StoreError,
    StoreUnavailable,
    Watch,
)

_REFUSALS: Final[dict[type[Exception], type[StoreError]]] = {
    NodeExistsError: NodeExists,
    NoNodeError: NoNode,
    BadVersionError: BadVersion,
    NotEmptyError: NotEmpty,
    NoChildrenForEphemeralsError: EphemeralParent,
    SessionExpiredError: SessionExpired,
}
_STATES: Final = {
    KazooState.CONNECTED: Session.CONNECTED,
    KazooState.SUSPENDED: Session.SUSPENDED,
    KazooState.LOST: Session.EXPIRED,
}


_RECONNECT: Final = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0}
"""Reconnects within a second; with kazoo's defaults the pause grows to a minute."""


class ZooKeeperStore(Store):
    def __init__(
        self, connect: str, *, session_timeout_ms: int, connection_timeout_ms: int | None = None
    ) -> None:
        hosts, slash, chroot = connect.partition("/")
        self._chroot = slash + chroot.strip("/")
        self._connect_s = (connection_timeout_ms or session_timeout_ms) / 1000
        self._client = KazooClient(
            hosts=hosts, timeout=session_timeout_ms / 1000, connection_retry=_RECONNECT
        )
        self._opened = False
        self._state = Session.EXPIRED
        self._listeners: list[Callable[[Session], None]] = []
        self._new_session = asyncio.Event()
        """Set when kazoo has a new session that `start` has not returned yet."""

    async def start(self) -> None:
        if not self._opened:
            await self._open()
            self._opened = True
        await self._new_session.wait()  # after an expiry kazoo opens the next session itself
        self._new_session.clear()
        self._set_state(Session.CONNECTED)

    async def close(self) -> None:
        self._state = Session.EXPIRED
        await asyncio.to_thread(self._client.stop)
        await asyncio.to_thread(self._client.close)

    def on_session(self, listener: Callable[[Session], None]) -> None:
        self._listeners.append(listener)

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        calls = [self._call(self._client.get_async, path) for path in paths]
        replies = await asyncio.gather(*calls, return_exceptions=True)
        return [_node_or_none(reply) for reply in replies]

    async def children(self, path: str) -> list[str]:
        return sorted(await self._call(self._client.get_children_async, path))

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        if not ops:
            return []
        self._check(ops[0].path)
        transaction = self._client.transaction()
        for op in ops:
            _add(transaction, op)
        replies = await _reply(transaction.commit_async(), ops[0].path)
        _raise_refusal(ops, replies)
        return [_result(op, reply) for op, reply in zip(ops, replies, strict=True)]

    async def watch_data(self, path: str, watch: Watch) -> Node | None:
        kazoo_watch = self._kazoo_watch(path, watch)
        try:
            return _node(await self._call(self._client.get_async, path, kazoo_watch))
        except NoNode:
            exists = await self._call(self._client.exists_async, path, kazoo_watch)
        return await self.get(path) if exists else None  # created in between; it is watched

    async def watch_children(self, path: str, watch: Watch) -> list[str]:
        kazoo_watch = self._kazoo_watch(path, watch)
        return sorted(await self._call(self._client.get_children_async, path, kazoo_watch))

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()

        def listen(state: str) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._on_kazoo_state, state)

        self._client.add_listener(listen)
        try:
            await asyncio.to_thread(self._connect)
        except KazooTimeoutError as error:
            self._client.remove_listener(listen)
            raise StoreUnavailable(
                errno.ETIMEDOUT, f"no reply within {self._connect_s:g} s"
            ) from error

    def _connect(self) -> None:
        self._client.start(timeout=self._connect_s)
        if self._chroot:
            self._client.ensure_path(self._chroot)
            self._client.chroot = self._chroot

    def _on_kazoo_state(self, state: str) -> None:
        """Called on the event loop when kazoo reports a state."""
        session = _STATES[state]
        if session is Session.CONNECTED and self._state is Session.EXPIRED:
            self._new_session.set()  # a new session, for the next `start`
        else:
            self._set_state(session)

    def _set_state(self, state: Session) -> None:
        self._state = state
        for listener in self._listeners:
            asyncio.get_running_loop().call_soon(listener, state)

    def _check(self, path: str) -> None:
        if self._state is Session.EXPIRED:
            raise SessionExpired(path)
        if self._state is Session.SUSPENDED:
            raise StoreUnavailable(errno.EHOSTUNREACH, "no reply from ZooKeeper", path)

    async def _call(self, call: Callable[..., IAsyncResult], path: str, *rest: object) -> Any:
        self._check(path)
        return await _reply(call(path, *rest), path)

    def _kazoo_watch(self, path: str, watch: Watch) -> Callable[[WatchedEvent], None]:
        """kazoo also calls watches when the session is suspended: that is not a change."""
        loop = asyncio.get_running_loop()

        def on_event(event: WatchedEvent) -> None:
            if event.type != EventType.NONE:
                loop.call_soon_threadsafe(watch, path)

        return on_event


async def _reply(call: IAsyncResult, path: str) -> Any:
    """Wait on the event loop for a result that a thread of kazoo's sets."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def set_done() -> None:
        if not done.done():
            done.set_result(None)

    call.rawlink(lambda _: loop.call_soon_threadsafe(set_done))
    await done
    try:
        return call.get_nowait()
    except (KazooException, KazooTimeoutError) as error:
        raise _translate(error, path) from error


def _translate(error: Exception, path: str, index: int = 0) -> Exception:
    refusal = _REFUSALS.get(type(error))
    if refusal is not None:
        return refusal(path, index)
    return StoreUnavailable(errno.EIO, f"ZooKeeper: {type(error).__name__}", path)


def _node(reply: Any) -> Node:
    data, stat = reply
    return Node(data, stat.version, stat.czxid, stat.ephemeralOwner != 0)


def _node_or_none(reply: Any) -> Node | None:
    if isinstance(reply, NoNode):
        return None
    if isinstance(reply, BaseException):
        raise reply
    return _node(reply)


def _add(transaction: TransactionRequest, op: Op) -> None:
    match op:
        case Create():
            transaction.create(op.path, op.data, ephemeral=op.ephemeral, sequence=op.sequential)
        case Set():
            transaction.set_data(op.path, op.data, op.version)
        case Delete():
            transaction.delete(op.path, op.version)
        case Check():
            transaction.check(op.path, op.version)


def _raise_refusal(ops: Sequence[Op], replies: Sequence[Any]) -> None:
    """One reply of a refused multi is the reason; the others only say that they were undone."""
    for index, reply in enumerate(replies):
        if isinstance(reply, Exception) and not isinstance(
            reply, RolledBackError | RuntimeInconsistency
        ):
            raise _translate(reply, ops[index].path, index)


def _result(op: Op, reply: Any) -> Result:
    match op:
        case Create():
            return str(reply)
        case Set():
            return int(reply.version)
        case _:
            return None
