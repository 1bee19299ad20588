"""Fetch: the same reply as kio's, with files in the places of their records."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from ottla.protocol.hot import Endpoint, FetchedPartition, Sized, fetch_reply
from ottla.protocol.hot.fetch import INLINE_BYTES

VERSIONS = range(4, 19)


class Slice(NamedTuple):
    """Records that lie in a file, as far as a reply is concerned."""

    content: bytes

    @property
    def size(self) -> int:
        return len(self.content)


PARTITIONS = [
    FetchedPartition(0, ErrorCode.none, 100, 90, 5, None, -1, records=Slice(b"x" * 300)),
    FetchedPartition(1, ErrorCode.none, 100, 90, 5, [(7, 8), (9, 10)], 3, records=b"small"),
    FetchedPartition(2, ErrorCode.offset_out_of_range, records=None),
    FetchedPartition(3, diverging_epoch=(4, 44), records=b""),
    FetchedPartition(4, ErrorCode.fenced_leader_epoch, aborted=[], current_leader=(1, 2)),
    FetchedPartition(5, current_leader=(1, 2), diverging_epoch=(4, 44), records=Slice(b"")),
    FetchedPartition(6, records=bytes(INLINE_BYTES)),
    FetchedPartition(7, records=memoryview(b"view")),
]


def joined(parts: list[bytes | memoryview | Sized]) -> bytes:
    return b"".join(part.content if isinstance(part, Slice) else part for part in parts)  # type: ignore[misc]


def fields_of(partition: FetchedPartition) -> dict[str, Any]:
    fields = partition._asdict()
    records = partition.records
    fields["partition_index"] = partition.index
    fields["records"] = records.content if isinstance(records, Slice) else records
    fields["aborted_transactions"] = partition.aborted and [
        {"producer_id": producer, "first_offset": offset} for producer, offset in partition.aborted
    ]
    if partition.aborted == []:
        fields["aborted_transactions"] = []
    if partition.diverging_epoch is not None:
        epoch, end = partition.diverging_epoch
        fields["diverging_epoch"] = {"epoch": epoch, "end_offset": end}
    if partition.current_leader is not None:
        leader, epoch = partition.current_leader
        fields["current_leader"] = {"leader_id": leader, "leader_epoch": epoch}
    return fields


@pytest.mark.spec("WIRE-18", "WIRE-19", "WIRE-21")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("partitions", [PARTITIONS, PARTITIONS[:1], [], PARTITIONS * 20])
def test_a_reply_is_written_as_kio_writes_it(
    version: int, partitions: list[FetchedPartition]
) -> None:
    call = wire.Call(1, version, 1234, None, 0)
    topic: str | UUID = UUID(int=77) if version >= 13 else "tøpic"
    endpoints = [Endpoint(1, "host", 9092, None)]
    shown = [(topic, partitions), (topic, PARTITIONS[1:2])]
    fields = {
        "throttle_time": 3,
        "error_code": ErrorCode.none,
        "session_id": 55,
        "responses": [
            {"topic": name, "topic_id": name, "partitions": [fields_of(p) for p in some]}
            for name, some in shown
        ],
        "node_endpoints": [endpoint._asdict() for endpoint in endpoints],
    }
    parts = fetch_reply(call, 3, ErrorCode.none, 55, shown, endpoints=endpoints)
    assert joined(parts) == wire.reply(call, fields)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_reply_is_one_part(version: int) -> None:
    call = wire.Call(1, version, 1, None, 0)
    parts = fetch_reply(call, 0, ErrorCode.fetch_session_id_not_found, 0, [])
    fields = {"error_code": ErrorCode.fetch_session_id_not_found, "responses": []}
    assert parts == [wire.reply(call, fields)]


def test_records_elsewhere_are_handed_on_untouched() -> None:
    call = wire.Call(1, 12, 1, None, 0)
    source, large = Slice(b"x" * 5), bytes(INLINE_BYTES)
    shown = [FetchedPartition(0, records=source), FetchedPartition(1, records=large)]
    parts = fetch_reply(call, 0, ErrorCode.none, 0, [("t", shown)])
    assert parts[1] is source
    assert parts[3] is large
    assert [type(part) for part in parts[::2]] == [bytes, bytes, bytes]


def test_small_records_in_memory_are_sent_with_their_neighbours() -> None:
    call = wire.Call(1, 12, 1, None, 0)
    parts = fetch_reply(call, 0, ErrorCode.none, 0, [("t", [FetchedPartition(0, records=b"abc")])])
    assert len(parts) == 1


def test_the_size_in_front_counts_the_files_too() -> None:
    call = wire.Call(1, 12, 1, None, 0)
    shown = [FetchedPartition(at, records=Slice(bytes(1000))) for at in range(3)]
    parts = fetch_reply(call, 0, ErrorCode.none, 0, [("t", shown)])
    assert int.from_bytes(joined(parts)[:4], "big") == len(joined(parts)) - 4
