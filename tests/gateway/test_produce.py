from __future__ import annotations

import pytest

from ottla.client.producer.buffer.batch import RecordMetadata
from ottla.gateway.errors import HttpError, partition_not_found
from ottla.gateway.json_fields import JsonObject
from ottla.gateway.media_types import Format
from ottla.gateway.produce import Draft, Outcome, drafts, reply_fields, status_of
from ottla.model.errors import AuthenticationFailed, ErrorCode, KafkaError


def parse(body: object, format: Format = Format.JSON, partition: int | None = None) -> list[Draft]:
    return drafts(JsonObject(body), format, partition, 3)


def test_json_values_are_the_bytes_of_records() -> None:
    body = {"records": [{"key": "k", "value": {"a": [1.5, "é"]}}, {"value": None}, {"value": 0}]}
    assert parse(body) == [
        Draft(b'"k"', '{"a":[1.5,"é"]}'.encode(), None),
        Draft(None, None, None),
        Draft(None, b"0", None),
    ]


def test_base64_values_are_decoded() -> None:
    body = {"records": [{"key": "AP8=", "value": "", "partition": 2}]}
    assert parse(body, Format.BINARY) == [Draft(b"\x00\xff", b"", 2)]


def test_the_partition_of_the_path_is_that_of_all_records() -> None:
    assert parse({"records": [{"value": 1}]}, partition=4)[0].partition == 4
    assert parse({"records": [{"value": 1, "partition": 4}]}, partition=4)[0].partition == 4
    with pytest.raises(HttpError, match="none, or 4 as in the path, not 5"):
        parse({"records": [{"value": 1, "partition": 5}]}, partition=4)


def test_fields_of_formats_with_schemas_may_be_sent() -> None:
    assert parse({"records": [{}], "value_schema": None, "key_schema_id": None})


@pytest.mark.parametrize(
    ("body", "format", "words"),
    [
        ({"records": []}, Format.JSON, "records: expected 1 to 3 records"),
        ({"records": [{}] * 4}, Format.JSON, "records: expected at most 3 elements, not 4"),
        ({"records": [{"value": 1}]}, Format.BINARY, r"records\[0\].value: expected a base64"),
        ({"records": [{"key": "a"}]}, Format.BINARY, r"records\[0\].key: expected a base64"),
        ({"records": [{"key": "_-8="}]}, Format.BINARY, "standard alphabet"),
        ({"records": [{"value": "\ud800"}]}, Format.JSON, r"records\[0\].value: .* UTF-8"),
        ({"records": [{"value": 1e999}]}, Format.JSON, r"records\[0\].value"),
        ({"rows": []}, Format.JSON, "rows: expected no such field"),
    ],
)
def test_a_wrong_record_is_named(body: object, format: Format, words: str) -> None:
    with pytest.raises(HttpError, match=words) as refused:
        parse(body, format)
    assert refused.value.status == 422


def test_each_record_has_an_offset_or_an_error() -> None:
    written = RecordMetadata("orders", 1, 20, 0)
    denied = KafkaError(ErrorCode.topic_authorization_failed)
    outcomes: list[Outcome] = [
        written,
        TimeoutError("late"),
        KafkaError(ErrorCode.corrupt_message),
        denied,
    ]
    rows = reply_fields([*outcomes, partition_not_found("orders", 9)])["offsets"]
    assert isinstance(rows, list)
    assert rows[0] == {"partition": 1, "offset": 20, "error_code": None, "error": None}
    assert [row["error_code"] for row in rows[1:]] == [50003, 50003, 40301, 40402]
    assert rows[1]["error"] == "late"


def test_a_lack_of_rights_is_the_status_and_other_errors_are_not() -> None:
    assert status_of([RecordMetadata("orders", 0, 0, 0), TimeoutError()]) == 200
    assert status_of([KafkaError(ErrorCode.topic_authorization_failed)]) == 403
    assert status_of([AuthenticationFailed("no")]) == 401
