"""Delay and retry: nothing before it is due, in order, and soon after.

How soon is printed, not judged: a busy machine is no fault of the job.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest

from ottla.model.clock import SystemClock
from ottla.spark.pipelines.dead_letters import REASON_HEADER
from tests.spark.pipelines.jobs import Sent, Stage, headers

LEVELS = {"later-5s": 5_000, "later-30s": 30_000, "later-5m": 300_000}
WAVE = 10


def send_soon(stage: Stage, topics: Iterable[str]) -> list[int]:
    """Ten records for each delay that are due one after another from now on; when they are."""
    due = [SystemClock().wall_ms() + 3_000 + 200 * at for at in range(WAVE)]
    for topic in topics:
        told = {"deliver-to": "inbox", "h": topic}
        stage.send(
            topic,
            [Sent(str(ms).encode(), headers=told, timestamp_ms=ms - LEVELS[topic]) for ms in due],
        )
    return due


@pytest.mark.spec("APP-15")
def test_delay_delivers_in_order_and_never_before_the_time(stage: Stage) -> None:
    stage.topics(*LEVELS, "later-dead", "inbox", partitions=1)
    not_yet = SystemClock().wall_ms() + 1_800_000
    waves = [send_soon(stage, LEVELS)]
    stage.send("later-5s", [Sent(b"to nobody", timestamp_ms=1)])

    def over() -> bool:
        found = len(stage.read("inbox"))
        if len(waves) == 1 and found == WAVE * len(LEVELS):  # now that it runs
            waves.append(send_soon(stage, LEVELS))
            stage.send(
                "later-5s", [Sent(b"0", headers={"deliver-to": "inbox"}, timestamp_ms=not_yet)]
            )
        return found >= 2 * WAVE * len(LEVELS) and len(stage.read("later-dead")) > 0

    stage.run(stage.template("delay"), over)
    delivered = stage.read("inbox")
    late_ms = [one.timestamp - int(one.value or b"") for one in delivered]
    assert min(late_ms) >= 0, "delivered before its time"
    assert len(delivered) == 2 * WAVE * len(LEVELS), "twice, or one that is not due"
    for topic in LEVELS:
        those = [one for one in delivered if headers(one) == {"h": topic}]
        assert [int(one.value or b"") for one in those] == [*waves[0], *waves[1]], "out of order"
    (lost,) = stage.read("later-dead")
    assert headers(lost)[REASON_HEADER] == "nobody is named to deliver to"
    while_running = late_ms[WAVE * len(LEVELS) :]
    print(f"delivered late by {min(while_running)} to {max(while_running)} ms")


@pytest.mark.slow
@pytest.mark.spec("APP-15", "APP-16")
def test_retry_gives_back_later_each_time_and_at_last_gives_up(stage: Stage) -> None:
    levels = [f"orders-retry-{level}" for level in (1, 2, 3)]
    stage.topics("orders", "orders-failed", "orders-dead", *levels, partitions=1)
    delays = {level: ms for level, ms in zip(levels, (5_000, 30_000, 300_000), strict=True)}
    now = SystemClock().wall_ms()
    stage.send("orders-failed", [Sent(b"new", b"k"), Sent(b"tired", b"k", {"attempt": "3"})])
    for at, (topic, delay_ms) in enumerate(delays.items()):
        told = {"attempt": str(at + 1)}
        stage.send(topic, [Sent(topic.encode(), headers=told, timestamp_ms=now - delay_ms + 2_000)])

    def over() -> bool:
        return len(stage.read("orders")) >= 4 and len(stage.read("orders-dead")) >= 1

    stage.run(stage.template("retry"), over)
    back = {one.value: one for one in stage.read("orders")}
    assert back.keys() == {b"new", *(level.encode() for level in levels)}
    waited = next(one for one in stage.read("orders-retry-1") if one.value == b"new")
    assert headers(back[b"new"]) == {"attempt": "1"}
    assert back[b"new"].timestamp - waited.timestamp >= delays["orders-retry-1"]
    for at, level in enumerate(levels):
        assert back[level.encode()].timestamp >= now + 2_000
        assert headers(back[level.encode()]) == {"attempt": str(at + 1)}
    (letter,) = stage.read("orders-dead")
    assert letter.value == b"tired"
    assert headers(letter)[REASON_HEADER] == "it failed too often"
    late = back[b"new"].timestamp - waited.timestamp - delays["orders-retry-1"]
    print(f"given back {late} ms after it was due")
    assert all(one.offset < other.offset for one, other in itertools.pairwise(stage.read("orders")))
