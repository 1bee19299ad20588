"""What the producers of the benchmark say, by somebody else's reading of it."""

from __future__ import annotations

import struct

import crc32c
import pytest
from kio.schema.add_partitions_to_txn.v1.request import AddPartitionsToTxnRequest
from kio.schema.end_txn.v1.request import EndTxnRequest as OlderEnd
from kio.schema.end_txn.v5.request import EndTxnRequest as NewerEnd
from kio.schema.produce.v7.request import ProduceRequest as OlderProduce
from kio.schema.produce.v12.request import ProduceRequest as NewerProduce
from kio.serial import entity_reader
from kio.static.protocol import Entity

from benchmarks.transactions import RECORDS, _Newer, _Older, _Producer


def read(kind: type[Entity], frame: bytes, *, flexible: bool) -> Entity:
    begin = 4 + 10 + flexible
    request, size = entity_reader(kind)(frame, begin)
    assert begin + size == len(frame)
    return request


@pytest.mark.parametrize(
    ("make", "kinds"),
    [
        (_Older, [AddPartitionsToTxnRequest, OlderProduce, OlderEnd]),
        (_Newer, [NewerProduce, NewerEnd]),
    ],
)
def test_a_transaction_is_what_the_protocol_says(
    make: type[_Producer], kinds: list[type[Entity]]
) -> None:
    flexible = make is _Newer
    producer = make("a-topic", 3, "tx")
    producer.is_called(bytes(10) + struct.pack(">qh", 77, 5))
    requests = [
        read(kind, frame, flexible=flexible)
        for kind, (frame, _) in zip(kinds, producer.transaction(), strict=True)
    ]
    (topic,) = requests[-2].topic_data  # type: ignore[attr-defined]
    (partition,) = topic.partition_data
    assert (topic.name, partition.index) == ("a-topic", 3)
    batch = partition.records
    assert struct.unpack_from(">I", batch, 17) == (crc32c.crc32c(batch[21:]),)
    assert struct.unpack_from(">qhii", batch, 43) == (77, 5, 0, RECORDS)
    end = requests[-1]
    assert (end.transactional_id, end.producer_id, end.committed) == ("tx", 77, True)  # type: ignore[attr-defined]
