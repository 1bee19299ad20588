"""Connections from this broker to others, and to the active controller.

Owns how another broker is reached: by the address of its inter-broker listener, or within the
process if it is this broker. Every connection to another broker is made here, so this is the place
for its security. Never retries, never decides what is sent.

- `BrokerLinks.open(host, port, …)`  a link to an address; for callers that know it (the controller)
- `BrokerLinks.to(broker, purpose)`  a link to a live broker, one per purpose, kept until it moves
- `ControllerChannel.ask(…)`         a request to the active controller, wherever it is
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Final, NamedTuple, Protocol

from ottla.broker.link_security import LinkSecurity
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_BROKER, BrokerId
from ottla.net.broker_link import BrokerLink, LinkReply, RawReply
from ottla.net.outbound_connection import OutboundLimits
from ottla.net.request_slot import Answer, Bytes, Peer, RequestSlot
from ottla.protocol import wire
from ottla.protocol.schema import KioMessage, versions
from ottla.protocol.wire import Fields

SIZE_BYTES: Final = 4
FETCHES: Final = "fetch-"
"""How the purposes of replica fetches begin."""
BULK: Final = OutboundLimits(bulk_buffer_bytes=0)
"""A follower that copies megabytes is woken once for a reply, not for every hundred kilobytes of it
(benchmarks/cluster.py)."""


class Link(Protocol):
    """What a request to a broker needs: `BrokerLink`, or `LocalLink` for this broker."""

    async def ask(self, key: int, fields: Fields, timeout_ms: int) -> LinkReply: ...

    async def ask_encoded(
        self, key: int, encode: Callable[[int], Sequence[Bytes]], timeout_ms: int
    ) -> RawReply: ...

    async def call(self, request: bytes, timeout_ms: int) -> memoryview: ...

    def close(self) -> None: ...


class Address(NamedTuple):
    host: str
    port: int


class LocalLink:
    """Requests of this broker to itself: handed to the dispatch, without a socket."""

    def __init__(self, answer: Answer, clock: Clock) -> None:
        self._answer = answer
        self._clock = clock

    async def ask(self, key: int, fields: Fields, timeout_ms: int) -> LinkReply:
        version = versions(key)[-1]
        frame = wire.encode_request(key, version, 0, "local", fields)
        return LinkReply(
            version, wire.decode_reply(key, version, await self.call(frame, timeout_ms))
        )

    async def ask_encoded(
        self, key: int, encode: Callable[[int], Sequence[Bytes]], timeout_ms: int
    ) -> RawReply:
        version = versions(key)[-1]
        content = [wire.request_header(key, version, 0, "local"), *encode(version)]
        request = b"".join([sum(map(len, content)).to_bytes(SIZE_BYTES, "big"), *content])
        return RawReply(version, await self.call(request, timeout_ms))

    async def call(self, request: bytes, timeout_ms: int) -> memoryview:
        exchange = _LocalExchange(asyncio.get_running_loop().create_future())
        now_ns = self._clock.mono_ns()
        key = int.from_bytes(request[SIZE_BYTES : SIZE_BYTES + 2], "big")
        self._answer(memoryview(request)[SIZE_BYTES:], RequestSlot(exchange, key, now_ns, now_ns))
        async with asyncio.timeout(timeout_ms / 1e3):
            return memoryview(await exchange.reply)

    def close(self) -> None:
        return


class _LocalExchange:
    """Holds the reply to a single request."""

    def __init__(self, reply: asyncio.Future[bytes]) -> None:
        self.reply = reply
        self.peer = Peer("127.0.0.1", 0, "LOCAL", "PLAINTEXT")
        self.peer.is_broker = True
        self.closed = False

    def on_reply(self, slot: RequestSlot) -> None:
        if self.reply.done():
            return
        reply = b"".join(
            bytes(part) if isinstance(part, bytes | bytearray | memoryview) else part.read()
            for part in slot.parts or ()
        )
        self.reply.set_result(reply[SIZE_BYTES:])

    def previous(self, slot: RequestSlot) -> RequestSlot | None:
        return None

    def end(self, reason: str) -> None:
        self.closed = True
        if not self.reply.done():
            self.reply.set_exception(ConnectionAbortedError(reason))

    def throttle(self, delay_ms: int) -> None:
        """Brokers are not throttled."""


class BrokerLinks:
    def __init__(
        self,
        broker_id: BrokerId,
        listener: str,
        metadata: MetadataCache,
        clock: Clock,
        dice: Random,
    ) -> None:
        self.broker_id = broker_id
        self.listener = listener
        """The name of the inter-broker listener."""
        self.answer: Answer | None = None
        """The dispatch of this broker; set before the first request."""
        self.security: LinkSecurity | None = None
        """TLS and login of every connection to another broker; None: neither."""
        self._metadata = metadata
        self._clock = clock
        self._dice = dice
        self._links: dict[tuple[BrokerId, str], tuple[Address, BrokerLink]] = {}
        self._local: LocalLink | None = None

    def local(self) -> LocalLink:
        """The link of this broker to itself."""
        if self._local is None:
            assert self.answer is not None, "the dispatch is built before requests are sent"
            self._local = LocalLink(self.answer, self._clock)
        return self._local

    def open(
        self, host: str, port: int, purpose: str, limits: OutboundLimits | None = None
    ) -> BrokerLink:
        """A link to this address, which the caller closes. It connects at the first request."""
        client_id = f"broker-{self.broker_id}-{purpose}"
        security = self.security
        return BrokerLink(
            host, port, self._clock, self._dice, client_id, limits=limits,
            login=None if security is None else security.login,
            tls=None if security is None else security.tls,
        )  # fmt: skip

    def address_of(self, broker: BrokerId) -> Address | None:
        """Where a live broker listens for brokers; None if the metadata cache lacks it."""
        node = self._metadata.image.node(broker, self.listener)
        return None if node is None else Address(node.host, node.port)

    def to(self, broker: BrokerId, purpose: str) -> Link:
        """The link to a broker for one purpose; ConnectionError if it is not alive."""
        if broker == self.broker_id:
            return self.local()
        address = self.address_of(broker)
        if address is None:
            raise ConnectionError(f"broker {broker} is not in the cluster metadata")
        return self.keep(broker, purpose, address)

    def keep(self, broker: BrokerId, purpose: str, address: Address) -> BrokerLink:
        """The link to this address, kept for later requests of the same purpose."""
        before = self._links.get((broker, purpose))
        if before is not None:
            if before[0] == address:
                return before[1]
            before[1].close()
        link = self.open(*address, purpose, BULK if purpose.startswith(FETCHES) else None)
        self._links[(broker, purpose)] = (address, link)
        return link

    def close(self) -> None:
        for _, link in self._links.values():
            link.close()
        self._links.clear()


class ControllerChannel:
    """Requests to the active controller: AlterPartition, ControlledShutdown, forwarded requests.

    `active_id` is the controller of the last election that this broker knows of. `read_address`
    reads a broker's address from the metadata store: before the first UpdateMetadata the cache is
    empty.
    """

    PURPOSE: Final = "to-controller"

    def __init__(
        self,
        links: BrokerLinks,
        active_id: Callable[[], BrokerId],
        read_address: Callable[[BrokerId], Awaitable[Address | None]],
    ) -> None:
        self._links = links
        self._active_id = active_id
        self._read_address = read_address

    @property
    def is_local(self) -> bool:
        """Whether this broker is the active controller."""
        return self._active_id() == self._links.broker_id

    async def ask(
        self, key: int, fields: Fields, timeout_ms: int, purpose: str = PURPOSE
    ) -> KioMessage:
        """The controller's reply, decoded. `purpose`: a connection of its own for slow requests.

        KafkaError NOT_CONTROLLER if none is known; OSError if it cannot be reached. The reply may
        carry NOT_CONTROLLER, too: the caller retries all three.
        """
        link = await self.link(purpose)
        return (await link.ask(key, fields, timeout_ms)).body

    async def link(self, purpose: str = PURPOSE) -> Link:
        controller = self._active_id()
        if controller == NO_BROKER:
            raise KafkaError(ErrorCode.not_controller, "No active controller is known.")
        if controller == self._links.broker_id:
            return self._links.local()
        address = self._links.address_of(controller) or await self._read_address(controller)
        if address is None:
            raise ConnectionError(f"controller {controller} is not registered")
        return self._links.keep(controller, purpose, address)
