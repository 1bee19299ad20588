"""No request keeps the event loop for long, however much it asks for.

A broker in a thread of its own is asked for thousands of things at once, API by API. What one
callback of its loop does between two turns is counted in calls of functions, Python's and C's: that
is the same on every machine, however busy it is. `benchmarks/stalls.py` says what it is in
milliseconds: `CALLS_MAX` are some 10 of them.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Final

import pytest

from benchmarks.largest import LARGEST, Size
from benchmarks.stalls import BROKER_THREAD, SETTINGS, framed, most_items, prepare, warm
from ottla.api import APIS
from ottla.api.api import Api
from ottla.testing import Broker
from tests.raw_requests import Line

CALLS_MAX: Final = 42_000
CALLS_MAX_OF: Final = {
    "AlterPartitionReassignments": 20_000,
    "CreatePartitions": 20_000,
    "DeleteRecords": 20_000,
    "OffsetCommit": 35_000,
    "Produce": 30_000,
    "OffsetDelete": 25_000,
    "WriteTxnMarkers": 25_000,
}
"""Of those that are handled in slices from beginning to end."""
LARGEST_CALLS_MAX: Final = 100_000
"""Of requests of the largest size: some that are read or answered in one piece, such as Produce and
UpdateMetadata, call a few functions for each of 20,000 items; some 20 ms."""
TOPICS: Final = 10
PARTITIONS: Final = 100
ITEMS: Final = 10_000
FEWER: Final = {
    "CreateTopics": 300,
    "DeleteTopics": 300,
    "CreateAcls": 1_000,
    "DeleteAcls": 1_000,
}
"""What takes far more than others for each item; in one piece these would be too many calls too."""


class Calls:
    """Counts what each callback of the broker's loop calls."""

    def __init__(self) -> None:
        self.counting = False
        self.most = 0
        self._now = 0

    def count(self, frame: FrameType, event: str, arg: object) -> None:
        if event in ("call", "c_call"):
            self._now += 1

    def begin(self) -> None:
        self.most = 0
        self.counting = True

    @contextmanager
    def of_one_callback(self) -> Iterator[None]:
        self._now = 0
        sys.setprofile(self.count)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.most = max(self.most, self._now)


@pytest.fixture(scope="module")
def calls() -> Iterator[Calls]:
    calls = Calls()
    plain = asyncio.Handle._run

    def run(self: asyncio.Handle) -> None:
        if calls.counting and threading.current_thread().name == BROKER_THREAD:
            with calls.of_one_callback():
                plain(self)
        else:
            plain(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.Handle, "_run", run)
        yield calls


@pytest.fixture(scope="module")
def broker(calls: Calls) -> Iterator[Broker]:
    with Broker(SETTINGS) as broker:
        yield broker


@pytest.fixture(scope="module")
def size(broker: Broker) -> Size:
    with Line(broker.bootstrap_servers, 120.0) as line:
        size = prepare(line, TOPICS, PARTITIONS, ITEMS)
        warm(line, size)
    return size


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_no_request_keeps_the_loop_for_long(
    broker: Broker, calls: Calls, size: Size, api: Api
) -> None:
    for one in LARGEST[api.name]:
        items = FEWER.get(api.name, ITEMS)
        most = most_calls(broker, calls, framed(api, one, replace(size, items=items)))
        assert most < CALLS_MAX_OF.get(api.name, CALLS_MAX), f"{api.name} {one.note}"


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_no_request_of_the_largest_size_keeps_the_loop_for_long(
    broker: Broker, calls: Calls, size: Size, api: Api
) -> None:
    """As many items as one request may have."""
    for one in LARGEST[api.name]:
        items = FEWER[api.name] if one.makes_topics else most_items(api, one, size)
        most = most_calls(broker, calls, framed(api, one, replace(size, items=items)))
        assert most < LARGEST_CALLS_MAX, f"{api.name} {one.note}: {items} items"


def most_calls(broker: Broker, calls: Calls, frame: bytes) -> int:
    """Of one callback of the broker's loop while it answers this request."""
    with Line(broker.bootstrap_servers, 240.0) as line:
        calls.begin()
        line.send(frame)
        assert line.receive() is not None, "it may be asked for so much"
        calls.counting = False
    return calls.most


def test_every_api_is_asked_for_as_much_as_it_may_be() -> None:
    assert LARGEST.keys() == {api.name for api in APIS}
