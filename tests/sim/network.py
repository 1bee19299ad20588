"""A network in memory: bytes arrive late, in pieces, or not at all, but in order.

Hosts have names; processes run on them. A direction between two hosts can be cut: what is sent
meanwhile arrives when it is healed, as TCP sends again until it gets through.

Owns every connection between simulated processes and the weather between them. Never reorders the
bytes of one direction and never makes one up. What may happen is TCP's: a stall, a reset that
overtakes what was under way or follows it, a peer that vanished without a word.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

from tests.sim.loop import PROCESS, Process, SimLoop

HIGH_WATER: Final = 64 << 10
LOW_WATER: Final = 16 << 10
CONNECT_TIMEOUT_S: Final = 2.0
TICK_S: Final = 1e-8
"""Between two pieces: timers that are due at the same moment run in any order."""


@dataclass(slots=True)
class Weather:
    """How likely misfortunes are, for each write."""

    delay_s: float = 0.0005
    stall: float = 0.0
    stall_s: float = 2.0
    reset: float = 0.0
    silence: float = 0.0
    """The connection goes half-open: nothing arrives any more, and nobody is told."""
    fragment: float = 0.05


class Direction(NamedTuple):
    """Bytes from one host to another."""

    source: str
    target: str


class MemoryNetwork:
    """Listeners by host and port, and the lines between processes."""

    def __init__(self, loop: SimLoop, dice: Random) -> None:
        self.loop = loop
        self.dice = dice
        self.weather = Weather()
        """Of every pair of hosts without one of its own."""
        self.weather_between: dict[frozenset[str], Weather] = {}
        self.down: set[str] = set()
        """Hosts without power."""
        self.lines: dict[int, Line] = {}
        self._cut: set[Direction] = set()
        self._servers: dict[tuple[str, int], SimServer] = {}
        self._count = 0

    def listen(
        self, host: str, port: int, factory: Callable[[], asyncio.BaseProtocol]
    ) -> SimServer:
        taken = self._servers.get((host, port))
        if taken is not None and taken.bound:
            raise OSError(errno.EADDRINUSE, "address already in use")
        server = self._servers[host, port] = SimServer(factory)
        return server

    async def connect(
        self, host: str, port: int, factory: Callable[[], Any]
    ) -> tuple[SimTransport, Any]:
        here = PROCESS.get().host
        await asyncio.sleep(self._delay_s(self.weather_of(here, host)))
        if host in self.down or self.is_cut(here, host) or self.is_cut(host, here):
            await asyncio.sleep(CONNECT_TIMEOUT_S)
            raise TimeoutError(errno.ETIMEDOUT, "no route to the host")
        server = self._servers.get((host, port))
        if server is None or not server.accepts:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused: no listener")
        self._count += 1
        line = Line(self, self._count, (copy_context(), server.context))
        self.lines[line.number] = line
        near, far = line.ends
        self.loop.call_soon(far.meet, server.factory, context=far.context)
        near.meet(factory)
        self.loop.trace.note("connect", line.number)
        return near, near.protocol

    def lose(self, process: Process, *, silently: bool) -> None:
        """A process is gone. Its peers hear of it, unless the whole machine went."""
        for server in self._servers.values():
            if server.process is process:
                server.close()
        for line in tuple(self.lines.values()):
            for end in line.ends:
                if end.process is process:
                    end.die(silently=silently)

    def storm(self) -> None:
        """Every connection is reset."""
        for line in tuple(self.lines.values()):
            line.reset()

    def cut(self, *directions: tuple[str, str]) -> None:
        """Hold back what the first host of each pair sends to the second."""
        self._cut.update(Direction(*pair) for pair in directions)
        self.loop.trace.note("cut", *sorted(self._cut))

    def heal(self, *directions: tuple[str, str]) -> None:
        """Let these directions pass again; none named: all."""
        self._cut -= {Direction(*pair) for pair in directions} if directions else self._cut
        self.loop.trace.note("healed", *sorted(self._cut))
        for line in tuple(self.lines.values()):
            for end in line.ends:
                end.send_held_back()

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    def weather_of(self, one: str, other: str) -> Weather:
        if not self.weather_between:
            return self.weather
        return self.weather_between.get(frozenset((one, other)), self.weather)

    def _delay_s(self, weather: Weather) -> float:
        delay_s = self.dice.random() * weather.delay_s
        if weather.stall and self.dice.random() < weather.stall:
            delay_s += self.dice.random() * weather.stall_s
        return delay_s

    def arrival(self, after_s: float, weather: Weather) -> float:
        """When a piece arrives that is sent now, behind one that arrives at `after_s`."""
        return max(after_s + TICK_S, self.loop.time() + self._delay_s(weather))

    def mishap(self, line: Line) -> bool:
        """Whether the connection breaks on this write."""
        weather, dice = line.weather, self.dice
        if weather.reset and dice.random() < weather.reset:
            line.reset()
            return True
        if weather.silence and dice.random() < weather.silence:
            self.loop.trace.note("silence", line.number)
            line.silent = True
        return line.silent

    def pieces(self, data: bytes, weather: Weather) -> list[bytes]:
        if len(data) < 2 or self.dice.random() >= weather.fragment:
            return [data]
        cut = self.dice.randrange(1, len(data))
        return [data[:cut], *self.pieces(data[cut:], weather)]


class SimServer(asyncio.AbstractServer):
    """Takes connections between `start_serving` and `close`."""

    def __init__(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        self.factory = factory
        self.context = copy_context()
        self.process = PROCESS.get()
        self.bound = True
        self._serving = False

    @property
    def accepts(self) -> bool:
        return self.bound and self._serving

    async def start_serving(self) -> None:
        self._serving = True

    def is_serving(self) -> bool:
        return self.accepts

    def close(self) -> None:
        self.bound = False

    async def wait_closed(self) -> None:
        return

    async def serve_forever(self) -> None:
        raise NotImplementedError("a broker serves until it is stopped")

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()


class Line:
    """One connection: two ends."""

    def __init__(
        self, network: MemoryNetwork, number: int, contexts: tuple[Context, Context]
    ) -> None:
        self.network = network
        self.number = number
        self.silent = False
        self.ends = (
            SimTransport(self, 0, contexts[0]),
            SimTransport(self, 1, contexts[1]),
        )
        self._hosts = [end.process.host for end in self.ends]

    @property
    def weather(self) -> Weather:
        return self.network.weather_of(*self._hosts)

    def other(self, end: SimTransport) -> SimTransport:
        return self.ends[1 - end.side]

    def reset(self) -> None:
        self.network.loop.trace.note("reset", self.number)
        for end in self.ends:
            end.cut(ConnectionResetError(errno.ECONNRESET, "connection reset by peer"))

    def over(self) -> None:
        if all(end.lost for end in self.ends):
            self.network.lines.pop(self.number, None)


END: Final = b""
"""Stands behind the last byte: the peer closed its side."""


class SimTransport(asyncio.Transport):
    """One end of a line. `inbound` holds what has arrived and was not read."""

    def __init__(self, line: Line, side: int, context: Context) -> None:
        super().__init__()
        self.protocol: Any = None  # asyncio's protocols have no common type for what is called here
        self.line = line
        self.side = side
        self.context = context
        self.process = context[PROCESS]
        self.inbound: deque[bytes] = deque()
        self.under_way = 0  # bytes sent to the other end that it has not read
        self.lost = False  # its protocol heard, or will hear, that the connection is over
        self._closing = False
        self._reading = True
        self._paused_writing = False
        self._last_arrival = 0.0
        self._held_back: list[Callable[[], None]] = []  # sent while the direction is cut

    def __repr__(self) -> str:
        return f"{self.line.number}{'<>'[self.side]}"

    def meet(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        if not self.lost:
            self.protocol = factory()
            self.protocol.connection_made(self)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", 40_000 + self.line.number) if name == "peername" else default

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol  # type: ignore[no-any-return]

    # Sending

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.lost or self._closing or not data:
            return
        line, other, network = self.line, self.line.other(self), self.line.network
        content = bytes(data)
        if network.loop.trace.is_used:
            network.loop.trace.data(repr(self), content)
        if not other.process.alive and not self._is_cut():
            if other.process.host not in network.down:
                line.reset()  # the machine is up again and knows of no such connection
            return
        if network.mishap(line):
            return
        self.under_way += len(content)
        for piece in network.pieces(content, line.weather):
            self._send(piece)
        if self.under_way > HIGH_WATER and not self._paused_writing:
            self._paused_writing = True
            self.protocol.pause_writing()

    def _is_cut(self) -> bool:
        other = self.line.other(self)
        return self.line.network.is_cut(self.process.host, other.process.host)

    def send_held_back(self) -> None:
        """If the direction passes again, what was sent meanwhile goes now."""
        if self._held_back and not self._is_cut():
            held_back, self._held_back = self._held_back, []
            for send in held_back:
                send()

    def _send(self, piece: bytes) -> None:
        other, network = self.line.other(self), self.line.network
        if self._is_cut():
            self._held_back.append(partial(self._send, piece))
            return
        self._last_arrival = network.arrival(self._last_arrival, self.line.weather)
        network.loop.call_at(self._last_arrival, other.arrived, piece, context=other.context)

    def _taken(self, size: int) -> None:
        self.under_way -= size
        if self._paused_writing and self.under_way < LOW_WATER and not self.lost:
            self._paused_writing = False
            self.protocol.resume_writing()

    # Receiving

    def arrived(self, piece: bytes) -> None:
        if self.line.silent:
            return
        if not self.lost:
            self.inbound.append(piece)
            self._deliver()
        elif piece != END:  # nobody is there to read it
            self.line.reset()

    def _deliver(self) -> None:
        while self.inbound and self._reading and not self._closing and not self.lost:
            piece = self.inbound.popleft()
            if piece == END:
                if not self.protocol.eof_received():
                    self.close()
                return
            self._give(piece)
            other = self.line.other(self)
            loop = self.line.network.loop
            loop.call_soon(other._taken, len(piece), context=other.context)

    def _give(self, piece: bytes) -> None:
        if not isinstance(self.protocol, asyncio.BufferedProtocol):
            self.protocol.data_received(piece)
            return
        view = memoryview(piece)
        while view and not self.lost and not self._closing:
            space = memoryview(self.protocol.get_buffer(len(view)))
            size = min(len(space), len(view))
            space[:size] = view[:size]
            view = view[size:]
            self.protocol.buffer_updated(size)

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self.line.network.loop.call_soon(self._deliver, context=self.context)

    def is_reading(self) -> bool:
        return self._reading

    # Ending

    def is_closing(self) -> bool:
        return self._closing or self.lost

    def close(self) -> None:
        """What was written still arrives, then the end."""
        if self._closing or self.lost:
            return
        self._closing = True
        self._send(END)
        self.cut(None)

    def abort(self) -> None:
        """The peer hears of it: at once, or behind what was under way to it."""
        if self.lost:
            return
        self.cut(None)
        if not self.line.silent:
            self._send_reset()

    def _send_reset(self) -> None:
        if self._is_cut():
            self._held_back.append(self._send_reset)
            return
        other, network = self.line.other(self), self.line.network
        reset = ConnectionResetError(errno.ECONNRESET, "connection reset by peer")
        when = network.loop.time()
        if network.dice.random() < 0.5:
            when = network.arrival(self._last_arrival, self.line.weather)
        network.loop.call_at(when, other.cut, reset, context=other.context)

    def die(self, *, silently: bool) -> None:
        """The process at this end is gone."""
        if not self.lost:
            self.lost = True
            if silently:
                self.line.silent = True
            elif not self.line.silent:
                self._send(END)
            self.line.over()

    def cut(self, reason: Exception | None) -> None:
        if not self.lost:
            self.lost = True
            if self.protocol is not None:
                loop = self.line.network.loop
                loop.call_soon(self.protocol.connection_lost, reason, context=self.context)
            self.line.over()


Protocol_ = TypeVar("Protocol_", bound=asyncio.BaseProtocol)


class NetLoop(SimLoop):
    """A simulated loop with a network."""

    network: MemoryNetwork

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int = 0,
        *,
        start_serving: bool = True,
        **_: Any,
    ) -> asyncio.AbstractServer:
        server = self.network.listen(host or "", port, protocol_factory)
        if start_serving:
            await server.start_serving()
        return server

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Protocol_], host: str, port: int, **_: Any
    ) -> tuple[asyncio.Transport, Protocol_]:
        return await self.network.connect(host, port, protocol_factory)

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> list[Any]:
        raise OSError(errno.ENOENT, "names are not looked up in a simulation")
