from __future__ import annotations

import json

import pytest

from ottla.cli.kafka.formatters import formatter
from ottla.cli.kafka.offset_formatters import as_json, as_text
from ottla.client.consumer.record import Record
from ottla.coordinator.group.records import Committed, OffsetChanged, offset_record, tombstone
from ottla.model.clock import WallMs

OLD = "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter"
NEW = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"


def record(committed: Committed | None) -> Record[bytes, bytes]:
    stored = offset_record(OffsetChanged("g", "t", 3, committed))
    return Record("__consumer_offsets", 0, 0, 0, 0, stored.key, stored.value)


@pytest.mark.spec("TOOL-10")
def test_the_old_formatter_shows_group_topic_partition_and_value() -> None:
    assert formatter(OLD, {}) is as_text
    assert as_text(record(Committed(42, 7, "note", WallMs(1_700_000_000_000)))) == (
        b"[g,t,3]::OffsetAndMetadata(offset=42, leaderEpoch=Optional[7], metadata=note, "
        b"commitTimestamp=1700000000000, expireTimestamp=None)\n"
    )
    assert b"expireTimestamp=Some(9)" in as_text(record(Committed(1, expires_ms=WallMs(9))))
    assert as_text(record(None)) == b"[g,t,3]::NULL\n"


@pytest.mark.spec("TOOL-10")
def test_the_new_formatter_shows_json() -> None:
    assert formatter(NEW, {}) is as_json
    assert json.loads(as_json(record(Committed(42, 7, "note", WallMs(17))))) == {
        "key": {"type": 1, "data": {"group": "g", "topic": "t", "partition": 3}},
        "value": {
            "version": 3,
            "data": {
                "offset": 42,
                "leaderEpoch": 7,
                "metadata": "note",
                "commitTimestamp": 17,
            },
        },
    }
    assert json.loads(as_json(record(None)))["value"] is None
    assert json.loads(as_json(record(Committed(1, expires_ms=WallMs(9)))))["value"]["version"] == 1


def test_what_is_no_offset_is_passed_over() -> None:
    gone = tombstone("g")
    for other in (
        Record("t", 0, 0, 0, 0, gone.key, gone.value),
        Record("t", 0, 0, 0, 0, None, b"x"),
        Record("t", 0, 0, 0, 0, b"", b"x"),
    ):
        assert as_text(other) == b""
        assert as_json(other) == b""
