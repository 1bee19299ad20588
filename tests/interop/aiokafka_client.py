"""aiokafka: an asyncio client, with record code in C; its loop runs one question at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

from tests.interop.client import Fault, Found, Position, Refusal
from tests.interop.series import Sample, Series, digest

T = TypeVar("T")
_WAIT_S: Final = 20.0
_LIMIT: Final = 8 << 20


class AiokafkaClient:
    name = "aiokafka"
    stamps = True
    cannot: Mapping[str, str] = {
        "test_the_latest_timestamp_is_found": "its API has no name for the latest timestamp",
    }
    refusals: Mapping[Fault, str] = {
        Fault.TOO_LARGE: "MessageSizeTooLargeError",
        Fault.UNKNOWN_TOPIC: "UnknownTopicOrPartitionError",
        Fault.OUT_OF_RANGE: "OffsetOutOfRangeError",
        Fault.BAD_NAME: "InvalidTopicError",
    }

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._loop = asyncio.new_event_loop()

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        self._run(self._create(NewTopic(topic, partitions, 1, topic_configs=dict(settings))))

    def partition_count(self, topic: str) -> int:
        return self._run(self._describe(topic))

    def add_partitions(self, topic: str, total: int) -> None:
        self._run(self._add_partitions(topic, total))

    def settings(self, topic: str) -> Mapping[str, str]:
        return self._run(self._settings(topic))

    def alter(self, topic: str, changes: Mapping[str, str]) -> None:
        self._run(self._alter(topic, changes))

    def delete_topic(self, topic: str) -> None:
        self._run(self._delete(topic))

    def delete_records(self, topic: str, before: int) -> None:
        self._run(self._delete_records(topic, before))

    def produce(self, topic: str, series: Series, codec: str) -> None:
        self._run(self._produce(topic, series, codec))

    def read(self, topic: str, count: int, *, stamped: bool) -> Found:
        samples = self._run(self._read(topic, count))
        return Found(len(samples), digest(samples, stamped=stamped))

    def offset_at(self, topic: str, place: Position | int) -> int | None:
        return self._run(self._offset_at(TopicPartition(topic, 0), place))

    def provoke(self, fault: Fault, topic: str) -> Refusal:
        try:
            match fault:
                case Fault.TOO_LARGE:
                    self.produce(topic, Series(1, -1, value_bytes=2 << 20), "none")
                case Fault.UNKNOWN_TOPIC:
                    self.delete_topic(topic)
                case Fault.OUT_OF_RANGE:
                    self._run(self._read(topic, 1, start=1_000_000))
                case Fault.BAD_NAME:
                    self.create_topic(topic, 1, {})
        except KafkaError as failure:
            return Refusal(type(failure).__name__, failure.errno)
        raise AssertionError(f"{fault} was accepted")

    def close(self) -> None:
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(work, 3 * _WAIT_S))

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[Any]:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()

    async def _create(self, topic: NewTopic) -> None:
        async with self._admin() as admin:
            _check((await admin.create_topics([topic])).topic_errors)

    async def _describe(self, topic: str) -> int:
        async with self._admin() as admin:
            (described,) = await admin.describe_topics([topic])
        return len(described["partitions"])

    async def _add_partitions(self, topic: str, total: int) -> None:
        async with self._admin() as admin:
            await admin.create_partitions({topic: NewPartitions(total)})

    async def _settings(self, topic: str) -> Mapping[str, str]:
        async with self._admin() as admin:
            asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]
            (response,) = await admin.describe_configs(asked)
        (resource,) = response.resources
        return {name: value for name, value, *_ in resource[4]}

    async def _alter(self, topic: str, changes: Mapping[str, str]) -> None:
        async with self._admin() as admin:
            asked = [ConfigResource(ConfigResourceType.TOPIC, topic, dict(changes))]
            await admin.alter_configs(asked)

    async def _delete(self, topic: str) -> None:
        async with self._admin() as admin:
            _check((await admin.delete_topics([topic])).topic_error_codes)

    async def _delete_records(self, topic: str, before: int) -> None:
        async with self._admin() as admin:
            await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before)})

    async def _produce(self, topic: str, series: Series, codec: str) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            max_request_size=_LIMIT,
            max_batch_size=256 << 10,
            linger_ms=5,
            enable_idempotence=True,
        )
        async with producer:
            sent = [
                await producer.send(
                    topic,
                    value=sample.value,
                    key=sample.key,
                    headers=list(sample.headers),
                    partition=0,
                    timestamp_ms=None if sample.timestamp < 0 else sample.timestamp,
                )
                for sample in series
            ]
            await asyncio.gather(*sent)

    async def _read(self, topic: str, count: int, start: int = 0) -> list[Sample]:
        partition = TopicPartition(topic, 0)
        samples: list[Sample] = []
        async with self._consumer() as consumer:
            consumer.assign([partition])
            consumer.seek(partition, start)
            while len(samples) < count:
                records = await consumer.getmany(partition, timeout_ms=int(_WAIT_S * 1000))
                assert records, "no records came in time"
                samples += (
                    Sample(record.key, record.value, tuple(record.headers), record.timestamp)
                    for record in records[partition]
                )
        return samples

    async def _offset_at(self, partition: TopicPartition, place: Position | int) -> int | None:
        async with self._consumer() as consumer:
            match place:
                case Position.EARLIEST:
                    found = await consumer.beginning_offsets([partition])
                case Position.LATEST:
                    found = await consumer.end_offsets([partition])
                case _:
                    by_time = await consumer.offsets_for_times({partition: place})
                    found = {key: answer and answer.offset for key, answer in by_time.items()}
        offset: int | None = found[partition]
        return offset

    def _consumer(self) -> Any:
        return AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            auto_offset_reset="none",
            max_partition_fetch_bytes=_LIMIT,
        )


def _check(errors: list[tuple[str, int]]) -> None:
    """Its admin hands codes back; its users turn them into its exceptions as here."""
    for _, code, *_ in errors:
        if code:
            raise for_code(code)
