"""Protections removed on purpose, each by replacing the functions that hold it.

The simulation must find what breaks then: this is how we know that it looks. A mutation draws its
plans from the same seeds as all runs; `aimed_plans` gives them the faults that the protection is
for. Where two checks protect from the same thing, both are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple

from ottla.controller import isr_changes, startup
from ottla.controller.runtime.fenced_writer import FencedWriter
from ottla.coordinator.txn import completion
from ottla.log import log as log_module
from ottla.log.producers.producer_states import ProducerStates
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import MonoMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.replica import read
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.leader import Leadership
from ottla.replica.partition import HostedPartition
from ottla.replica.transitions import Transitions
from ottla.store.port import ANY_VERSION, Check
from ottla.store.tree import ROOT
from tests.sim.cluster.aimed_plans import (
    with_faults,
    with_late_markers,
    with_restarts,
    with_stale_controllers,
    with_transactions,
    with_unheard_isr_changes,
)
from tests.sim.cluster.plan import ClusterFault, ClusterPlan, draw


class Replacement(NamedTuple):
    owner: Any
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Mutation:
    name: str
    shows: frozenset[str]
    """What is broken then, by the names of the checks; anything else does not count."""
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
    """The root is always there, whoever is the controller."""
    await WRITE_BATCH(self, Check(ROOT, ANY_VERSION), batch)


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
    self: Leadership, own_end: int, *, min_isr: int, now_ms: MonoMs, lag_max_ms: int
) -> int | None:
    """Followers that were caught up a moment ago still count, as they do in the original."""
    proposed, self.proposed = self.proposed, None
    end = HIGH_WATERMARK(self, own_end, min_isr=min_isr, now_ms=now_ms, lag_max_ms=lag_max_ms)
    self.proposed = proposed
    return end


def _nothing(*_: Any) -> None:
    return None


def _no_marker_missing(*_: Any) -> dict[Any, Any]:
    return {}


def _any_coordinator(self: ProducerStates, header: Any, marker: Any) -> None:
    return


HIGH_WATERMARK: Final = Leadership.high_watermark
APPLY_METADATA: Final = MetadataCache.apply
WRITE_BATCH: Final = FencedWriter._write_batch
POWER: Final = (ClusterFault.POWER, ClusterFault.POWER_ALL, ClusterFault.POWER_ALL)
LEADERS: Final = (
    ClusterFault.KILL,
    ClusterFault.PAUSE,
    ClusterFault.ALL_CUT,
    ClusterFault.BROKERS_CUT,
    ClusterFault.STORE_CUT,
)
LOSS: Final = frozenset({"lost_write", "unseen"})
INCOMPLETE: Final = LOSS | {"complete_leaders"}
MUTATIONS: Final = (
    # A leader acknowledges, a follower claims an offset, and then their machines lose power.
    Mutation(
        "fsync before acknowledgement",
        LOSS,
        (
            Replacement(HostedPartition, "flushes_before_ack", _flush_never),
            Replacement(FlushLoop, "wait_until_flushed", _claim_unflushed),
        ),
        with_faults(*POWER, flush_before_ack="all"),
    ),
    # A leader that was cut off has appended what its successor has not. Back as a follower, it
    # appends behind that.
    Mutation(
        "truncation by epoch",
        frozenset({"replicas", "inconsistent_offset"}),
        (Replacement(read, "_diverging", _nothing),),
        with_faults(ClusterFault.ALL_CUT, ClusterFault.BROKERS_CUT, ClusterFault.PAUSE),
    ),
    # For partitions that both controllers know, the leader epoch protects from a late LeaderAndIsr
    # and a compare-and-set from a late write; nothing else protects metadata and new partitions.
    Mutation(
        "controller epoch check",
        frozenset({"metadata", "stray", "one_leader", "in sync"}),
        (
            Replacement(Transitions, "check", _any_controller_epoch),
            Replacement(MetadataCache, "apply", _any_metadata),
            Replacement(FencedWriter, "_write_batch", _write_without_fence),
        ),
        with_stale_controllers,
    ),
    # A leader restarts unnoticed and goes on under its old epoch, without the positions that it
    # knew; or a follower is taken for in sync because of what its earlier life had.
    Mutation(
        "broker epoch check",
        INCOMPLETE | {"watermark_of_leaders"},
        (
            Replacement(Transitions, "check", _any_broker_epoch),
            Replacement(isr_changes, "_is_eligible", _eligible_in_any_life),
            Replacement(startup, "_registered_after", _nobody_registered_after),
        ),
        with_restarts,
    ),
    # A leader acknowledges what no follower has, and dies.
    Mutation(
        "in-sync check in the high watermark",
        INCOMPLETE,
        (Replacement(Leadership, "high_watermark", _own_end_only),),
        with_faults(*LEADERS),
    ),
    # See the plan.
    Mutation(
        "high watermark over the proposed set",
        INCOMPLETE,
        (Replacement(Leadership, "high_watermark", _committed_set_only),),
        with_unheard_isr_changes,
    ),
    # A producer repeats a batch whose acknowledgement was lost.
    Mutation(
        "duplicate window",
        frozenset({"duplicate"}),
        (Replacement(log_module, "check_producer", _nothing),),
    ),
    # The leader of a partition is gone when its marker is due: the transaction stays open there, or
    # the marker of the producer's next transaction decides it.
    Mutation(
        "markers retried",
        frozenset({"held up", "stuck_lso", "aborted_read", "torn_transaction", "unseen"}),
        (Replacement(completion, "missing_markers", _no_marker_missing),),
        with_transactions(ClusterFault.KILL, ClusterFault.BROKERS_CUT, ClusterFault.PAUSE),
    ),
    # In the second version of transactions each has an epoch of its own, which protects, too; so
    # the producers speak the first.
    Mutation(
        "coordinator fencing",
        frozenset({"aborted_read", "torn_transaction", "unseen"}),
        (Replacement(ProducerStates, "check_marker", _any_coordinator),),
        with_late_markers,
    ),
)
