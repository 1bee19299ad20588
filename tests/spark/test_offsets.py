"""Offsets as JSON, points to begin at, and what counts as lost."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition as TP
from ottla.spark.offsets import (
    AtOffsets,
    AtTimes,
    DataLost,
    Edge,
    Loss,
    beginning,
    check_named,
    check_order,
    from_json,
    losses,
    parse_offsets,
    parse_partitions,
    parse_times,
    to_json,
    with_beginning,
)

names = st.text("abc._-", min_size=1, max_size=5)
offsets = st.dictionaries(
    st.builds(TP, names, st.integers(0, 99)), st.integers(0, 2**62), max_size=9
)


@given(offsets)
def test_offsets_come_back_from_json(found: dict[TP, int]) -> None:
    assert from_json(json.loads(json.dumps(to_json(found)))) == found


@given(offsets)
def test_equal_offsets_are_equal_text_whatever_their_order(found: dict[TP, int]) -> None:
    shuffled = dict(sorted(found.items(), key=lambda item: -item[1]))
    assert json.dumps(to_json(found)) == json.dumps(to_json(shuffled))


def test_the_end_of_a_first_batch_says_where_it_began() -> None:
    start, end = {TP("a", 0): 5}, {TP("a", 0): 9}
    told = json.loads(json.dumps(with_beginning(to_json(end), start)))
    assert beginning(told) == start
    assert from_json(told) == end
    assert beginning(to_json(end)) is None


def test_offsets_are_read_as_sparks_own_connector_writes_them() -> None:
    found = parse_offsets("startingOffsets", '{"a":{"0":23,"1":-1},"b":{"0":-2}}')
    assert found == {TP("a", 0): 23, TP("a", 1): -1, TP("b", 0): -2}
    assert parse_times("startingOffsetsByTimestamp", '{"a":{"0":5}}') == {TP("a", 0): 5}
    assert parse_partitions("assign", '{"b":[1,0],"a":[0]}') == (TP("a", 0), TP("b", 0), TP("b", 1))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"a": 1}',
        '{"a": {"0": "1"}}',
        '{"a": {"zero": 1}}',
        '{"a": {"-1": 1}}',
        '{"a": {"0": -3}}',
        '{"a": {"0": true}}',
        '{"a": {"0": 1.5}}',
        "{}",
    ],
)
def test_bad_offsets_are_refused_by_the_name_of_the_option(text: str) -> None:
    with pytest.raises(UserError, match=r"startingOffsets.*topicA"):
        parse_offsets("startingOffsets", text)


@pytest.mark.parametrize("text", ['{"a": {"0": -4}}', '{"a": 1}', "x"])
def test_bad_times_are_refused_by_the_name_of_the_option(text: str) -> None:
    with pytest.raises(UserError, match="endingOffsetsByTimestamp"):
        parse_times("endingOffsetsByTimestamp", text)


@pytest.mark.parametrize("text", ['{"a": {"0": 1}}', '{"a": ["0"]}', '{"a": [-1]}', "{}", "a"])
def test_bad_partitions_are_refused_by_the_name_of_the_option(text: str) -> None:
    with pytest.raises(UserError, match="assign"):
        parse_partitions("assign", text)


def test_a_start_after_its_end_is_refused() -> None:
    with pytest.raises(UserError, match="7 for a-0 is after endingOffsets, 5"):
        check_order(AtOffsets({TP("a", 0): 7}), AtOffsets({TP("a", 0): 5}), "s", "endingOffsets")
    with pytest.raises(UserError, match="7 for a-0 is after e, 5"):
        check_order(AtTimes({TP("a", 0): 7}), AtTimes({TP("a", 0): 5}), "s", "e")


def test_a_start_and_an_end_must_name_the_same_partitions() -> None:
    with pytest.raises(UserError, match="different partitions: a-1"):
        both = {TP("a", 0): 1, TP("a", 1): 1}
        check_order(AtOffsets({TP("a", 0): 1}), AtOffsets(both), "s", "e")


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (AtOffsets({TP("a", 0): 7}), AtOffsets({TP("a", 0): -1})),
        (AtOffsets({TP("a", 0): -2}), AtOffsets({TP("a", 0): 0})),
        (Edge.EARLIEST, AtOffsets({TP("a", 0): 0})),
        (AtTimes(9), AtTimes({TP("a", 0): 5})),
    ],
)
def test_ends_that_cannot_be_compared_are_left_to_the_broker(start: object, end: object) -> None:
    check_order(start, end, "s", "e")  # type: ignore[arg-type]


def test_a_partition_that_an_option_forgets_is_named() -> None:
    with pytest.raises(UserError, match=r"startingOffsets.*a-1 missing; b-0 not being read"):
        check_named("startingOffsets", [TP("a", 0), TP("b", 0)], [TP("a", 0), TP("a", 1)])
    check_named("startingOffsets", [TP("a", 0)], [TP("a", 0)])


def test_what_a_batch_can_no_longer_read_is_found() -> None:
    a, b, c, d = (TP("t", index) for index in range(4))
    start, end = {a: 5, b: 5, c: 9}, {a: 5, c: 3, d: 8}
    assert losses(start, end, {d: 2}) == [
        Loss(b, "the partition no longer exists"),
        Loss(c, "read up to 9, and the log now ends at 3: topic recreated?"),
        Loss(d, "a new partition whose first offset is 2, not 0"),
    ]


def test_a_new_partition_from_its_beginning_is_no_loss() -> None:
    assert losses({TP("t", 0): 1}, {TP("t", 0): 4, TP("t", 1): 9}, {TP("t", 1): 0}) == []


def test_a_new_partition_that_is_gone_again_is_a_loss() -> None:
    assert [loss.partition for loss in losses({}, {TP("t", 1): 9}, {})] == [TP("t", 1)]


def test_data_loss_says_what_is_lost_and_what_to_set_also_after_a_pickle() -> None:
    lost = pickle.loads(pickle.dumps(DataLost([Loss(TP("t", 0), "gone")])))
    assert str(lost).startswith("t-0: gone.")
    assert "failOnDataLoss" in str(lost)
