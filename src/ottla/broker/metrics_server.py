"""Metrics over HTTP, as Prometheus text.

Owns the HTTP server and the translation from our registry. Never updates a metric. It implements
just enough HTTP for a scraper: every path returns the metrics, then the connection is closed.

Scrapes never slow the broker down. A page is rendered in small pieces on the broker's event loop,
with a pause after each that is longer than the piece took, and is reused for a second. The rate of
responses is limited: further connections wait, and those beyond CONNECTIONS_MAX are closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.clock import Clock, MonoMs
from ottla.model.metrics import Counter, Family, Histogram, Labels, Registry, Tally
from ottla.model.metrics import Metric as Ours

if TYPE_CHECKING:
    from prometheus_client.core import Metric

REQUEST_MAX_BYTES: Final = 16_384
REQUEST_TIMEOUT_S: Final = 5.0
SEND_TIMEOUT_S: Final = 30.0
CONNECTIONS_MAX: Final = 64
RESPONSES_PER_SECOND: Final = 20
PAGE_MS: Final = 1_000
"""How long a rendered page is reused."""
ROWS_AT_ONCE: Final = 100
PAUSE_FACTOR: Final = 3
"""The pause after each piece of a page, in multiples of the time the piece took."""


class ResponseRate:
    """`RESPONSES_PER_SECOND`; what was not used in the last second is not saved up."""

    def __init__(self) -> None:
        self._available = float(RESPONSES_PER_SECOND)
        self._updated_ms: MonoMs | None = None

    def count_one(self, now_ms: MonoMs) -> int:
        """How long this response has to wait; the next one waits longer."""
        passed_ms = now_ms - (now_ms if self._updated_ms is None else self._updated_ms)
        self._updated_ms = now_ms
        gained = passed_ms * RESPONSES_PER_SECOND / 1000
        self._available = min(self._available + gained, float(RESPONSES_PER_SECOND)) - 1
        return (
            0 if self._available >= 0 else int(-self._available * 1000 / RESPONSES_PER_SECOND) + 1
        )


class MetricsServer:
    """Serves one registry until closed."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._connections = 0
        self._rate = ResponseRate()
        self._page = b""
        self._rendered_ms: MonoMs | None = None
        self._rendering: asyncio.Future[bytes] | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, on every address if `host` is empty; returns the actual port."""
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
            return  # the client disconnected or was too slow
        finally:
            self._connections -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._wait_for_rate_limit()
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            request = await reader.readuntil(b"\r\n\r\n")
        if request.startswith((b"GET ", b"HEAD ")):
            status, body = "200 OK", await self._current()
        else:
            status, body = "405 Method Not Allowed", b"only GET and HEAD are supported\n"
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + (b"" if request.startswith(b"HEAD ") else body))
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await writer.drain()

    async def _wait_for_rate_limit(self) -> None:
        wait_ms = self._rate.count_one(self._clock.mono_ms())
        if wait_ms:
            await asyncio.sleep(wait_ms / 1e3)

    async def _current(self) -> bytes:
        """The page, rendered again if it is too old; concurrent requests share one rendering."""
        if self._rendered_ms is not None and self._clock.mono_ms() - self._rendered_ms < PAGE_MS:
            return self._page
        if self._rendering is not None:
            return await asyncio.shield(self._rendering)
        rendering = self._rendering = asyncio.get_running_loop().create_future()
        try:
            self._page = await self._render_in_pieces()
            self._rendered_ms = self._clock.mono_ms()
            rendering.set_result(self._page)
            return self._page
        finally:
            rendering.cancel()  # if rendering failed, the requests that wait for it fail too
            self._rendering = None

    async def _render_in_pieces(self) -> bytes:
        pieces = []
        began_ns = self._clock.mono_ns()
        for piece in _pieces(self._registry):
            pieces.append(piece)
            await asyncio.sleep(PAUSE_FACTOR * (self._clock.mono_ns() - began_ns) / 1e9)
            began_ns = self._clock.mono_ns()
        return b"".join(pieces)


def render(registry: Registry) -> bytes:
    """The registry as Prometheus text."""
    return b"".join(_pieces(registry))


def _pieces(registry: Registry) -> Iterator[bytes]:
    """The same in pieces, each of which takes little time."""
    for family in _families(registry):
        counts = any(isinstance(metric, Counter | Tally) for metric in family.metrics.values())
        for number, rows in enumerate(_rows(family)):
            text = _text(Reading(family.name, family.doc, counts, rows))
            yield text if not number else _without_head(text)


def _rows(family: Family) -> Iterator[list[tuple[Labels, float | RequestTimes]]]:
    """A few rows at a time, at least one list; rows added meanwhile may be missing."""
    metrics = list(family.metrics.items())
    for start in range(0, len(metrics), ROWS_AT_ONCE):
        some = metrics[start : start + ROWS_AT_ONCE]
        yield [(labels, _value(metric)) for labels, metric in some]
    rows = list(family.series()) if family.series is not None else []
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield [*rows[start : start + ROWS_AT_ONCE]]
    if not metrics and not rows:
        yield []


def _without_head(text: bytes) -> bytes:
    """Drop HELP and TYPE lines: only the first piece of a family has them."""
    return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"# "))


def _families(registry: Registry) -> list[Family]:
    """Families that have values, or may have: a series is listed even if it is empty now."""
    return [family for family in registry.families() if family.metrics or family.series]


class RequestTimes(NamedTuple):
    """The values of a histogram at one moment."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


class Reading(NamedTuple):
    """The values of one metric family at one moment."""

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
    """The part of a Prometheus registry that `generate_latest` uses."""

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
        histogram = HistogramMetricFamily(name, doc, labels=names)
        for labels, times in rows:
            assert isinstance(times, RequestTimes)
            histogram.add_metric(_values(labels), _buckets(times), times.total)
        return histogram
    values = (CounterMetricFamily if counts else GaugeMetricFamily)(name, doc, labels=names)
    for labels, number in rows:
        assert not isinstance(number, RequestTimes)
        values.add_metric(_values(labels), number)
    return values


def _values(labels: Labels) -> list[str]:
    return [value for _, value in labels]


def _buckets(times: RequestTimes) -> list[tuple[str, float]]:
    """Cumulative counts, as Prometheus expects them, ending with +Inf."""
    bounds = [*(f"{bound:g}" for bound in times.bounds), "+Inf"]
    return list(zip(bounds, accumulate(times.counts), strict=True))
