"""Peers that do not speak Kafka's protocol, and what we show of what they send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.net.error_log import escaped, hint


@pytest.mark.parametrize(
    ("first", "word"),
    [
        (b"GET ", "HTTP"),
        (b"POST", "HTTP"),
        (b"PRI ", "HTTP"),
        (b"\x16\x03\x01\x02", "TLS"),
        (b"\x16\x03\x03\x00", "TLS"),
        (b"SSH-", "SSH"),
    ],
)
def test_a_stranger_is_recognised_by_its_first_bytes(first: bytes, word: str) -> None:
    assert word in hint(first)


@pytest.mark.parametrize("first", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x00"])
def test_plain_garbage_gets_no_advice(first: bytes) -> None:
    assert hint(first) == ""


@given(st.text(max_size=400))
def test_what_a_peer_says_is_shown_on_one_printable_line_of_bounded_length(text: str) -> None:
    shown = escaped(text, longest=50)
    assert shown.isprintable()
    assert len(shown) <= 50 * 10 + 3
    if text.isprintable() and len(text) <= 50:
        assert shown == text
