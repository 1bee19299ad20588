"""Metrics over HTTP, as Prometheus text.

Owns the small server and the translation from our registry. Never updates a number. It answers on
the broker's own loop, so that a scrape sees one moment, and speaks just enough HTTP for a scraper:
any path is answered with the metrics, after which the connection ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from ottla.model.metrics import Counter, Family, Histogram, Labels, Registry

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
        """Listen; the port that was really taken."""
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
            status, body = ("200 OK", render(self._registry))
            if not request.startswith((b"GET ", b"HEAD ")):
                status, body = ("405 Method Not Allowed", b"only GET is answered here\n")
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
    from prometheus_client import CollectorRegistry, generate_latest

    shown = CollectorRegistry()
    shown.register(_Collector(registry))
    return generate_latest(shown)


class _Collector:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.families():
            if family.metrics:
                yield _translate(family)


def _translate(family: Family) -> Metric:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    first = next(iter(family.metrics.values()))
    names = [name for name, _ in next(iter(family.metrics))]
    shown: Metric
    if isinstance(first, Counter):
        shown = CounterMetricFamily(family.name, family.doc, labels=names)
        for labels, metric in family.metrics.items():
            assert isinstance(metric, Counter)
            shown.add_metric(_values(labels), metric.value)
    elif isinstance(first, Histogram):
        shown = HistogramMetricFamily(family.name, family.doc, labels=names)
        for labels, metric in family.metrics.items():
            assert isinstance(metric, Histogram)
            shown.add_metric(_values(labels), _buckets(metric), metric.total)
    else:
        shown = GaugeMetricFamily(family.name, family.doc, labels=names)
        for labels, metric in family.metrics.items():
            assert callable(metric)
            shown.add_metric(_values(labels), metric())
    return shown


def _values(labels: Labels) -> list[str]:
    return [value for _, value in labels]


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Cumulative counts, as Prometheus wants them, ending with everything."""
    bounds = [*(f"{bound:g}" for bound in histogram.bounds), "+Inf"]
    return list(zip(bounds, accumulate(histogram.counts), strict=True))
