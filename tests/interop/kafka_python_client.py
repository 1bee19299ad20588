"""kafka-python: a client with its own wire code, all in Python."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.interop.client import Fault, Found, Position, Refusal
from tests.interop.series import Sample, Series, digest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses what Python 3.11 calls old; 3.13 does so no more
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType
    from kafka.errors import KafkaError, for_code

_WAIT_MS: Final = 20_000
_LIMIT: Final = 8 << 20


class KafkaPythonClient:
    name = "kafka-python"
    stamps = True
    cannot: Mapping[str, str] = {
        "test_null_headers_survive": "its producer takes no null headers",
    }
    refusals: Mapping[Fault, str] = {
        Fault.TOO_LARGE: "MessageSizeTooLargeError",
        Fault.UNKNOWN_TOPIC: "UnknownTopicOrPartitionError",
        Fault.OUT_OF_RANGE: "OffsetOutOfRangeError",
        Fault.BAD_NAME: "InvalidTopicError",
    }

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        asked = {"num_partitions": partitions, "replication_factor": 1, "configs": dict(settings)}
        self._admin.create_topics({topic: asked})

    def partition_count(self, topic: str) -> int:
        (described,) = self._admin.describe_topics([topic])
        if described["error_code"]:
            raise for_code(described["error_code"])
        return len(described["partitions"])

    def add_partitions(self, topic: str, total: int) -> None:
        self._admin.create_partitions({topic: total})

    def settings(self, topic: str) -> Mapping[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        described = self._admin.describe_configs([resource], config_filter="all")
        return {name: entry["value"] for name, entry in described["topic"][topic].items()}

    def alter(self, topic: str, changes: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(changes))
        self._admin.alter_configs([resource])

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def delete_records(self, topic: str, before: int) -> None:
        self._admin.delete_records({TopicPartition(topic, 0): before})

    def produce(self, topic: str, series: Series, codec: str) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            max_request_size=_LIMIT,
            batch_size=256 << 10,
            linger_ms=5,
        )
        try:
            sent = [self._send(producer, topic, sample) for sample in series]
            producer.flush(_WAIT_MS)
            for future in sent:
                future.get(0)
        finally:
            producer.close()

    def read(self, topic: str, count: int, *, stamped: bool) -> Found:
        samples = list(self._records(topic, count))
        return Found(len(samples), digest(samples, stamped=stamped))

    def offset_at(self, topic: str, place: Position | int) -> int | None:
        asked = place if isinstance(place, int) else place.value
        found = self._admin.list_partition_offsets({TopicPartition(topic, 0): asked})
        (answer,) = found.values()
        return None if answer.offset < 0 else int(answer.offset)

    def provoke(self, fault: Fault, topic: str) -> Refusal:
        try:
            match fault:
                case Fault.TOO_LARGE:
                    self.produce(topic, Series(1, -1, value_bytes=2 << 20), "none")
                case Fault.UNKNOWN_TOPIC:
                    self._admin.delete_topics([topic])
                case Fault.OUT_OF_RANGE:
                    next(self._records(topic, 1, start=1_000_000))
                case Fault.BAD_NAME:
                    self.create_topic(topic, 1, {})
        except KafkaError as failure:
            return Refusal(type(failure).__name__, failure.errno)
        raise AssertionError(f"{fault} was accepted")

    def close(self) -> None:
        self._admin.close()

    def _send(self, producer: Any, topic: str, sample: Sample) -> Any:
        return producer.send(
            topic,
            value=sample.value,
            key=sample.key,
            headers=list(sample.headers),
            partition=0,
            timestamp_ms=None if sample.timestamp < 0 else sample.timestamp,
        )

    def _records(self, topic: str, count: int, start: int = 0) -> Iterator[Sample]:
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            auto_offset_reset="none",
            enable_auto_commit=False,
            max_partition_fetch_bytes=_LIMIT,
            max_poll_records=10_000,
        )
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, start)
        try:
            while count > 0:
                records = consumer.poll(_WAIT_MS, max_records=count).get(partition, [])
                assert records, "no records came in time"
                for record in records:
                    yield Sample(record.key, record.value, tuple(record.headers), record.timestamp)
                count -= len(records)
        finally:
            consumer.close()
