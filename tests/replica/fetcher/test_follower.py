"""What a follower decides on a reply, and where it truncates."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.log.leader_epochs import EpochStart, LeaderEpochs
from ottla.model.clock import MonoMs
from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch, TopicPartition
from ottla.replica.fetcher.follower import (
    FAILED_RETRY_MS,
    Append,
    AskBounds,
    Decision,
    Delay,
    FollowedPartition,
    Ignore,
    LeaderBounds,
    LogState,
    Restart,
    Truncate,
    first_truncation,
    on_bounds,
    on_reply,
    truncation_offset,
)

HISTORY = LeaderEpochs([EpochStart(1, 0), EpochStart(2, 10), EpochStart(5, 20)])


def log(end: int = 30, *, high_watermark: int = 5, epochs: LeaderEpochs = HISTORY) -> LogState:
    return LogState(0, end, high_watermark, epochs)


@pytest.mark.spec("REP-39", "REP-45")
@pytest.mark.parametrize(
    ("diverging", "offset"),
    [
        ((5, 25), 25),  # the same epoch ended earlier at the leader
        ((5, 40), 30),
        ((2, 15), 15),
        ((2, 25), 20),  # here it ended earlier
        ((4, 28), 20),  # unknown here: up to the end of the next smaller one, then compare again
        ((1, 3), 3),
        ((-1, -1), 5),  # the leader does not know: nothing but the high watermark is left
    ],
)
def test_a_log_is_cut_where_both_histories_part(diverging: tuple[int, int], offset: int) -> None:
    assert truncation_offset(log(), diverging) == offset


@pytest.mark.spec("REP-41", "REP-46", "REP-69")
def test_only_a_log_without_epochs_is_cut_to_its_high_watermark() -> None:
    assert first_truncation(log()) is None
    assert first_truncation(log(epochs=LeaderEpochs())) == 5
    assert first_truncation(log(5, epochs=LeaderEpochs())) is None


@pytest.mark.spec("REP-42", "REP-49", "REP-51")
@pytest.mark.parametrize(
    ("asked", "code", "diverging", "decision"),
    [
        (30, ErrorCode.none, None, Append()),
        (30, ErrorCode.none, (2, 15), Truncate(15)),
        (29, ErrorCode.none, None, Ignore()),
        (None, ErrorCode.none, None, Ignore()),
        (29, ErrorCode.not_leader_or_follower, None, Ignore()),
        (30, ErrorCode.offset_out_of_range, None, AskBounds()),
        *[
            (30, code, None, Delay(MonoMs(700), code))
            for code in (
                ErrorCode.not_leader_or_follower,
                ErrorCode.fenced_leader_epoch,
                ErrorCode.unknown_leader_epoch,
                ErrorCode.unknown_topic_or_partition,
                ErrorCode.unknown_topic_id,
                ErrorCode.inconsistent_topic_id,
                ErrorCode.kafka_storage_error,
                ErrorCode.unknown_server_error,
            )
        ],
    ],
)
def test_each_reply_has_one_consequence(
    asked: int | None, code: ErrorCode, diverging: tuple[int, int] | None, decision: Decision
) -> None:
    assert on_reply(asked, log(), code, diverging, retry_at_ms=MonoMs(700)) == decision


@pytest.mark.spec("REP-51")
@pytest.mark.parametrize(
    ("bounds", "decision"),
    [
        (LeaderBounds(0, 25), Truncate(25)),
        (LeaderBounds(50, 60), Restart(50)),
        (LeaderBounds(10, 60), Append()),
        (LeaderBounds(30, 30), Append()),
    ],
)
def test_out_of_range_means_a_shorter_log_or_a_later_start(
    bounds: LeaderBounds, decision: Decision
) -> None:
    assert on_bounds(log(), bounds) == decision


def test_a_partition_fails_when_the_same_offset_is_corrupt_twice() -> None:
    followed = FollowedPartition(TopicPartition("t", 0), UUID(int=1), LeaderEpoch(0))
    assert not followed.on_corrupt(7, now_ms=MonoMs(0), backoff_ms=100)
    assert followed.is_delayed(MonoMs(99))
    assert not followed.is_delayed(MonoMs(100))
    assert not followed.on_corrupt(8, now_ms=MonoMs(0), backoff_ms=100)
    assert followed.on_corrupt(8, now_ms=MonoMs(100), backoff_ms=100)
    assert followed.failed
    assert followed.is_delayed(MonoMs(99 + FAILED_RETRY_MS))
    followed.on_appended(9, 12)
    assert (followed.failed, followed.lag) == (False, 3)


def test_a_broker_that_does_not_lead_yet_is_asked_again_soon_and_then_less_and_less() -> None:
    followed = FollowedPartition(TopicPartition("t", 0), UUID(int=1), LeaderEpoch(0))
    not_yet = ErrorCode.unknown_leader_epoch
    assert [followed.pause_ms(not_yet, 100) for _ in range(7)] == [5, 10, 20, 40, 80, 100, 100]
    followed.on_appended(9, 9)
    assert followed.pause_ms(ErrorCode.not_leader_or_follower, 100) == 5
    assert followed.pause_ms(ErrorCode.fenced_leader_epoch, 100) == 100
