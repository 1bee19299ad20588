"""Two different clients write to a broker and read from it.

Never: reaches into the broker; it uses other people's clients.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ottla.cli.console import table

TOPIC: Final = "parcels"
PARTITIONS: Final = 3
RECORDS: Final = 20_000
PATIENCE_S: Final = 30
QUIET: Final = 4  # librdkafka: warnings and worse


class Row(NamedTuple):
    who: str
    did: str
    records: int
    seconds: float

    def cells(self) -> tuple[object, ...]:
        rate = self.records / max(self.seconds, 1e-9)
        return self.who, self.did, f"{self.records:,}", f"{self.seconds:.2f}", f"{rate:,.0f}"


def show(at: str) -> bool:
    """Let them write and read; whether every record came back."""
    create_topic(at)
    rows = [
        timed("confluent-kafka", "wrote with zstd", lambda: confluent_writes(at)),
        timed("kafka-python", "read them back", lambda: kafka_python_reads(at, RECORDS)),
        timed("kafka-python", "wrote with gzip", lambda: kafka_python_writes(at)),
        timed("confluent-kafka", "read everything", lambda: confluent_reads(at, 2 * RECORDS)),
    ]
    heads = ("client", "did", "records", "seconds", "a second")
    table(f"Topic {TOPIC}, {PARTITIONS} partitions", heads, [row.cells() for row in rows])
    return [row.records for row in rows] == [RECORDS, RECORDS, RECORDS, 2 * RECORDS]


def timed(who: str, did: str, work: Callable[[], int]) -> Row:
    began = time.monotonic()
    records = work()
    return Row(who, did, records, time.monotonic() - began)


def create_topic(address: str) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": address, "log_level": QUIET})
    for done in admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS)]).values():
        done.result(PATIENCE_S)


def record(number: int) -> tuple[bytes, bytes]:
    return f"customer-{number % 97}".encode(), f'{{"order": {number}, "amount": 12.5}}'.encode()


def confluent_writes(address: str) -> int:
    from confluent_kafka import Producer

    written: list[Any] = []
    producer = Producer(
        {"bootstrap.servers": address, "compression.type": "zstd", "log_level": QUIET}
    )
    for number in range(RECORDS):
        key, value = record(number)
        producer.produce(TOPIC, value, key, on_delivery=lambda error, _: written.append(error))
        producer.poll(0)
    producer.flush(PATIENCE_S)
    return sum(error is None for error in written)


def confluent_reads(address: str, expected: int) -> int:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    settings = {
        "bootstrap.servers": address,
        "group.id": "demo",  # librdkafka insists on one; nothing joins it
        "enable.auto.commit": False,
        "log_level": QUIET,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, at, OFFSET_BEGINNING) for at in range(PARTITIONS)])
    count, deadline = 0, time.monotonic() + PATIENCE_S
    while count < expected and time.monotonic() < deadline:
        count += sum(message.error() is None for message in consumer.consume(1_000, 1))
    consumer.close()
    return count


def kafka_python_writes(address: str) -> int:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=address, compression_type="gzip", acks="all")
    sent = [producer.send(TOPIC, key=k, value=v) for k, v in map(record, range(RECORDS))]
    producer.flush(PATIENCE_S)
    producer.close()
    return sum(future.succeeded() for future in sent)


def kafka_python_reads(address: str, expected: int) -> int:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
    partitions = [TopicPartition(TOPIC, at) for at in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    count, deadline = 0, time.monotonic() + PATIENCE_S
    while count < expected and time.monotonic() < deadline:
        count += sum(map(len, consumer.poll(timeout_ms=1_000, max_records=5_000).values()))
    consumer.close()
    return count
