from __future__ import annotations

import pyarrow as pa
import pytest

from ottla.client.consumer.fetch.arrow import (
    FEWEST_CACHED,
    MOST_CACHED,
    batches_of,
    schema,
    table_of,
)
from ottla.client.consumer.fetch.chunk import Chunk
from ottla.client.consumer.position.partition_position import AssignedPartition
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import build
from ottla.protocol.records.columns.encode import encode_batches
from ottla.protocol.records.record import NewRecord
from tests.client.consumer.batches import TIME, batch, marker, transactional, view


def chunk(*batches: bytes, offset: int = 0) -> Chunk:
    part = AssignedPartition(TopicPartition("orders", 3))
    part.seek(offset)
    return Chunk(part, part.version, view(*batches), [(1, 0)])


def test_a_table_has_the_place_in_front_of_the_records() -> None:
    data = build([NewRecord(b"k", None, (("h", b"1"),), TIME)], base_offset=7, leader_epoch=0)
    batches = list(batches_of(chunk(data), headers=True, check_crc=True))
    table = table_of(batches, headers=True)
    assert table.schema == schema(headers=True)
    (row,) = table.to_pylist()
    assert row["timestamp"].timestamp() * 1000 == pytest.approx(TIME, abs=86_400_000)
    del row["timestamp"]
    assert row == {
        "topic": "orders",
        "partition": 3,
        "offset": 7,
        "timestamp_type": 0,
        "key": b"k",
        "value": None,
        "headers": [{"key": "h", "value": b"1"}],
    }


def test_columns_leave_out_what_records_leave_out() -> None:
    data = [transactional(0, 2, producer_id=1), marker(2, 1, commit=False), batch(3, 4)]
    (found,) = batches_of(chunk(*data, offset=4), headers=False, check_crc=True)
    assert found.column("offset").to_pylist() == [4, 5, 6]
    assert list(batches_of(chunk(data[1]), headers=False, check_crc=True)) == []


def test_an_empty_table_has_the_same_columns() -> None:
    table = table_of([], headers=False)
    assert (table.num_rows, table.schema) == (0, schema(headers=False))
    assert pa.types.is_dictionary(table.schema.field("topic").type)


@pytest.mark.parametrize("rows", [1, FEWEST_CACHED, FEWEST_CACHED + 1, MOST_CACHED + 1])
def test_every_row_has_its_place_however_many_there_are(rows: int) -> None:
    (data,) = encode_batches(None, [b""] * rows, max_batch_bytes=1 << 30)
    (found,) = batches_of(chunk(bytes(data.data)), headers=False, check_crc=True)
    found.validate(full=True)
    assert found.column("partition").unique().to_pylist() == [3]
    assert found.column("topic").dictionary_decode().unique().to_pylist() == ["orders"]
    assert found.num_rows == rows
