"""Metrics over HTTP, as Prometheus text.

Owns the small server and the translation from our registry. Never updates a number. It reads them
on the broker's own loop, so that a scrape sees one moment; the text, long with many partitions, is
made beside it. It speaks just enough HTTP for a scraper: any path is answered with the metrics,
after which the connection ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final

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
                status, body = "200 OK", await asyncio.to_thread(_text, _snapshot(self._registry))
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


def render(registry: Registry) -> bytes:
    """The registry as Prometheus text."""
    return _text(_snapshot(registry))


def _snapshot(registry: Registry) -> list[Metric]:
    """All numbers of this moment."""
    return [_translate(one) for one in registry.families() if one.metrics or one.series]


def _text(snapshot: Iterable[Metric]) -> bytes:
    from prometheus_client import generate_latest

    return generate_latest(_Collected(snapshot))


class _Collected:
    """As much of a Prometheus registry as its text is made from."""

    def __init__(self, snapshot: Iterable[Metric]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterable[Metric]:
        return self._snapshot


def _translate(family: Family) -> Metric:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    rows = list(_rows(family))
    names = [name for name, _ in rows[0][0]] if rows else []
    first = rows[0][1] if rows else 0.0
    if isinstance(first, Histogram):
        timed = HistogramMetricFamily(family.name, family.doc, labels=names)
        for labels, metric in rows:
            assert isinstance(metric, Histogram)
            timed.add_metric(_values(labels), _buckets(metric), metric.total)
        return timed
    counts = isinstance(first, Counter | Tally)
    shown = (CounterMetricFamily if counts else GaugeMetricFamily)(
        family.name, family.doc, labels=names
    )
    for labels, metric in rows:
        shown.add_metric(_values(labels), _number(metric))
    return shown


def _rows(family: Family) -> Iterator[tuple[Labels, Ours | float]]:
    yield from family.metrics.items()
    if family.series is not None:
        yield from family.series()


def _number(metric: Ours | float) -> float:
    match metric:
        case Counter() | Tally():
            return metric.value
        case int() | float():
            return metric
        case _:
            assert not isinstance(metric, Histogram)
            return metric()


def _values(labels: Labels) -> list[str]:
    return [value for _, value in labels]


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Cumulative counts, as Prometheus wants them, ending with everything."""
    bounds = [*(f"{bound:g}" for bound in histogram.bounds), "+Inf"]
    return list(zip(bounds, accumulate(histogram.counts), strict=True))
