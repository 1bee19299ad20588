from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.records.formatting import as_json
from ottla.cli.records.parsing import InputFormat, ParsedRecord, drafts, from_json, header
from ottla.client.consumer.record import Record
from ottla.model.errors import UserError

PLAIN = InputFormat()


def read(text: bytes, how: InputFormat = PLAIN) -> list[ParsedRecord]:
    return list(drafts(text.splitlines(keepends=True), how))


def test_a_line_is_a_value_and_an_empty_one_is_empty() -> None:
    assert read(b"one\r\n\ntwo") == [ParsedRecord(b"one"), ParsedRecord(b""), ParsedRecord(b"two")]


def test_a_separator_parts_the_key_and_null_stands_for_nothing() -> None:
    how = InputFormat(key_separator=b":", null=b"NULL", headers=(("h", b"x"),))
    assert read(b"a:b:c\nNULL:v\nk:NULL\n", how) == [
        ParsedRecord(b"b:c", b"a", (("h", b"x"),)),
        ParsedRecord(b"v", None, (("h", b"x"),)),
        ParsedRecord(None, b"k", (("h", b"x"),)),
    ]


def test_json_may_say_everything() -> None:
    line = (
        b'{"key": "k", "value": {"n": 1}, "headers": {"a": "b", "c": null}, "partition": 2,'
        b' "timestamp": 1700000000000, "topic": "passed over", "offset": 7}\n\n'
    )
    assert read(line, InputFormat(is_json=True, headers=(("more", b"1"),))) == [
        ParsedRecord(
            b'{"n": 1}',
            b"k",
            (("a", b"b"), ("c", None), ("more", b"1")),
            2,
            1_700_000_000_000,
        )
    ]
    assert from_json(b'{"value_base64": "AP8="}', 1).value == b"\x00\xff"
    assert from_json(b'{"headers": [["a", "1"], ["a", "2"]]}', 1).headers == (
        ("a", b"1"),
        ("a", b"2"),
    )


@given(
    key=st.none() | st.binary(max_size=8),
    value=st.none() | st.binary(max_size=8),
    names=st.lists(st.text(max_size=4), max_size=3),
)
def test_what_consume_shows_as_json_produce_reads_again(
    key: bytes | None, value: bytes | None, names: list[str]
) -> None:
    headers = tuple((name, b"text") for name in names)
    record = Record("t", 0, 5, 1_700_000_000_000, 0, key, value, headers)
    line = json.dumps(as_json(record)).encode()
    assert from_json(line, 1) == ParsedRecord(value, key, headers, 0, 1_700_000_000_000)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"nonsense", "line 1: not JSON"),
        (b"[1]", "line 1: expected an object"),
        (b'{"vlue": 1}', "line 1: vlue: expected one of"),
        (b'{"partition": -1}', "line 1: partition: expected a whole number"),
        (b'{"timestamp": true}', "line 1: timestamp: expected a whole number"),
        (b'{"key_base64": "%"}', "line 1: key_base64: expected base64"),
        (b'{"headers": 5}', "line 1: headers: expected"),
    ],
)
def test_json_that_cannot_be_sent_names_its_line_and_field(line: bytes, said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)):
        read(line, InputFormat(is_json=True))


def test_a_line_without_its_separator_is_named() -> None:
    with pytest.raises(UserError, match="line 2: no key separator ':'"):
        read(b"a:b\nc\n", InputFormat(key_separator=b":"))


def test_a_header_option_has_a_name_and_maybe_a_value() -> None:
    assert header("--header", "a=b=c") == ("a", b"b=c")
    assert header("--header", "a") == ("a", None)
    with pytest.raises(UserError, match="--header '=b'"):
        header("--header", "=b")
