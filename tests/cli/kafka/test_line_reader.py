from __future__ import annotations

import re

import pytest

from ottla.cli.kafka.line_reader import LineReader
from ottla.cli.records.parsing import ParsedRecord
from ottla.model.errors import UserError


@pytest.mark.spec("TOOL-08")
def test_a_line_is_a_value() -> None:
    assert list(LineReader.of({}).drafts([b"one\n", b"\n", b"t\xffo"])) == [
        ParsedRecord(b"one"),
        ParsedRecord(b""),
        ParsedRecord(b"t\xffo"),
    ]


def test_headers_and_keys_are_parsed_as_kafka_does() -> None:
    reader = LineReader.of(
        {"parse.key": "true", "parse.headers": "TRUE", "null.marker": "NULL", "other": "ignored"}
    )
    assert reader.draft("a:1,b:NULL\tk\tv\tw", 1) == ParsedRecord(
        b"v\tw", b"k", (("a", b"1"), ("b", None))
    )
    assert reader.draft("NULL\tNULL\tNULL", 1) == ParsedRecord(None, None, ())
    other = LineReader.of({"parse.key": "true", "key.separator": "=>"})
    assert other.draft("k=>v", 1) == ParsedRecord(b"v", b"k")


def test_what_is_missing_is_an_error_unless_errors_are_ignored() -> None:
    wanted = {"parse.key": "true"}
    with pytest.raises(UserError, match="No key separator found on line number 3: 'x'"):
        LineReader.of(wanted).draft("x", 3)
    assert LineReader.of({**wanted, "ignore.error": "true"}).draft("x", 3) == ParsedRecord(b"x")
    with pytest.raises(UserError, match="No headers delimiter found"):
        LineReader.of({"parse.headers": "true"}).draft("x", 1)
    with pytest.raises(UserError, match="No header key separator found in pair 'x'"):
        LineReader.of({"parse.headers": "true"}).draft("x\tv", 1)


@pytest.mark.parametrize(
    ("properties", "names"),
    [
        ({"headers.separator": "\t"}, "headers.delimiter and headers.separator"),
        ({"headers.key.separator": ","}, "headers.separator and headers.key.separator"),
        ({"null.marker": "\t"}, "null.marker and key.separator"),
    ],
)
def test_separators_that_cannot_be_told_apart_are_refused(
    properties: dict[str, str], names: str
) -> None:
    with pytest.raises(UserError, match=re.escape(f"{names} may not be equal")):
        LineReader.of(properties)
