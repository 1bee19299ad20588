"""Promises of `ottla.log.validate`: the produce lines of "bad input", one by one."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.topic import TopicConfig
from ottla.log import validate
from ottla.log.validate import Analysis, Origin, RefusedRecords, analyse, rewrite, stamped_head
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import build, compute_crc, crc_ok, read_header
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.protocol.records.record import (
    NewRecord,
    encode_varint,
    read_records,
    validate_records,
)

NOW = WallMs(1_700_000_000_000)
RECORDS = [NewRecord(b"k", b"value", timestamp=NOW + at) for at in range(3)]
GOOD = build(RECORDS)
FULL = TopicConfig(record_validation="full")
HEADER_ONLY = TopicConfig(record_validation="header")


def changed(at: int, layout: str, *values: int, batch: bytes = GOOD, crc: bool = True) -> bytes:
    """A batch with something else in its header, and a checksum to match."""
    content = bytearray(batch)
    struct.pack_into(layout, content, at, *values)
    if crc:
        struct.pack_into(">I", content, 17, compute_crc(content))
    return bytes(content)


def with_section(section: bytes, count: int, *, codec: int = 0) -> bytes:
    """A batch whose records section is what a test wants it to be."""
    head = bytearray(build(RECORDS[:1])[:61])
    struct.pack_into(">i", head, 8, 49 + len(section))
    struct.pack_into(">hi", head, 21, codec, count - 1)
    struct.pack_into(">i", head, 57, count)
    content = head + section
    struct.pack_into(">I", content, 17, compute_crc(content))
    return bytes(content)


def record(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


PLAIN = b"\0" + encode_varint(0) + encode_varint(0) + b"\x02k" + b"\x02v"  # before the headers

CORRUPT, INVALID = ErrorCode.corrupt_message, ErrorCode.invalid_record

REFUSED: dict[str, tuple[bytes | None, ErrorCode]] = {
    "nothing": (None, INVALID),
    "no batch": (b"", INVALID),
    "cut before the magic": (GOOD[:16], INVALID),
    "cut in the header": (GOOD[:40], INVALID),
    "two batches": (GOOD + GOOD, INVALID),
    "magic 0": (legacy.build(RECORDS, magic=0), INVALID),
    "magic 1": (legacy.build(RECORDS, magic=1), INVALID),
    "magic 0, long": (legacy.build([NewRecord(b"k", b"v" * 99)], magic=0), INVALID),
    "magic 3": (changed(16, ">b", 3), CORRUPT),
    "magic -1": (changed(16, ">b", -1), CORRUPT),
    "negative length": (changed(8, ">i", -1), CORRUPT),
    "length 0": (changed(8, ">i", 0), CORRUPT),
    "length below a header's": (changed(8, ">i", 48), CORRUPT),
    "short set with a bad length": (struct.pack(">qi", 0, 3), CORRUPT),
    "length past the end": (changed(8, ">i", len(GOOD) - 11), INVALID),
    "bad length behind the batch": (GOOD + struct.pack(">qi", 0, 1), CORRUPT),
    "checksum": (changed(17, ">I", 1, crc=False), CORRUPT),
    "flipped bit in a record": (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), CORRUPT),
    "base offset": (changed(0, ">q", 5), INVALID),
    "count not last offset delta + 1": (changed(23, ">i", 5), INVALID),
    "count 0": (changed(57, ">i", 0), INVALID),
    "negative count": (changed(57, ">i", -3), INVALID),
    "control batch": (
        build_marker(
            EndTxnMarker(ControlType.COMMIT, 0), producer_id=1, producer_epoch=0, timestamp=NOW
        ),
        INVALID,
    ),
    "producer id with sequence -1": (build(RECORDS, producer_id=4, producer_epoch=0), INVALID),
    "unknown codec": (changed(21, ">h", 5), ErrorCode.unsupported_compression_type),
    "future timestamp": (
        build([NewRecord(b"k", b"v", timestamp=NOW + 3_600_001)]),
        ErrorCode.invalid_timestamp,
    ),
}

REFUSED_WHEN_WALKED: dict[str, bytes] = {
    "fewer records than counted": with_section(record(PLAIN + b"\0"), 2),
    "more records than counted": with_section(record(PLAIN + b"\0") * 2, 1),
    "record length past the end": with_section(b"\x7e" + PLAIN + b"\0", 1),
    "negative record length": with_section(b"\x01" + PLAIN + b"\0", 1),
    "header count -1": with_section(record(PLAIN + b"\x01"), 1),
    "huge header count": with_section(record(PLAIN + b"\xfe\xff\xff\xff\x0f"), 1),
    "null header key": with_section(record(PLAIN + b"\x02" + b"\x01" + b"\x01"), 1),
    "six-byte varint": with_section(record(PLAIN + b"\x80\x80\x80\x80\x80\x01"), 1),
    "offset deltas that do not count up": with_section(record(b"\0\0\x02" + PLAIN[3:] + b"\0"), 1),
    "not what its codec says": with_section(b"no gzip at all", 1, codec=1),
}


def examined(records: bytes | memoryview | None, config: TopicConfig) -> Analysis:
    analysis = analyse(records, config, now_ms=NOW)
    return rewrite(analysis, config, NOW) if analysis.needs_rewrite else analysis


def code_of(records: bytes | None, config: TopicConfig, *, zstd: bool = True) -> ErrorCode:
    try:
        analysis = analyse(records, config, now_ms=NOW, zstd=zstd)
        if analysis.needs_rewrite:
            rewrite(analysis, config, NOW)
    except KafkaError as error:
        return error.code
    return ErrorCode.none


@pytest.mark.spec("LOG-45", "LOG-48", "REC-16", "REC-36")
@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("config", [FULL, HEADER_ONLY], ids=["full", "header"])
def test_bad_batches_are_refused(case: str, config: TopicConfig) -> None:
    records, code = REFUSED[case]
    assert code_of(records, config) is code


@pytest.mark.spec("REC-21", "REC-22", "REC-24")
@pytest.mark.parametrize("case", REFUSED_WHEN_WALKED)
def test_bad_records_are_refused_where_records_are_walked(case: str) -> None:
    assert code_of(REFUSED_WHEN_WALKED[case], FULL) is INVALID


def test_walking_is_chosen_by_the_setting_or_forced_by_compaction_and_recompression() -> None:
    bad = REFUSED_WHEN_WALKED["fewer records than counted"]
    assert code_of(bad, HEADER_ONLY) is ErrorCode.none
    assert code_of(bad, HEADER_ONLY.changed(cleanup_policy=("compact",))) is INVALID
    assert code_of(bad, HEADER_ONLY.changed(compression_type="gzip")) is INVALID


@pytest.fixture
def no_kernels() -> Iterator[None]:
    """As in the first moments of a broker."""
    loaded = validate.native
    validate.use_native_kernels(None)
    yield
    validate.use_native_kernels(loaded)


@pytest.mark.usefixtures("no_kernels")
@pytest.mark.parametrize("case", REFUSED_WHEN_WALKED)
@pytest.mark.parametrize("mode", ["auto", "full"])
def test_bad_records_are_refused_before_the_kernels_are_loaded(mode: str, case: str) -> None:
    config = TopicConfig(record_validation=mode)
    assert code_of(REFUSED_WHEN_WALKED[case], config) is INVALID
    validate.use_native_kernels(validate_records)
    assert code_of(REFUSED_WHEN_WALKED[case], config) is INVALID


def test_auto_means_header_where_there_are_no_kernels_to_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(validate, "installed", False)
    bad = REFUSED_WHEN_WALKED["fewer records than counted"]
    assert code_of(bad, TopicConfig(record_validation="auto")) is ErrorCode.none
    assert code_of(bad, FULL) is INVALID


@pytest.mark.usefixtures("no_kernels")
def test_what_takes_long_to_walk_in_python_is_left_for_another_thread() -> None:
    many = build([NewRecord(b"k", b"v", timestamp=NOW)] * 5_000)
    packed = build([NewRecord(b"k", b"v", timestamp=NOW)] * 5, codec=Codec.GZIP)
    for batch in (many, packed):
        analysis = analyse(batch, FULL, now_ms=NOW)
        assert analysis == Analysis(memoryview(batch), read_header(batch), True, False)
        done = rewrite(analysis, FULL, NOW)
        assert done == Analysis(memoryview(batch), read_header(batch), False, False)
    validate.use_native_kernels(validate_records)
    assert not analyse(many, FULL, now_ms=NOW).needs_rewrite
    assert not analyse(packed, FULL, now_ms=NOW).needs_rewrite


def test_a_large_batch_with_records_to_name_is_left_for_another_thread() -> None:
    many = build([NewRecord(b"k", b"v", timestamp=5)] * 5_000)
    config = FULL.changed(message_timestamp_before_max_ms=1_000)
    validate.use_native_kernels(validate_records)
    try:
        analysis = analyse(many, config, now_ms=NOW)
    finally:
        validate.use_native_kernels(None)
    assert analysis.needs_rewrite
    with pytest.raises(RefusedRecords) as refusal:
        rewrite(analysis, config, NOW)
    assert len(refusal.value.errors) == 5_000


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("config", [FULL, HEADER_ONLY], ids=["full", "header"])
def test_good_batches_of_every_codec_pass_unchanged(codec: Codec, config: TopicConfig) -> None:
    batch = build(RECORDS, codec=codec, producer_id=5, producer_epoch=0, base_sequence=0)
    analysis = examined(memoryview(batch), config)
    assert analysis == Analysis(memoryview(batch), read_header(batch), False, False)


@pytest.mark.spec("LOG-46")
def test_a_cut_batch_behind_the_one_is_trimmed() -> None:
    for tail in (b"\0" * 11, GOOD[:50]):
        assert analyse(GOOD + tail, FULL, now_ms=NOW).content == GOOD


def test_zstd_needs_a_request_that_knows_it() -> None:
    batch = build(RECORDS, codec=Codec.ZSTD)
    assert code_of(batch, FULL) is ErrorCode.none
    assert code_of(batch, FULL, zstd=False) is ErrorCode.unsupported_compression_type


@pytest.mark.spec("LOG-48")
def test_a_batch_above_the_limit_is_too_large_before_anything_is_computed() -> None:
    limited = FULL.changed(max_message_bytes=len(GOOD))
    assert code_of(GOOD, limited) is ErrorCode.none
    assert code_of(GOOD, FULL.changed(max_message_bytes=len(GOOD) - 1)) is (
        ErrorCode.message_too_large
    )


@pytest.mark.spec("REC-25")
def test_a_compacted_topic_refuses_records_without_a_key_and_names_them() -> None:
    compact = HEADER_ONLY.changed(cleanup_policy=("compact",))
    batch = build([RECORDS[0], NewRecord(None, b"v", timestamp=NOW)])
    assert code_of(batch, FULL) is ErrorCode.none
    with pytest.raises(RefusedRecords) as error:
        analyse(batch, compact, now_ms=NOW)
    assert error.value.code is INVALID
    assert [bad.batch_index for bad in error.value.errors] == [1]


def test_a_bomb_is_refused_without_being_inflated() -> None:
    bomb = with_section(zlib_bomb(), 1, codec=1)
    assert len(bomb) < 1_000_000
    assert code_of(bomb, FULL) is INVALID


def zlib_bomb() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(b"\0" * (1 << 20)) for _ in range(100)) + packer.flush()


@pytest.mark.spec("REC-11", "REC-12")
@pytest.mark.parametrize(
    ("stamp", "code"),
    [
        (NOW + 50, ErrorCode.none),
        (NOW + 51, ErrorCode.invalid_timestamp),
        (NOW - 80, ErrorCode.none),
        (NOW - 81, ErrorCode.invalid_timestamp),
        (-1, ErrorCode.none),
    ],
)
@pytest.mark.parametrize("mode", ["full", "header"])
def test_timestamps_must_be_near_our_own(stamp: int, code: ErrorCode, mode: str) -> None:
    config = TopicConfig(
        record_validation=mode,
        message_timestamp_before_max_ms=80,
        message_timestamp_after_max_ms=50,
    )
    assert code_of(build([NewRecord(b"k", b"v", timestamp=stamp)]), config) is code


@pytest.mark.spec("REC-10", "REC-19", "REC-34")
def test_append_time_changes_the_header_and_nothing_else() -> None:
    config = FULL.changed(message_timestamp_type="LogAppendTime")
    analysis = analyse(GOOD, config, now_ms=WallMs(NOW + 9_000_000))
    assert analysis.restamped
    head = stamped_head(analysis, base_offset=40, leader_epoch=6)
    batch = head + GOOD[61:]
    assert crc_ok(batch)
    header = read_header(batch)
    assert (header.base_offset, header.leader_epoch) == (40, 6)
    assert header.timestamp_type == 1
    assert header.max_timestamp == NOW + 9_000_000
    assert header.base_timestamp == NOW
    assert [found.timestamp for found in read_records(batch)] == [NOW + 9_000_000] * 3


def test_a_producer_may_not_claim_append_time() -> None:
    claimed = build(RECORDS, timestamp_type=1)
    assert code_of(claimed, FULL.changed(message_timestamp_type="LogAppendTime")) is (
        ErrorCode.invalid_timestamp
    )
    analysis = analyse(claimed, FULL, now_ms=NOW)
    assert analysis.restamped
    assert analysis.header.timestamp_type == 0


@pytest.mark.spec("REC-19")
def test_a_lie_about_the_largest_timestamp_is_corrected_where_records_are_walked() -> None:
    lying = changed(35, ">q", NOW + 1_000)
    analysis = analyse(lying, FULL, now_ms=NOW)
    assert analysis.restamped
    assert analysis.header.max_timestamp == NOW + 2
    assert not analyse(lying, HEADER_ONLY, now_ms=NOW).restamped


@pytest.mark.spec("REC-26", "REC-27")
@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_codec_is_applied_and_the_records_stay_the_same(source: Codec, target: str) -> None:
    config = TopicConfig(compression_type=target)
    batch = build(
        RECORDS, codec=source, producer_id=5, producer_epoch=1, base_sequence=8, transactional=True
    )
    again = examined(batch, config)
    assert not again.needs_rewrite
    if validate.CODECS[target] is source:
        assert again == Analysis(memoryview(batch), read_header(batch), False, False)
    stored = stamped_head(again, 0, 0) + bytes(again.content[61:])
    assert crc_ok(stored)
    assert read_header(stored).codec is validate.CODECS[target]
    assert list(read_records(stored)) == list(read_records(batch))
    kept = ("producer_id", "producer_epoch", "base_sequence", "is_transactional", "max_timestamp")
    for name in kept:
        assert getattr(read_header(stored), name) == getattr(read_header(batch), name)


def test_a_recompressed_batch_carries_our_time_where_the_topic_wants_it() -> None:
    config = TopicConfig(compression_type="lz4", message_timestamp_type="LogAppendTime")
    analysis = analyse(build(RECORDS), config, now_ms=NOW)
    again = rewrite(analysis, config, WallMs(NOW + 5))
    assert again.header.timestamp_type == 1
    assert again.header.max_timestamp == NOW + 5


def test_a_batch_that_grew_too_large_when_recompressed_is_refused() -> None:
    batch = build([NewRecord(b"k", b"\0" * 50_000, timestamp=NOW)], codec=Codec.GZIP)
    config = TopicConfig(compression_type="uncompressed", max_message_bytes=10_000)
    assert code_of(batch, config) is ErrorCode.message_too_large


def test_coordinators_may_write_markers_and_they_are_never_recompressed() -> None:
    marker = build_marker(
        EndTxnMarker(ControlType.ABORT, 3), producer_id=1, producer_epoch=0, timestamp=NOW
    )
    config = TopicConfig(compression_type="gzip", cleanup_policy=("compact",))
    analysis = analyse(marker, config, now_ms=NOW, origin=Origin.COORDINATOR)
    assert not analysis.needs_rewrite


mutations: st.SearchStrategy[Callable[[bytearray], object]] = st.one_of(
    st.builds(
        lambda at, value: lambda batch: batch.__setitem__(at % len(batch), value),
        st.integers(0, 200),
        st.integers(0, 255),
    ),
    st.builds(lambda end: lambda batch: batch.__delitem__(slice(end, None)), st.integers(0, 90)),
    st.builds(lambda tail: lambda batch: batch.extend(tail), st.binary(max_size=40)),
)


@given(st.sampled_from(list(Codec)), st.lists(mutations, max_size=4), st.booleans())
def test_no_damage_gets_through_or_breaks_anything(
    codec: Codec, damage: list[Callable[[bytearray], object]], fix_checksum: bool
) -> None:
    batch = bytearray(build(RECORDS, codec=codec))
    for act in damage:
        if batch:
            act(batch)
    if fix_checksum and len(batch) >= 61:
        struct.pack_into(">I", batch, 17, compute_crc(batch))
    try:
        analysis = examined(bytes(batch), FULL)
    except KafkaError:
        return
    stored = stamped_head(analysis, 0, 0) + bytes(analysis.content[61:])
    assert len(list(read_records(stored))) == analysis.header.count
