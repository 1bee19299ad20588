"""A message written in pieces is the same message."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from ottla.protocol import chunked_encoding
from ottla.protocol.chunked_encoding import ITEMS, is_large, write_in_pieces
from ottla.protocol.encode import writer_of
from ottla.protocol.schema import MessageKind, message
from tests.protocol.samples import ALL_KEYS, filled, kio_bytes, messages, sparse

LIST_OFFSETS = message(2, 8, MessageKind.RESPONSE)


def listed(topics: int, partitions: int) -> dict[str, Any]:
    part = {"error_code": 0, "timestamp": 1, "offset": 2, "leader_epoch": 3}
    return {
        "throttle_time": 0,
        "topics": [
            {
                "name": f"t{topic}",
                "partitions": [{**part, "partition_index": index} for index in range(partitions)],
            }
            for topic in range(topics)
        ],
    }


@pytest.mark.parametrize("key", ALL_KEYS)
def test_every_message_is_written_as_in_one_go(key: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked_encoding, "ITEMS", 1)
    for _, _, entity in messages(key):
        for fields in (filled(entity, count=3), filled(entity, count=0), sparse(entity)):
            out = bytearray()
            for _ in write_in_pieces(entity, fields, out):
                pass
            assert bytes(out) == kio_bytes(entity, fields), entity


@pytest.mark.parametrize(("topics", "partitions"), [(1, 3_000), (3_000, 1), (50, 60)])
def test_a_piece_ends_after_so_many_elements_however_they_are_nested(
    topics: int, partitions: int
) -> None:
    fields = listed(topics, partitions)
    out = bytearray()
    sizes = [0]
    for _ in write_in_pieces(LIST_OFFSETS, fields, out):
        sizes.append(len(out))
    whole = bytearray()
    writer_of(LIST_OFFSETS)(fields, whole)
    assert out == whole
    steps = [after - before for before, after in pairwise(sizes)]
    assert len(steps) >= 3_000 // ITEMS
    assert max(steps) <= ITEMS * 30, "bytes of a partition, or of a topic"


@pytest.mark.parametrize(
    ("topics", "partitions", "large"),
    [(0, 0, False), (1, ITEMS - 1, False), (1, ITEMS, True), (ITEMS + 1, 0, True), (50, 60, True)],
)
def test_a_message_is_large_by_all_of_its_elements(
    topics: int, partitions: int, large: bool
) -> None:
    assert is_large(LIST_OFFSETS, listed(topics, partitions)) is large


def test_null_where_none_may_be_is_refused_in_pieces_too() -> None:
    with pytest.raises(ValueError, match=r"ListOffsetsResponse\.topics: None"):
        list(write_in_pieces(LIST_OFFSETS, {"throttle_time": 0, "topics": None}, bytearray()))
