"""Promises of `ottla.log.record_errors`: every refused record is named, in Kafka's words."""

from __future__ import annotations

import pytest

from ottla.config.topic import TopicConfig
from ottla.log import record_errors
from ottla.log.record_errors import RecordError, RecordRules, RefusedRecords, may_refuse
from ottla.log.validate import analyse, rewrite
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import build, read_header
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import NewRecord

NOW = WallMs(1_700_000_000_000)
HOUR = 3_600_000
PARTITION = TopicPartition("orders", 3)
COMPACT = TopicConfig(cleanup_policy=("compact",))
NO_KEY = "Compacted topic cannot accept message without key in topic partition orders-3"


def refusal(batch: bytes, config: TopicConfig) -> RefusedRecords:
    with pytest.raises(RefusedRecords) as raised:
        analysis = analyse(batch, config, now_ms=NOW, partition=PARTITION)
        rewrite(analysis, config, NOW, PARTITION)
    return raised.value


def batch_of(*records: tuple[bytes | None, int], codec: Codec = Codec.NONE, by: int = 0) -> bytes:
    """Of keys and timestamps; `by` is whose clock the batch says they are of."""
    return build(
        [NewRecord(key, b"value", timestamp=stamp) for key, stamp in records],
        codec=codec,
        timestamp_type=by,
        max_timestamp=max(stamp for _, stamp in records),
    )


@pytest.mark.parametrize("mode", ["auto", "full", "header"])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_every_timestamp_out_of_range_is_named(codec: Codec, mode: str) -> None:
    config = TopicConfig(record_validation=mode, message_timestamp_before_max_ms=1_000)
    late, early = NOW + HOUR + 1, NOW - 1_001
    stamps = (NOW, late, -1, early, NOW - 1_000, NOW + HOUR)
    refused = refusal(batch_of(*((b"k", stamp) for stamp in stamps), codec=codec), config)
    assert refused.code is ErrorCode.invalid_timestamp
    assert refused.message == "One or more records have been rejected due to invalid timestamp"
    text = (
        "Timestamp {} of message with offset {} is out of range. "
        f"The timestamp should be within [{NOW - 1_000}, {NOW + HOUR}]"
    )
    assert refused.errors == [
        RecordError(1, text.format(late, 1)),
        RecordError(3, text.format(early, 3)),
    ]


def test_bounds_beyond_an_int64_are_written_as_kafka_writes_them() -> None:
    config = TopicConfig(
        message_timestamp_before_max_ms=0, message_timestamp_after_max_ms=2**63 - 1
    )
    (error,) = refusal(batch_of((b"k", NOW - 1)), config).errors
    assert error.message.endswith(f"within [{NOW}, {NOW + 2**63 - 1 - 2**64}]")


@pytest.mark.spec("REC-25")
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_every_record_without_a_key_is_named_and_the_first_three_are_shown(codec: Codec) -> None:
    keys = (b"k", None, None, b"", None, None)
    refused = refusal(batch_of(*((key, NOW) for key in keys), codec=codec), COMPACT)
    assert refused.code is ErrorCode.invalid_record
    assert refused.errors == [RecordError(index, NO_KEY) for index in (1, 2, 4, 5)]
    assert refused.message == (
        "One or more records have been rejected due to 4 record errors in total, and only showing "
        "the first three errors at most: ["
        f"RecordError(batchIndex=1, message='{NO_KEY}'), "
        f"RecordError(batchIndex=2, message='{NO_KEY}'), "
        f"RecordError(batchIndex=4, message='{NO_KEY}')]"
    )


def test_a_record_is_named_once_and_one_wrong_time_names_the_refusal() -> None:
    refused = refusal(batch_of((None, 2 * NOW), (b"k", NOW), (b"k", 2 * NOW)), COMPACT)
    assert refused.code is ErrorCode.invalid_timestamp
    assert [error.batch_index for error in refused.errors] == [0, 2]
    assert refused.errors[0].message == NO_KEY


@pytest.mark.parametrize(
    ("codec", "target", "shown"),
    [
        (Codec.NONE, "producer", "DefaultRecord({}key=0 bytes, value=5 bytes)"),
        (Codec.GZIP, "producer", "PartialDefaultRecord({}key=-1 bytes, value=5 bytes)"),
        (Codec.GZIP, "gzip", "PartialDefaultRecord({}key=-1 bytes, value=5 bytes)"),
        (Codec.GZIP, "zstd", "DefaultRecord({}key=0 bytes, value=5 bytes)"),
        (Codec.NONE, "zstd", "DefaultRecord({}key=0 bytes, value=5 bytes)"),
    ],
)
def test_a_producer_may_not_claim_our_clock_for_any_record(
    codec: Codec, target: str, shown: str
) -> None:
    config = TopicConfig(message_timestamp_type="LogAppendTime", compression_type=target)
    refused = refusal(batch_of((None, NOW), (None, NOW), codec=codec, by=1), config)
    assert refused.code is ErrorCode.invalid_timestamp
    assert refused.errors == [
        RecordError(
            index,
            f"Invalid timestamp type in message {_filled(shown, index)}. "
            "Producer should not set timestamp type to LogAppendTime.",
        )
        for index in (0, 1)
    ]


def _filled(shown: str, index: int) -> str:
    return shown.format(f"offset={index}, timestamp={NOW}, ")


def test_our_clock_claimed_for_no_time_at_all_is_refused_by_a_topic_of_the_other_clock() -> None:
    refused = refusal(batch_of((b"k", -1), by=1), TopicConfig())
    assert [error.batch_index for error in refused.errors] == [0]


def test_a_header_that_lies_about_its_times_is_no_reason_where_its_records_are_good() -> None:
    header_only = TopicConfig(record_validation="header")
    lying = build([NewRecord(b"k", b"v", timestamp=NOW)], max_timestamp=2 * NOW)
    assert not analyse(lying, header_only, now_ms=NOW).needs_rewrite


def test_a_refusal_names_no_more_records_than_its_bound_but_counts_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_errors, "MAX_NAMED", 5)
    refused = refusal(batch_of(*[(None, NOW)] * 9), COMPACT)
    assert len(refused.errors) == 5
    assert "due to 9 record errors" in (refused.message or "")


def test_most_batches_need_no_second_look() -> None:
    header = read_header(batch_of((b"k", NOW)))
    plain, compact = RecordRules(TopicConfig(), NOW), RecordRules(COMPACT, NOW)
    limited = RecordRules(TopicConfig(message_timestamp_before_max_ms=10), NOW)

    def suspect(rules: RecordRules, oldest: int, newest: int, *, null_key: bool = False) -> bool:
        return may_refuse(oldest, newest, has_null_key=null_key, header=header, rules=rules)

    for rules in (plain, compact, limited):
        assert not suspect(rules, NOW - 5, NOW + 5)
        assert not suspect(rules, -1, -1)
    assert not suspect(plain, NOW - 5, NOW + 5, null_key=True)
    assert suspect(compact, NOW - 5, NOW + 5, null_key=True)
    assert suspect(limited, -1, NOW + 5), "it may hide an old one"
