"""confluent-kafka: the Python face of librdkafka, and so of a dozen other languages' clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.interop.client import Fault, Found, Position, Refusal
from tests.interop.series import Sample, Series, digest

_WAIT_S: Final = 20.0
_LIMIT: Final = 8 << 20

_SPECS: Final[Mapping[Position, Callable[[], Any]]] = {
    Position.EARLIEST: OffsetSpec.earliest,
    Position.LATEST: OffsetSpec.latest,
    Position.MAX_TIMESTAMP: OffsetSpec.max_timestamp,
}


class ConfluentClient:
    name = "confluent-kafka"
    stamps = True
    cannot: Mapping[str, str] = {}
    refusals: Mapping[Fault, str] = {
        Fault.TOO_LARGE: "MSG_SIZE_TOO_LARGE",
        Fault.UNKNOWN_TOPIC: "UNKNOWN_TOPIC_OR_PART",
        # librdkafka reports its own reset policy, and names the broker's code in the text.
        Fault.OUT_OF_RANGE: "_AUTO_OFFSET_RESET",
        Fault.BAD_NAME: "TOPIC_EXCEPTION",
    }

    def __init__(self, bootstrap: str) -> None:
        self._common: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "log_level": 3,
        }
        self._admin = AdminClient(self._common)

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        new = NewTopic(topic, partitions, 1, config=dict(settings))
        _only(self._admin.create_topics([new]))

    def partition_count(self, topic: str) -> int:
        described = _only(self._admin.describe_topics(TopicCollection([topic])))
        return len(described.partitions)

    def add_partitions(self, topic: str, total: int) -> None:
        _only(self._admin.create_partitions([NewPartitions(topic, total)]))

    def settings(self, topic: str) -> Mapping[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = _only(self._admin.describe_configs([resource]))
        return {name: entry.value for name, entry in entries.items()}

    def alter(self, topic: str, changes: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in changes.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        _only(self._admin.incremental_alter_configs([resource]))

    def delete_topic(self, topic: str) -> None:
        _only(self._admin.delete_topics([topic]))

    def delete_records(self, topic: str, before: int) -> None:
        _only(self._admin.delete_records([TopicPartition(topic, 0, before)]))

    def produce(self, topic: str, series: Series, codec: str) -> None:
        for error in self._sent(topic, series, codec):
            raise KafkaException(error)

    def read(self, topic: str, count: int, *, stamped: bool) -> Found:
        samples = list(self._records(topic, count))
        return Found(len(samples), digest(samples, stamped=stamped))

    def offset_at(self, topic: str, place: Position | int) -> int | None:
        spec = OffsetSpec.for_timestamp(place) if isinstance(place, int) else _SPECS[place]()
        asked = {TopicPartition(topic, 0): spec}
        found = _only(
            self._admin.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        )
        return None if found.offset < 0 else int(found.offset)

    def provoke(self, fault: Fault, topic: str) -> Refusal:
        try:
            match fault:
                case Fault.TOO_LARGE:
                    self.produce(topic, Series(1, -1, value_bytes=2 << 20), "none")
                case Fault.UNKNOWN_TOPIC:
                    self.partition_count(topic)
                case Fault.OUT_OF_RANGE:
                    next(self._records(topic, 1, start=1_000_000))
                case Fault.BAD_NAME:
                    self.create_topic(topic, 1, {})
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            text = "" if error.code() > 0 else error.str()
            code = fault.value if "Broker: Offset out of range" in text else error.code()
            return Refusal(error.name(), code)
        raise AssertionError(f"{fault} was accepted")

    def close(self) -> None:
        """librdkafka ends its threads when the objects go."""

    def _sent(self, topic: str, series: Series, codec: str) -> list[KafkaError]:
        producer = Producer(
            {
                **self._common,
                "compression.type": codec,
                "message.max.bytes": _LIMIT,
                "queue.buffering.max.messages": 1_000_000,
                "linger.ms": 5,
                "enable.idempotence": True,
            }
        )
        errors: list[KafkaError] = []

        def heard(error: KafkaError | None, _: object) -> None:
            if error is not None:
                errors.append(error)

        for sample in series:
            producer.produce(
                topic,
                value=sample.value,
                key=sample.key,
                partition=0,
                timestamp=max(sample.timestamp, 0),
                headers=list(sample.headers),
                on_delivery=heard,
            )
        assert producer.flush(_WAIT_S) == 0, "the broker did not acknowledge in time"
        return errors

    def _records(self, topic: str, count: int, start: int = 0) -> Iterator[Sample]:
        consumer = Consumer(
            {
                **self._common,
                "group.id": "never joined",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.message.max.bytes": _LIMIT,
            }
        )
        consumer.assign([TopicPartition(topic, 0, start)])
        try:
            while count > 0:
                messages = consumer.consume(min(count, 10_000), _WAIT_S)
                assert messages, "no records came in time"
                for message in messages:
                    if message.error():
                        raise KafkaException(message.error())
                    yield _sample(message)
                count -= len(messages)
        finally:
            consumer.close()


def _sample(message: Any) -> Sample:
    _, stamp = message.timestamp()
    return Sample(message.key(), message.value(), tuple(message.headers() or ()), stamp)


def _only(futures: Mapping[Any, Future[Any]]) -> Any:
    (future,) = futures.values()
    return future.result(_WAIT_S)
