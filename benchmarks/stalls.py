"""The longest piece of the event loop's CPU time that one request of each API takes.

A broker with ten thousand partitions runs in a thread of its own; one connection asks it for
everything at once, API by API (`benchmarks/largest.py`). A piece is one callback of the loop, from
its start to where it gives the loop back; it is measured in CPU time of the thread, so that other
programs on the machine do not count. While one piece runs every other request waits.

    python -m benchmarks.stalls [--verbose] [--bound MS] [--only API,API...] [--largest] [SIZE...]

The sizes are topics, partitions of each and items of a request. With `--largest` each API is asked
for as many items as the cap on a request's values lets through, unless topics are made or deleted.

Meanwhile a second connection produces records, one after another; its longest wait is printed, too.
That is wall-clock time: on a busy machine it says little.

CPU time too is longer on a busy machine, where programs share caches and the parts of a core. So a
fixed amount of work is done after each longer piece, three times; the piece is taken to be slower
by as much as the quickest of them is slower than the quickest ever. Both times are printed.

With `--verbose` it prints the stack of every piece that is over the bound.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from faulthandler import dump_traceback
from tempfile import TemporaryFile
from typing import Any, Final, TextIO

from benchmarks.largest import LARGEST, Largest, Size
from ottla.api import APIS
from ottla.api.api import Api
from ottla.broker.lifecycle import GC_THRESHOLDS, SWITCH_S
from ottla.model.errors import Disconnect
from ottla.protocol import wire
from ottla.protocol.length_check import MAX_VALUES, walk_of
from ottla.protocol.schema import MessageKind, message
from ottla.testing import Broker
from tests.raw_requests import CREATE_TOPICS, METADATA, Line, batch, create_topics, produced

BOUND_MS: Final = 20.0
SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "metrics.port": "0",
}
AFTER: Final = {"DescribeAcls": 30.5, "DescribeClientQuotas": 49.5}
"""Asked for once there is something to describe; all others in the order of their keys."""
BROKER_THREAD: Final = "ottla-broker"
DEFAULT_SIZES: Final = (100, 100, 10_000)
_WAIT_S: Final = 600.0
_PRODUCE_EACH_S: Final = 0.002
_SAMPLE_S: Final = 0.001
_STACK_DEPTH: Final = 7


class Pieces:
    """Measures the callbacks of the broker's loop."""

    def __init__(self, *, verbose: bool = False, bound_ms: float = BOUND_MS) -> None:
        self.verbose = verbose
        self.bound_ms = bound_ms
        self.longest_ms = 0.0
        self.measured_ms = 0.0
        """The longest, without taking into account how busy the machine was."""
        self.total_ms = 0.0
        self.running_since: float | None = None
        self.stack = ""
        self._collecting = 0.0
        self._quickest_ms = min(_fixed_work_ms() for _ in range(500))

    def on_collection(self, phase: str, info: dict[str, int]) -> None:
        """Garbage collection is in the piece that it happens in; it is told apart by its note."""
        if phase == "start":
            self._collecting = time.thread_time()
            return
        took_ms = (time.thread_time() - self._collecting) * 1e3
        if self.running_since is not None and took_ms > self.bound_ms / 4:
            self.stack += f"      garbage collection {info['generation']}: {took_ms:.1f} ms\n"

    def begin(self) -> None:
        self.longest_ms = self.measured_ms = self.total_ms = 0.0

    def note(self, took_ms: float) -> None:
        self.total_ms += took_ms
        self.measured_ms = max(self.measured_ms, took_ms)
        if took_ms <= self.longest_ms:
            return
        if took_ms > self.bound_ms / 4:
            fixed_ms = min(_fixed_work_ms() for _ in range(3))
            self._quickest_ms = min(self._quickest_ms, fixed_ms)
            took_ms *= self._quickest_ms / fixed_ms
        self.longest_ms = max(self.longest_ms, took_ms)
        if self.verbose and took_ms > self.bound_ms:
            print(f"    {took_ms:.1f} ms\n{self.stack}", flush=True)


def _fixed_work_ms() -> float:
    """The CPU time of something like what a request takes: about half a millisecond."""
    began = time.thread_time()
    {str(number): {"number": number} for number in range(1_500)}
    return (time.thread_time() - began) * 1e3


@contextmanager
def measured(pieces: Pieces) -> Iterator[None]:
    """Every callback of the broker's thread is measured."""
    plain = asyncio.Handle._run

    def run(self: asyncio.Handle) -> None:
        if threading.current_thread().name != BROKER_THREAD:
            plain(self)
            return
        pieces.stack = ""
        pieces.running_since = time.perf_counter()
        began = time.thread_time()
        plain(self)
        took_ms = (time.thread_time() - began) * 1e3
        pieces.running_since = None
        pieces.note(took_ms)

    asyncio.Handle._run = run  # type: ignore[method-assign]
    gc.callbacks.append(pieces.on_collection)
    ended = threading.Event()
    sampler = threading.Thread(target=_sample, args=(pieces, ended), daemon=True)
    if pieces.verbose:
        sampler.start()
    try:
        yield
    finally:
        asyncio.Handle._run = plain  # type: ignore[method-assign]
        gc.callbacks.remove(pieces.on_collection)
        ended.set()


def _sample(pieces: Pieces, ended: threading.Event) -> None:
    """Note where the broker's thread is, while a callback takes long."""
    with TemporaryFile("w+") as file:
        while not ended.wait(_SAMPLE_S):
            since = pieces.running_since
            if since is None or time.perf_counter() - since < pieces.bound_ms / 2e3:
                continue
            for thread in threading.enumerate():
                if thread.name == BROKER_THREAD:
                    pieces.stack += _stack(thread, file) + "\n      --\n"


def _stack(thread: threading.Thread, file: TextIO) -> str:
    """The innermost calls of a thread. Not by frame objects: Python 3.11 crashes on those of a
    thread that goes on meanwhile."""
    file.seek(0)
    file.truncate()
    dump_traceback(file)
    file.seek(0)
    of_thread = file.read().partition(f"0x{thread.ident:016x}")[2].partition("\n\n")[0]
    return "\n".join(of_thread.splitlines()[1 : 1 + _STACK_DEPTH])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbose", "-v", action="store_true")
    parser.add_argument("--bound", type=float, default=BOUND_MS, metavar="MS")
    parser.add_argument("--largest", action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("sizes", type=int, nargs="*", metavar="SIZE")
    options = parser.parse_args(arguments)
    sizes: list[int] = options.sizes
    topics, partitions, items = (*sizes, *DEFAULT_SIZES[len(sizes) :])
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_S)
    pieces = Pieces(verbose=options.verbose, bound_ms=options.bound)
    with ExitStack() as stack:
        stack.enter_context(measured(pieces))
        broker = stack.enter_context(Broker(SETTINGS))
        line = stack.enter_context(Line(broker.bootstrap_servers, _WAIT_S))
        size = prepare(line, topics, partitions, items)
        print(f"making {topics * partitions} partitions: {pieces.longest_ms:.1f} ms at most")
        warm(line, size)
        waits = stack.enter_context(producing(broker.bootstrap_servers))
        gc.freeze()  # as a broker does once it has started, and what is of the benchmark itself
        over = 0
        for api in sorted(APIS, key=lambda api: AFTER.get(api.name, api.key)):
            if options.only and api.name not in options.only:
                continue
            for one in LARGEST[api.name]:
                items = most_items(api, one, size) if options.largest else size.items
                frame = framed(api, one, replace(size, items=items))
                label = f"{api.name} ({one.note})" if one.note else api.name
                over += _measure(label, frame, broker.bootstrap_servers, pieces, waits)
                if options.largest:
                    print(f"    {items:,} items", flush=True)
    return 1 if over else 0


def _measure(name: str, frame: bytes, address: str, pieces: Pieces, waits: Waits) -> bool:
    gc.collect(1)
    pieces.begin()
    waits.longest_ms = 0.0
    began = time.perf_counter()
    with Line(address, _WAIT_S) as line:
        line.send(frame)
        reply = line.receive()
    took_s = time.perf_counter() - began
    over = pieces.longest_ms > pieces.bound_ms
    said = " closed" if reply is None else "  over" if over else ""
    print(
        f"{name:45} longest {pieces.longest_ms:8.2f} ms ({pieces.measured_ms:.1f} as measured), "
        f"in all {pieces.total_ms:9.1f} ms CPU, "
        f"answered in {took_s:6.2f} s, a producer waited {waits.longest_ms:6.1f} ms{said}",
        flush=True,
    )
    return over


class Waits:
    """How long a producer of single records has waited for an answer, at most."""

    def __init__(self) -> None:
        self.longest_ms = 0.0


@contextmanager
def producing(address: str) -> Iterator[Waits]:
    """Produce small records from a thread of its own."""
    waits, ended = Waits(), threading.Event()

    def produce() -> None:
        with Line(address, _WAIT_S) as line:
            create_topics(line, ["waiting"])
            records = batch("v")
            while not ended.wait(_PRODUCE_EACH_S):
                began = time.perf_counter()
                produced(line, "waiting", records)
                waits.longest_ms = max(waits.longest_ms, (time.perf_counter() - began) * 1e3)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield waits
    finally:
        ended.set()
        thread.join()


def most_items(api: Api, one: Largest, size: Size) -> int:
    """As many items as the cap on the values of one request lets through."""
    if one.makes_topics:
        return size.items
    used = {count: _values(api, one, replace(size, items=count)) for count in (1, size.items)}
    each = (used[size.items] - used[1]) / max(size.items - 1, 1)
    if each < 0.5:
        return size.items  # it names nothing that can be many
    items = int((MAX_VALUES - used[1]) / each)
    while _values(api, one, replace(size, items=items)) > MAX_VALUES:
        items = items * 99 // 100
    return items if one.most is None else min(items, one.most)


def _values(api: Api, one: Largest, size: Size) -> int:
    """How many values the check of lengths counts in this request."""
    frame = memoryview(framed(api, one, size))[4:]
    call = wire.parse_call(frame)
    walk = walk_of(message(call.key, call.version, MessageKind.REQUEST))
    try:
        return MAX_VALUES - walk(frame, call.body_at, MAX_VALUES)[1]
    except Disconnect:
        return MAX_VALUES + 1


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
    sys.exit(main(sys.argv[1:]))
