from __future__ import annotations

import json

import pytest

from ottla.cli.records.formatting import Format, Part, parts, shower
from ottla.client.consumer.record import Record
from ottla.model.errors import UserError

FULL: Record[bytes, bytes] = Record(
    "t", 1, 2, 1_700_000_000_000, 0, b"k", b"v\xff", (("a", b"b"), ("c", None))
)
BARE: Record[bytes, bytes] = Record("t", 0, 0, -1, -1, None, None)


def test_text_shows_the_parts_that_were_asked_for_in_one_order() -> None:
    assert shower(Format.TEXT, frozenset())(FULL) == b"v\\xff\n"
    assert shower(Format.TEXT, frozenset(Part))(FULL) == (
        b"2023-11-14T22:13:20.000Z\tt-1\t2\ta=b,c=null\tk\tv\\xff\n"
    )
    assert shower(Format.TEXT, frozenset(Part))(BARE) == b"null\tt-0\t0\t-\tnull\tnull\n"


def test_json_shows_everything_and_bytes_that_are_no_text_as_base64() -> None:
    assert json.loads(shower(Format.JSON, frozenset())(FULL)) == {
        "topic": "t",
        "partition": 1,
        "offset": 2,
        "timestamp": 1_700_000_000_000,
        "key": "k",
        "value_base64": "dv8=",
        "headers": {"a": "b", "c": None},
    }
    assert json.loads(shower(Format.JSON, frozenset())(BARE))["timestamp"] is None


def test_hex_and_raw_lose_nothing() -> None:
    assert shower(Format.HEX, frozenset({Part.KEY}))(FULL) == b"6b\t76ff\n"
    assert shower(Format.RAW, frozenset())(FULL) == b"v\xff"
    assert shower(Format.RAW, frozenset())(BARE) == b""


def test_parts_are_named_with_commas_between() -> None:
    assert parts("--show", "key,offset") == {Part.KEY, Part.OFFSET}
    assert parts("--show", None) == frozenset()
    with pytest.raises(UserError, match="--show 'kye': expected some of"):
        parts("--show", "kye")
