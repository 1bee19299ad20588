from __future__ import annotations

from ottla.client.consumer.position.partition_position import (
    UNKNOWN,
    AssignedPartition,
    PositionPhase,
)
from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition

HERE = TopicPartition("t", 0)


def ready(offset: int = 5, epoch: int = UNKNOWN) -> AssignedPartition:
    part = AssignedPartition(HERE)
    part.seek(offset, epoch)
    if part.phase is PositionPhase.UNCHECKED:
        part.mark_valid()
    return part


def test_a_new_partition_has_no_place() -> None:
    part = AssignedPartition(HERE)
    assert part.phase is PositionPhase.UNPLACED
    assert not part.has_position
    assert not part.is_fetchable


def test_a_seek_makes_whatever_was_fetched_before_worthless() -> None:
    part = ready(5)
    before = part.version
    part.arrived = 2
    part.seek(9)
    assert (part.offset, part.fetch_offset) == (9, 9)
    assert part.version != before
    assert part.is_fetchable, "chunks of the old place no longer count"


def test_a_place_with_an_epoch_is_checked_first() -> None:
    part = AssignedPartition(HERE)
    part.seek(5, 3)
    assert part.phase is PositionPhase.UNCHECKED
    assert not part.is_fetchable
    part.mark_valid()
    assert part.is_fetchable


def test_a_reset_waits_for_an_offset() -> None:
    part = ready()
    part.reset(-2)
    assert (part.phase, part.reset_to) == (PositionPhase.RESETTING, -2)
    assert not part.is_fetchable


def test_a_partition_that_is_paused_leaving_or_full_is_not_fetched() -> None:
    for attribute in ("paused", "leaving"):
        part = ready()
        setattr(part, attribute, True)
        assert not part.is_fetchable
    part = ready()
    part.arrived = 2
    assert not part.is_fetchable
    part.finished = 1
    assert part.is_fetchable


def test_a_partition_is_full_when_only_its_reader_keeps_it_from_being_fetched() -> None:
    part = ready()
    assert not part.is_full
    part.arrived = 2
    assert part.is_full
    for attribute in ("paused", "leaving"):
        setattr(part, attribute, True)
        assert not part.is_full, "it would not be fetched anyway"
        setattr(part, attribute, False)
    part.reset(-2)
    assert not part.is_full


def test_the_end_is_where_a_broker_last_said_it_is() -> None:
    part = ready(5)
    assert not part.is_at_end(False), "nobody has said anything"
    part.high_watermark, part.stable_offset = 9, 7
    assert not part.is_at_end(False) and not part.is_at_end(True)
    part.fetch_offset = 7
    assert part.is_at_end(True), "what follows is not committed"
    assert not part.is_at_end(False)
    part.fetch_offset = 9
    assert part.is_at_end(False)


def test_another_leader_epoch_is_checked_if_it_can_be() -> None:
    part = ready(5, epoch=1)
    part.on_leader_epoch(1)
    assert part.is_fetchable, "the first leader it hears of wrote what it was given"
    part.fetch_offset = 8
    version = part.version
    part.on_leader_epoch(2)
    assert part.has_position and not part.is_fetchable
    assert part.fetch_offset == 5, "what was fetched ahead is given up"
    assert part.version != version
    part.mark_valid()
    part.on_leader_epoch(1)
    assert part.is_fetchable, "old news"


def test_without_an_epoch_a_new_leader_is_simply_read_from() -> None:
    part = ready(5)
    part.on_leader_epoch(1)
    part.on_leader_epoch(2)
    assert part.phase is PositionPhase.READY
    assert part.leader_epoch == 2


def test_the_nearest_replica_is_read_for_a_while() -> None:
    part = ready()
    assert part.source(1, MonoMs(0)) == 1
    part.prefer(7, until_ms=MonoMs(100))
    assert part.source(1, MonoMs(99)) == 7
    assert part.source(1, MonoMs(100)) == 1, "then the leader is asked again"
    assert part.source(1, MonoMs(50)) == 1
    part.prefer(7, until_ms=MonoMs(100))
    part.on_leader_epoch(4)
    assert part.source(1, MonoMs(0)) == 1, "another leader may prefer another"


def test_a_stuck_partition_says_why_until_it_is_sought() -> None:
    part = ready()
    fault = LookupError("why")
    part.mark_stuck(fault)
    assert (part.phase, part.fault) == (PositionPhase.STUCK, fault)
    part.seek(1)
    assert part.phase is PositionPhase.READY


def test_lag_counts_to_the_end_that_may_be_read() -> None:
    part = ready(5)
    assert part.lag(read_committed=False) is None
    part.high_watermark, part.stable_offset = 10, 7
    assert part.lag(read_committed=False) == 5
    assert part.lag(read_committed=True) == 2
    part.stable_offset = 3
    assert part.lag(read_committed=True) == 0
