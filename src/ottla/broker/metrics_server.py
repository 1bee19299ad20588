"""Metrics over HTTP, as Prometheus text.

Owns the small server and the translation from our registry. Never updates a number. It speaks just
enough HTTP for a scraper: any path is answered with the metrics, after which the connection ends.

Whoever asks, and how often, the broker's own work goes first. A page is made in small pieces on the
broker's loop, which rests after each for longer than it took, and serves everybody who asks within
a second. So many answers are given a second, further connections wait, and those too many are
closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.clock import Clock
from ottla.model.metrics import Counter, Family, Histogram, Labels, Registry, Tally
from ottla.model.metrics import Metric as Ours
from ottla.net.creation_rate import CreationRate

if TYPE_CHECKING:
    from prometheus_client.core import Metric

REQUEST_MAX_BYTES: Final = 16_384
REQUEST_TIMEOUT_S: Final = 5.0
SEND_TIMEOUT_S: Final = 30.0
CONNECTIONS_MAX: Final = 64
ANSWERS_PER_SECOND: Final = 20
PAGE_MS: Final = 1_000
"""How long a page serves whoever asks."""
ROWS_AT_ONCE: Final = 100
REST: Final = 3
"""After each piece of a page others have so many times as long as it took."""


class MetricsServer:
    """Serves one registry until closed."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._connections = 0
        self._rate = CreationRate()
        self._page = b""
        self._made_ms: int | None = None
        self._making: asyncio.Future[bytes] | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port that was really taken. Everywhere, without a host."""
        if not host and port == 0:
            host = "0.0.0.0"  # IPv4 and IPv6 would take a free port each
        self._server = await asyncio.start_server(self._serve, host, port, limit=REQUEST_MAX_BYTES)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._connections >= CONNECTIONS_MAX:
            writer.close()
            return
        self._connections += 1
        try:
            await self._answer(reader, writer)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # a scraper that stopped half-way gets nothing
        finally:
            self._connections -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._turn()
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            request = await reader.readuntil(b"\r\n\r\n")
        if request.startswith((b"GET ", b"HEAD ")):
            status, body = "200 OK", await self._current()
        else:
            status, body = "405 Method Not Allowed", b"only GET is answered here\n"
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + (b"" if request.startswith(b"HEAD ") else body))
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await writer.drain()

    async def _turn(self) -> None:
        """Wait until one more may be answered."""
        wait_ms = self._rate.wait_ms(ANSWERS_PER_SECOND, self._clock.mono_ms())
        self._rate.count_one()  # who comes next waits for as much longer
        if wait_ms:
            await asyncio.sleep(wait_ms / 1e3)

    async def _current(self) -> bytes:
        """The page, made anew unless it is young; by the first who asks, for all others too."""
        if self._made_ms is not None and self._clock.mono_ms() - self._made_ms < PAGE_MS:
            return self._page
        if self._making is not None:
            return await asyncio.shield(self._making)
        making = self._making = asyncio.get_running_loop().create_future()
        try:
            self._page = await self._made()
            self._made_ms = self._clock.mono_ms()
            making.set_result(self._page)
            return self._page
        finally:
            making.cancel()  # whoever waits gets nothing, unless it is made
            self._making = None

    async def _made(self) -> bytes:
        pieces = []
        began_ns = self._clock.mono_ns()
        for piece in _pieces(self._registry):
            pieces.append(piece)
            await asyncio.sleep(REST * (self._clock.mono_ns() - began_ns) / 1e9)
            began_ns = self._clock.mono_ns()
        return b"".join(pieces)


def render(registry: Registry) -> bytes:
    """The registry as Prometheus text."""
    return b"".join(_pieces(registry))


def _pieces(registry: Registry) -> Iterator[bytes]:
    """The same, in pieces that take little time each."""
    for family in _offered(registry):
        counts = any(isinstance(one, Counter | Tally) for one in family.metrics.values())
        for number, rows in enumerate(_rows(family)):
            text = _text(Reading(family.name, family.doc, counts, rows))
            yield text if not number else _without_head(text)


def _rows(family: Family) -> Iterator[list[tuple[Labels, float | RequestTimes]]]:
    """Some at a time, at least once; what comes or goes meanwhile does not matter."""
    metrics = list(family.metrics.items())
    for at in range(0, len(metrics), ROWS_AT_ONCE):
        yield [(labels, _value(metric)) for labels, metric in metrics[at : at + ROWS_AT_ONCE]]
    rows = list(family.series()) if family.series is not None else []
    for at in range(0, len(rows), ROWS_AT_ONCE):
        yield [*rows[at : at + ROWS_AT_ONCE]]
    if not metrics and not rows:
        yield []


def _without_head(text: bytes) -> bytes:
    """HELP and TYPE stand before the first piece of a family."""
    return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"# "))


def _offered(registry: Registry) -> list[Family]:
    """Those that have numbers, or may have: a series is named though nothing is in it now."""
    return [family for family in registry.families() if family.metrics or family.series]


class RequestTimes(NamedTuple):
    """A histogram as it was."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


class Reading(NamedTuple):
    """The numbers of one name, at one moment."""

    name: str
    doc: str
    counts: bool
    rows: list[tuple[Labels, float | RequestTimes]]


def _value(metric: Ours) -> float | RequestTimes:
    match metric:
        case Counter() | Tally():
            return metric.value
        case Histogram():
            return RequestTimes(metric.bounds, tuple(metric.counts), metric.total)
        case _:
            return metric()


def _text(reading: Reading) -> bytes:
    from prometheus_client import generate_latest

    return generate_latest(_MetricFamilies([_translate(reading)]))


class _MetricFamilies:
    """As much of a Prometheus registry as its text is made from."""

    def __init__(self, snapshot: Iterable[Metric]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterable[Metric]:
        return self._snapshot


def _translate(reading: Reading) -> Metric:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    name, doc, counts, rows = reading
    names = [label for label, _ in rows[0][0]] if rows else []
    if rows and isinstance(rows[0][1], RequestTimes):
        timed = HistogramMetricFamily(name, doc, labels=names)
        for labels, times in rows:
            assert isinstance(times, RequestTimes)
            timed.add_metric(_values(labels), _buckets(times), times.total)
        return timed
    shown = (CounterMetricFamily if counts else GaugeMetricFamily)(name, doc, labels=names)
    for labels, number in rows:
        assert not isinstance(number, RequestTimes)
        shown.add_metric(_values(labels), number)
    return shown


def _values(labels: Labels) -> list[str]:
    return [value for _, value in labels]


def _buckets(times: RequestTimes) -> list[tuple[str, float]]:
    """Cumulative counts, as Prometheus wants them, ending with everything."""
    bounds = [*(f"{bound:g}" for bound in times.bounds), "+Inf"]
    return list(zip(bounds, accumulate(times.counts), strict=True))
