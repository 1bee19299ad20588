"""No length in a message can lie: not about bytes, not about elements, not about memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.delay.slices import run_to_end
from ottla.model.errors import Disconnect
from ottla.protocol import length_check
from ottla.protocol.encode import uvarint
from ottla.protocol.length_check import (
    MAX_TAGS,
    MAX_VALUES,
    PIECE,
    STRING_VALUES,
    TooManyValues,
    check,
    check_in_pieces,
    read_uvarint,
    walk_in_pieces_of,
    walk_of,
)
from ottla.protocol.schema import MessageKind, message
from tests.protocol.samples import ALL_KEYS, filled, kio_bytes, messages, sparse

METADATA_PLAIN = message(3, 1, MessageKind.REQUEST)
METADATA = message(3, 12, MessageKind.REQUEST)
HEARTBEAT = message(12, 0, MessageKind.REQUEST)
HUGE = [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80\x00\x00\x00"]
HUGE_COMPACT = [b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f"]


@pytest.mark.parametrize("key", ALL_KEYS)
def test_every_whole_message_passes_and_no_part_of_one_does(key: int) -> None:
    for _, _, entity in messages(key):
        walk = walk_of(entity)
        for fields in (filled(entity), sparse(entity)):
            body = kio_bytes(entity, fields)
            check(walk, memoryview(body), 0)
            check(walk, memoryview(body + b"\0\0\0"), 0)  # librdkafka sends bytes too many
            for end in range(len(body)):
                with pytest.raises(Disconnect):
                    check(walk, memoryview(body)[:end], 0)


def test_a_check_in_pieces_finds_the_same_and_stops_in_between() -> None:
    for key in ALL_KEYS:
        for _, _, entity in messages(key):
            body = memoryview(kio_bytes(entity, filled(entity)))
            walk = walk_in_pieces_of(entity)
            for end in range(len(body)):
                with pytest.raises(Disconnect):
                    run_to_end(check_in_pieces(walk, body[:end], 0))
            run_to_end(check_in_pieces(walk, body, 0))
    most = MAX_VALUES // STRING_VALUES
    body = memoryview(uvarint(most + 1) + b"\x02k" * most + bytes(2))
    walk = walk_in_pieces_of(message(15, 6, MessageKind.REQUEST))
    assert sum(1 for _ in check_in_pieces(walk, body, 0)) == most // (PIECE + 1)


@pytest.mark.parametrize("length", HUGE)
def test_an_array_cannot_claim_more_than_the_message_holds(length: bytes) -> None:
    with pytest.raises(Disconnect, match="array length"):
        check(walk_of(METADATA_PLAIN), memoryview(length + bytes(100)), 0)


@pytest.mark.parametrize("length", HUGE_COMPACT)
def test_a_compact_array_cannot_claim_more_than_the_message_holds(length: bytes) -> None:
    """kio alone would abort the process here."""
    with pytest.raises(Disconnect):
        check(walk_of(METADATA), memoryview(length + bytes(100)), 0)


def test_a_million_tiny_elements_cost_nothing_and_are_refused() -> None:
    count = 1_000_000
    body = memoryview((count + 1).to_bytes(4, "big") + bytes(2) * (count + 1))
    tracemalloc.start()
    try:
        with pytest.raises(Disconnect, match="array length"):
            check(walk_of(METADATA_PLAIN), body, 0)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_elements_of_all_arrays_share_one_budget() -> None:
    """Many partitions in each of many topics are too many, wherever they are."""
    entity = message(20, 3, MessageKind.REQUEST)
    names = 100_000
    body = names.to_bytes(4, "big") + bytes(2) * names + bytes(4)
    check(walk_of(entity), memoryview(body), 0)
    nested = message(21, 0, MessageKind.REQUEST)  # topics of partitions
    per_topic = 30_000
    topic = bytes(2) + per_topic.to_bytes(4, "big") + bytes(12) * per_topic
    one, many = (n.to_bytes(4, "big") + topic * n + bytes(4) for n in (1, 8))
    check(walk_of(nested), memoryview(one), 0)
    with pytest.raises(TooManyValues, match="array length"):
        check(walk_of(nested), memoryview(many), 0)
    check(walk_of(nested), memoryview(many), 0, max_values=10 * MAX_VALUES)


TAG: Final = b"\x64\x00"  # number 100, no content
TOPICS_OF_PARTITIONS: Final = message(21, 2, MessageKind.REQUEST)


@dataclass(frozen=True)
class Tags:
    """Tagged fields in one place, as many as are claimed and as many as are there."""

    before: bytes
    claimed: int
    there: int
    refused: str | None

    def body(self, after: bytes = b"") -> memoryview:
        return memoryview(self.before + uvarint(self.claimed) + TAG * self.there + after)


ENDS = b"\x01\x01\x01"  # Metadata v12: no topics, two flags
TAGS: Final = {
    "as many as are allowed": Tags(ENDS, MAX_TAGS, MAX_TAGS, None),
    "one too many": Tags(ENDS, MAX_TAGS + 1, MAX_TAGS + 1, "too many tagged fields"),
    "ten million": Tags(ENDS, 10_000_000, 10_000_000, "too many tagged fields"),
    "ten million that are not there": Tags(ENDS, 10_000_000, 0, "too many tagged fields"),
    "a few that are not there": Tags(ENDS, 9, 4, "cut short"),
}


@pytest.mark.parametrize("name", TAGS)
def test_tagged_fields_are_counted_before_one_is_walked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = TAGS[name]
    body = tags.body()
    if tags.refused is None:
        check(walk_of(METADATA), body, 0)
        return
    walked = 0

    def counted(data: memoryview, at: int) -> tuple[int, int]:
        nonlocal walked
        walked += 1
        return read_uvarint(data, at)

    monkeypatch.setattr(length_check, "read_uvarint", counted)
    with pytest.raises(Disconnect, match=tags.refused):
        check(walk_of(METADATA), body, 0)
    assert walked == 1, "only their number was read"


def test_tagged_fields_of_many_structs_share_the_budget_of_values() -> None:
    """A hundred in each of three hundred topics: too many, though no struct has too many."""
    topic = b"\x01\x01" + uvarint(100) + TAG * 100  # no name, no partitions
    few, many = (uvarint(n + 1) + topic * n + bytes(4) + b"\x00" for n in (200, 300))
    check(walk_of(TOPICS_OF_PARTITIONS), memoryview(few), 0)
    with pytest.raises(TooManyValues, match="too many tagged fields"):
        check(walk_of(TOPICS_OF_PARTITIONS), memoryview(many), 0)


def test_null_where_a_value_must_be_is_refused() -> None:
    with pytest.raises(Disconnect, match="negative length"):
        check(walk_of(HEARTBEAT), memoryview(b"\xff\xff" + bytes(6)), 0)
    with pytest.raises(Disconnect, match="null"):
        check(walk_of(message(12, 4, MessageKind.REQUEST)), memoryview(bytes(8)), 0)
    with pytest.raises(Disconnect, match="array length"):
        check(walk_of(message(3, 0, MessageKind.REQUEST)), memoryview(b"\xff\xff\xff\xff"), 0)


@pytest.mark.parametrize("length", [b"\xff\xfe", b"\x80\x00"])
def test_a_negative_string_length_is_refused(length: bytes) -> None:
    with pytest.raises(Disconnect, match="negative length"):
        check(walk_of(HEARTBEAT), memoryview(length + bytes(40)), 0)


def test_a_string_may_not_be_longer_than_kafka_allows() -> None:
    entity = message(12, 4, MessageKind.REQUEST)
    for size, fine in ((0x7FFF, True), (0x8000, False)):
        body = uvarint(size + 1) + bytes(size) + bytes(4) + b"\x01\x00\x00"
        if fine:
            check(walk_of(entity), memoryview(body), 0)
        else:
            with pytest.raises(Disconnect, match="too long"):
                check(walk_of(entity), memoryview(body), 0)


def test_a_tagged_field_cannot_run_past_the_end() -> None:
    with pytest.raises(Disconnect, match="past the end"):
        check(walk_of(METADATA), memoryview(b"\x01\x01\x01\x01\x05\xff\x01"), 0)


def test_unknown_tagged_fields_are_passed_over() -> None:
    check(walk_of(METADATA), memoryview(b"\x01\x01\x01\x01\x05\x02ab"), 0)


def test_a_known_tagged_field_must_have_its_own_size() -> None:
    entity = message(1, 12, MessageKind.REQUEST)
    body = kio_bytes(entity, sparse(entity))
    assert body.endswith(b"\x00")
    check(walk_of(entity), memoryview(body[:-1] + b"\x01\x00\x03\x03ab"), 0)
    with pytest.raises(Disconnect, match="wrong size"):
        check(walk_of(entity), memoryview(body[:-1] + b"\x01\x00\x03\x02a\x00"), 0)


def test_a_struct_that_may_be_null_is_there_or_is_not() -> None:
    entity = message(75, 0, MessageKind.REQUEST)
    body = kio_bytes(entity, sparse(entity))
    assert body.endswith(b"\xff\x00")
    check(walk_of(entity), memoryview(body), 0)
    with pytest.raises(Disconnect, match="invalid presence byte"):
        check(walk_of(entity), memoryview(body[:-2] + b"\x02\x00"), 0)


@given(st.integers(0, 2**31 - 1))
def test_uvarints_are_read_back(value: int) -> None:
    data = uvarint(value)
    assert read_uvarint(memoryview(data), 0) == (value, len(data))


@pytest.mark.parametrize("data", [b"\x80" * 5 + b"\x01", b"\xff\xff\xff\xff\x7f", b"\xff" * 9])
def test_an_integer_of_too_many_bytes_is_refused(data: bytes) -> None:
    with pytest.raises(Disconnect, match="too long"):
        read_uvarint(memoryview(data), 0)
