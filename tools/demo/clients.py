"""Two different clients write to a broker and read from it.

Never: reaches into the broker; it uses other people's clients.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

TOPIC: Final = "parcels"
PARTITIONS: Final = 3
RECORDS: Final = 20_000
PATIENCE_S: Final = 30
QUIET: Final = 4  # librdkafka: warnings and worse


class Timed(NamedTuple):
    records: int
    seconds: float

    @property
    def rate(self) -> str:
        return f"{self.records / max(self.seconds, 1e-9):,.0f}/s"


def show(at: str) -> bool:
    """Let them write and read; whether every record came back."""
    create_topic(at)
    first = timed(lambda: confluent_writes(at))
    first_read = timed(lambda: kafka_python_reads(at, RECORDS))
    second = timed(lambda: kafka_python_writes(at))
    all_read = timed(lambda: confluent_reads(at, 2 * RECORDS))
    for client, codec, wrote, read in (
        ("confluent-kafka", "zstd", first, all_read),
        ("kafka-python", "gzip", second, first_read),
    ):
        print(
            f"  {client:<15} wrote {wrote.records:,} ({codec}) at {wrote.rate:>9}, "
            f"read {read.records:,} at {read.rate:>9}",
            flush=True,
        )
    counts = [timing.records for timing in (first, first_read, second, all_read)]
    return counts == [RECORDS, RECORDS, RECORDS, 2 * RECORDS]


def timed(work: Callable[[], int]) -> Timed:
    began = time.monotonic()
    records = work()
    return Timed(records, time.monotonic() - began)


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
