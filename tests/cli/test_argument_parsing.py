from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.argument_parsing import (
    duration_ms,
    matching,
    moment_ms,
    offset_spec,
    pattern,
    require_topic_name,
    shown_time,
    sorted_partitions,
    topic_partitions,
    whole_value,
)
from ottla.client.admin import OffsetSpec
from ottla.model.clock import WallMs
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

NOW = WallMs(1_700_000_000_000)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1699999999999", 1_699_999_999_999),
        ("2h", NOW - 7_200_000),
        ("-2h", NOW - 7_200_000),
        ("90s", NOW - 90_000),
        ("2023-11-14T22:13:20Z", NOW),
        ("2023-11-14T23:13:20.500+01:00", NOW + 500),
    ],
)
def test_a_moment_is_a_date_a_number_or_how_long_ago(text: str, ms: int) -> None:
    assert moment_ms("--at", text, NOW) == ms


@given(st.integers(0, 4_000_000_000_000))
def test_a_time_that_is_shown_is_read_again(ms: int) -> None:
    shown = shown_time(ms)
    assert shown is not None
    assert moment_ms("--at", shown, NOW) == ms


def test_no_time_is_shown_as_none() -> None:
    assert shown_time(-1) is None
    assert shown_time(None) is None


@pytest.mark.parametrize(
    ("text", "ms"),
    [("5", 5), ("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("7d", 604_800_000)],
)
def test_a_duration_has_a_unit_or_is_in_milliseconds(text: str, ms: int) -> None:
    assert duration_ms("--older-than", text) == ms


def test_an_offset_is_named_or_found_by_time() -> None:
    assert offset_spec("--at", "earliest", NOW) is OffsetSpec.EARLIEST
    assert offset_spec("--at", "max-timestamp", NOW) is OffsetSpec.MAX_TIMESTAMP
    assert offset_spec("--at", "7", NOW) == 7


def test_a_topic_may_have_its_partitions_with_it() -> None:
    assert topic_partitions("TOPIC", "orders") == ("orders", None)
    assert topic_partitions("TOPIC", "orders:0,2") == ("orders", (0, 2))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: moment_ms("--at", "yesterday", NOW), "--at 'yesterday': expected a time"),
        (lambda: offset_spec("--from", "start", NOW), "ago, or one of earliest, latest, max"),
        (lambda: duration_ms("--older-than", "5 weeks"), "--older-than '5 weeks': expected"),
        (lambda: topic_partitions("TOPIC", "orders:x"), "TOPIC 'orders:x': expected TOPIC"),
        (lambda: topic_partitions("TOPIC", ":1"), "TOPIC ':1': expected TOPIC"),
        (lambda: pattern("PATTERN", "("), "PATTERN '(': expected a regular expression"),
    ],
)
def test_what_cannot_be_read_names_the_option_and_what_was_expected(
    call: object, said: str
) -> None:
    assert callable(call)
    with pytest.raises(UserError, match=re.escape(said)):
        call()


def test_names_match_as_a_whole_and_partitions_are_in_order() -> None:
    assert matching(["orders", "old-orders"], re.compile("ord.*")) == ["orders"]
    assert matching(["a", "b"], None) == ["a", "b"]
    mixed = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]
    assert sorted_partitions(mixed)[0] == TopicPartition("a", 9)


HUGE = "9" * 5_000  # more digits than Python turns into a number


@pytest.mark.parametrize("text", [HUGE, str(2**63), f"{HUGE}h", f"{2**62}d"])
def test_a_number_that_the_protocol_cannot_hold_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(UserError, match=r"--from .*too large"):
        moment_ms("--from", text, NOW)
    with pytest.raises(UserError, match=r"--from .*too large"):
        duration_ms("--from", text)
    with pytest.raises(UserError, match="too large"):
        topic_partitions("TOPIC", f"orders:{HUGE}")


@pytest.mark.parametrize("text", ["99999999h", "1969-12-31T00:00:00+00:00"])
def test_a_time_before_1970_is_refused_with_what_to_use_instead(text: str) -> None:
    with pytest.raises(UserError, match="before 1970; use earliest instead"):
        moment_ms("--from", text, NOW)


@pytest.mark.parametrize("name", ["bad topic", "", ".", "..", "a/b", "x" * 250])
def test_what_no_topic_can_be_called_is_refused_with_what_is_allowed(name: str) -> None:
    with pytest.raises(UserError, match="invalid topic name: allowed are letters, digits"):
        require_topic_name("TOPIC", name)
    require_topic_name("TOPIC", "x" * 249)


def test_a_number_of_a_file_is_within_what_the_protocol_holds() -> None:
    assert [whole_value(one) for one in (-1, 0, 2**63 - 1)] == [-1, 0, 2**63 - 1]
    for bad in (2**63, -2, float("nan")):
        with pytest.raises(ValueError):
            whole_value(bad)
