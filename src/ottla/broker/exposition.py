"""Metrics over HTTP, as Prometheus text.

Owns the small server and the translation from our registry. Never updates a number. It reads them
on the broker's own loop, all of one name at a time and others' turns in between; what is made of
them, long with many partitions, is made beside the loop. It speaks just enough HTTP for a scraper:
any path is answered with the metrics, after which the connection ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.metrics import Counter, Family, Histogram, Labels, Registry, Tally
from ottla.model.metrics import Metric as Ours

if TYPE_CHECKING:
    from prometheus_client.core import Metric

REQUEST_MAX_BYTES: Final = 16_384
REQUEST_TIMEOUT_S: Final = 5.0


class Exposition:
    """Serves one registry until closed."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port that was really taken. Everywhere, without a host."""
        if not host and port == 0:
            host = "0.0.0.0"  # IPv4 and IPv6 would take a free port each
        self._server = await asyncio.start_server(self._answer, host, port, limit=REQUEST_MAX_BYTES)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                request = await reader.readuntil(b"\r\n\r\n")
            if request.startswith((b"GET ", b"HEAD ")):
                status, body = "200 OK", await asyncio.to_thread(_text, await self._readings())
            else:
                status, body = "405 Method Not Allowed", b"only GET is answered here\n"
            head = (
                f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode() + (b"" if request.startswith(b"HEAD ") else body))
            await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # a scraper that stopped half-way gets nothing
        finally:
            writer.close()

    async def _readings(self) -> list[Reading]:
        readings = []
        for family in _offered(self._registry):
            readings.append(_read(family))
            await asyncio.sleep(0)
        return readings


def render(registry: Registry) -> bytes:
    """The registry as Prometheus text."""
    return _text([_read(family) for family in _offered(registry)])


def _offered(registry: Registry) -> list[Family]:
    """Those that have numbers, or may have: a series is named though nothing is in it now."""
    return [family for family in registry.families() if family.metrics or family.series]


class Times(NamedTuple):
    """A histogram as it was."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


class Reading(NamedTuple):
    """The numbers of one name, at one moment."""

    name: str
    doc: str
    counts: bool
    rows: list[tuple[Labels, float | Times]]


def _read(family: Family) -> Reading:
    counts = any(isinstance(one, Counter | Tally) for one in family.metrics.values())
    rows = [(labels, _value(metric)) for labels, metric in family.metrics.items()]
    if family.series is not None:
        rows.extend(family.series())
    return Reading(family.name, family.doc, counts, rows)


def _value(metric: Ours) -> float | Times:
    match metric:
        case Counter() | Tally():
            return metric.value
        case Histogram():
            return Times(metric.bounds, tuple(metric.counts), metric.total)
        case _:
            return metric()


def _text(readings: Iterable[Reading]) -> bytes:
    from prometheus_client import generate_latest

    return generate_latest(_Collected([_translate(one) for one in readings]))


class _Collected:
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
    if rows and isinstance(rows[0][1], Times):
        timed = HistogramMetricFamily(name, doc, labels=names)
        for labels, times in rows:
            assert isinstance(times, Times)
            timed.add_metric(_values(labels), _buckets(times), times.total)
        return timed
    shown = (CounterMetricFamily if counts else GaugeMetricFamily)(name, doc, labels=names)
    for labels, number in rows:
        assert not isinstance(number, Times)
        shown.add_metric(_values(labels), number)
    return shown


def _values(labels: Labels) -> list[str]:
    return [value for _, value in labels]


def _buckets(times: Times) -> list[tuple[str, float]]:
    """Cumulative counts, as Prometheus wants them, ending with everything."""
    bounds = [*(f"{bound:g}" for bound in times.bounds), "+Inf"]
    return list(zip(bounds, accumulate(times.counts), strict=True))
