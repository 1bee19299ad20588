"""What Kafka's own tools say of transactions, and do to those that hang."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any, Final

import confluent_kafka as ck
import pytest

from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.interop.tools_in_one import KafkaTools
from tests.raw_requests import (
    FETCH,
    NOW_MS,
    PRODUCE,
    Line,
    batch,
    create_topics,
    fetch_fields,
    produce_fields,
    produced,
)
from tools import kafka_cache

WITHIN_S: Final = 30.0
numbers: Final = itertools.count(1)
UNVERIFIED: Final = {"transaction.partition.verification.enable": "false"}
"""Without it a batch can be written that no coordinator knows of, as old brokers allowed."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(UNVERIFIED) as broker:
        yield broker


@pytest.fixture(scope="module")
def tools(broker: Broker) -> Iterator[KafkaTools]:
    try:
        tools = KafkaTools(broker.bootstrap_servers)
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    yield tools
    tools.close()


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"transacted-{next(numbers)}"
    with Line(broker.bootstrap_servers) as line:
        create_topics(line, [name])
    return name


def opened(broker: Broker, id: str, topic: str) -> ck.Producer:
    """A producer in a transaction with one record."""
    producer = ck.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": id, "linger.ms": 0}
    )
    producer.init_transactions(WITHIN_S)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    assert producer.flush(WITHIN_S) == 0
    return producer


def rows(printed: str) -> list[dict[str, str]]:
    """A table of this tool: names and values between tabs."""
    head, *lines = [line.split("\t") for line in printed.splitlines() if line.strip()]
    names = [name.strip() for name in head]
    return [dict(zip(names, map(str.strip, line), strict=False)) for line in lines]


@pytest.mark.spec("TXN-23", "TXN-24", "TXN-25")
def test_kafkas_own_formatter_reads_what_the_coordinator_persists(
    broker: Broker, topic: str, tools: KafkaTools
) -> None:
    producer = opened(broker, f"formatted-{topic}", topic)
    producer.commit_transaction(WITHIN_S)
    id = f"formatted-{topic}"
    deadline = time.monotonic() + WITHIN_S
    values: list[Any] = []
    while len(values) < 4:  # nobody waits for the last, which follows from the others
        assert time.monotonic() < deadline, values
        found = tools.formatted("__transaction_state", id, "TransactionLogMessageFormatter")
        values = [
            one["value"]["data"] for one in found if one["key"]["data"]["transactionalId"] == id
        ]
    # Empty, Ongoing, PrepareCommit, CompleteCommit
    assert [value["transactionStatus"] for value in values] == [0, 1, 2, 4]
    assert values[1]["transactionPartitions"] == [{"topic": topic, "partitionIds": [0]}]


@pytest.mark.spec("TXN-25", "TXN-42")
def test_kafka_transactions_lists_and_describes(
    broker: Broker, topic: str, tools: KafkaTools
) -> None:
    producer = opened(broker, f"listed-{topic}", topic)
    listed = rows(tools.done("kafka-transactions", "list"))
    assert (f"listed-{topic}", "Ongoing") in {
        (row["TransactionalId"], row["TransactionState"]) for row in listed
    }
    words = ("--transactional-id", f"listed-{topic}")
    [row] = rows(tools.done("kafka-transactions", "describe", *words))
    assert row["TransactionState"] == "Ongoing"
    assert row["TransactionTimeoutMs"] == "60000"
    assert row["TopicPartitions"] == f"{topic}-0"
    [held] = rows(
        tools.done("kafka-transactions", "describe-producers", "--topic", topic, "--partition", "0")
    )
    assert held["ProducerId"] == row["ProducerId"]
    assert held["CurrentTransactionStartOffset"] == "0"
    producer.commit_transaction(WITHIN_S)
    [row] = rows(tools.done("kafka-transactions", "describe", *words))
    assert row["TransactionState"] in ("PrepareCommit", "CompleteCommit")
    told = tools.run("kafka-transactions", "describe", "--transactional-id", "nobody")
    assert told.returncode == 1
    assert "the ID could not be found" in told.stderr


def hanging(broker: Broker, topic: str) -> None:
    """A batch of a transaction that no coordinator knows of, of long ago."""
    with Line(broker.bootstrap_servers) as line:
        records = batch(
            "hangs", producer_id=4_711, producer_epoch=3, base_sequence=0, transactional=True,
            timestamp=NOW_MS,
        )  # fmt: skip
        fields = {**produce_fields(topic, records), "transactional_id": "hung"}
        [said] = line.ask(PRODUCE, 9, **fields).responses[0].partition_responses
        assert said.error_code is ErrorCode.none
        assert produced(line, topic, batch("held up")).error_code is ErrorCode.none


def last_stable(broker: Broker, topic: str) -> tuple[int, int]:
    with Line(broker.bootstrap_servers) as line:
        fields = {**fetch_fields(topic), "isolation_level": 1}
        [part] = line.ask(FETCH, 12, **fields).responses[0].partitions
        return part.last_stable_offset, part.high_watermark


@pytest.mark.spec("TXN-46")
def test_kafka_transactions_finds_and_aborts_what_hangs(
    broker: Broker, topic: str, tools: KafkaTools
) -> None:
    hanging(broker, topic)
    assert last_stable(broker, topic) == (0, 2)
    words = ("--topic", topic, "--max-transaction-timeout", "15")
    [row] = rows(tools.done("kafka-transactions", "find-hanging", *words))
    assert (row["Topic"], row["ProducerId"], row["StartOffset"]) == (topic, "4711", "0")
    place = ("--topic", topic, "--partition", "0", "--start-offset", "0")
    tools.done("kafka-transactions", "abort", *place)
    deadline = time.monotonic() + WITHIN_S
    while last_stable(broker, topic) != (3, 3):  # two records, and the marker
        assert time.monotonic() < deadline
    assert rows(tools.done("kafka-transactions", "find-hanging", *words)) == []


@pytest.mark.spec("TXN-17")
def test_kafka_transactions_ends_a_transaction_by_its_id(
    broker: Broker, topic: str, tools: KafkaTools
) -> None:
    producer = opened(broker, f"ended-{topic}", topic)
    words = ("--transactionalId", f"ended-{topic}")
    tools.done("kafka-transactions", "forceTerminateTransaction", *words)
    deadline = time.monotonic() + WITHIN_S
    while last_stable(broker, topic) != (2, 2):
        assert time.monotonic() < deadline
    with pytest.raises(ck.KafkaException) as refused:
        producer.commit_transaction(WITHIN_S)
    assert refused.value.args[0].code() == ck.KafkaError._FENCED
