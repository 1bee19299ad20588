"""Groups of one to eight members that join, leave, crash and rejoin under load, by any client.

Every record goes to exactly one member of a generation, no partition has two owners at a time,
committed offsets only rise, nothing is left unread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from ottla.testing import Broker
from ottla.testing.history import FINAL, Event, Poll, check
from tests.interop.churn import play
from tools import kafka_cache

SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",  # so that a crash is noticed soon
    "offsets.topic.num.partitions": "4",  # each is synced when the broker stops
}
ALL: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
STRATEGIES: Final[Mapping[str, Sequence[str]]] = {
    "confluent-kafka": ("range", "roundrobin", "cooperative-sticky"),
    "kafka-python": ALL,
    "aiokafka": ("range", "roundrobin", "sticky"),
    "java-3.9": ALL,
    "java-4": ALL,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as broker:
        yield broker


@pytest.mark.spec("GRP-01", "GRP-22", "GRP-36", "GRP-44", "GRP-46", "GRP-60")
@pytest.mark.parametrize("client", STRATEGIES)
def test_members_come_go_crash_and_come_back_under_load(
    broker: Broker, client: str, tmp_path: Path
) -> None:
    try:
        history = play(client, STRATEGIES[client], broker.bootstrap_servers, tmp_path)
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    assert check(history) == []
    assert delivered(history) == written(history)


def delivered(history: Sequence[Event]) -> set[tuple[str, int]]:
    """What members of groups were given at all."""
    return {
        (event.partition, offset)
        for event in history
        if isinstance(event, Poll) and event.process != FINAL
        for offset, _ in event.records
    }


def written(history: Sequence[Event]) -> set[tuple[str, int]]:
    return {
        (event.partition, offset)
        for event in history
        if isinstance(event, Poll) and event.process == FINAL
        for offset, _ in event.records
    }
