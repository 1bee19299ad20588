"""Metrics over HTTP, as a scraper reads them."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ottla.broker.metrics_server import (
    CONNECTIONS_MAX,
    PAGE_MS,
    RESPONSES_PER_SECOND,
    ROWS_AT_ONCE,
    MetricsServer,
    render,
)
from ottla.model.clock import SystemClock
from ottla.model.metrics import Registry
from tests.fakes.manual_time import ManualClock


def a_registry() -> Registry:
    registry = Registry()
    registry.counter("bytes_in_total", "Bytes.", topic="a").value = 5
    registry.counter("bytes_in_total", "Bytes.", topic='b"\\').value = 7
    registry.tally("evictions_total", "Evictions.", lambda: 3)
    registry.gauge("size", "Size.", lambda: 2.5)
    registry.series("log_size", "Log size.", lambda: [((("topic", "a"),), 1)])
    registry.series("nothing", "Of nothing.", list)
    for ms in (0.01, 3, 99_999):
        registry.histogram("time_ms", "Time.", request="Fetch").observe(ms)
    registry.counter("gone_total", "Gone.", topic="c")
    registry.forget(topic="c")
    return registry


def parse_page(text: bytes) -> dict[str, float]:
    return {
        "".join([sample.name, *(f" {k}={v}" for k, v in sorted(sample.labels.items()))]): (
            sample.value
        )
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


@pytest.mark.spec("MON-01")
def test_every_kind_of_metric_is_said_in_prometheus_text() -> None:
    values = parse_page(render(a_registry()))
    assert values["bytes_in_total topic=a"] == 5
    assert values['bytes_in_total topic=b"\\'] == 7
    assert values["evictions_total"] == 3
    assert values["size"] == 2.5
    assert values["log_size topic=a"] == 1
    assert values["time_ms_bucket le=0.05 request=Fetch"] == 1
    assert values["time_ms_bucket le=5 request=Fetch"] == 2
    assert values["time_ms_bucket le=+Inf request=Fetch"] == 3
    assert values["time_ms_count request=Fetch"] == 3
    assert values["time_ms_sum request=Fetch"] == pytest.approx(100_002.01)
    assert not [name for name in values if name.startswith(("gone", "nothing"))]
    assert b"# TYPE nothing gauge" in render(a_registry())


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.spec("MON-01")
@pytest.mark.real_loop
async def test_a_scraper_gets_the_page_and_anything_else_a_plain_answer() -> None:
    registry = a_registry()
    exposition = MetricsServer(registry, SystemClock())
    port = await exposition.start("", 0)
    try:
        head, _, body = (await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK")
        assert f"Content-Length: {len(body)}".encode() in head
        assert body == render(registry)
        head, _, body = (await ask(port, b"HEAD / HTTP/1.1\r\n\r\n")).partition(b"\r\n\r\n")
        assert (head[:15], body) == (b"HTTP/1.1 200 OK", b"")
        assert b" 405 " in await ask(port, b"POST / HTTP/1.1\r\n\r\n")
        assert await ask(port, b"x" * 100_000) == b"", "endless heads are cut off"
    finally:
        await exposition.stop()


@pytest.mark.spec("MON-01")
@pytest.mark.real_loop
@pytest.mark.parametrize(
    "line_and_headers",
    [
        "GET /metrics?name[]=size HTTP/1.1",
        "GET /../../etc/passwd HTTP/1.1",
        "GET http://elsewhere/ HTTP/1.1",
        "GET / HTTP/1.1\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: GET",
        "GET / HTTP/1.1\r\nHost: evil.example\r\nCookie: a=b\r\nAuthorization: Basic eDp5",
        "GET / HTTP/1.1\r\nX-Forwarded-For: 10.0.0.1\r\nAccept-Encoding: gzip",
    ],
)
async def test_a_path_a_query_or_a_header_changes_nothing_and_no_other_site_may_read_it(
    line_and_headers: str,
) -> None:
    registry = a_registry()
    exposition = MetricsServer(registry, SystemClock())
    port = await exposition.start("127.0.0.1", 0)
    try:
        expected = await ask(port, GET)
        assert await ask(port, line_and_headers.encode() + b"\r\n\r\n") == expected
        preflight = await ask(port, b"OPTIONS / HTTP/1.1\r\nOrigin: https://evil.example\r\n\r\n")
    finally:
        await exposition.stop()
    head = expected.partition(b"\r\n\r\n")[0]
    assert b"Cache-Control: no-store" in head
    assert preflight.startswith(b"HTTP/1.1 405 ")
    for answer in (head, preflight):
        assert b"access-control-" not in answer.lower()
        assert b"evil" not in answer


@pytest.mark.real_loop
async def test_others_have_their_turn_between_metrics_of_two_names() -> None:
    registry = Registry()
    seen: list[int] = []
    turns = 0

    def read() -> float:
        seen.append(turns)
        return 0.0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    for name in ("first", "second", "third"):
        registry.gauge(name, "Read.", read)
    exposition = MetricsServer(registry, SystemClock())
    port = await exposition.start("", 0)
    counting = asyncio.ensure_future(count())
    try:
        await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")
    finally:
        counting.cancel()
        await exposition.stop()
    assert len(set(seen)) == 3


class Counted:
    """A registry with one gauge that counts how often it was read."""

    def __init__(self) -> None:
        self.registry, self.reads = Registry(), 0
        self.registry.gauge("reads", "Reads.", self._read)

    def _read(self) -> float:
        self.reads += 1
        return self.reads


async def a_moment() -> None:
    await asyncio.sleep(0.001)


GET = b"GET /metrics HTTP/1.1\r\n\r\n"


@pytest.mark.real_loop
async def test_whoever_asks_within_a_second_gets_the_same_page() -> None:
    counted, clock = Counted(), ManualClock(1_000)
    exposition = MetricsServer(counted.registry, clock)
    port = await exposition.start("127.0.0.1", 0)
    try:
        together = await asyncio.gather(*(ask(port, GET) for _ in range(5)))
        assert len(set(together)) == 1
        assert counted.reads == 1
        clock.ns += (PAGE_MS - 1) * 1_000_000
        assert await ask(port, GET) == together[0]
        clock.ns += 1_000_000
        assert await ask(port, GET) != together[0]
        assert counted.reads == 2
    finally:
        await exposition.stop()


@pytest.mark.real_loop
async def test_so_many_are_answered_a_second_and_others_wait() -> None:
    exposition = MetricsServer(Counted().registry, SystemClock())
    port = await exposition.start("127.0.0.1", 0)
    more = 6
    try:
        began = time.monotonic()
        responses = (ask(port, GET) for _ in range(RESPONSES_PER_SECOND + more))
        assert all(await asyncio.gather(*responses))
        took = time.monotonic() - began
    finally:
        await exposition.stop()
    assert took >= (more - 1) / RESPONSES_PER_SECOND


@pytest.mark.real_loop
async def test_connections_beyond_the_limit_are_closed_and_places_are_given_back() -> None:
    exposition = MetricsServer(Counted().registry, SystemClock())
    port = await exposition.start("127.0.0.1", 0)
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS_MAX)]
    try:
        while exposition._connections < CONNECTIONS_MAX:
            await a_moment()
        with suppress(ConnectionResetError):
            assert await ask(port, GET) == b""
        for _, writer in silent:
            writer.close()
        while exposition._connections:
            await a_moment()
        assert await ask(port, GET)
    finally:
        await exposition.stop()


def test_a_page_of_many_numbers_is_made_in_pieces_and_is_the_same() -> None:
    registry = Registry()
    count = 3 * ROWS_AT_ONCE + 7
    for number in range(count):
        registry.counter("many_total", "Many.", topic=f"t{number}").value = number
    page = render(registry)
    assert page.count(b"# TYPE many_total") == page.count(b"# HELP many_total") == 1
    assert parse_page(page) == {f"many_total topic=t{number}": number for number in range(count)}
