"""Protections removed on purpose, each by replacing the functions that hold it.

The simulation must find what breaks then: this is how we know that it looks. A mutation draws its
plans from the same seeds as all runs, with more of the faults that the protection is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, NamedTuple

from ottla.controller import isr_changes, startup
from ottla.controller.runtime.fenced_writer import FencedWriter
from ottla.coordinator.txn import completion
from ottla.log import log as log_module
from ottla.log.producers.producer_states import ProducerStates
from ottla.metadata.cache import MetadataCache
from ottla.model.errors import ErrorCode, KafkaError
from ottla.replica import read
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.leader import Leadership
from ottla.replica.partition import HostedPartition
from ottla.replica.transitions import Transitions
from tests.sim.cluster.plan import ClusterFault, ClusterPlan, PlannedFault, Target, draw
from tests.sim.transactor import Dealings


class Replacement(NamedTuple):
    owner: Any
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Mutation:
    name: str
    replacements: tuple[Replacement, ...]
    adjust: Callable[[ClusterPlan, Random], ClusterPlan] = lambda plan, _: plan

    def plan(self, seed: int) -> ClusterPlan:
        return self.adjust(draw(seed), Random(seed))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The protection is gone inside this block."""
        with ExitStack() as stack:
            for owner, name, value in self.replacements:
                stack.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, value)
            yield


# Faults that a protection is for


def with_faults(*kinds: ClusterFault, **settings: str) -> Callable[..., ClusterPlan]:
    """Only these faults, five of them, on leaders and controllers."""

    def adjust(plan: ClusterPlan, dice: Random) -> ClusterPlan:
        targets = [Target.LEADER, Target.LEADER, Target.CONTROLLER, Target.COORDINATOR]
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
                dice.choice([Target.COORDINATOR, Target.LEADER]),
                1 + 4 * dice.random(),
            )
            for _ in range(5)
        )
        dealings = tuple(Dealings(version=1, transactions=15, aborts=0.3) for _ in range(2))
        return replace(plan, faults=faults, dealings=dealings, relaying=None)

    return adjust


def with_stale_controllers(plan: ClusterPlan, dice: Random) -> ClusterPlan:
    """A broker is cut off while a leader dies, so what the controller sends it is held back; the
    controller is paused until another one is in office; then the old requests arrive."""
    faults: list[PlannedFault] = []
    for _ in range(3):
        faults += [
            PlannedFault(1.0, ClusterFault.BROKERS_CUT, Target.ANY, 2.5 + dice.random()),
            PlannedFault(0.1, ClusterFault.KILL, Target.LEADER, 0.3),
            PlannedFault(0.6 + dice.random(), ClusterFault.PAUSE, Target.CONTROLLER, 3.0),
        ]
    return _quick_to_fail(plan, faults)


def with_restarts(plan: ClusterPlan, dice: Random) -> ClusterPlan:
    """Leaders and controllers restart together, so that a new controller finds brokers that have
    registered again."""
    faults: list[PlannedFault] = []
    for _ in range(4):
        faults += [
            PlannedFault(1.0 + dice.random(), ClusterFault.KILL, Target.LEADER, 0.5),
            PlannedFault(0.0, ClusterFault.KILL, Target.CONTROLLER, 0.5),
            PlannedFault(0.0, ClusterFault.KILL, Target.ANY, 0.5),
        ]
    return _quick_to_fail(plan, faults)


def with_late_markers(plan: ClusterPlan, dice: Random) -> ClusterPlan:
    """Markers are slow to arrive; their coordinator is replaced meanwhile, and its successor has
    sent them again and let the producers go on."""
    faults: list[PlannedFault] = []
    for _ in range(4):
        kind = dice.choice([ClusterFault.PAUSE, ClusterFault.ALL_CUT])
        faults += [
            PlannedFault(0.5, ClusterFault.STALLS, Target.COORDINATOR, 4.0),
            PlannedFault(0.0, ClusterFault.STALLS, Target.COORDINATOR, 4.0),
            PlannedFault(0.3 + dice.random(), kind, Target.COORDINATOR, 2.5 + dice.random()),
        ]
    dealings = tuple(Dealings(version=1, transactions=40, aborts=0.4) for _ in range(3))
    return replace(_quick_to_fail(plan, faults), dealings=dealings, relaying=None, topics=())


def _quick_to_fail(plan: ClusterPlan, faults: list[PlannedFault]) -> ClusterPlan:
    """With short timeouts, and with producers that write all the time."""
    habits = tuple(replace(habit, batches=60, pause_s=0.1) for habit in plan.habits)
    settings = {"replica.lag.time.max.ms": "600", "zookeeper.session.timeout.ms": "1000"}
    return replace(
        plan, faults=tuple(faults), habits=habits, settings={**plan.settings, **settings}
    )


def with_lost_answers(plan: ClusterPlan, dice: Random) -> ClusterPlan:
    """The controller, as a follower, falls behind and joins again. It stops for a while when the
    store, which replies slowly, has taken the new in-sync set; meanwhile the leader dies."""
    faults: list[PlannedFault] = []
    for _ in range(3):
        faults += [
            PlannedFault(0.5, ClusterFault.BROKERS_CUT, Target.CONTROLLER, 1.0),
            PlannedFault(1.2 + dice.random(), ClusterFault.PAUSE, Target.CONTROLLER, 1.0),
            PlannedFault(0.3 + 0.4 * dice.random(), ClusterFault.KILL, Target.LEADER, 0.3),
        ]
    quick = _quick_to_fail(plan, faults)
    habits = tuple(replace(habit, batches=150) for habit in quick.habits)
    settings = {**quick.settings, "zookeeper.session.timeout.ms": "3000"}
    return replace(quick, habits=habits, settings=settings, store_faults={"reply_s": 0.6})


# Functions without their protection


def _flush_never(self: HostedPartition, leadership: Leadership) -> bool:
    return False


async def _claim_unflushed(self: Any, partition: HostedPartition, offset: int) -> None:
    return


def _any_controller_epoch(self: Transitions, fence: Any) -> None:
    if -1 < fence.broker_epoch < self.broker_epoch:
        raise KafkaError(ErrorCode.stale_broker_epoch)
    self.controller_epoch = fence.controller_epoch


def _any_metadata(self: MetadataCache, update: Any) -> Any:
    self.image = self.image._replace(controller_epoch=update.controller_epoch)
    return APPLY_METADATA(self, update)


async def _write_without_fence(self: FencedWriter, fence: Any, batch: list[Any]) -> None:
    await self._store.multi(batch)


def _any_broker_epoch(self: Transitions, fence: Any) -> None:
    if fence.controller_epoch < self.controller_epoch:
        raise KafkaError(ErrorCode.stale_controller_epoch)
    self.controller_epoch = fence.controller_epoch


def _nobody_registered_after(*_: Any) -> set[Any]:
    return set()


def _eligible_in_any_life(draft: Any, tp: Any, member: Any) -> bool:
    return member.broker in draft.live_replicas(tp)


def _own_end_only(self: Leadership, own_end: int, **_: int) -> int | None:
    return own_end


def _committed_set_only(
    self: Leadership, own_end: int, *, min_isr: int, now_ms: int, lag_max_ms: int
) -> int | None:
    if len(self.isr) < min(min_isr, len(self.replicas)):
        return None
    ends = [follower.end for broker, follower in self.followers.items() if broker in self.isr]
    return min([own_end, *ends])


def _nothing(*_: Any) -> None:
    return None


def _no_marker_missing(*_: Any) -> dict[Any, Any]:
    return {}


def _any_coordinator(self: ProducerStates, header: Any, marker: Any) -> None:
    return


APPLY_METADATA: Final = MetadataCache.apply
POWER: Final = (ClusterFault.POWER, ClusterFault.POWER_ALL, ClusterFault.POWER_ALL)
LEADERS: Final = (
    ClusterFault.KILL,
    ClusterFault.PAUSE,
    ClusterFault.ALL_CUT,
    ClusterFault.BROKERS_CUT,
    ClusterFault.STORE_CUT,
)
MUTATIONS: Final = (
    Mutation(
        "fsync before acknowledgement",
        (
            Replacement(HostedPartition, "flushes_before_ack", _flush_never),
            Replacement(FlushLoop, "wait_until_flushed", _claim_unflushed),
        ),
        with_faults(*POWER, flush_before_ack="all"),
    ),
    Mutation(
        "truncation by epoch",
        (Replacement(read, "_diverging", _nothing),),
        with_faults(ClusterFault.ALL_CUT, ClusterFault.BROKERS_CUT, ClusterFault.PAUSE),
    ),
    Mutation(
        "controller epoch check",
        (
            Replacement(Transitions, "check", _any_controller_epoch),
            Replacement(MetadataCache, "apply", _any_metadata),
            Replacement(FencedWriter, "_write_batch", _write_without_fence),
        ),
        with_stale_controllers,
    ),
    Mutation(
        "broker epoch check",
        (
            Replacement(Transitions, "check", _any_broker_epoch),
            Replacement(isr_changes, "_is_eligible", _eligible_in_any_life),
            Replacement(startup, "_registered_after", _nobody_registered_after),
        ),
        with_restarts,
    ),
    Mutation(
        "in-sync check in the high watermark",
        (Replacement(Leadership, "high_watermark", _own_end_only),),
        with_faults(*LEADERS),
    ),
    Mutation(
        "high watermark over the proposed set",
        (Replacement(Leadership, "high_watermark", _committed_set_only),),
        with_lost_answers,
    ),
    Mutation(
        "duplicate window",
        (Replacement(log_module, "check_producer", _nothing),),
    ),
    Mutation(
        "markers retried",
        (Replacement(completion, "missing_markers", _no_marker_missing),),
        with_transactions(ClusterFault.KILL, ClusterFault.BROKERS_CUT, ClusterFault.PAUSE),
    ),
    Mutation(
        "coordinator fencing",
        (Replacement(ProducerStates, "check_marker", _any_coordinator),),
        with_late_markers,
    ),
)
