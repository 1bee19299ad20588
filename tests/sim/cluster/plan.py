"""What one seed draws for three brokers: settings, topics, clients and faults.

Pure: the same seed draws the same plan. Seeds of three brokers are a space of their own; those of
one broker (`tests/sim/plan.py`) are not affected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

from tests.sim.admin import NewTopic
from tests.sim.cluster.logins import PLAIN, SCRAM, Logins
from tests.sim.cluster.moments import Moment
from tests.sim.cluster.operator import Duties
from tests.sim.producer import Habits
from tests.sim.relay import Relaying
from tests.sim.transactor import Dealings

SALT: Final = 0x3B20_4E25
SALT_OF_LOGINS: Final = 0x51A5_1091
"""Logins are drawn apart: seeds of before draw what they drew then."""


class ClusterFault(Enum):
    KILL = "kill -9"
    KILL_IN_RECOVERY = "kill -9, again while it starts"
    POWER = "power cut"
    POWER_ALL = "power cut of every machine"
    STOP = "clean restart"
    PAUSE = "SIGSTOP, later SIGCONT"
    BROKERS_CUT = "cut off from the other brokers"
    PAIR_CUT = "cut off from one other broker"
    STORE_CUT = "cut off from the store"
    ALL_CUT = "cut off from brokers and store"
    ONE_WAY = "no longer heard by another broker"
    STALLS = "stalls and resets between two brokers"
    CLIENT_STALLS = "stalls, resets and lost connections of its clients"
    EXPIRY = "session expired"
    EXPIRY_KEPT = "session expired, its nodes stay for a while"
    STORE_DOWN = "store without a quorum"
    STORE_SLOW = "store slow to reply"
    CONTROLLER_DELETED = "controller node deleted by an operator"
    SLOW_DISK = "slow disk"
    FULL_DISK = "no space left"
    BAD_SYNC = "fsync fails"
    BAD_DIRECTORY = "one log directory fails"
    WIPED_DISK = "empty disk under the same id"
    ROT = "derived files damaged"
    CLOCK = "clock moves an hour"
    RESETS = "every connection reset"


class Target(Enum):
    """Which broker a fault hits: of the partition of its moment, if it has one."""

    LEADER = "leader"
    FOLLOWER = "follower"
    JOINED = "new member of the in-sync set"
    CONTROLLER = "controller"
    COORDINATOR = "coordinator"
    SAME = "the one that the fault before hit"
    THIRD = "neither end of the fault before"
    ANY = "any broker"


WITH_POWER: Final = (ClusterFault.POWER, ClusterFault.POWER_ALL)
ALWAYS: Final = tuple(fault for fault in ClusterFault if fault not in WITH_POWER)
FREQUENT: Final = (
    ClusterFault.KILL,
    ClusterFault.PAUSE,
    ClusterFault.PAUSE,
    ClusterFault.BROKERS_CUT,
    ClusterFault.STORE_CUT,
    ClusterFault.ALL_CUT,
    ClusterFault.ONE_WAY,
)
"""Drawn more often than others."""
TARGETS: Final = (Target.LEADER, *Target)


@dataclass(frozen=True, slots=True)
class PlannedFault:
    after_s: float
    """Time since the fault before it began; the two may overlap."""
    fault: ClusterFault
    target: Target
    lasts_s: float
    at: Moment = Moment.ANY
    """It waits for this moment, for a while."""
    toward: Target = Target.ANY
    """The other end of a link."""


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    topic: NewTopic
    compacted: bool
    loses_old: bool = False
    """Retention or DeleteRecords may move its start."""


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
    duties: Duties = field(default_factory=Duties)
    """Of the operator."""
    churn: int = 0
    """How often one more topic comes and goes meanwhile."""
    commits: int = 0
    """Offsets that a group without members commits."""
    logins: Logins | None = None
    """None: nobody logs in."""


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
        duties=Duties(dice.choice([0, 0, 5, 15]), dice.choice([0.2, 1.0])),
        churn=dice.choice([0, 0, 1, 3]),
        commits=dice.choice([0, 20]),
        logins=_logins(Random(seed ^ SALT_OF_LOGINS)),
    )


SETTINGS: Final = {
    "flush.before.ack": "all",
    "zookeeper.session.timeout.ms": "1500",
    "replica.lag.time.max.ms": "1500",
    "replica.fetch.wait.max.ms": "300",
    "replica.fetch.backoff.ms": "50",
    "replica.socket.timeout.ms": "2000",
    "controller.socket.timeout.ms": "2000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "leader.imbalance.check.interval.seconds": "2",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "controlled.shutdown.retry.backoff.ms": "300",
    "log.dirs": "/data",
    "log.initial.task.delay.ms": "200",
    "log.segment.delete.delay.ms": "1000",
}
"""For small clusters in which things happen soon; a seed draws some of them."""


def _settings(power: bool, dice: Random) -> dict[str, str]:
    drawn = {
        "zookeeper.session.timeout.ms": ["1000", "1500", "3000"],
        "flush.before.ack": ["all"] if power else ["auto", "auto", "all", "never"],
        "replica.lag.time.max.ms": ["600", "1500", "4000"],
        "replica.fetch.wait.max.ms": ["50", "300"],
        "replica.fetch.backoff.ms": ["50", "500"],
        "num.replica.fetchers": ["1", "1", "2"],
        "auto.leader.rebalance.enable": ["true", "false"],
        "offsets.topic.num.partitions": ["1", "3"],
        "transaction.state.log.num.partitions": ["1", "2"],
        "log.dirs": ["/data", "/data", "/data,/more"],
        "log.cleaner.backoff.ms": ["500", "5000"],
        "log.retention.check.interval.ms": ["500", "3000"],
        "replica.high.watermark.checkpoint.interval.ms": ["200", "5000"],
        "log.flush.offset.checkpoint.interval.ms": ["500", "60000"],
        "record.validation": ["header", "full"],
    }
    return SETTINGS | {name: dice.choice(values) for name, values in drawn.items()}


def _logins(dice: Random) -> Logins | None:
    if dice.random() < 0.75:
        return None
    mechanisms = [PLAIN, SCRAM]
    return Logins(dice.choice(mechanisms), dice.choice(mechanisms), dice.choice([0, 1_500, 5_000]))


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
    replicas = dice.choice([2, 3, 3, 3])
    configs = {"min.insync.replicas": "2" if replicas == 3 else dice.choice(["1", "2"])}
    if dice.random() < 0.7:
        configs["internal.segment.bytes"] = str(dice.randint(1_000, 10_000))
    kind = dice.random()
    compacted, loses_old = kind < 0.2, kind > 0.8
    if compacted:
        configs["cleanup.policy"] = "compact"
        configs["min.cleanable.dirty.ratio"] = "0.01"
        configs["internal.segment.bytes"] = "1000"  # the segment that is written is not compacted
    elif kind > 0.9:
        configs["retention.bytes"] = str(dice.randint(2_000, 10_000))
    elif loses_old:
        configs["retention.ms"] = str(dice.randint(1_000, 5_000))
    topic = NewTopic(f"t{number}", dice.randint(1, 2), configs, replicas=replicas)
    return PlannedTopic(topic, compacted, loses_old)


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
    kinds: list[ClusterFault] = [*ALWAYS, *FREQUENT]
    if power:
        kinds += [ClusterFault.POWER] * 6 + [ClusterFault.POWER_ALL] * 3
    moments = [Moment.ANY] * len(Moment) + list(Moment)
    return tuple(
        PlannedFault(
            after_s=dice.random() ** 2 * 2.0,
            fault=dice.choice(kinds),
            target=dice.choice(TARGETS),
            lasts_s=dice.choice([0.3, 1.0, 2.0, 5.0]) * (0.5 + dice.random()),
            at=dice.choice(moments),
            toward=dice.choice(TARGETS),
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
