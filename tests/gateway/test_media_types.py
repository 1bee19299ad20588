from __future__ import annotations

import pytest

from ottla.gateway.errors import HttpError
from ottla.gateway.media_types import (
    JSON,
    V2,
    Format,
    check_json,
    error_type,
    produced_format,
    records_type,
    reply_type,
)
from tests.gateway.running_gateway import BINARY
from tests.gateway.running_gateway import JSON as JSON_RECORDS


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, V2),
        ("", V2),
        ("*/*", V2),
        (JSON, JSON),
        (f"{V2}, {JSON}", V2),
        (f"{V2};q=0.5, {JSON}", JSON),
        (f"{JSON};q=0, */*;q=0.1", V2),
        ("application/*", V2),
        (JSON_RECORDS, V2),
        ("text/html, */*;q=0.8", V2),
    ],
)
def test_the_type_of_a_reply_is_what_the_client_prefers(accept: str | None, chosen: str) -> None:
    assert reply_type(accept) == chosen


def test_a_reply_that_the_client_does_not_accept_is_refused() -> None:
    for accept in ("text/html", f"{JSON};q=0", "application/vnd.kafka.avro.v2+json", "x;q=x"):
        with pytest.raises(HttpError, match="expected") as refused:
            reply_type(accept)
        assert refused.value.status == 406
        assert error_type(accept) == JSON


def test_records_have_the_form_of_the_instance() -> None:
    assert records_type("*/*", Format.JSON) == JSON_RECORDS
    assert records_type(BINARY, Format.BINARY) == BINARY
    assert records_type(V2, Format.JSON) == V2
    with pytest.raises(HttpError, match="has format json") as refused:
        records_type(BINARY, Format.JSON)
    assert (refused.value.code, refused.value.status) == (40601, 406)


def test_a_body_needs_a_type_that_a_web_page_must_ask_for() -> None:
    assert produced_format(f"{BINARY}; charset=utf-8") is Format.BINARY
    assert produced_format(JSON_RECORDS.upper()) is Format.JSON
    check_json(JSON)
    check_json(V2)
    for content_type in (None, "", "text/plain", "application/x-www-form-urlencoded"):
        with pytest.raises(HttpError, match="Content-Type"):
            produced_format(content_type)
        with pytest.raises(HttpError, match="Content-Type"):
            check_json(content_type)
