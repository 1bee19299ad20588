"""A compacted topic is read poll by poll as Apache Kafka's is, by Kafka's own consumer.

The same records are written to both, compacted in one round, and read from the beginning. A poll
that returns nothing although records follow would end a program that stops at an empty poll.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

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

TOPIC: Final = "compacted"
TIMEOUT_S: Final = 60.0
LARGE: Final = b"x" * 200_000  # five of these fill a segment
SETTINGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "3600000",  # until everything is written
}
LARGE_KEYS: Final = 20
Node = Callable[[Path], AbstractContextManager[nodes.Node]]


def ottla(folder: Path) -> AbstractContextManager[nodes.Node]:
    return nodes.ottla(folder, EAGER)


def kafka(folder: Path) -> AbstractContextManager[nodes.Node]:
    return nodes.kafka(folder, EAGER, options=nodes.QUICK_JVM)


def write(bootstrap: str, records: Iterator[tuple[bytes, bytes | None]], **more: object) -> None:
    """Each record in a batch of its own."""
    producer = Producer({"bootstrap.servers": bootstrap, **more})
    for key, value in records:
        producer.produce(TOPIC, key=key, value=value, partition=0)
        assert producer.flush(TIMEOUT_S) == 0


def overtaken(bootstrap: str, *, idempotent: bool) -> None:
    """Whole segments of which nothing stays; then small records, and enough to close those."""
    keys = [b"key-%d" % number for number in range(LARGE_KEYS)]
    write(bootstrap, ((key, LARGE) for key in keys), **{"enable.idempotence": idempotent})
    write(bootstrap, ((key, b"new") for key in keys))
    write(bootstrap, ((b"last-%d" % number, LARGE) for number in range(6)))


def aborted(bootstrap: str) -> None:
    """The same with a transaction that was aborted in front, and one that was committed."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer"})
    producer.init_transactions(TIMEOUT_S)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for number in range(7):
            producer.produce(TOPIC, key=b"txn-%d" % number, value=LARGE, partition=0)
            producer.flush(TIMEOUT_S)
        end(TIMEOUT_S)
    overtaken(bootstrap, idempotent=False)


def compact(node: nodes.Node) -> None:
    """One round over everything but the last segment."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    entry = ConfigEntry("min.compaction.lag.ms", "0", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(TIMEOUT_S)
    active = max(int(path.stem) for path in (node.data_dir / f"{TOPIC}-0").glob("*.log"))
    checkpoint = node.data_dir / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + TIMEOUT_S
    while not checkpoint.exists() or f"{TOPIC} 0 {active}\n" not in checkpoint.read_text():
        assert time.monotonic() < deadline, f"not compacted up to {active}"
        time.sleep(0.05)


def polls(start: Node, folder: Path, fill: Callable[[str], None]) -> list[str]:
    """What each poll returned."""
    with start(folder) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        for made in admin.create_topics([NewTopic(TOPIC, 1, 1, config=SETTINGS)]).values():
            made.result(TIMEOUT_S)
        fill(node.bootstrap)
        compact(node)
        consumer = Java4Client(node.bootstrap)
        try:
            return consumer.ask("polls", TOPIC, consumer.offset_at(TOPIC, -1))
        finally:
            consumer.close()


FILLED: Final[dict[str, Callable[[str], None]]] = {
    "overtaken": lambda bootstrap: overtaken(bootstrap, idempotent=False),
    "by an idempotent producer": lambda bootstrap: overtaken(bootstrap, idempotent=True),
    "with transactions": aborted,
}


@pytest.mark.parametrize("fill", FILLED)
def test_a_compacted_topic_is_read_poll_by_poll_as_kafkas(tmp_path: Path, fill: str) -> None:
    try:
        expected = polls(kafka, tmp_path / "kafka", FILLED[fill])
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    found = polls(ottla, tmp_path / "ottla", FILLED[fill])
    assert found == expected
    if fill == "overtaken":
        assert "-" not in found, "records follow"
