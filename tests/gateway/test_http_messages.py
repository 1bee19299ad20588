from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.gateway.errors import HttpError
from ottla.gateway.http_messages import dump_json, error_reply, parse_json
from ottla.gateway.json_fields import JsonObject
from ottla.gateway.media_types import V2

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)  # fmt: skip


@given(VALUES)
def test_json_comes_back_as_it_was(value: object) -> None:
    assert parse_json(dump_json(value)) == value


@given(st.binary())
def test_any_body_is_json_or_refused(body: bytes) -> None:
    try:
        parse_json(body)
    except HttpError as refused:
        assert refused.status == 400


def test_a_body_of_millions_of_values_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(HttpError, match="at most 1,000,000 commas") as refused:
        parse_json(b"[" + b"[]," * 1_000_000 + b"1]")
    assert refused.value.code == 413


def test_a_refusal_has_a_code_and_a_message() -> None:
    reply = error_reply(HttpError(50301, "busy", retry_after_s=2), "*/*")
    assert reply.status == 503
    assert json.loads(reply.body) == {"error_code": 50301, "message": "busy"}
    assert reply.content_type == V2
    assert reply.headers == (("Retry-After", "2"),)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"text": 1}, "text: expected a string, not a number"),
        ({"text": ""}, "text: expected a string that is not empty"),
        ({}, "text: expected a string that is not empty"),
    ],
)
def test_a_text_that_is_none_is_named(body: object, message: str) -> None:
    with pytest.raises(HttpError) as refused:
        JsonObject(body).required_text("text")
    assert (refused.value.code, refused.value.message) == (422, message)


@pytest.mark.parametrize("value", [True, 1.0, "1", -1, 2**31, 2**64])
def test_an_integer_that_is_none_or_too_large_is_named(value: object) -> None:
    with pytest.raises(HttpError, match=r"list\[0\]\.count: expected an integer from 0 to"):
        JsonObject({"list": [{"count": value}]}).objects("list", 1)[0].integer("count")  # type: ignore[index]


def test_arrays_are_bounded_and_hold_one_type() -> None:
    body = JsonObject({"list": ["a", 1], "text": "x"})
    with pytest.raises(HttpError, match="at most 1 elements, not 2"):
        body.items("list", 1)
    with pytest.raises(HttpError, match="text: expected an array, not a string"):
        body.items("text", 1)
    with pytest.raises(HttpError, match="list: expected an array of strings"):
        body.texts("list", 2)
    with pytest.raises(HttpError, match=r"list\[0\]: expected an object, not a string"):
        body.objects("list", 2)
    assert body.items("none", 1) is None
