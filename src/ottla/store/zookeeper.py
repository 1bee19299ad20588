"""The tree on a ZooKeeper ensemble, through kazoo: the home of a cluster.

Owns: the client, and the crossing between its threads and the event loop: nothing of ours ever
runs on a thread of kazoo's. Never retries: a write whose answer was lost may have happened, and
only the caller knows how to find out.

kazoo reports LOST only after it has reached ZooKeeper again; until then the session is SUSPENDED,
and every call is refused at once instead of waiting.
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
"""An ensemble that is back is found within a second; kazoo's own pauses grow to a minute."""


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
        self._began = asyncio.Event()
        """Set once kazoo has a session that nobody has been given yet."""

    async def start(self) -> None:
        if not self._opened:
            await self._open()
            self._opened = True
        await self._began.wait()  # after an expiry kazoo makes the next session by itself
        self._began.clear()
        self._tell(Session.CONNECTED)

    async def close(self) -> None:
        self._state = Session.EXPIRED
        await asyncio.to_thread(self._client.stop)
        await asyncio.to_thread(self._client.close)

    def on_session(self, listener: Callable[[Session], None]) -> None:
        self._listeners.append(listener)

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        asked = [self._ask(self._client.get_async, path) for path in paths]
        found = await asyncio.gather(*asked, return_exceptions=True)
        return [_node_or_none(one) for one in found]

    async def children(self, path: str) -> list[str]:
        return sorted(await self._ask(self._client.get_children_async, path))

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        if not ops:
            return []
        self._check(ops[0].path)
        transaction = self._client.transaction()
        for op in ops:
            _add(transaction, op)
        answers = await _answer(transaction.commit_async(), ops[0].path)
        _raise_refusal(ops, answers)
        return [_result(op, answer) for op, answer in zip(ops, answers, strict=True)]

    async def watch_data(self, path: str, watch: Watch) -> Node | None:
        spring = self._spring(path, watch)
        try:
            return _node(await self._ask(self._client.get_async, path, spring))
        except NoNode:
            there = await self._ask(self._client.exists_async, path, spring)
        return await self.get(path) if there else None  # created in between: watched all the same

    async def watch_children(self, path: str, watch: Watch) -> list[str]:
        spring = self._spring(path, watch)
        return sorted(await self._ask(self._client.get_children_async, path, spring))

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()

        def listen(state: str) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._turned, state)

        self._client.add_listener(listen)
        try:
            await asyncio.to_thread(self._connect)
        except KazooTimeoutError as error:
            self._client.remove_listener(listen)
            raise StoreUnavailable(errno.ETIMEDOUT, "ZooKeeper does not answer") from error

    def _connect(self) -> None:
        self._client.start(timeout=self._connect_s)
        if self._chroot:
            self._client.ensure_path(self._chroot)
            self._client.chroot = self._chroot

    def _turned(self, state: str) -> None:
        """kazoo's word on the session, on the event loop."""
        session = _STATES[state]
        if session is Session.CONNECTED and self._state is Session.EXPIRED:
            self._began.set()  # a new session: whoever calls `start` next has it
        else:
            self._tell(session)

    def _tell(self, state: Session) -> None:
        self._state = state
        for listener in self._listeners:
            asyncio.get_running_loop().call_soon(listener, state)

    def _check(self, path: str) -> None:
        if self._state is Session.EXPIRED:
            raise SessionExpired(path)
        if self._state is Session.SUSPENDED:
            raise StoreUnavailable(errno.EHOSTUNREACH, "no word from ZooKeeper", path)

    async def _ask(self, call: Callable[..., IAsyncResult], path: str, *rest: object) -> Any:
        self._check(path)
        return await _answer(call(path, *rest), path)

    def _spring(self, path: str, watch: Watch) -> Callable[[WatchedEvent], None]:
        """kazoo also calls watches when a session stumbles: that is not a change of the node."""
        loop = asyncio.get_running_loop()

        def sprung(event: WatchedEvent) -> None:
            if event.type != EventType.NONE:
                loop.call_soon_threadsafe(watch, path)

        return sprung


async def _answer(asked: IAsyncResult, path: str) -> Any:
    """What a thread of kazoo's will say, awaited on the event loop."""
    loop = asyncio.get_running_loop()
    said: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not said.done():
            said.set_result(None)

    asked.rawlink(lambda _: loop.call_soon_threadsafe(settle))
    await said
    try:
        return asked.get_nowait()
    except (KazooException, KazooTimeoutError) as error:
        raise _translated(error, path) from error


def _translated(error: Exception, path: str, at: int = 0) -> Exception:
    refusal = _REFUSALS.get(type(error))
    if refusal is not None:
        return refusal(path, at)
    return StoreUnavailable(errno.EIO, f"ZooKeeper: {type(error).__name__}", path)


def _node(answer: Any) -> Node:
    data, stat = answer
    return Node(data, stat.version, stat.czxid, stat.ephemeralOwner != 0)


def _node_or_none(answer: Any) -> Node | None:
    if isinstance(answer, NoNode):
        return None
    if isinstance(answer, BaseException):
        raise answer
    return _node(answer)


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


def _raise_refusal(ops: Sequence[Op], answers: Sequence[Any]) -> None:
    """Of a refused multi one answer is the reason; the others only say that they were undone."""
    for at, answer in enumerate(answers):
        if isinstance(answer, Exception) and not isinstance(
            answer, RolledBackError | RuntimeInconsistency
        ):
            raise _translated(answer, ops[at].path, at)


def _result(op: Op, answer: Any) -> Result:
    match op:
        case Create():
            return str(answer)
        case Set():
            return int(answer.version)
        case _:
            return None
