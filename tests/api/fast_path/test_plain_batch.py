"""A plain batch is appended as the general path appends it, or is declined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.api.fast_path.plain_batch import PlainBatches
from ottla.config.topic import TopicConfig
from ottla.log import validate
from ottla.log.log import Log
from ottla.model.errors import KafkaError
from ottla.protocol.records.batch import build, compute_crc
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import NewRecord, validate_records
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.workbench import NOW_MS, Workbench, batch

DECLINED = -1
PRODUCER = {"producer_id": 7, "producer_epoch": 0}


def with_a_value_past_the_end() -> bytes:
    """Under a checksum that fits."""
    bad = bytearray(batch(b"a"))
    bad[-3] = 0x7F
    bad[17:21] = compute_crc(bad).to_bytes(4, "big")
    return bytes(bad)


RUNS_PAST_THE_END = with_a_value_past_the_end()


@pytest.fixture(autouse=True)
def no_kernels() -> Iterator[None]:
    """Another test of the process may have loaded them."""
    loaded = validate.native
    validate.use_native_kernels(None)
    yield
    validate.use_native_kernels(loaded)


def plain(log: Log, content: bytes, epoch: int = 0) -> int:
    batch = memoryview(content)
    header = PlainBatches().check(batch, log, epoch, NOW_MS)
    return DECLINED if header is None else log.append_validated(batch, header, epoch)


def opened(bench: Workbench) -> Log:
    """A log with one batch in it: the first of a segment goes the general way."""
    log = bench.create()
    log.append(batch(b"first"), leader_epoch=0, now_ms=NOW_MS)
    return log


def everything(log: Log) -> tuple[Any, ...]:
    """All that a log knows and has written."""
    log_files = [(s.base_offset, s.file().slice(0, s.size).read()) for s in log.segments]
    active = log.segments.active
    stamps = (active.max_timestamp, active.max_timestamp_offset, active.first_timestamp)
    bounds = (active.size, active.index_bytes, active.unindexed_bytes)
    producers = [(p.entry(), tuple(p.batches)) for p in log.producers]
    return (log.end_offset, log.high_watermark, log_files, stamps, bounds, producers)


@pytest.mark.spec("LOG-46", "LOG-53", "REC-17", "REC-18")
def test_a_plain_batch_is_appended_at_the_next_offset() -> None:
    log = opened(Workbench())
    assert plain(log, batch(b"a", b"b")) == 1
    assert plain(log, batch(b"c", codec=Codec.ZSTD)) == DECLINED, "it must be unpacked"
    log.config = TopicConfig(record_validation="header")
    assert plain(log, batch(b"c", codec=Codec.ZSTD)) == 3
    assert log.end_offset == 4


@pytest.mark.parametrize(
    "config",
    [
        {"compression_type": "gzip"},
        {"message_timestamp_type": "LogAppendTime"},
        {"cleanup_policy": ("compact",)},
        {"flush_messages": 2},
    ],
)
def test_topics_with_work_to_do_on_every_batch_are_declined(config: dict[str, Any]) -> None:
    log = opened(Workbench(**config))
    before = everything(log)
    assert plain(log, batch(b"a")) == DECLINED
    assert everything(log) == before


@pytest.mark.parametrize(
    ("content", "epoch"),
    [
        (batch(b"a")[:60], 0),
        (batch(b"a") + b"\0", 0),
        (batch(b"a")[:-1], 0),
        (batch(b"a", base_offset=1), 0),
        (batch(b"a", transactional=True, base_sequence=0, **PRODUCER), 0),
        (batch(b"a", control=True), 0),
        (batch(b"a", timestamp_type=1), 0),
        (batch(b"a", timestamp=NOW_MS + 4_000_000), 0),
        (batch(b"a", base_sequence=0, **PRODUCER), 0),
        (batch(b"a")[:-1] + b"?", 0),
        (batch(b"a"), 1),
    ],
)
def test_what_needs_a_decision_is_declined_with_nothing_changed(content: bytes, epoch: int) -> None:
    log = opened(Workbench())
    before = everything(log)
    assert plain(log, content, epoch) == DECLINED
    assert everything(log) == before


@pytest.mark.spec("TXN-05", "TXN-06")
def test_a_producer_is_followed_from_its_second_batch_on() -> None:
    log = opened(Workbench())
    log.append(batch(b"a", base_sequence=0, **PRODUCER), leader_epoch=0, now_ms=NOW_MS)
    assert plain(log, batch(b"b", b"c", base_sequence=1, **PRODUCER)) == 2
    assert plain(log, batch(b"e", base_sequence=4, **PRODUCER)) == DECLINED, "a gap"
    assert plain(log, batch(b"b", b"c", base_sequence=1, **PRODUCER)) == DECLINED, "a repeat"
    again = log.append(
        batch(b"b", b"c", base_sequence=1, **PRODUCER), leader_epoch=0, now_ms=NOW_MS
    )
    assert (again.duplicate, again.first_offset) == (True, 2)


@pytest.mark.parametrize("mode", ["auto", "full"])
def test_records_are_walked_before_the_kernels_are_loaded_and_after(mode: str) -> None:
    log = opened(Workbench(record_validation=mode))
    large = batch(bytes(validate.INLINE_BYTES))
    assert plain(log, RUNS_PAST_THE_END) == DECLINED
    assert plain(log, large) == DECLINED, "Python would take too long"
    validate.use_native_kernels(validate_records)
    assert plain(log, RUNS_PAST_THE_END) == DECLINED
    assert plain(log, large) == 1


def test_a_record_that_is_too_old_does_not_hide_behind_one_without_a_time() -> None:
    log = opened(Workbench(message_timestamp_before_max_ms=1_000))
    mixed = build([NewRecord(b"k", b"v", timestamp=stamp) for stamp in (-1, 5, NOW_MS)])
    assert plain(log, mixed) == DECLINED
    assert general(log, mixed, 0) == "invalid_timestamp"


def test_a_batch_that_fills_the_segment_is_left_to_the_path_that_rolls() -> None:
    log = opened(Workbench(segment_bytes=1_000))
    while plain(log, batch(bytes(200))) != DECLINED:
        assert len(log.segments) == 1
    assert log.segments.active.size + len(batch(bytes(200))) > 1_000


def test_changed_settings_hold_from_the_next_batch_on() -> None:
    log, checked = opened(Workbench()), PlainBatches()

    def plain(log: Log, content: bytes) -> int:
        batch = memoryview(content)
        header = checked.check(batch, log, 0, NOW_MS)
        return DECLINED if header is None else log.append_validated(batch, header, 0)

    assert plain(log, batch(b"a")) == 1
    log.config = TopicConfig(max_message_bytes=10)
    assert plain(log, batch(b"a")) == DECLINED
    log.config = TopicConfig(record_validation="header")
    assert plain(log, batch(b"a")) == 2
    assert plain(log, RUNS_PAST_THE_END) == 3
    log.config = TopicConfig(record_validation="auto")
    assert plain(log, batch(b"a")) == 4
    assert plain(log, RUNS_PAST_THE_END) == DECLINED, "records are walked now"
    assert plain(log, batch(b"a", codec=Codec.LZ4)) == DECLINED, "and these unpacked"


def test_a_failing_disk_leaves_the_log_as_it_was() -> None:
    disk = ForgettingDisk(lambda: NOW_MS)
    log = opened(Workbench(disk))
    before = everything(log)
    disk.capacity_bytes = 0
    with pytest.raises(OSError):
        plain(log, batch(b"a"))
    assert everything(log) == before


class _Sent(dict[str, Any]):
    """The fields of one batch, so that a failing example can be read."""


batches = st.builds(
    _Sent,
    values=st.lists(st.binary(max_size=40), min_size=1, max_size=3),
    timestamp=st.sampled_from([NOW_MS, NOW_MS - 1, NOW_MS + 3_600_001, -1, 0]),
    codec=st.sampled_from([Codec.NONE, Codec.LZ4, Codec.ZSTD]),
    transactional=st.booleans(),
    producer_id=st.sampled_from([-1, 7, 8]),
    producer_epoch=st.sampled_from([0, 1]),
    base_sequence=st.integers(-1, 6),
    flip=st.sampled_from([None, None, None, 3, 12, 16, 22, 60]),
    epoch=st.sampled_from([0, 0, 1]),
)


@settings(max_examples=300)
@given(st.lists(batches, max_size=12), st.sampled_from([300, 100_000]))
def test_both_paths_leave_the_same_log(history: list[_Sent], segment_bytes: int) -> None:
    """One log takes every batch the general way, the other plainly where that is not declined."""
    one = opened(Workbench(segment_bytes=segment_bytes, index_interval_bytes=100))
    two = opened(Workbench(segment_bytes=segment_bytes, index_interval_bytes=100))
    for sent in history:
        fields = dict(sent)
        values, flip, epoch = fields.pop("values"), fields.pop("flip"), fields.pop("epoch")
        content = bytearray(batch(*values, **fields))
        if flip is not None:
            content[flip] ^= 1
        expected = general(one, bytes(content), epoch)
        first = plain(two, bytes(content), epoch)
        if first == DECLINED:
            assert general(two, bytes(content), epoch) == expected
        else:
            assert first == expected
        assert everything(one) == everything(two)


def general(log: Log, content: bytes, epoch: int) -> int | str:
    try:
        return log.append(content, leader_epoch=epoch, now_ms=NOW_MS).first_offset
    except KafkaError as refusal:
        return refusal.code.name
