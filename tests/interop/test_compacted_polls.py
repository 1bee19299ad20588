"""A compacted topic is read poll by poll as Apache Kafka's is, by Kafka's own consumer.

The same records are written to both, compacted in one round, and read from the beginning. A poll
that returns nothing although records follow would end a program that stops at an empty poll.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Final, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.interop.java_client import Java4Client
from tests.interop.kafka_data import EAGER
from tools import kafka_cache, nodes

TIMEOUT_S: Final = 60.0
LARGE: Final = b"x" * 200_000  # five of these fill a segment
SETTINGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "3600000",  # until everything is written
}
LARGE_KEYS: Final = 20


class Side(NamedTuple):
    """A broker, and Java's client that reads from it."""

    node: nodes.Node
    reader: Java4Client


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Apache Kafka's, and ours."""
    folder = tmp_path_factory.mktemp("compacted")
    with ExitStack() as stack:
        try:
            kafka = nodes.kafka(folder / "kafka", EAGER, options=nodes.QUICK_JVM)
            theirs = side(stack, stack.enter_context(kafka))
        except kafka_cache.Missing as missing:
            pytest.skip(str(missing))
        ottla = stack.enter_context(nodes.ottla(folder / "ottla", EAGER))
        yield theirs, side(stack, ottla)


def side(stack: ExitStack, node: nodes.Node) -> Side:
    return Side(node, stack.enter_context(closing(Java4Client(node.bootstrap))))


def write(
    bootstrap: str, topic: str, records: Iterator[tuple[bytes, bytes | None]], **more: object
) -> None:
    """Each record in a batch of its own."""
    producer = Producer({"bootstrap.servers": bootstrap, **more})
    for key, value in records:
        producer.produce(topic, key=key, value=value, partition=0)
        assert producer.flush(TIMEOUT_S) == 0


def overtaken(bootstrap: str, topic: str, *, idempotent: bool) -> None:
    """Whole segments of which nothing stays; then small records, and enough to close those."""
    keys = [b"key-%d" % number for number in range(LARGE_KEYS)]
    write(bootstrap, topic, ((key, LARGE) for key in keys), **{"enable.idempotence": idempotent})
    write(bootstrap, topic, ((key, b"new") for key in keys))
    write(bootstrap, topic, ((b"last-%d" % number, LARGE) for number in range(6)))


def aborted(bootstrap: str, topic: str) -> None:
    """The same with a transaction that was aborted in front, and one that was committed."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer"})
    producer.init_transactions(TIMEOUT_S)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for number in range(7):
            producer.produce(topic, key=b"txn-%d" % number, value=LARGE, partition=0)
            producer.flush(TIMEOUT_S)
        end(TIMEOUT_S)
    overtaken(bootstrap, topic, idempotent=False)


def compact(node: nodes.Node, topic: str) -> None:
    """One round over everything but the last segment."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    entry = ConfigEntry("min.compaction.lag.ms", "0", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(TIMEOUT_S)
    active = max(int(path.stem) for path in (node.data_dir / f"{topic}-0").glob("*.log"))
    checkpoint = node.data_dir / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + TIMEOUT_S
    while not checkpoint.exists() or f"{topic} 0 {active}\n" not in checkpoint.read_text():
        assert time.monotonic() < deadline, f"not compacted up to {active}"
        time.sleep(0.05)


def polls(side: Side, topic: str, fill: Callable[[str, str], None]) -> list[str]:
    """What each poll returned."""
    node, reader = side
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for made in admin.create_topics([NewTopic(topic, 1, 1, config=SETTINGS)]).values():
        made.result(TIMEOUT_S)
    fill(node.bootstrap, topic)
    compact(node, topic)
    return reader.ask("polls", topic, reader.offset_at(topic, -1))


FILLED: Final[dict[str, Callable[[str, str], None]]] = {
    "overtaken": lambda *where: overtaken(*where, idempotent=False),
    "by an idempotent producer": lambda *where: overtaken(*where, idempotent=True),
    "with transactions": aborted,
}


@pytest.mark.parametrize("fill", FILLED)
def test_a_compacted_topic_is_read_poll_by_poll_as_kafkas(
    sides: tuple[Side, Side], fill: str
) -> None:
    topic = fill.replace(" ", "-")
    expected, found = (polls(each, topic, FILLED[fill]) for each in sides)
    assert found == expected
    if fill == "overtaken":
        assert "-" not in found, "records follow"
