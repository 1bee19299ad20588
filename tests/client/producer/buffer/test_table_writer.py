"""Whole Arrow tables into batches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ottla.client.errors import UserError
from ottla.client.partitioners import partition_of
from tests.client.producer.broker_rig import producing, run
from tests.fakes.scripted_broker import ScriptedBroker

ROWS = 200
TABLE = pa.table(
    {
        "value": [b"%d" % row for row in range(ROWS)],
        "key": [b"%d" % (row % 5) for row in range(ROWS)],
        "number": pa.array([row % 3 for row in range(ROWS)], pa.int32()),
        "some": [None if row % 2 else "x" for row in range(ROWS)],
        "float": [0.5] * ROWS,
    }
)


def send(
    table: Any, topics: dict[str, int], options: dict[str, Any], **columns: Any
) -> ScriptedBroker:
    broker = ScriptedBroker(topics=topics)

    async def main() -> None:
        async with broker, producing(broker, **options) as producer:
            delivery = await producer.send_arrow("t", table, **columns)
            ranges = await delivery
            assert sum(each.records for each in ranges) == len(delivery)
            assert len(delivery) == table.num_rows

    run(main)
    return broker


def by_partition(broker: ScriptedBroker) -> dict[int, list[bytes | None]]:
    found: dict[int, list[bytes | None]] = {}
    for each in broker.arrived:
        found.setdefault(each.tp.partition, []).extend(each.values)
    return found


def test_a_table_is_one_batch_where_it_fits_and_keeps_its_order() -> None:
    broker = send(TABLE, {"t": 1}, {})
    assert len(broker.arrived) == 1
    assert by_partition(broker) == {0: [b"%d" % row for row in range(ROWS)]}
    assert broker.arrived[0].producer_id == 5


def test_rows_go_to_the_partition_of_their_key() -> None:
    broker = send(TABLE, {"t": 7}, {}, key="key")
    expected: dict[int, list[bytes]] = {}
    for row in range(ROWS):
        expected.setdefault(partition_of(b"%d" % (row % 5), 7), []).append(b"%d" % row)
    assert by_partition(broker) == expected


def test_keys_that_are_to_be_ignored_choose_no_partition() -> None:
    ignored = {"partitioner_ignore_keys": True}
    assert len(by_partition(send(TABLE, {"t": 7}, ignored, key="key"))) == 1
    hashed = by_partition(send(TABLE, {"t": 7}, ignored, partition_by="key"))
    assert hashed == by_partition(send(TABLE, {"t": 7}, {}, key="key")), "as it is asked for"


def test_rows_go_where_a_column_of_numbers_says_or_another_column_hashes() -> None:
    numbered = by_partition(send(TABLE, {"t": 3}, {}, partition_by="number"))
    assert numbered == {n: [b"%d" % row for row in range(n, ROWS, 3)] for n in range(3)}
    assert list(by_partition(send(TABLE, {"t": 3}, {}, partition_by=2))) == [2]
    hashed = by_partition(send(TABLE, {"t": 7}, {}, partition_by="key"))
    assert hashed == by_partition(send(TABLE, {"t": 7}, {}, key="key"))


def test_rows_without_a_key_are_spread_by_the_batch() -> None:
    found = by_partition(send(TABLE, {"t": 4}, {"batch_size": 300}))
    assert len(found) > 1
    some = by_partition(send(TABLE, {"t": 4}, {}, key="some"))
    assert sum(map(len, some.values())) == ROWS


def test_a_table_larger_than_the_memory_is_sent_piece_by_piece() -> None:
    broker = send(TABLE, {"t": 1}, {"buffer_memory": 2_000, "batch_size": 400})
    assert len(broker.arrived) > 5
    assert by_partition(broker) == {0: [b"%d" % row for row in range(ROWS)]}


@pytest.mark.parametrize("values", [[b"x" * 80] * 400, [b""] * 300 + [b"x" * 250] * 100])
@pytest.mark.real_loop
async def test_memory_is_waited_for_once_a_piece_and_never_for_more_than_a_quarter(
    values: list[bytes],
) -> None:
    broker = ScriptedBroker(topics={"t": 1})
    asked: list[int] = []
    options = {"buffer_memory": 8_000, "batch_size": 500}
    async with broker, producing(broker, **options) as producer:
        claim = producer._intake.claim

        def noted(size: int, wake: Any) -> Any:
            asked.append(size)
            return claim(size, wake)

        producer._intake.claim = noted  # type: ignore[method-assign]
        await (await producer.send_arrow("t", pa.table({"value": values})))
    assert by_partition(broker) == {0: values}
    assert max(asked) <= 2_000
    assert len(asked) < len(broker.arrived)


def test_a_record_batch_will_do_and_an_empty_table_is_nothing() -> None:
    broker = send(TABLE.to_batches()[0], {"t": 1}, {})
    assert len(by_partition(broker)[0]) == ROWS
    assert send(TABLE.slice(0, 0), {"t": 1}, {}).arrived == []


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"value": "nope"}, "value='nope': expected one of the columns value, key, number"),
        ({"key": "nope"}, "key='nope'"),
        ({"partition_by": 9}, "partition_by has 9, but topic t has partitions 0 to 1"),
        ({"partition_by": "number"}, "partition_by has 2, but topic t has partitions 0 to 1"),
        ({"value": "float"}, "value: expected binary or string values, got double"),
        ({"timestamp": "value"}, "timestamp: expected timestamps or milliseconds"),
    ],
)
def test_a_column_that_will_not_do_is_named(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as told:
        send(TABLE, {"t": 2}, {}, **columns)
    assert said in str(told.value)


def test_nulls_among_partition_numbers_and_things_that_are_no_table_are_refused() -> None:
    holes = pa.table({"value": [b"", b""], "p": pa.array([None, 1], pa.int64())})
    with pytest.raises(UserError, match="the column has nulls"):
        send(holes, {"t": 2}, {}, partition_by="p")
    with pytest.raises(UserError, match="expected a pyarrow Table or RecordBatch, got list"):
        send([b"row"], {"t": 2}, {})


def test_compressed_batches_hold_the_same_rows() -> None:
    broker = send(TABLE, {"t": 1}, {"compression_type": "zstd", "batch_size": 500})
    assert by_partition(broker) == {0: [b"%d" % row for row in range(ROWS)]}
