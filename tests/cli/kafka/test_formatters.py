from __future__ import annotations

import pytest

from ottla.cli.kafka.formatters import formatter
from ottla.client.consumer.record import Record
from ottla.model.errors import UserError

FULL: Record[bytes, bytes] = Record(
    "t", 1, 2, 1_700_000_000_000, 0, b"k", b"v", (("a", b"b"), ("c", None)), 5
)
BARE: Record[bytes, bytes] = Record("t", 0, 0, -1, -1, None, None)
ALL = {
    f"print.{part}": "true"
    for part in ("timestamp", "partition", "offset", "epoch", "headers", "key")
}


@pytest.mark.spec("TOOL-09")
def test_parts_are_shown_as_kafkas_formatter_shows_them() -> None:
    assert formatter(None, {})(FULL) == b"v\n"
    assert formatter(None, ALL)(FULL) == (
        b"CreateTime:1700000000000\tPartition:1\tOffset:2\tEpoch:5\ta:b,c:null\tk\tv\n"
    )
    assert formatter(None, ALL)(BARE) == (
        b"NO_TIMESTAMP\tPartition:0\tOffset:0\tEpoch:NOT_PRESENT\tNO_HEADERS\tnull\tnull\n"
    )


def test_separators_and_literals_are_as_given() -> None:
    properties = {
        "print.key": "true",
        "print.headers": "true",
        "key.separator": "|",
        "line.separator": ";",
        "headers.separator": "&",
        "null.literal": "NIL",
    }
    assert formatter(None, properties)(FULL) == b"a:b&c:NIL|k|v;"
    assert formatter(None, {"print.value": "false", "print.key": "true"})(FULL) == b"k\n"


def test_deserializers_of_kafkas_read_numbers_and_text() -> None:
    number: Record[bytes, bytes] = FULL._replace(key=b"\x00\x00\x00\x07", value=b"\xff" * 8)
    names = {
        "print.key": "true",
        "key.deserializer": "org.apache.kafka.common.serialization.IntegerDeserializer",
        "value.deserializer": "org.apache.kafka.common.serialization.LongDeserializer",
    }
    assert formatter(None, names)(number) == b"7\t-1\n"
    with pytest.raises(UserError, match=r"deserializer my\.Own: expected one of"):
        formatter(None, {"key.deserializer": "my.Own"})


def test_other_formatters_are_known_by_their_class() -> None:
    assert formatter("org.apache.kafka.tools.consumer.NoOpMessageFormatter", {})(FULL) == b""
    logged = formatter("kafka.tools.LoggingMessageFormatter", {})(FULL)
    assert logged == b"CreateTime:1700000000000\tk\tv\n"
    with pytest.raises(UserError, match=r"--formatter my\.Own: expected"):
        formatter("my.Own", {})
