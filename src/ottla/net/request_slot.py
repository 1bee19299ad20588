"""One request's place in the order of replies, and the peer that sent it.

Owns: the reply until it can be sent, and the request's timestamps.
Never: sends anything; the connection takes replies out in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

from ottla.net.limits import UNSTARTED_MAX

Bytes: TypeAlias = bytes | bytearray | memoryview
BYTES: Final = (bytes, bytearray, memoryview)
"""The same for `isinstance`: a union would be built anew in each call."""


class FileSlice(Protocol):
    """A stretch of a file, to be sent without passing through this process.

    One that is not cached in memory is warmed, on a thread, before it is sent.
    """

    @property
    def position(self) -> int: ...

    @property
    def size(self) -> int: ...

    def fileno(self) -> int: ...

    def read(self) -> bytes: ...

    def is_cached(self) -> bool: ...

    def warm(self) -> None:
        """Read it into the page cache; waits for the disk."""


Part: TypeAlias = Bytes | FileSlice
NO_BYTES: Final[Sequence[Part]] = ()


class Session(Protocol):
    """The login of a peer on a SASL listener."""

    has_expired: bool


class Peer:
    """The client or broker of one connection; authentication and ApiVersions fill in its fields."""

    __slots__ = (
        "address",
        "answer",
        "connection_id",
        "is_broker",
        "is_token",
        "large",
        "listener",
        "login",
        "on_large_replies",
        "on_room",
        "port",
        "principal",
        "protocol",
        "software_name",
        "software_version",
        "unstarted",
        "versions",
    )

    def __init__(self, address: str, port: int, listener: str, protocol: str) -> None:
        self.address = address
        self.port = port
        self.listener = listener
        self.protocol = protocol
        self.connection_id = f"{listener}-{address}:{port}"
        self.principal = "User:ANONYMOUS"
        self.software_name = "unknown"
        self.software_version = "unknown"
        self.login: Session | None = None  # of a SASL listener
        self.answer: Answer = _not_connected  # handles each frame; a handler may set another
        self.is_broker = False  # another broker, or this one's own controller
        self.is_token = False  # the client logged in with a delegation token of its principal
        self.versions: dict[int, int] = {}  # of each API it has called, the version it speaks
        self.large: asyncio.Event | None = None  # of the request that others must not overtake now
        self.unstarted = 0  # requests handed to tasks that have not begun
        self.on_large_replies: Callable[[], None] = _ignore  # it will be sent megabytes at a time
        self.on_room: Callable[[], None] = _ignore  # there were too many of those, and no longer

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"

    def started(self) -> None:
        """A request that was handed to a task has begun."""
        self.unstarted -= 1
        if self.unstarted == UNSTARTED_MAX - 1:
            self.on_room()


def _ignore() -> None:
    """The callback until a connection sets its own."""


def _not_connected(_: memoryview, slot: RequestSlot) -> None:
    """The handler until a connection sets its own."""
    raise AssertionError(f"no handler for requests of {slot.peer}")


class ReplyOrder(Protocol):
    """What a slot needs of its connection."""

    peer: Peer
    closed: bool

    def on_reply(self, slot: RequestSlot) -> None: ...

    def previous(self, slot: RequestSlot) -> RequestSlot | None: ...

    def end(self, reason: str) -> None: ...

    def throttle(self, delay_ms: int) -> None: ...


class RequestSlot:
    """Answered exactly once, now or later: `reply`, `reply_nothing` or `close`.

    `parts` of memory must not change until they are sent: give them away. After the peer has gone
    an answer is dropped silently.
    """

    __slots__ = (
        "_order", "api", "done_ns", "local_ns", "on_disconnect", "on_sent", "parts", "received_ns",
        "started_ns",
    )  # fmt: skip

    local_ns: int  # when this broker's own work was done
    done_ns: int  # when it was answered

    def __init__(self, order: ReplyOrder, api: int, received_ns: int, started_ns: int) -> None:
        self._order = order
        self.api = api  # the key metrics count it under; a handler may set a finer one
        self.received_ns = received_ns
        self.started_ns = started_ns
        self.parts: Sequence[Part] | None = None
        self.on_sent: Callable[[], None] | None = None  # after the last byte has left
        self.on_disconnect: Callable[[], None] | None = None  # if that comes before the answer

    @property
    def peer(self) -> Peer:
        return self._order.peer

    @property
    def alive(self) -> bool:
        """The peer is still there to hear an answer."""
        return not self._order.closed

    def reply(self, parts: Sequence[Part]) -> None:
        """Answer with these bytes and files, size prefix included."""
        assert self.parts is None, "this request is already answered"
        self.parts = parts
        self._order.on_reply(self)

    async def wait_for_turn(self) -> None:
        """Until the replies to earlier requests have left: what is read then is not old on arrival.

        Not for requests that others wait for: it ends with the connection at the latest.
        """
        previous = self._order.previous(self)
        if previous is None:
            return
        turn = asyncio.get_running_loop().create_future()
        before = previous.on_sent

        def on_turn() -> None:
            if not turn.done():
                turn.set_result(None)

        def on_sent() -> None:
            if before is not None:
                before()
            on_turn()

        previous.on_sent, self.on_disconnect = on_sent, on_turn
        try:
            await turn
        finally:
            self.on_disconnect = None

    def throttle(self, delay_ms: int) -> None:
        """Start no further request of this connection for so long; the answer is not delayed."""
        self._order.throttle(delay_ms)

    def busy_ns(self, now_ns: int) -> int:
        """How long the event loop was busy with it in the call that started it."""
        try:
            return self.local_ns - self.started_ns
        except AttributeError:  # that call has not ended
            return now_ns - self.started_ns

    def reply_nothing(self) -> None:
        """The request wants no answer (acks=0)."""
        self.reply(NO_BYTES)

    def close(self, reason: str) -> None:
        """No answer is possible: send what was answered before, then end the connection."""
        self._order.end(reason)
        self.reply(NO_BYTES)


Answer: TypeAlias = Callable[[memoryview, RequestSlot], None]
"""Called with a frame (without its size), good only during the call, and the slot to answer."""
