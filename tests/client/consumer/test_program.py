"""A user's program: it runs, and `mypy --strict` finds every type in it, which `make check` shows.

`assert_type` is a promise to type checkers; when it runs it does nothing.
"""

from __future__ import annotations

import asyncio
import json
from typing import assert_type

import pyarrow as pa

import ottla
import ottla.aio
from tests.client.consumer.conftest import Filled


def to_dict(data: bytes) -> dict[str, int]:
    return {"number": int(json.loads(data))}


def test_without_deserializers_keys_and_values_are_bytes(bootstrap: str, filled: Filled) -> None:
    with ottla.Consumer(
        filled(1, 3), bootstrap_servers=bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        assert_type(consumer, ottla.Consumer[bytes, bytes])
        records = consumer.poll(30.0)
        assert_type(records, list[ottla.Record[bytes, bytes]])
        assert_type(records[0].value, bytes | None)
        assert [record.value for record in records] == [b"0", b"1", b"2"]
        assert_type(consumer.assignment(), frozenset[ottla.TopicPartition])
        assert_type(consumer.position(ottla.TopicPartition(records[0].topic, 0)), int)


def test_with_deserializers_they_are_what_those_give(bootstrap: str, filled: Filled) -> None:
    topic = filled(1, 3)
    config = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    with ottla.Consumer(topic, value_deserializer=to_dict, config=config) as consumer:
        assert_type(consumer, ottla.Consumer[bytes, dict[str, int]])
        for record in consumer:
            assert_type(record.value, dict[str, int] | None)
            assert record.value == {"number": record.offset}
            if record.offset == 2:
                break
    with ottla.Consumer(topic, key_deserializer=bytes.decode, config=config) as named:
        assert_type(named, ottla.Consumer[str, bytes])
        assert [record.key for record in named.poll(30.0)] == ["k0", "k1", "k2"]
    both = ottla.Consumer(
        topic, key_deserializer=bytes.decode, value_deserializer=int, config=config
    )
    with both:
        assert_type(both.poll(30.0)[0].value, int | None)


def test_the_same_for_asyncio(bootstrap: str, filled: Filled) -> None:
    async def main() -> int:
        total = 0
        async with ottla.aio.Consumer(
            filled(1, 4),
            bootstrap_servers=bootstrap,
            auto_offset_reset="earliest",
            value_deserializer=int,
        ) as consumer:
            async for record in consumer:
                assert_type(record.value, int | None)
                total += record.value or 0
                if record.offset == 3:
                    break
            table: pa.Table = await consumer.poll_arrow(0.0)
            return total + int(table.num_rows)

    assert asyncio.run(main()) == 6
