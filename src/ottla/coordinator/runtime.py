"""The shards of one internal topic: loaded, asked, written and given up.

Owns which partitions this broker coordinates, their timers, and the order of a write: decide on
the present state, append the records as one batch, replay them, answer when the high watermark
covers them. Between deciding and replaying nothing else runs, so a later request is decided on
what an earlier one has appended, committed or not: their records stand in that order in the log,
and none is answered before the one it rests on. Never knows what a record means.

What was appended stays in the state even if its commit cannot be awaited: it stands in the log,
and a new leader, or this one after loading, would read it. Only a refused append leaves no trace.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from ottla.coordinator.journal import FEW, Journal, Producer, Writer
from ottla.coordinator.loading import load
from ottla.coordinator.outcome import CoordinatorRecord, Outcome, SetTimer, Then, TimerOp
from ottla.coordinator.partitioning import partition_for
from ottla.coordinator.shard import Shard
from ottla.delay.timers import Call, Timers
from ottla.log.log import FAULTS
from ottla.metadata.cache import MetadataCache
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_PRODUCER, LeaderEpoch, TopicPartition
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.replica.hosted import Hosted
from ottla.replica.partition import Partition

__all__ = ["Ground", "Journal", "Owned", "Phase", "Producer", "Runtime", "Writer"]

log = logging.getLogger(__name__)

S = TypeVar("S", bound=Shard)
R = TypeVar("R")
Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]

LOAD_BUFFER_BYTES: Final = 1 << 20
OWED_MS: Final = 100
"""How long what is written lazily waits for company."""
OWED_MAX: Final = 32
OWED: Final = object()
"""The key of the timer for that."""


class Phase(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


MOVES: Final = {
    Phase.LOADING: frozenset({Phase.ACTIVE, Phase.FAILED}),
    Phase.ACTIVE: frozenset[Phase](),
    Phase.FAILED: frozenset[Phase](),
}
"""Losing the leadership removes the whole entry, from any phase."""


class Owned(Generic[S]):
    """One partition of the internal topic that this broker leads."""

    __slots__ = ("owed", "partition", "phase", "shard", "timers")

    def __init__(self, partition: Partition, shard: S) -> None:
        self.partition = partition
        self.shard = shard
        self.phase = Phase.LOADING
        self.timers: dict[Hashable, Call] = {}
        self.owed: list[CoordinatorRecord] = []
        """Replayed, and written with the next records, or soon."""

    @property
    def index(self) -> int:
        return self.partition.key.partition

    @property
    def epoch(self) -> LeaderEpoch:
        """Fences this coordinator's successors from it, and it from its predecessors."""
        return self.partition.leader_epoch

    def move(self, to: Phase) -> None:
        assert to in MOVES[self.phase], f"{self.partition.key}: {self.phase} -> {to}"
        self.phase = to


@dataclass(frozen=True, slots=True)
class Ground:
    """What every coordinator of a broker stands on."""

    hosted: Hosted
    metadata: MetadataCache
    timers: Timers
    spawn: Spawn


class Runtime(Generic[S]):
    """One kind of coordinator: the shards of its topic's partitions led here."""

    def __init__(
        self,
        topic: str,
        make_shard: Callable[[int], S],
        ground: Ground,
        journal: Journal,
        load_buffer_bytes: int = LOAD_BUFFER_BYTES,
    ) -> None:
        self.topic = topic
        self._make_shard = make_shard
        self._ground = ground
        self._journal = journal
        self._clock = ground.hosted.around.clock
        self._load_buffer_bytes = min(load_buffer_bytes, LOAD_BUFFER_BYTES)
        self._owned: dict[int, Owned[S]] = {}

    # Asking

    def partition_of(self, key: str) -> int:
        """Where a key belongs; COORDINATOR_NOT_AVAILABLE before the topic exists."""
        topic = self._ground.metadata.image.topics.get(self.topic)
        if topic is None:
            raise KafkaError(ErrorCode.coordinator_not_available)
        return partition_for(key, len(topic.partitions))

    def owned(self, key: str) -> Owned[S]:
        """The partition that coordinates this key, or the refusal a client must hear."""
        return self._ready(self.partition_of(key))

    async def write(
        self,
        key: str,
        decide: Callable[[S, int], Outcome[R]],
        *,
        producer: Writer | None = None,
    ) -> R:
        """Decide, persist, and give the reply once the records are committed."""
        reply, committed = self.submit(key, decide, producer=producer)
        if committed is not None:
            await committed
        return reply

    def submit(
        self,
        key: str,
        decide: Callable[[S, int], Outcome[R]],
        *,
        producer: Writer | None = None,
    ) -> tuple[R, asyncio.Future[None] | None]:
        """Decide and append; the reply, and when it may be given, None for now."""
        owned = self.owned(key)
        outcome = decide(owned.shard, self._clock.wall_ms())
        return outcome.reply, self._carry_out(owned, outcome, producer)

    def write_all(self, decide: Callable[[S, int], Outcome[Any]]) -> None:
        """Decide for every shard that is active here; nobody waits, what fails is logged."""
        for owned in self.active():
            self._start(owned, decide(owned.shard, self._clock.wall_ms()))

    async def read(self, key: str, query: Callable[[S], R]) -> R:
        """Answer from memory, once all that the answer may rest on is committed."""
        answer = query(self.owned(key).shard)
        settled = self.settled(key)
        if settled is not None:
            await settled
        return answer

    def settled(self, key: str) -> asyncio.Future[None] | None:
        """Ends when all that stands in the log of this key now is committed; None when it is."""
        return self._journal.settled(self.owned(key).partition)

    def active(self) -> list[Owned[S]]:
        return [owned for owned in self._owned.values() if owned.phase is Phase.ACTIVE]

    def is_loading(self) -> bool:
        """Whether some partition led here cannot answer yet."""
        return any(owned.phase is Phase.LOADING for owned in self._owned.values())

    def end_transaction(
        self, index: int, producer: Writer, marker: EndTxnMarker
    ) -> asyncio.Future[None]:
        """Append a transaction's marker to a partition of the topic, and act on it.

        The future ends when the marker is committed, or with a refusal.
        """
        owned = self._ready(index)
        batch = build_marker(
            marker,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            timestamp=self._clock.wall_ms(),
        )
        first = owned.partition.log.end_offset
        committed = self._journal.append(owned.partition, batch)
        if owned.partition.log.end_offset > first:
            commits = marker.type is ControlType.COMMIT
            owned.shard.end_transaction(producer.id, committed=commits)
        return committed

    def _ready(self, index: int) -> Owned[S]:
        owned = self._owned.get(index)
        if owned is None or owned.phase is Phase.FAILED:
            raise KafkaError(ErrorCode.not_coordinator)
        if owned.phase is Phase.LOADING:
            raise KafkaError(ErrorCode.coordinator_load_in_progress)
        return owned

    # Leading and not leading

    def on_lead(self, partition: Partition) -> None:
        """A partition is led here from now on; load it unless it is here already."""
        key = partition.key
        if key.topic != self.topic:
            return
        known = self._owned.get(key.partition)
        if known is not None and known.phase is not Phase.FAILED:
            return  # led here before under an older epoch: the state is what the log says
        owned = Owned(partition, self._make_shard(key.partition))
        self._owned[key.partition] = owned
        self._ground.spawn(self._load(owned))

    def on_unlead(self, key: TopicPartition) -> None:
        if key.topic != self.topic:
            return
        owned = self._owned.pop(key.partition, None)
        if owned is None:
            return
        for timer in owned.timers.values():
            self._ground.timers.cancel(timer)
        owned.timers.clear()
        owned.shard.unloaded()

    def close(self) -> None:
        """The broker stops: whoever waits is sent to look for another coordinator."""
        for owned in list(self._owned.values()):
            self._pay(owned)
            self.on_unlead(owned.partition.key)

    async def _load(self, owned: Owned[S]) -> None:
        hosted = self._ground.hosted
        try:
            done = await load(
                owned.partition,
                owned.shard,
                hosted.around.off,
                still_wanted=lambda: self._is_current(owned),
                buffer_bytes=self._load_buffer_bytes,
            )
        except FAULTS as fault:
            owned.move(Phase.FAILED)
            hosted.fail(owned.partition, fault)
            return
        except (KafkaError, ValueError) as error:
            owned.move(Phase.FAILED)
            log.error("%s cannot be loaded: %s", owned.partition.key, error)
            return
        if done:
            owned.move(Phase.ACTIVE)
            self._start(owned, owned.shard.loaded(self._clock.wall_ms()))

    def _is_current(self, owned: Owned[S]) -> bool:
        return self._owned.get(owned.index) is owned

    # Carrying out

    def _start(self, owned: Owned[S], outcome: Outcome[Any]) -> None:
        """Carry out a decision that nobody waits for."""
        committed = self._carry_out(owned, outcome, None)
        if committed is not None:
            committed.add_done_callback(lambda done: _log_failure(owned.partition.key, done))

    def _carry_out(
        self, owned: Owned[S], outcome: Outcome[Any], producer: Writer | None
    ) -> asyncio.Future[None] | None:
        """Append, replay, set timers; None when there is nothing to wait for."""
        self._set_timers(owned, outcome.timers)
        records, then = outcome.records, outcome.then
        if outcome.lazily:
            self._owe(owned, records)
            return None
        if not records:
            if then is not None:
                self._start(owned, then(ErrorCode.none, self._clock.wall_ms()))
            return None
        parts = self._journal.parts(owned.partition, records)
        appended = [self._write(owned, part, producer) for part in parts]
        committed = appended[0] if len(appended) == 1 else _all(appended)
        if then is not None:
            committed.add_done_callback(lambda done: self._decide_again(owned, then, done))
        return committed

    def _write(
        self, owned: Owned[S], records: Sequence[CoordinatorRecord], producer: Writer | None
    ) -> asyncio.Future[None]:
        """Append one batch, what is owed in front, and unless it was refused replay it."""
        partition, owed = owned.partition, owned.owed
        if owed and (producer is not None or len(owed) + len(records) >= FEW):
            self._pay(owned)  # it is no part of a transaction, or might be too much for one batch
            owed = []
        first = partition.log.end_offset
        batch = self._journal.batch(partition, [*owed, *records], producer)
        committed = self._journal.append(partition, batch)
        if partition.log.end_offset > first:
            producer_id = NO_PRODUCER if producer is None else producer.id
            for offset, record in enumerate(records, first + len(owed)):
                owned.shard.replay(record.what, offset, producer_id)
            owed.clear()
        return committed

    def _owe(self, owned: Owned[S], records: Sequence[CoordinatorRecord]) -> None:
        """Replay now, write later; what comes between stands behind it in the log."""
        if OWED not in owned.timers:
            self._set_timers(owned, [SetTimer(OWED, OWED_MS)])
        owned.owed += records
        for record in records:
            owned.shard.replay(record.what, owned.partition.log.end_offset, NO_PRODUCER)
        if len(owned.owed) >= OWED_MAX:
            self._pay(owned)

    def _pay(self, owned: Owned[S]) -> None:
        """Write what is owed, if anything still is."""
        owed, owned.owed = owned.owed, []
        if not owed:
            return
        log = owned.partition.log
        first = log.end_offset
        committed = self._journal.append(
            owned.partition, self._journal.batch(owned.partition, owed, None)
        )
        committed.add_done_callback(lambda done: _log_failure(owned.partition.key, done))
        if log.end_offset == first:
            owned.owed = owed
            self._set_timers(owned, [SetTimer(OWED, OWED_MS)])

    def _decide_again(self, owned: Owned[S], then: Then, done: asyncio.Future[None]) -> None:
        outcome = then(code_of(done), self._clock.wall_ms())
        if self._is_current(owned):
            self._start(owned, outcome)

    # Timers

    def _set_timers(self, owned: Owned[S], ops: Iterable[TimerOp]) -> None:
        timers = self._ground.timers
        for op in ops:
            running = owned.timers.pop(op.key, None)
            if running is not None:
                timers.cancel(running)
            if isinstance(op, SetTimer):
                call = Call(lambda key=op.key: self._ring(owned, key))  # type: ignore[misc]
                owned.timers[op.key] = call
                timers.add(call, max(1, op.delay_ms))

    def _ring(self, owned: Owned[S], key: Hashable) -> None:
        owned.timers.pop(key, None)
        if key is OWED:
            self._pay(owned)
        elif self._is_current(owned):
            self._start(owned, owned.shard.on_timer(key, self._clock.wall_ms()))


def _all(futures: Iterable[asyncio.Future[None]]) -> asyncio.Future[None]:
    return cast("asyncio.Future[None]", asyncio.gather(*futures))


def code_of(done: asyncio.Future[None]) -> ErrorCode:
    """How a wait for a commit ended, as a client would hear it."""
    if done.cancelled():
        return ErrorCode.coordinator_not_available
    error = done.exception()
    if error is None:
        return ErrorCode.none
    return error.code if isinstance(error, KafkaError) else ErrorCode.unknown_server_error


def _log_failure(key: TopicPartition, done: asyncio.Future[None]) -> None:
    code = code_of(done)
    if code is not ErrorCode.none:
        log.warning("%s: a change could not be committed: %s", key, code.name)
