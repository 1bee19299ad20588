"""What the jobs delay and retry must do: nothing before it is due, in order, and soon after.

How soon is judged by the second only in the long runs, alone on a machine: there every record of a
steady load must have arrived within one. In the others the bound is one that only a job that has
lost its way can miss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.model.clock import SystemClock
from ottla.spark.pipelines.dlq.letters import REASON_HEADER
from tests.spark.pipelines.arrivals import Arrival, Arrivals
from tests.spark.pipelines.jobs import Sent, Stage, headers

LEVELS = {"later-5s": 5_000, "later-30s": 30_000, "later-5m": 300_000}
RETRIES = {"orders-retry-1": 5_000, "orders-retry-2": 30_000, "orders-retry-3": 300_000}
NEVER = 1_800_000
AHEAD_MS = 2_000
LOST_MS = 60_000
A_SECOND_MS = 1_000


class Load(NamedTuple):
    """Records that are due one after another, and how late one may be."""

    records: int
    apart_ms: int
    late_ms: int

    def due(self) -> list[int]:
        begin = SystemClock().wall_ms() + AHEAD_MS
        return [begin + self.apart_ms * at for at in range(self.records)]


FEW = Load(10, 200, LOST_MS)
STEADY = Load(200, 50, A_SECOND_MS)


def send_later(stage: Stage, due: Sequence[int]) -> None:
    """A record in each delay's topic for each of these times."""
    for topic, delay_ms in LEVELS.items():
        told = {"deliver-to": "inbox", "h": topic}
        stage.send(
            topic,
            [Sent(str(ms).encode(), headers=told, timestamp_ms=ms - delay_ms) for ms in due],
        )


def late(those: Sequence[Arrival]) -> list[int]:
    """How late they were, each of which says when it is due."""
    return [one.at_ms - int(one.record.value or b"") for one in those]


def judge(what: str, late_ms: Sequence[int], load: Load) -> None:
    ordered = sorted(late_ms)
    print(f"{what} late by {ordered[0]} to {ordered[-1]} ms, p50 {ordered[len(ordered) // 2]}")
    assert ordered[0] >= 0, "before its time"
    assert ordered[-1] <= load.late_ms, "too late"


def delay(stage: Stage, load: Load) -> None:
    """In order, and never before the time."""
    stage.topics(*LEVELS, "later-dead", "inbox", partitions=1)
    not_yet = SystemClock().wall_ms() + NEVER
    waves = [load.due()]
    send_later(stage, waves[0])
    stage.send("later-5s", [Sent(b"to nobody", timestamp_ms=1)])
    each = load.records * len(LEVELS)

    with Arrivals(stage.servers, "inbox") as inbox, Arrivals(stage.servers, "later-dead") as dead:

        def over() -> bool:
            if len(waves) == 1 and len(inbox.those) >= each:  # now that it runs
                waves.append(load.due())
                send_later(stage, waves[1])
                unripe = Sent(b"0", headers={"deliver-to": "inbox"}, timestamp_ms=not_yet)
                stage.send("later-5s", [unripe])
            return len(inbox.those) >= 2 * each and len(dead.those) > 0

        stage.run(stage.template("delay"), over)
    assert min(late(inbox.those)) >= 0, "before its time"
    assert len(inbox.those) == 2 * each, "twice, or one that is not due"
    for topic in LEVELS:
        those = [one.record for one in inbox.those if headers(one.record) == {"h": topic}]
        assert [int(one.value or b"") for one in those] == [*waves[0], *waves[1]], "out of order"
    (lost,) = dead.those
    assert headers(lost.record)[REASON_HEADER] == "nobody is named to deliver to"
    judge("delivered", late(inbox.those[each:]), load)


def retry(stage: Stage, load: Load) -> None:
    """Given back later each time, and at last given up."""
    stage.topics("orders", "orders-failed", "orders-dead", *RETRIES, partitions=1)
    waiting = [Sent(b"tired", b"k", {"attempt": "3"})]
    waiting += [Sent(f"new {at}".encode(), b"k") for at in range(load.records)]
    first = load.due()
    for at, (topic, delay_ms) in enumerate(RETRIES.items(), 1):
        told = {"attempt": str(at)}
        those = [Sent(str(ms).encode(), None, told, ms - delay_ms) for ms in first]
        stage.send(topic, those)
    each = load.records * len(RETRIES)

    with Arrivals(stage.servers, "orders") as back, Arrivals(stage.servers, "orders-dead") as dead:

        def over() -> bool:
            if waiting and len(back.those) >= each:  # now that it runs
                stage.send("orders-failed", waiting)
                waiting.clear()
            return len(back.those) >= each + load.records and len(dead.those) > 0

        stage.run(stage.template("retry"), over)
    assert len(back.those) == each + load.records, "twice, or lost"
    retried = [one for one in back.those if (one.record.value or b"").startswith(b"new")]
    others = [one for one in back.those if one not in retried]
    assert min(late(others)) >= 0, "before its time"
    for at in range(1, len(RETRIES) + 1):
        given = [one.record for one in others if headers(one.record) == {"attempt": str(at)}]
        assert [int(one.value or b"") for one in given] == first, "out of order"
    assert [headers(one.record) for one in retried] == [{"attempt": "1"}] * load.records
    waited = {one.value: one.timestamp for one in stage.read("orders-retry-1")}
    due = {value: at_ms + RETRIES["orders-retry-1"] for value, at_ms in waited.items()}
    judge("given back", [one.at_ms - due[one.record.value] for one in retried], load)
    (letter,) = dead.those
    assert letter.record.value == b"tired"
    assert headers(letter.record)[REASON_HEADER] == "it failed too often"
