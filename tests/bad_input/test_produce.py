"""Record sets that must not be appended, each with the code a client acts on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from ottla.protocol.records.compression import Codec
from tests.bad_input.batches import DAMAGED, bomb, packed, record, without_key
from tests.bad_input.conftest import MakeTopic
from tests.bad_input.producers import FIND_COORDINATOR
from tests.raw_requests import (
    INIT_PRODUCER_ID,
    PRODUCE,
    Line,
    batch,
    fetched,
    produce_fields,
    produced,
)

Lines = Callable[[], list[str]]
OUT_OF_ORDER = ErrorCode.out_of_order_sequence_number


@pytest.fixture(scope="module")
def topic(make_topic: MakeTopic) -> str:
    return make_topic()


@pytest.mark.spec("LOG-45")
@pytest.mark.parametrize("version", [7, 9])
@pytest.mark.parametrize("wrong", DAMAGED)
def test_a_bad_record_set_is_refused_and_nothing_of_it_is_kept(
    line: Line, topic: str, wrong: str, version: int, complaints: Lines
) -> None:
    records, code = DAMAGED[wrong]
    before = fetched(line, topic, 0).high_watermark
    answer = produced(line, topic, records, version=version)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert fetched(line, topic, 0).high_watermark == before
    good = produced(line, topic, batch("good"), version=version)
    assert (good.error_code, good.base_offset) == (ErrorCode.none, before)
    assert complaints() == []  # a client's mistake is the client's to hear of


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_decompression_bomb_is_refused_within_bounded_memory(
    line: Line, make_topic: MakeTopic, codec: Codec
) -> None:
    topic = make_topic(max_message_bytes=str(8 << 20))
    small = bomb(codec)
    assert produced(line, topic, batch("v", codec=codec)).error_code is ErrorCode.none
    before = forget_peak_rss()
    assert produced(line, topic, small).error_code is ErrorCode.invalid_record
    assert peak_rss() - before < 140 << 20  # 64 MiB of records, and kernels that are being loaded


def peak_rss() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def forget_peak_rss() -> int:
    """What is resident now, and from now on the least that `peak_rss` returns."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_rss()


def test_zstd_is_for_versions_that_know_it(line: Line, topic: str) -> None:
    content = batch("v", codec=Codec.ZSTD)
    for version, code in (
        (6, ErrorCode.unsupported_compression_type),
        (7, ErrorCode.none),
        (9, ErrorCode.none),
    ):
        assert produced(line, topic, content, version=version).error_code is code


@pytest.mark.spec("WIRE-11")
def test_acks_is_minus_one_zero_or_one(line: Line, topic: str) -> None:
    for acks in (2, -2, 32_767):
        reply = line.ask(PRODUCE, 9, **produce_fields(topic, batch("v"), acks=acks))
        answer = reply.responses[0].partition_responses[0]
        assert answer.error_code is ErrorCode.invalid_required_acks


def test_an_error_that_acks_0_cannot_hear_closes_the_connection(
    line: Line, topic: str, complaints: Lines
) -> None:
    records, _ = DAMAGED["wrong checksum"]
    fields = produce_fields(topic, records, acks=0)
    line.send(wire.encode_request(PRODUCE, 9, 1, "test", fields))
    assert line.is_closed()
    [said] = complaints()
    assert "corrupt_message" in said


def test_acks_0_without_an_error_is_not_answered(line: Line, topic: str) -> None:
    before = fetched(line, topic, 0).high_watermark
    fields = produce_fields(topic, batch("v"), acks=0)
    line.send(wire.encode_request(PRODUCE, 9, 1, "test", fields))
    assert fetched(line, topic, 0).high_watermark == before + 1  # the next reply is this one


@pytest.mark.parametrize("version", [9, 13])
def test_an_unknown_topic_or_partition_is_said_for_each(line: Line, version: int) -> None:
    partition = {"index": 9, "records": batch("v")}
    topics = [{"name": "nobody", "topic_id": None, "partition_data": [partition]}]
    asked = {"transactional_id": None, "acks": -1, "timeout": 100, "topic_data": topics}
    reply = line.ask(PRODUCE, version, **asked)
    [answer] = reply.responses[0].partition_responses
    by_id = version >= 13
    expected = ErrorCode.unknown_topic_id if by_id else ErrorCode.unknown_topic_or_partition
    assert answer.error_code is expected


@pytest.mark.spec("SEC-11")
@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize(("kind", "name"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
def test_an_internal_topic_is_not_for_clients(line: Line, kind: int, name: str, acks: int) -> None:
    while fetched(line, name).error_code is not ErrorCode.none:  # the first to ask has it made
        line.ask(FIND_COORDINATOR, 4, key_type=kind, coordinator_keys=["anybody"])
    before = fetched(line, name).high_watermark
    reply = line.ask(PRODUCE, 9, **produce_fields(name, batch("v"), acks=acks))
    answer = reply.responses[0].partition_responses[0]
    assert answer.error_code is ErrorCode.invalid_topic_exception
    assert fetched(line, name).high_watermark == before


@pytest.mark.parametrize("content", [without_key(), packed(record(key=None))])
def test_a_compacted_topic_takes_no_record_without_a_key(
    line: Line, make_topic: MakeTopic, content: bytes
) -> None:
    topic = make_topic(cleanup_policy="compact")
    answer = produced(line, topic, content)
    assert answer.error_code is ErrorCode.invalid_record
    assert [error.batch_index for error in answer.record_errors] == [len(content) > 75]


def test_a_timestamp_out_of_range_is_refused(line: Line, make_topic: MakeTopic) -> None:
    topic = make_topic(
        message_timestamp_before_max_ms="3600000", message_timestamp_after_max_ms="3600000"
    )
    for stamp in (0, 1_000_000, 2**62):
        answer = produced(line, topic, batch("v", timestamp=stamp))
        assert answer.error_code is ErrorCode.invalid_timestamp


def test_a_batch_above_the_limits_of_its_topic_is_refused(
    line: Line, make_topic: MakeTopic
) -> None:
    narrow = make_topic(max_message_bytes="1000")
    assert produced(line, narrow, batch("." * 2000)).error_code is ErrorCode.message_too_large
    assert produced(line, narrow, batch("." * 500)).error_code is ErrorCode.none
    short = make_topic(max_message_bytes=str(4 << 20), segment_bytes=str(1 << 20))
    larger = batch("." * (2 << 20))
    assert produced(line, short, larger).error_code is ErrorCode.record_list_too_large


@pytest.mark.spec("TXN-06", "TXN-07", "TXN-08", "TXN-09", "TXN-10")
def test_sequences_are_held_to_their_order(line: Line, make_topic: MakeTopic) -> None:
    topic = make_topic()
    given = line.ask(
        INIT_PRODUCER_ID,
        4,
        transactional_id=None,
        transaction_timeout=0,
        producer_id=-1,
        producer_epoch=-1,
    )

    def send(sequence: int, epoch: int = 1) -> tuple[ErrorCode, int]:
        producer = {"producer_id": given.producer_id, "producer_epoch": epoch}
        answer = produced(line, topic, batch("v", base_sequence=sequence, **producer))
        return answer.error_code, answer.base_offset

    for number in range(7):
        assert send(number) == (ErrorCode.none, number)
    for number in range(2, 7):  # one of the last five: where it went the first time
        assert send(number) == (ErrorCode.none, number)
    assert send(1) == (OUT_OF_ORDER, -1)  # older than that
    assert send(9) == (OUT_OF_ORDER, -1)  # a gap
    assert send(7, epoch=0) == (ErrorCode.invalid_producer_epoch, -1)
    assert send(3, epoch=2) == (OUT_OF_ORDER, -1)  # a new epoch begins at 0
    assert send(0, epoch=2) == (ErrorCode.none, 7)
    assert send(7, epoch=1) == (ErrorCode.invalid_producer_epoch, -1)
