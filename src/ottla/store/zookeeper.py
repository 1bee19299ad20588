"""The tree on a ZooKeeper ensemble, through kazoo: the backend of a cluster.

Owns: the client, and the handover between its threads and the event loop: our code never runs on a
thread of kazoo's. Never retries: a write whose reply was lost may have happened, and only the
caller knows how to find out.

kazoo reports LOST only after it has reached ZooKeeper again; until then the session is SUSPENDED,
and every call fails at once instead of waiting. A timer of our own reports OVERDUE in the meantime.
kazoo drops all watches at SUSPENDED.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    KazooException,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    WriterNotClosedException,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.interfaces import IAsyncResult
from kazoo.protocol.states import EventType, KazooState, KeeperState, WatchedEvent

from ottla.store.paths import ancestors
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
from ottla.store.zookeeper_connection import ConnectionHandler, ZooKeeperSecurity, client_log

KazooReply: TypeAlias = Any
"""Of kazoo, which has no types: it differs by the call."""
log = logging.getLogger(__name__)

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


_SILENCE: Final = 2 / 3
"""The share of the session timeout for which a server may have been silent when kazoo reports
SUSPENDED; what is left until the session may have expired is `1 - _SILENCE` of it."""
_RESTORE_S: Final = 0.5
"""Between two looks at a tree that lost its data."""
_CLOSE_S: Final = 1.0
"""How long a failed start waits for kazoo's threads to end."""
_RECONNECT: Final = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0}
"""Reconnects within a second; with kazoo's defaults the pause grows to a minute."""


class ZooKeeperStore(Store):
    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int,
        connection_timeout_ms: int | None = None,
        security: ZooKeeperSecurity | None = None,
    ) -> None:
        hosts, _, chroot = connect.partition("/")
        self._chroot = f"/{chroot.strip('/')}".rstrip("/")
        self._connect_s = (connection_timeout_ms or session_timeout_ms) / 1000
        self._overdue_s = session_timeout_ms / 1000 * (1 - _SILENCE)
        self._security = security or ZooKeeperSecurity()
        self._handler = ConnectionHandler(self._security.wrap)
        self._client = KazooClient(
            hosts=hosts, timeout=session_timeout_ms / 1000, connection_retry=_RECONNECT,
            handler=self._handler, sasl_options=self._security.sasl_options, logger=client_log(),
            use_ssl=self._security.wrap is not None,
        )  # fmt: skip
        self._opened = False
        self._state = Session.EXPIRED
        self._sessions: list[int] = []
        self._listeners: list[Callable[[Session], None]] = []
        self._connected = asyncio.Event()
        """Whether kazoo is connected; after an expiry it opens the next session itself."""
        self._overdue: asyncio.TimerHandle | None = None
        self._login_failed = False
        """kazoo has given up, for that reason; set on a thread of its own."""
        self._lost: str | None = None
        """The required node, if ZooKeeper answers and does not have it."""

    @property
    def sessions(self) -> Sequence[int]:
        return self._sessions

    async def start(self) -> None:
        if not self._opened:
            await self._open()
            self._opened = True
        elif self._login_failed:
            self._login_failed = False
            await asyncio.to_thread(self._restart_client)
        is_restored = self.required is None
        try:
            async with asyncio.timeout(self._connect_s):
                await self._connected.wait()
                while not is_restored:
                    is_restored = await self._has_required_node()
                    await (self._connected.wait() if is_restored else asyncio.sleep(_RESTORE_S))
        except TimeoutError as error:
            raise self._no_reply() from error
        if self._state is Session.EXPIRED:
            self._sessions.append(self._client.client_id[0])
            self._set_state(Session.CONNECTED)

    async def close(self) -> None:
        self._state = Session.EXPIRED
        self._cancel_overdue()
        if self._opened:
            self._opened = False
            await asyncio.to_thread(self._close_client)

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
            self._add(transaction, op)
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
            if self._client.client_state == KeeperState.AUTH_FAILED:
                self._login_failed = True
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._on_kazoo_state, state)

        self._client.add_listener(listen)
        try:
            async with asyncio.timeout(self._connect_s):
                await asyncio.to_thread(self._client.start_async)
                await self._connected.wait()
                await self._create_chroot()
        except (TimeoutError, StoreUnavailable, StoreError) as error:
            self._login_failed |= isinstance(error.__cause__, AuthFailedError)
            reason = self._no_reply()
            self._client.remove_listener(listen)
            # kazoo's stop waits for its own thread, which may be waiting for the server
            closing = threading.Thread(target=self._close_client, daemon=True)
            closing.start()
            await asyncio.to_thread(closing.join, _CLOSE_S)
            raise reason from error

    async def _create_chroot(self) -> None:
        for path in (*ancestors(self._chroot), self._chroot) if self._chroot else ():
            with suppress(NodeExists):
                acl = self._security.acl(path)
                await _reply(self._client.create_async(path, acl=acl), path)
        self._client.chroot = self._chroot

    async def _has_required_node(self) -> bool:
        """Called before the session is usable, so it asks kazoo itself."""
        assert self.required is not None
        path, data = self.required
        try:
            found, _ = await _reply(self._client.get_async(path), path)
        except NoNode:
            found = b""
        except (StoreUnavailable, StoreError):
            return False
        self._lost = None if found == data else path
        return self._lost is None

    def _add(self, transaction: TransactionRequest, op: Op) -> None:
        match op:
            case Create():
                transaction.create(
                    op.path, op.data, acl=self._security.acl(op.path),
                    ephemeral=op.ephemeral, sequence=op.sequential,
                )  # fmt: skip
            case Set():
                transaction.set_data(op.path, op.data, op.version)
            case Delete():
                transaction.delete(op.path, op.version)
            case Check():
                transaction.check(op.path, op.version)

    def _restart_client(self) -> None:
        """kazoo gives up when a login fails, also if only the connection broke during it."""
        self._client.stop()
        self._client.start_async()

    def _close_client(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except WriterNotClosedException:
            log.warning("connection to ZooKeeper did not close in time; abandoning it")

    def _no_reply(self) -> StoreUnavailable:
        if self._login_failed:
            assert self._security.login is not None
            return StoreUnavailable(
                errno.EACCES, f"ZooKeeper refused the login of {self._security.login.user}"
            )
        if self._lost is not None and self._connected.is_set():
            reason = f"{self._lost} of this cluster is missing: restore the metadata from an export"
            return StoreUnavailable(errno.ENODATA, f"ZooKeeper lost its data: {reason}")
        reason = "" if self._handler.failure is None else f": {self._handler.failure}"
        return StoreUnavailable(errno.ETIMEDOUT, f"no reply within {self._connect_s:g} s{reason}")

    def _on_kazoo_state(self, state: str) -> None:
        """Called on the event loop when kazoo reports a state."""
        session = _STATES[state]
        if session is Session.CONNECTED:
            self._connected.set()
        else:
            self._connected.clear()
        if self._state is not Session.EXPIRED:  # else the next session is not started yet
            self._set_state(session)

    def _set_state(self, state: Session) -> None:
        self._state = state
        self._cancel_overdue()
        if state is Session.SUSPENDED:
            loop = asyncio.get_running_loop()
            self._overdue = loop.call_later(self._overdue_s, self._notify, Session.OVERDUE)
        self._notify(state)

    def _cancel_overdue(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None

    def _notify(self, state: Session) -> None:
        for listener in self._listeners:
            asyncio.get_running_loop().call_soon(listener, state)

    def _check(self, path: str) -> None:
        if self._state is Session.EXPIRED:
            raise SessionExpired(path)
        if self._state is Session.SUSPENDED:
            raise StoreUnavailable(errno.EHOSTUNREACH, "no reply from ZooKeeper", path)

    async def _call(
        self, call: Callable[..., IAsyncResult], path: str, *rest: object
    ) -> KazooReply:
        self._check(path)
        return await _reply(call(path, *rest), path)

    def _kazoo_watch(self, path: str, watch: Watch) -> Callable[[WatchedEvent], None]:
        """kazoo also calls watches when the session is suspended: that is not a change."""
        loop = asyncio.get_running_loop()

        def on_event(event: WatchedEvent) -> None:
            if event.type != EventType.NONE:
                loop.call_soon_threadsafe(watch, path)

        return on_event


async def _reply(call: IAsyncResult, path: str) -> KazooReply:
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


def _node(reply: KazooReply) -> Node:
    data, stat = reply
    return Node(data, stat.version, stat.czxid, stat.ephemeralOwner, stat.mzxid)


def _node_or_none(reply: KazooReply) -> Node | None:
    if isinstance(reply, NoNode):
        return None
    if isinstance(reply, BaseException):
        raise reply
    return _node(reply)


def _raise_refusal(ops: Sequence[Op], replies: Sequence[KazooReply]) -> None:
    """One reply of a refused multi is the reason; the others only say that they were undone."""
    for index, reply in enumerate(replies):
        if isinstance(reply, Exception) and not isinstance(
            reply, RolledBackError | RuntimeInconsistency
        ):
            raise _translate(reply, ops[index].path, index)


def _result(op: Op, reply: KazooReply) -> Result:
    match op:
        case Create():
            return str(reply)
        case Set():
            return int(reply.version)
        case _:
            return None
