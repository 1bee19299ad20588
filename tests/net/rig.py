"""A channel on a transport without a network, with time that the test moves."""

from __future__ import annotations

import asyncio

from ottla.model.metrics import Registry
from ottla.net.channel import Channel, ChannelContext
from ottla.net.limits import NetLimits
from ottla.net.network import Network
from ottla.net.request_metrics import RequestMetrics
from ottla.net.request_slot import Answer, Peer, RequestSlot
from tests.fakes.manual_time import ManualClock
from tests.fakes.transport import MemoryTransport
from tests.net.frames import number_of, numbers_in, reply

SECOND = 1_000_000_000


async def a_pass() -> None:
    """Let the loop run what was asked of it so far."""
    await asyncio.sleep(0)


class Rig:
    """One network; `connect` adds a channel. Needs a running loop."""

    def __init__(self, limits: NetLimits | None = None) -> None:
        self.clock = ManualClock(1_000)
        self.registry = Registry()
        metrics = RequestMetrics(self.registry, {0: "Produce", 1: "Fetch"}, self.clock)
        self.network = Network(limits or NetLimits(), self.clock, metrics)

    def connect(
        self,
        answer: Answer,
        *,
        listener: str = "PLAINTEXT",
        control: bool = False,
        address: str = "10.0.0.1",
    ) -> Line:
        transport = MemoryTransport((address, 4711))
        channel = Channel(self.network, ChannelContext(listener, "PLAINTEXT", answer, control))
        channel.connection_made(transport)
        return Line(channel, transport)

    def sweep(self, seconds: float = 0) -> None:
        self.clock.ns += int(seconds * SECOND)
        for live in tuple(self.network.live):
            live.sweep(self.clock.ns)


class Line:
    """The peer's end of a channel."""

    def __init__(self, channel: Channel, transport: MemoryTransport) -> None:
        self.channel = channel
        self.transport = transport

    def send(self, data: bytes) -> None:
        """Deliver as a loop would: in as many pieces as it takes, never to a paused reader."""
        at = 0
        while at < len(data):
            if self.transport.paused or self.transport.is_closing():
                raise Unread(len(data) - at)
            space = self.channel.get_buffer(-1)
            count = min(len(space), len(data) - at)
            assert count, "a loop fails on an empty buffer"
            space[:count] = data[at : at + count]
            at += count
            self.channel.buffer_updated(count)

    @property
    def replies(self) -> list[int]:
        return numbers_in(self.transport.written)

    def lose(self) -> None:
        """What a loop does after a transport has closed, or the peer has gone."""
        self.channel.connection_lost(None)


class Unread(Exception):
    """So many bytes stayed with the peer."""


class Parked:
    """Answers nothing until it is told to."""

    def __init__(self) -> None:
        self.slots: dict[int, RequestSlot] = {}

    def __call__(self, frame: memoryview, slot: RequestSlot) -> None:
        self.slots[number_of(frame)] = slot

    def answer(self, number: int, body: bytes = b"") -> None:
        self.slots.pop(number).reply([reply(number, body)])


def echo(frame: memoryview, slot: RequestSlot) -> None:
    slot.reply([reply(number_of(frame))])


class FakeReplyOrder:
    """A connection that only records what its slots report."""

    def __init__(self) -> None:
        self.peer = Peer("10.0.0.1", 99, "INTERNAL", "SASL_PLAINTEXT")
        self.closed = False
        self.replies: list[RequestSlot] = []
        self.reasons: list[str] = []
        self.throttled_ms: list[int] = []

    def on_reply(self, slot: RequestSlot) -> None:
        self.replies.append(slot)

    def previous(self, slot: RequestSlot) -> RequestSlot | None:
        return None

    def end(self, reason: str) -> None:
        self.reasons.append(reason)

    def throttle(self, delay_ms: int) -> None:
        self.throttled_ms.append(delay_ms)
