"""The longest piece of the event loop's CPU time that one request of each API takes.

A broker with ten thousand partitions runs in a thread of its own; one connection asks it for
everything at once, API by API (`benchmarks/largest.py`). A piece is one callback of the loop, from
its start to where it gives the loop back; it is measured in CPU time of the thread, so that other
programs on the machine do not count. While one piece runs every other request waits.

    python -m benchmarks.stalls [TOPICS] [PARTITIONS] [ITEMS]
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from benchmarks.largest import LARGEST, Largest, Size
from ottla.api import APIS
from ottla.api.api import Api
from ottla.broker.lifecycle import GC_THRESHOLDS
from ottla.protocol import wire
from ottla.testing import Broker
from tests.asking import CREATE_TOPICS, METADATA, Line

BOUND_MS: Final = 20.0
SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "metrics.port": "0",
}
BROKER_THREAD: Final = "ottla-broker"
_WAIT_S: Final = 600.0


class Pieces:
    """Measures the callbacks of the broker's loop."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self.longest_of = ""
        self.total_ms = 0.0

    def begin(self) -> None:
        self.longest_ms = self.total_ms = 0.0
        self.longest_of = ""

    def note(self, took_ms: float, handle: asyncio.Handle) -> None:
        self.total_ms += took_ms
        if took_ms > self.longest_ms:
            self.longest_ms = took_ms
            self.longest_of = repr(handle)[:200]


@contextmanager
def measured(pieces: Pieces) -> Iterator[None]:
    """Every callback of the broker's thread is measured."""
    plain = asyncio.Handle._run

    def run(self: asyncio.Handle) -> None:
        if threading.current_thread().name != BROKER_THREAD:
            plain(self)
            return
        shown = repr(self)[:200] if VERBOSE else ""
        began = time.thread_time()
        plain(self)
        took = (time.thread_time() - began) * 1e3
        pieces.note(took, self)
        if shown and took > BOUND_MS:
            print("    ", round(took, 1), shown)

    asyncio.Handle._run = run  # type: ignore[method-assign]
    try:
        yield
    finally:
        asyncio.Handle._run = plain  # type: ignore[method-assign]


VERBOSE = False


def main(topics: int = 100, partitions: int = 100, items: int = 10_000) -> int:
    gc.set_threshold(*GC_THRESHOLDS)
    pieces = Pieces()
    with (
        measured(pieces),
        Broker(SETTINGS) as broker,
        Line(broker.bootstrap_servers, _WAIT_S) as line,
    ):
        size = prepare(line, topics, partitions, items)
        print(f"making {topics * partitions} partitions: {pieces.longest_ms:.1f} ms at most")
        warm(line, size)
        gc.freeze()  # as a broker does once it has started, and what is of the benchmark itself
        over = 0
        for api in APIS:
            for one in LARGEST[api.name]:
                over += _measure(api, one, size, line, pieces)
    return 1 if over else 0


def _measure(api: Api, one: Largest, size: Size, line: Line, pieces: Pieces) -> bool:
    frame = framed(api, one, size)
    gc.collect(1)
    pieces.begin()
    began = time.perf_counter()
    line.send(frame)
    reply = line.receive()
    took_s = time.perf_counter() - began
    name = f"{api.name} ({one.note})" if one.note else api.name
    over = pieces.longest_ms > BOUND_MS
    said = " closed" if reply is None else "  over" if over else ""
    print(
        f"{name:45} longest {pieces.longest_ms:8.2f} ms, in all {pieces.total_ms:9.1f} ms CPU, "
        f"answered in {took_s:6.2f} s{said}",
        flush=True,
    )
    return over


def warm(line: Line, size: Size) -> None:
    """The first request of a version makes what reads and writes it, once: that is not meant."""
    small = replace(size, items=1, topics=1, partitions=1)
    for api in APIS:
        for one in LARGEST[api.name]:
            line.send(framed(api, one, small))
            line.receive()


def framed(api: Api, one: Largest, size: Size) -> bytes:
    version = api.versions[one.version] if one.version < 0 else one.version
    return wire.encode_request(api.key, version, 1, "stalls", one.fields(size))


def prepare(line: Line, topics: int, partitions: int, items: int) -> Size:
    """Make the topics, and a group coordinator; what the requests are about."""
    size = Size(topics, partitions, items, {})
    made: dict[str, Any] = {}
    for name in size.names:
        new = {
            "name": name, "num_partitions": partitions, "replication_factor": 1,
            "assignments": [], "configs": [],
        }  # fmt: skip
        told = line.ask(
            CREATE_TOPICS, 7, topics=[new], timeout=int(_WAIT_S * 1000), validate_only=False
        )
        made[name] = told.topics[0].topic_id
    for kind in (0, 1):
        line.ask(10, 6, key_type=kind, coordinator_keys=["large"])
    line.ask(
        METADATA,
        12,
        topics=[],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    return Size(topics, partitions, items, made)


if __name__ == "__main__":
    VERBOSE = "-v" in sys.argv
    sys.exit(main(*map(int, [one for one in sys.argv[1:] if one != "-v"])))
