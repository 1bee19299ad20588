"""One seed's story before it is told: settings, topics, clients and misfortunes.

Pure: the same seed draws the same plan. Where a combination promises nothing (records that are
acknowledged without a flush, and then no power), the topic says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

from ottla.protocol.records.compression import Codec
from tests.sim.admin import NewTopic
from tests.sim.consumer import Tastes
from tests.sim.producer import Habits
from tests.sim.relay import Relaying
from tests.sim.transactor import Dealings


class Misfortune(Enum):
    KILL = "kill -9"
    POWER = "power cut"
    STOP = "graceful stop"
    KILL_IN_RECOVERY = "killed while it recovers"
    STORM = "every connection reset"
    STALLS = "stalls, resets and lost connections"
    SLOW_DISK = "slow disk"
    FULL_DISK = "no space left"
    BAD_SYNC = "fsync fails"
    CLOCK = "clock moves an hour"
    DELETE_RECORDS = "records deleted"
    ROT = "derived files damaged"


ANY_TIME: Final = (
    Misfortune.KILL,
    Misfortune.STOP,
    Misfortune.KILL_IN_RECOVERY,
    Misfortune.STORM,
    Misfortune.STALLS,
    Misfortune.SLOW_DISK,
    Misfortune.FULL_DISK,
    Misfortune.BAD_SYNC,
    Misfortune.CLOCK,
    Misfortune.DELETE_RECORDS,
    Misfortune.ROT,
)


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    topic: NewTopic
    compacted: bool
    loses_old: bool
    """Retention or DeleteRecords may move its start."""
    promised: bool = True
    """False: acknowledged without a flush, and the power may go. Much is torn; nothing made up."""


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    power: bool
    """The power may go: only what is flushed is promised."""
    settings: Mapping[str, str]
    topics: tuple[PlannedTopic, ...]
    habits: tuple[Habits, ...]
    """Of the producers, dealt to the partitions in turn."""
    tastes: tuple[Tastes, ...]
    misfortunes: tuple[tuple[float, Misfortune], ...]
    """Each with the quiet time before it."""
    churn: int
    """How often one more topic comes and goes meanwhile."""
    dealings: tuple[Dealings, ...]
    """Of transactional producers, all of one topic; none: there is no such topic."""
    relaying: Relaying | None
    """Of exactly-once pipelines; None: there are none."""
    last: Misfortune
    """How the broker ends before everything is read for the last time."""


def draw(seed: int, *, power: bool | None = None) -> Plan:
    dice = Random(seed)
    by_chance = dice.random() < 0.6
    power = by_chance if power is None else power
    topics = tuple(_topic(index, power, dice) for index in range(dice.randint(1, 3)))
    settings = _settings(power, dice)
    relaying = _relaying(Random(seed + 6), settings)
    ends = [Misfortune.KILL, Misfortune.STOP]
    return Plan(
        seed=seed,
        power=power,
        settings=settings,
        topics=topics,
        habits=tuple(_habits(power, dice) for _ in range(3)),
        tastes=tuple(_tastes(dice) for _ in range(dice.randint(1, 2))),
        misfortunes=_misfortunes(power, dice),
        churn=dice.choice([0, 2, 4]),
        dealings=_dealings(Random(seed + 5)),
        relaying=relaying,
        last=Misfortune.POWER if power else dice.choice(ends),
    )


def _settings(power: bool, dice: Random) -> dict[str, str]:
    settings = {
        "transaction.state.log.num.partitions": "2",
        "flush.before.ack": dice.choice(["auto", "all"] if power else ["auto", "all", "never"]),
        "log.dirs": dice.choice(["/data", "/data", "/data,/more"]),
        "log.initial.task.delay.ms": "200",
        "log.retention.check.interval.ms": dice.choice(["500", "3000"]),
        "log.cleaner.backoff.ms": dice.choice(["300", "2000"]),
        "log.flush.offset.checkpoint.interval.ms": dice.choice(["200", "2000", "60000"]),
        "log.flush.start.offset.checkpoint.interval.ms": dice.choice(["200", "2000", "60000"]),
        "replica.high.watermark.checkpoint.interval.ms": dice.choice(["200", "5000"]),
        "log.segment.delete.delay.ms": dice.choice(["0", "1000", "60000"]),
        "num.recovery.threads.per.data.dir": dice.choice(["1", "3"]),
        "record.validation": dice.choice(["header", "full"]),
    }
    if dice.random() < 0.3:
        settings["log.flush.scheduler.interval.ms"] = "500"
        settings["log.flush.interval.ms"] = "1000"
    if dice.random() < 0.2:
        settings["log.flush.interval.messages"] = str(dice.randint(1, 20))
    if dice.random() < 0.2:
        settings["queued.max.requests"] = "1"
    if dice.random() < 0.2:
        settings["max.incremental.fetch.session.cache.slots"] = "1"
    return settings


def _topic(index: int, power: bool, dice: Random) -> PlannedTopic:
    configs = {"index.interval.bytes": dice.choice(["1", "300", "4096"])}
    if dice.random() < 0.8:
        configs["internal.segment.bytes"] = str(dice.randint(4_000, 20_000))
    if dice.random() < 0.3:
        configs["segment.ms"] = str(dice.randint(500, 5_000))
    if dice.random() < 0.4:
        configs["compression.type"] = dice.choice(["gzip", "snappy", "lz4", "zstd", "uncompressed"])
    if dice.random() < 0.3:
        configs["message.timestamp.type"] = "LogAppendTime"
    compacted = dice.random() < 0.3
    loses_old = not compacted and dice.random() < 0.4
    if compacted:
        configs["cleanup.policy"] = "compact"
        configs["min.cleanable.dirty.ratio"] = dice.choice(["0.01", "0.5"])
        configs["delete.retention.ms"] = dice.choice(["0", "1000", "86400000"])
        configs["min.compaction.lag.ms"] = dice.choice(["0", "0", "1000"])
    elif loses_old and dice.random() < 0.7:
        configs["retention.ms"] = str(dice.randint(1_000, 5_000))
    elif loses_old:
        configs["retention.bytes"] = str(dice.randint(4_000, 20_000))
    promised = not power or index == 0 or dice.random() < 0.7
    if not promised:
        configs["flush.before.ack"] = "never"
    topic = NewTopic(f"t{index}", dice.randint(1, 2), configs)
    return PlannedTopic(topic, compacted, loses_old, promised)


def _habits(power: bool, dice: Random) -> Habits:
    return Habits(
        acks=-1 if power or dice.random() < 0.6 else 1,
        version=dice.choice([7, 9, 12]),
        codec=dice.choice([Codec.NONE, Codec.NONE, *Codec]),
        batches=dice.randint(10, 60),
        records_max=dice.choice([1, 4, 8]),
        value_max_bytes=dice.choice([10, 100, 200]),
        pause_s=dice.choice([0.02, 0.1, 0.3]),
        keys=dice.choice([2, 5, 10]),
        patience_s=dice.choice([0.5, 3.0, 60.0, 60.0]),
        request_timeout_ms=dice.choice([500, 2_000]),
    )


def _dealings(dice: Random) -> tuple[Dealings, ...]:
    if dice.random() < 0.5:
        return ()
    return tuple(
        Dealings(
            version=dice.choice([1, 2]),
            transactions=dice.randint(3, 12),
            records_max=dice.choice([1, 4]),
            aborts=dice.choice([0.0, 0.3]),
            abandons=dice.choice([0.0, 0.2]),
        )
        for _ in range(dice.randint(1, 3))
    )


def _relaying(dice: Random, settings: dict[str, str]) -> Relaying | None:
    """With the settings that groups need to come back soon after a crash."""
    if dice.random() < 0.5:
        return None
    settings |= {
        "offsets.topic.num.partitions": dice.choice(["3", "10"]),
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.min.session.timeout.ms": "6000",
        "group.consumer.session.timeout.ms": "6000",
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.consumer.min.heartbeat.interval.ms": "1000",
    }
    return Relaying(
        groups=dice.randint(1, 3),
        workers=dice.choice([1, 1, 2]),
        records=dice.randint(10, 60),
        protocol=dice.choice(["classic", "consumer"]),
        aborts=dice.choice([0.0, 0.2]),
        pause_s=dice.choice([0.05, 0.2]),
        crashes=dice.choice([0.0, 0.1]),
    )


def _tastes(dice: Random) -> Tastes:
    return Tastes(
        version=dice.choice([4, 11, 12, 13, 17]),
        max_wait_ms=dice.choice([0, 100, 1_000]) or 20,
        min_bytes=dice.choice([1, 1, 2_000]),
        max_bytes=dice.choice([1_000, 100_000]),
        partition_max_bytes=dice.choice([100, 2_000, 100_000]),
        sessions=dice.random() < 0.7,
        knows_epochs=dice.random() < 0.5,
        rereads=dice.choice([0.0, 0.0, 0.02]),
    )


def _misfortunes(power: bool, dice: Random) -> tuple[tuple[float, Misfortune], ...]:
    kinds = list(ANY_TIME)
    chosen = [dice.choice(kinds) for _ in range(dice.randint(1, 5))]
    if power:
        chosen += [Misfortune.POWER] * dice.randint(1, 3)
        dice.shuffle(chosen)
    return tuple((dice.random() * 2.0, one) for one in chosen)
