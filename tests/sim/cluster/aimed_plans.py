"""Plans whose faults are aimed at one protection: the interleaving in which it alone helps.

Each function takes a plan as it was drawn and replaces its faults, and what of its load and
settings the interleaving needs. The faults repeat, because not every attempt meets its moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final

from tests.sim.cluster.moments import Moment
from tests.sim.cluster.operator import Duties
from tests.sim.cluster.plan import ClusterFault, ClusterPlan, PlannedFault, Target
from tests.sim.transactor import Dealings

F, T = ClusterFault, Target
QUICK: Final = {"replica.lag.time.max.ms": "600", "zookeeper.session.timeout.ms": "1000"}
"""Followers leave soon, and dead brokers are noticed soon."""


def with_faults(*kinds: ClusterFault, **settings: str) -> Callable[..., ClusterPlan]:
    """Only these faults, five of them, mostly of leaders."""

    def adjust(plan: ClusterPlan, dice: Random) -> ClusterPlan:
        targets = [T.LEADER, T.LEADER, T.CONTROLLER, T.COORDINATOR]
        faults = tuple(
            PlannedFault(
                dice.random() * 2.0, dice.choice(kinds), dice.choice(targets), 1 + 4 * dice.random()
            )
            for _ in range(5)
        )
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return replace(plan, faults=faults, settings={**plan.settings, **named})

    return adjust


def with_transactions(*kinds: ClusterFault) -> Callable[..., ClusterPlan]:
    """Producers of the first version of transactions, and faults of coordinators."""

    def adjust(plan: ClusterPlan, dice: Random) -> ClusterPlan:
        faults = tuple(
            PlannedFault(
                dice.random() * 2.0,
                dice.choice(kinds),
                dice.choice([T.COORDINATOR, T.LEADER]),
                1 + 4 * dice.random(),
            )
            for _ in range(5)
        )
        dealings = tuple(Dealings(version=1, transactions=15, aborts=0.3) for _ in range(2))
        return replace(plan, faults=faults, dealings=dealings, relaying=None)

    return adjust


def with_stale_controllers(plan: ClusterPlan, dice: Random) -> ClusterPlan:
    """Requests of a controller arrive long after those of its successors.

    A topic is created and deleted. At the moment at which the store has taken it, nothing that the
    controller sends to one of the brokers gets through: neither the leaders of the new topic nor
    the metadata. The controller's session ends before it tries again. Its successor completes the
    topic, and deletes it when it is asked to. Now the link passes again, with what the first one
    had sent: the replicas and the metadata of a topic that there is no more.
    """
    faults = [
        PlannedFault(
            0.0, F.ONE_WAY, T.CONTROLLER, 14.0 + 4.0 * dice.random(), Moment.TOPIC_CHANGED
        ),
        PlannedFault(1.2 + 0.4 * dice.random(), F.EXPIRY, T.SAME, 0.0),
    ]
    return replace(_busy(plan, faults), churn=1, dealings=(), relaying=None)


def with_restarts(plan: ClusterPlan, dice: Random) -> ClusterPlan:
    """Leaders and controllers restart together, so that a new controller finds brokers that have
    registered again."""
    faults: list[PlannedFault] = []
    for _ in range(4):
        faults += [
            PlannedFault(1.0 + dice.random(), F.KILL, T.LEADER, 0.5),
            PlannedFault(0.0, F.KILL, T.CONTROLLER, 0.5),
            PlannedFault(0.0, F.KILL, T.ANY, 0.5),
        ]
    return _busy(plan, faults)


def with_unheard_isr_changes(plan: ClusterPlan, dice: Random) -> ClusterPlan:
    """A leader dies before it hears that a follower is in sync again.

    The controller's broker falls behind as a follower, leaves, and catches up. At the moment at
    which the store has taken the in-sync set that has it again, it is cut off from the leader, who
    waits for that answer. When the follower has been behind for longer than the lag limit, the
    leader would commit with the other follower what this one lacks. Then the leader dies, and the
    controller elects its own broker if that comes first among the replicas.
    """
    faults: list[PlannedFault] = []
    for _ in range(4):
        faults += [
            PlannedFault(3.0, F.PAIR_CUT, T.CONTROLLER, 1.2, toward=T.LEADER),
            PlannedFault(1.0, F.PAIR_CUT, T.JOINED, 3.0, Moment.ISR_GROWS, toward=T.LEADER),
            PlannedFault(1.0 + 0.8 * dice.random(), F.KILL, T.LEADER, 0.3),
        ]
    busy = _busy(plan, faults)
    habits = tuple(replace(habit, batches=300, pause_s=0.05) for habit in busy.habits)
    settings = {**busy.settings, "replica.fetch.wait.max.ms": "50"}
    return replace(busy, habits=habits, settings=settings, store_faults={})


def with_late_markers(plan: ClusterPlan, dice: Random) -> ClusterPlan:
    """Markers of a coordinator arrive after its successor has sent them again.

    Nothing that the coordinator sends to the leader of a partition gets through, its markers among
    it. Its session ends; its successor sends the markers again, and the producer, which keeps its
    epoch in this version of transactions, writes its next transaction. Now the link passes again,
    and the old marker would decide what is open.
    """
    faults: list[PlannedFault] = []
    for _ in range(4):
        lasts_s = 3.0 + dice.random()
        faults += [
            PlannedFault(
                2.5, F.ONE_WAY, T.COORDINATOR, lasts_s, Moment.TRANSACTION_WRITTEN, T.LEADER
            ),
            PlannedFault(1.4 + 0.4 * dice.random(), F.EXPIRY, T.SAME, 0.0),
        ]
    dealings = tuple(
        Dealings(version=1, transactions=80, aborts=0.5, abandons=0.0) for _ in range(3)
    )
    busy = _busy(plan, faults)
    settings = {**busy.settings, "transaction.state.log.num.partitions": "1"}
    return replace(busy, dealings=dealings, relaying=None, topics=(), settings=settings)


def _busy(plan: ClusterPlan, faults: list[PlannedFault]) -> ClusterPlan:
    """With short timeouts, and with producers that write all the time."""
    habits = tuple(replace(habit, batches=60, pause_s=0.1) for habit in plan.habits)
    return replace(
        plan,
        faults=tuple(faults),
        habits=habits,
        settings={**plan.settings, **QUICK},
        duties=Duties(),
        churn=0,
        commits=0,
    )
