from __future__ import annotations

from typing import Any

import pytest

from ottla.client.consumer.base import IterationBuffer
from ottla.client.consumer.record import Record
from ottla.client.consumer.sync import Consumer
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def record(partition: int, offset: int) -> Record[bytes, bytes]:
    return Record("t", partition, offset, 0, 0, None, None)


def three() -> list[Record[bytes, bytes]]:
    return [record(0, 5), record(0, 6), record(1, 9)]


@pytest.mark.spec("CON-42")
def test_what_the_user_has_not_seen_is_known_in_the_middle_of_an_iteration() -> None:
    handing: IterationBuffer[bytes, bytes] = IterationBuffer()
    assert handing.unread() == {}
    iterator = handing.start(three())
    assert handing.unread() == {ZERO: 5, ONE: 9}
    next(iterator)
    assert handing.unread() == {ZERO: 6, ONE: 9}
    next(iterator)
    assert handing.unread() == {ONE: 9}
    next(iterator)
    assert handing.unread() == {}


def test_the_rest_can_be_taken_and_ends_the_iteration() -> None:
    handing: IterationBuffer[bytes, bytes] = IterationBuffer()
    iterator = handing.start(three())
    next(iterator)
    assert [each.offset for each in handing.take_unseen()] == [6, 9]
    assert list(iterator) == []
    assert handing.take_unseen() == []
    assert handing.unread() == {}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"group_idd": "g"}, "group_idd: Consumer has no such option; did you mean group_id?"),
        ({"auto_offset_reset": "oldest"}, "auto.offset.reset='oldest': expected earliest, latest"),
        ({"value_deserializer": 7}, "value_deserializer=7: expected a callable that takes bytes"),
        ({"partition_assignment_strategy": ["mine"]}, "partition.assignment.strategy='mine'"),
        ({"group_protocol": "consumer"}, "group.protocol=consumer needs a group.id"),
        (
            {"group_protocol": "consumer", "group_id": "g", "session_timeout_ms": 9_000},
            "session.timeout.ms: not allowed with group.protocol=consumer",
        ),
        ({"max_poll_records": 0}, "max.poll.records='0': expected at least 1"),
        ({"group_instance_id": "i"}, "group.instance.id needs a group.id"),
    ],
)
def test_a_bad_option_is_named_before_anything_is_opened(
    options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UserError) as caught:
        Consumer("t", **options)
    assert complaint in str(caught.value)


def test_a_topic_is_a_name() -> None:
    with pytest.raises(UserError, match="expected topic names"):
        Consumer(["t"])  # type: ignore[arg-type]
