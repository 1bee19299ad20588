"""What classic consumers say inside their metadata."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.group.consumer.classic_metadata import (
    ClassicSubscription,
    read_assignment,
    read_subscription,
    write_assignment,
)
from ottla.coordinator.record_fields import Writer
from tests.coordinator.group.consumer.scene import subscription

assignments = st.dictionaries(st.text(max_size=9), st.lists(st.integers(0, 99)), max_size=3)


@given(assignments, st.integers(0, 3))
def test_an_assignment_reads_as_it_was_written(topics: dict[str, list[int]], version: int) -> None:
    assert read_assignment(write_assignment(topics, version)) == topics


def test_a_subscription_says_more_in_later_versions() -> None:
    first = Writer(0).array(1).string("t").blob(b"data").done()
    assert read_subscription(first) == ClassicSubscription(("t",), {}, None, 0)
    second = subscription("t", owned={"t": [0, 2]})
    assert read_subscription(second) == ClassicSubscription(("t",), {"t": [0, 2]}, None, 1)
    out = Writer(3).array(1).string("t").blob(None).array(0).int32(7).string("rack")
    assert read_subscription(out.done()) == ClassicSubscription(("t",), {}, "rack", 3)
    later = Writer(9).array(1).string("t").blob(None).array(0).int32(7).string(None).raw(b"more")
    assert read_subscription(later.done()) == ClassicSubscription(("t",), {}, None, 3)


@pytest.mark.parametrize("garbage", [b"", b"\0", b"\0\1\0\0\0\1", b"\0\1\x7f\xff\xff\xff"])
def test_what_cannot_be_read_is_none(garbage: bytes) -> None:
    assert read_subscription(garbage) is None
    assert read_assignment(garbage or b"\0") is None


def test_nobody_has_been_given_anything_while_there_is_no_assignment() -> None:
    assert read_assignment(b"") == {}
