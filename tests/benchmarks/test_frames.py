"""The load driver's bytes are what the protocol says, by somebody else's reading of it."""

from __future__ import annotations

import struct
from typing import TypeVar

import crc32c
from kio.schema.fetch.v11.request import FetchRequest
from kio.schema.produce.v7.request import ProduceRequest
from kio.serial import entity_reader
from kio.static.protocol import Entity

from benchmarks import frames

T = TypeVar("T", bound=Entity)
HEADER_BYTES = 2 + 2 + 4 + 2  # key, version, correlation id, no client id


def test_a_produce_frame_reads_as_one_batch_for_one_partition() -> None:
    batch = frames.batch(100, 7, now_ms=1_700_000_000_000)
    frame = frames.produce("a-topic", 3, batch, -1)
    assert struct.unpack_from(">ihh", frame) == (len(frame) - 4, 0, 7)
    request = _read(ProduceRequest, frame)
    assert request.acks == -1
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    assert (topic.name, partition.index) == ("a-topic", 3)
    assert partition.records == batch


def test_a_fetch_frame_asks_for_every_place() -> None:
    frame = frames.fetch("a-topic", [(0, 5), (9, 77)], partition_max_bytes=1000)
    assert struct.unpack_from(">ihh", frame) == (len(frame) - 4, 1, 11)
    request = _read(FetchRequest, frame)
    (topic,) = request.topics
    assert [(one.partition, one.fetch_offset) for one in topic.partitions] == [(0, 5), (9, 77)]


def test_a_batch_carries_its_own_checksum_and_count() -> None:
    batch = frames.batch(100, 7, now_ms=1)
    (length,) = struct.unpack_from(">i", batch, 8)
    assert length + 12 == len(batch)
    assert struct.unpack_from(">I", batch, 17) == (crc32c.crc32c(batch[21:]),)
    assert struct.unpack_from(">i", batch, 57) == (7,)


def _read(kind: type[T], frame: bytes) -> T:
    request, size = entity_reader(kind)(frame, 4 + HEADER_BYTES)
    assert 4 + HEADER_BYTES + size == len(frame)
    return request
