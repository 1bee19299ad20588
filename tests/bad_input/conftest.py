"""One broker for all bad input, its log lines, and a clock that can be moved on.

The broker has two listeners, one for clients and one for brokers, because what may be asked
depends on where it is asked. Its complaints about peers are limited in number for each ten
seconds: a test moves on ten seconds first, and then sees each of them.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from ottla.broker.app import App
from ottla.broker.environment import Environment
from ottla.model.clock import MonoMs, SystemClock
from ottla.testing import Broker
from tests.raw_requests import Line, create_topics

SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "record.validation": "full",
    "socket.request.max.bytes": str(8 << 20),
    "message.max.bytes": str(1 << 20),
    "auto.create.topics.enable": "false",
}
MakeTopic = Callable[..., str]


class MovableClock(SystemClock):
    """The machine's clock, and what a test has added to it."""

    def __init__(self) -> None:
        self.added_ms = 0

    def mono_ns(self) -> int:
        return super().mono_ns() + self.added_ms * 1_000_000

    def mono_ms(self) -> MonoMs:
        return MonoMs(super().mono_ms() + self.added_ms)


class BrokerOnClock(Broker):
    """The broker of `ottla.testing`, with a clock of the test's."""

    clock: MovableClock

    def _build(self) -> App:
        built = super()._build()
        self.clock = MovableClock()
        return App(built.dynamic.static, replace(Environment.real(), clock=self.clock))


@pytest.fixture(scope="package")
def broker() -> Iterator[BrokerOnClock]:
    with BrokerOnClock(SETTINGS) as running:
        yield running


@pytest.fixture
def clients(broker: BrokerOnClock) -> str:
    """Where clients connect."""
    return broker.bootstrap_servers.split(",")[0]


@pytest.fixture
def brokers(broker: BrokerOnClock) -> str:
    """Where brokers connect."""
    return broker.bootstrap_servers.split(",")[1]


@pytest.fixture
def line(clients: str) -> Iterator[Line]:
    with Line(clients) as opened:
        yield opened


@pytest.fixture
def complaints(broker: BrokerOnClock, caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What the broker logs from here on, at warning or above."""
    broker.clock.added_ms += 10_000
    caplog.set_level(logging.WARNING)

    def lines() -> list[str]:
        return [record.getMessage() for record in caplog.records]

    return lines


@pytest.fixture(scope="package")
def make_topic(broker: BrokerOnClock) -> MakeTopic:
    numbers = itertools.count()

    def make(partitions: int = 1, **settings: str) -> str:
        name = f"topic-{next(numbers)}"
        with Line(broker.bootstrap_servers.split(",")[0]) as line:
            create_topics(line, [name], partitions, **settings)
        return name

    return make
