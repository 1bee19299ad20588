"""What one seed draws for three brokers: settings, topics, clients and faults.

Pure: the same seed draws the same plan. Seeds of three brokers are a space of their own; those of
one broker (`tests/sim/plan.py`) are not affected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

from tests.sim.admin import NewTopic
from tests.sim.producer import Habits
from tests.sim.relay import Relaying
from tests.sim.transactor import Dealings

SALT: Final = 0x3B20_4E25


class ClusterFault(Enum):
    KILL = "kill -9"
    POWER = "power cut"
    POWER_ALL = "power cut of every machine"
    STOP = "clean restart"
    PAUSE = "SIGSTOP, later SIGCONT"
    BROKERS_CUT = "cut off from the other brokers"
    STORE_CUT = "cut off from the store"
    ALL_CUT = "cut off from brokers and store"
    ONE_WAY = "no longer heard by another broker"
    STALLS = "stalls and resets between two brokers"
    EXPIRY = "session expired"
    SLOW_DISK = "slow disks"
    CLOCK = "clock moves an hour"
    RESETS = "every connection reset"


class Target(Enum):
    """Which broker a fault hits."""

    LEADER = "leader"
    CONTROLLER = "controller"
    COORDINATOR = "coordinator"
    ANY = "any broker"


ALWAYS: Final = tuple(
    fault for fault in ClusterFault if fault not in (ClusterFault.POWER, ClusterFault.POWER_ALL)
)


@dataclass(frozen=True, slots=True)
class PlannedFault:
    after_s: float
    """Time since the fault before it began; the two may overlap."""
    fault: ClusterFault
    target: Target
    lasts_s: float


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    topic: NewTopic
    compacted: bool


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    seed: int
    power: bool
    """Machines may lose power: everything is flushed before it is acknowledged."""
    settings: Mapping[str, str]
    store_faults: Mapping[str, float]
    topics: tuple[PlannedTopic, ...]
    habits: tuple[Habits, ...]
    faults: tuple[PlannedFault, ...]
    dealings: tuple[Dealings, ...]
    relaying: Relaying | None


def draw(seed: int) -> ClusterPlan:
    dice = Random(seed ^ SALT)
    power = dice.random() < 0.4
    settings = _settings(power, dice)
    topics = tuple(_topic(number, dice) for number in range(dice.choice([1, 1, 2])))
    kind = dice.random()
    return ClusterPlan(
        seed=seed,
        power=power,
        settings=settings,
        store_faults=_store_faults(dice),
        topics=topics,
        habits=tuple(_habits(dice) for _ in range(2)),
        faults=_faults(power, dice),
        dealings=_dealings(dice) if kind < 0.35 else (),
        relaying=_relaying(dice) if kind > 0.8 else None,
    )


def _settings(power: bool, dice: Random) -> dict[str, str]:
    session_ms = dice.choice([1_000, 1_500, 3_000])
    return {
        "flush.before.ack": "all" if power else dice.choice(["auto", "auto", "all", "never"]),
        "zookeeper.session.timeout.ms": str(session_ms),
        "replica.lag.time.max.ms": dice.choice(["600", "1500", "4000"]),
        "replica.fetch.wait.max.ms": dice.choice(["50", "300"]),
        "replica.fetch.backoff.ms": dice.choice(["50", "500"]),
        "replica.socket.timeout.ms": "2000",
        "controller.socket.timeout.ms": "2000",
        "num.replica.fetchers": dice.choice(["1", "1", "2"]),
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
        "auto.leader.rebalance.enable": dice.choice(["true", "false"]),
        "leader.imbalance.check.interval.seconds": "2",
        "offsets.topic.num.partitions": dice.choice(["1", "3"]),
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.num.partitions": dice.choice(["1", "2"]),
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.min.session.timeout.ms": "3000",
        "group.consumer.session.timeout.ms": "6000",
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.consumer.min.heartbeat.interval.ms": "1000",
        "controlled.shutdown.retry.backoff.ms": "300",
        "log.initial.task.delay.ms": "200",
        "log.cleaner.backoff.ms": dice.choice(["500", "5000"]),
        "replica.high.watermark.checkpoint.interval.ms": dice.choice(["200", "5000"]),
        "log.flush.offset.checkpoint.interval.ms": dice.choice(["500", "60000"]),
        "log.segment.delete.delay.ms": "1000",
        "record.validation": dice.choice(["header", "full"]),
    }


def _store_faults(dice: Random) -> dict[str, float]:
    if dice.random() < 0.5:
        return {}
    return {
        "lost_requests": dice.choice([0.0, 0.01]),
        "lost_replies": dice.choice([0.0, 0.02]),
        "lag_s": dice.choice([0.0, 0.05]),
        "reply_s": dice.choice([0.0, 0.01]),
    }


def _topic(number: int, dice: Random) -> PlannedTopic:
    configs = {"min.insync.replicas": "2"}
    if dice.random() < 0.7:
        configs["internal.segment.bytes"] = str(dice.randint(1_000, 10_000))
    compacted = dice.random() < 0.2
    if compacted:
        configs["cleanup.policy"] = "compact"
        configs["min.cleanable.dirty.ratio"] = "0.01"
    topic = NewTopic(f"t{number}", dice.randint(1, 2), configs, replicas=3)
    return PlannedTopic(topic, compacted)


def _habits(dice: Random) -> Habits:
    return Habits(
        acks=-1,
        version=dice.choice([9, 12]),
        batches=dice.randint(10, 30),
        records_max=dice.choice([1, 4]),
        value_max_bytes=dice.choice([10, 100]),
        pause_s=dice.choice([0.1, 0.5]),
        keys=dice.choice([2, 5]),
        patience_s=dice.choice([5.0, 120.0]),
        request_timeout_ms=dice.choice([500, 2_000]),
    )


def _faults(power: bool, dice: Random) -> tuple[PlannedFault, ...]:
    kinds: list[ClusterFault] = list(ALWAYS)
    if power:
        kinds += [ClusterFault.POWER] * 4 + [ClusterFault.POWER_ALL] * 2
    targets = [Target.LEADER, Target.LEADER, Target.CONTROLLER, Target.COORDINATOR, Target.ANY]
    return tuple(
        PlannedFault(
            after_s=dice.random() ** 2 * 2.0,
            fault=dice.choice(kinds),
            target=dice.choice(targets),
            lasts_s=dice.choice([0.3, 1.0, 2.0, 5.0]) * (0.5 + dice.random()),
        )
        for _ in range(dice.randint(2, 5))
    )


def _dealings(dice: Random) -> tuple[Dealings, ...]:
    return tuple(
        Dealings(
            version=dice.choice([1, 2]),
            transactions=dice.randint(3, 8),
            records_max=dice.choice([1, 3]),
            aborts=dice.choice([0.0, 0.3]),
            abandons=dice.choice([0.0, 0.2]),
        )
        for _ in range(dice.randint(1, 2))
    )


def _relaying(dice: Random) -> Relaying:
    return Relaying(
        groups=1,
        workers=dice.choice([1, 2]),
        records=dice.randint(10, 25),
        protocol=dice.choice(["classic", "consumer"]),
        aborts=dice.choice([0.0, 0.2]),
        pause_s=dice.choice([0.1, 0.3]),
        crashes=dice.choice([0.0, 0.1]),
    )
