"""The shards of one internal topic: loads them, decides requests on them, unloads them.

Owns which partitions this broker coordinates, and the order of a request: decide on the current
state, append the records as one batch, replay them (`executor`), reply when the high watermark
passes them. Between deciding and replaying nothing else runs, so a later request is decided on
what an earlier one has appended, committed or not: the log has their records in that order, and no
request is answered before the one it depends on. Never interprets a record.

Appended records stay in the state even if waiting for their commit fails: they are in the log, and
a new leader, or this one after loading, reads them. Only a refused append changes nothing.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Generic, TypeAlias, TypeVar

from ottla.coordinator.deferred_reply import Commit, wait_for_commit
from ottla.coordinator.executor import Executor, OwnedShard, ShardPhase, perform
from ottla.coordinator.internal_topic_log import (
    InternalTopicLog,
    TransactionalWriter,
)
from ottla.coordinator.outcome import Outcome
from ottla.coordinator.shard import Shard
from ottla.coordinator.shard_loader import ShardLoader, retry_delay_ms
from ottla.delay.timers import Timers
from ottla.log.files import OutOfResources
from ottla.log.log import FAULTS
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset, TopicPartition
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition

LOWEST: Final = -(2**31)


def java_hash(text: str) -> int:
    """A Java string's hashCode: over UTF-16 units, in 32 bits."""
    data = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in struct.unpack(f">{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@lru_cache(maxsize=16_384)
def partition_for(key: str, partitions: int) -> int:
    hashed = java_hash(key)
    return 0 if hashed == LOWEST else abs(hashed) % partitions


__all__ = [
    "InternalTopicLog",
    "OwnedShard",
    "Runtime",
    "RuntimeContext",
    "ShardPhase",
    "TransactionalWriter",
]

log = logging.getLogger(__name__)

S = TypeVar("S", bound=Shard)
R = TypeVar("R")
Spawn: TypeAlias = Callable[[Coroutine[object, None, None]], object]

LOAD_BUFFER_BYTES: Final = 1 << 20
LOAD_AGAIN: Final = object()
"""The timer key of the next attempt to load a partition."""


@dataclass(frozen=True, slots=True)
class RuntimeContext:
    """What all coordinators of a broker share."""

    hosted: HostedPartitions
    metadata: MetadataCache
    timers: Timers
    spawn: Spawn


class Runtime(Generic[S]):
    """One kind of coordinator: the shards of its topic's partitions led here."""

    def __init__(
        self,
        topic: str,
        make_shard: Callable[[int], S],
        context: RuntimeContext,
        topic_log: InternalTopicLog,
        load_buffer_bytes: int = LOAD_BUFFER_BYTES,
    ) -> None:
        self.topic = topic
        self._make_shard = make_shard
        self._context = context
        self._topic_log = topic_log
        self._clock = context.hosted.environment.clock
        self._owned: dict[int, OwnedShard[S]] = {}
        self._executor = Executor[S](topic_log, context.timers, self._clock, self._is_current)
        self._loader = ShardLoader(
            context.hosted.environment.thread_pool, min(load_buffer_bytes, LOAD_BUFFER_BYTES)
        )

    # Requests

    def partition_of(self, key: str) -> int:
        """The partition of a key; COORDINATOR_NOT_AVAILABLE before the topic exists."""
        topic = self._context.metadata.image.topics.get(self.topic)
        if topic is None:
            raise KafkaError(ErrorCode.coordinator_not_available)
        return partition_for(key, len(topic.partitions))

    def owned_shard(self, key: str) -> OwnedShard[S]:
        """The shard that coordinates this key; KafkaError if this broker does not coordinate it."""
        index = self.partition_of(key)
        owned = self._owned.get(index)
        if (
            owned is not None and owned.phase is ShardPhase.ACTIVE
        ):  # hot: benchmarks/transactions.py
            return owned
        return self._ready(index)

    async def write(
        self,
        key: str,
        decide: Callable[[S, WallMs], Outcome[R]],
        *,
        producer: TransactionalWriter | None = None,
    ) -> R:
        """Decide, append, and return the reply once the records are committed."""
        reply, commit = self.submit(key, decide, producer=producer)
        await wait_for_commit(commit)
        return reply

    def submit(
        self,
        key: str,
        decide: Callable[[S, WallMs], Outcome[R]],
        *,
        producer: TransactionalWriter | None = None,
        settle: bool = False,
    ) -> tuple[R, Commit | None]:
        """Decide and append; the reply, and the commit to wait for before sending it, if any.

        With `settle`, a decision without records waits for the records it may depend on.
        """
        owned = self.owned_shard(key)
        outcome = decide(owned.shard, self._clock.wall_ms())
        commit = self._executor.execute(owned, outcome, producer)
        if commit is None and settle:
            commit = self._topic_log.settled(owned.partition)
        return outcome.reply, commit

    def write_all(self, decide: Callable[[S, WallMs], Outcome[object]]) -> None:
        """Decide for every active shard; nobody waits for the commits, failures are logged."""
        for owned in self.active():
            self._executor.start(owned, decide(owned.shard, self._clock.wall_ms()))

    async def read(self, key: str, query: Callable[[S], R]) -> R:
        """Read from memory; return once everything the result may depend on is committed."""
        owned = self.owned_shard(key)
        answer = query(owned.shard)
        await wait_for_commit(self._topic_log.settled(owned.partition))
        return answer

    def active(self) -> list[OwnedShard[S]]:
        return [owned for owned in self._owned.values() if owned.phase is ShardPhase.ACTIVE]

    def is_loading(self) -> bool:
        """Whether a partition led by this broker is still being loaded."""
        return any(owned.phase is ShardPhase.LOADING for owned in self._owned.values())

    def end_transaction(
        self, index: int, producer: TransactionalWriter, marker: EndTxnMarker
    ) -> Commit:
        """Append a transaction marker to a partition of the topic, and apply it to the shard."""
        owned = self._ready(index)
        batch = build_marker(
            marker,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            timestamp=self._clock.wall_ms(),
        )

        def on_appended(_: Offset) -> None:
            commits = marker.type is ControlType.COMMIT
            owned.shard.end_transaction(producer.id, committed=commits)

        return self._topic_log.append(owned.partition, batch, on_appended)

    def _ready(self, index: int) -> OwnedShard[S]:
        owned = self._owned.get(index)
        if owned is None or owned.phase is ShardPhase.FAILED:
            raise KafkaError(ErrorCode.not_coordinator)
        if owned.phase is ShardPhase.LOADING:
            raise KafkaError(ErrorCode.coordinator_load_in_progress)
        return owned

    # Leadership changes

    def on_lead(self, partition: HostedPartition) -> None:
        """This broker became the leader of a partition; load it unless it is loaded already."""
        key = partition.key
        if key.topic != self.topic:
            return
        current = self._owned.get(key.partition)
        if current is not None and current.phase is not ShardPhase.FAILED:
            return  # led by this broker under an older epoch too: the state matches the log
        if current is not None:
            self._cancel_timers(current)
        owned = OwnedShard(partition, self._make_shard(key.partition))
        self._owned[key.partition] = owned
        self._context.spawn(self._load(owned))

    def on_unlead(self, key: TopicPartition) -> None:
        if key.topic != self.topic:
            return
        owned = self._owned.pop(key.partition, None)
        if owned is None:
            return
        self._cancel_timers(owned)
        perform(owned.shard.on_unloaded())

    def close(self) -> None:
        """The broker stops: waiting clients are told to find another coordinator."""
        for owned in list(self._owned.values()):
            self._executor.flush_deferred(owned)
            self.on_unlead(owned.partition.key)

    async def _load(self, owned: OwnedShard[S]) -> None:
        """Never raises: a task that fails stops the broker."""
        hosted = self._context.hosted
        try:
            done = await self._loader.load(
                owned.partition, owned.shard, lambda: self._is_current(owned)
            )
            if done:
                owned.move(ShardPhase.ACTIVE)
                self._executor.start(owned, owned.shard.on_loaded(self._clock.wall_ms()))
        except OutOfResources as error:
            hosted.fail(owned.partition, error)  # which only logs it
            if self._is_current(owned):
                self._load_again_later(owned, error)
        except FAULTS as fault:
            owned.move(ShardPhase.FAILED)
            hosted.fail(owned.partition, fault)
        except Exception as error:
            if self._is_current(owned):
                self._load_again_later(owned, error)

    def _load_again_later(self, owned: OwnedShard[S], error: Exception) -> None:
        """Not coordinated meanwhile: its clients get NOT_COORDINATOR and look for it again."""
        owned.move(ShardPhase.FAILED)
        owned.load_failures += 1
        delay_ms = retry_delay_ms(owned.load_failures)
        is_expected = isinstance(error, KafkaError | ValueError)
        log.error(
            "%s: cannot load coordinator state (failure %d), retrying in %d ms: %s",
            owned.partition.key,
            owned.load_failures,
            delay_ms,
            error,
            exc_info=None if is_expected else error,
        )
        self._cancel_timers(owned)
        perform(owned.shard.on_unloaded())
        retry = self._context.timers.call_later(delay_ms, lambda: self._load_again(owned))
        owned.timers[LOAD_AGAIN] = retry

    def _load_again(self, owned: OwnedShard[S]) -> None:
        owned.timers.clear()
        owned.shard = self._make_shard(owned.index)
        owned.move(ShardPhase.LOADING)
        self._context.spawn(self._load(owned))

    def _cancel_timers(self, owned: OwnedShard[S]) -> None:
        for timer in owned.timers.values():
            self._context.timers.cancel(timer)
        owned.timers.clear()

    def _is_current(self, owned: OwnedShard[S]) -> bool:
        return self._owned.get(owned.index) is owned
