"""A user's program, as a type checker sees it: every call here is typed, and none is Any."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pyarrow as pa

import ottla
import ottla.aio
from ottla.serializers import from_json, from_str


class Audit(ottla.ProducerInterceptor):
    def on_send(self, record: ottla.ProducerRecord) -> ottla.ProducerRecord:
        return record._replace(headers=(*record.headers, ("audit", b"1")))


def by_length(
    topic: str, key: bytes | None, all_partitions: Sequence[int], available: Sequence[int]
) -> int:
    return len(key or b"") % len(all_partitions)


def print_outcome(delivery: ottla.Delivery) -> None:
    error: BaseException | None = delivery.exception()
    print(error or delivery.result())


def send() -> int:
    with ottla.Producer(
        bootstrap_servers=["localhost:9092"],
        config={"linger.ms": 5},
        key_serializer=from_str,
        value_serializer=from_json,
        partitioner=by_length,
        interceptors=[Audit()],
        transactional_id="program",
    ) as producer:
        producer.init_transactions()
        with producer.transaction() as same:
            delivery: ottla.Delivery = same.send("t", {"a": 1}, key="k", headers={"h": b"1"})
            delivery.add_done_callback(print_outcome)
            producer.send_offsets({ottla.TopicPartition("t", 0): 5}, "group")
        table: ottla.TableDelivery = producer.send_arrow("t", pa.table({"value": [b"1"]}))
        ranges: list[ottla.SentRange] = table.result(timeout=5)
        sent: ottla.RecordMetadata = delivery.result(timeout=5)
        return sent.offset + ranges[0].offset


async def send_async() -> int:
    async with ottla.aio.Producer(bootstrap_servers="localhost:9092") as producer:
        delivery: ottla.Delivery = await producer.send("t", b"value")
        sent: ottla.RecordMetadata = await delivery
        return sent.offset


def read() -> int:
    total = 0
    with ottla.Consumer("t", bootstrap_servers="localhost:9092", group_id="g") as consumer:
        for record in consumer:
            total += len(record.value or b"")
            if record.offset > 100:
                break
        for record in consumer.poll(1.0):
            total += len(record.key or b"") + record.timestamp
        consumer.commit({ottla.TopicPartition("t", 0): ottla.OffsetAndMetadata(5, "here")})
    return total


def read_text() -> list[str]:
    with ottla.Consumer("t", value_deserializer=bytes.decode, group_id="g") as consumer:
        return [record.value.upper() for record in consumer if record.value is not None]


async def read_async() -> list[bytes]:
    async with ottla.aio.Consumer("t", bootstrap_servers="localhost:9092") as consumer:
        return [record.value async for record in consumer if record.value is not None]


def decide(prepared: ottla.PreparedTransaction) -> None:
    try:
        ottla.end_transaction(prepared, commit=True, bootstrap_servers="localhost:9092")
    except ottla.Fenced as error:
        code: ottla.ErrorCode = error.code
        print(code, error.retriable)


if __name__ == "__main__":
    print(send(), asyncio.run(send_async()), read(), read_text(), asyncio.run(read_async()))
