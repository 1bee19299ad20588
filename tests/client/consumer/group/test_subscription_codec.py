from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.assignors.assignor import Subscription
from ottla.client.consumer.group.subscription_codec import (
    UnreadableSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from ottla.model.ids import TopicPartition

PARTITIONS = st.builds(TopicPartition, st.text(max_size=4), st.integers(0, 2**31 - 1))


@pytest.mark.spec("CON-29", "WIRE-32")
def test_a_subscription_is_worded_as_the_java_client_words_it() -> None:
    told = Subscription(("t",), b"\x01", (TopicPartition("t", 2),), 7, "eu")
    encoded = encode_subscription(told)
    assert encoded == bytes.fromhex(
        "0003 00000001 0001 74 00000001 01 00000001 0001 74 00000001 00000002 00000007 0002 6575"
    )


@pytest.mark.spec("WIRE-32", "WIRE-35")
def test_the_oldest_wording_is_understood() -> None:
    said = bytes.fromhex("0000 00000002 0001 74 0001 75 00000002 0102")
    assert decode_subscription(said) == Subscription(("t", "u"), b"\x01\x02")
    nothing_more = bytes.fromhex("0000 00000001 0001 74 ffffffff")
    assert decode_subscription(nothing_more) == Subscription(("t",), None)
    share = bytes.fromhex("0000 00000001 0001 74 00000002 00000000 00000005 ffffffff")
    assert decode_assignment(share) == (TopicPartition("t", 0), TopicPartition("t", 5))


@pytest.mark.spec("WIRE-35")
def test_an_assignment_is_worded_as_the_java_client_words_it() -> None:
    encoded = encode_assignment([TopicPartition("t", 1), TopicPartition("t", 0)])
    assert encoded == bytes.fromhex("0003 00000001 0001 74 00000002 00000000 00000001 ffffffff")


@given(
    st.sets(st.text(max_size=4)),
    st.none() | st.binary(max_size=8),
    st.sets(PARTITIONS, max_size=4),
    st.integers(-1, 2**31 - 1),
    st.none() | st.text(max_size=4),
)
def test_what_is_said_is_heard(
    topics: set[str],
    user_data: bytes | None,
    owned: set[TopicPartition],
    generation: int,
    rack: str | None,
) -> None:
    told = Subscription(tuple(sorted(topics)), user_data, tuple(sorted(owned)), generation, rack)
    assert decode_subscription(encode_subscription(told)) == told
    assert decode_assignment(encode_assignment(owned)) == tuple(sorted(owned))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_older_versions_say_less(version: int) -> None:
    body = {
        0: "00000001 0001 74 ffffffff",
        1: "00000001 0001 74 ffffffff 00000001 0001 74 00000001 00000002",
        2: "00000001 0001 74 ffffffff 00000001 0001 74 00000001 00000002 00000007",
    }[version]
    told = decode_subscription(bytes.fromhex(f"000{version} {body}"))
    assert told.topics == ("t",)
    assert told.owned == ((TopicPartition("t", 2),) if version else ())
    assert told.generation == (7 if version == 2 else -1)


def test_newer_versions_only_add_fields_at_the_end() -> None:
    newest = encode_subscription(Subscription(("t",), None, (), 3, None))
    newer = b"\x00\x09" + newest[2:] + b"something new"
    assert decode_subscription(newer).generation == 3


def test_a_member_that_gets_nothing_may_be_sent_nothing() -> None:
    assert decode_assignment(b"") == ()


@given(st.binary(max_size=40))
def test_whatever_else_is_refused_and_nothing_worse(data: bytes) -> None:
    with contextlib.suppress(UnreadableSubscription):
        decode_subscription(data)
