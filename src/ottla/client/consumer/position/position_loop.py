"""Finds the position of each assigned partition: committed, reset, or validated.

Owns the steps of a partition from assigned to readable. Never fetches, never commits. A result
is discarded if the position has changed meanwhile (a seek, a new assignment).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.consumer.errors import LogTruncated, NoOffset
from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.consumer.metadata_watch import MetadataWatch
from ottla.client.consumer.position.offset_lookup import EpochEnd, OffsetLookup, is_retriable_lookup
from ottla.client.consumer.position.partition_position import (
    UNKNOWN,
    AssignedPartition,
    PositionPhase,
)
from ottla.client.consumer.position.reset_policy import ResetPolicy
from ottla.client.consumer.subscription import Subscriptions
from ottla.client.errors import KafkaError, UnsupportedVersion
from ottla.model.ids import TopicPartition


class PositionStep(NamedTuple):
    """Callbacks: a round is done, a look-up failed for good."""

    positions_found: Callable[[], None]
    failed: Callable[[Exception], None]


class PositionLoop:
    """The task that finds missing positions."""

    def __init__(
        self,
        cluster: Cluster,
        subscriptions: Subscriptions,
        watch: MetadataWatch,
        lookup: OffsetLookup,
        policy: ResetPolicy,
    ) -> None:
        self._cluster = cluster
        self._subscriptions = subscriptions
        self._watch = watch
        self._lookup = lookup
        self._policy = policy
        self._group: Callable[[], GroupMetadata | None] = lambda: None
        self._callbacks = PositionStep(lambda: None, lambda error: None)
        self._work = asyncio.Event()

    def attach(self, group: Callable[[], GroupMetadata | None], callbacks: PositionStep) -> None:
        """Set the group whose offsets are looked up, and the callbacks."""
        self._group = group
        self._callbacks = callbacks

    def wake(self) -> None:
        """Some partition may have no position."""
        self._work.set()

    async def run(self) -> None:
        failures = 0
        while True:
            await self._work.wait()
            self._work.clear()
            settled = await self._round()
            self._callbacks.positions_found()
            failures = 0 if settled else failures + 1
            if not settled:
                self._work.set()
                await asyncio.sleep(self._cluster.backoff.after(failures) / 1e3)
                self._watch.request_refresh()

    async def _round(self) -> bool:
        """One attempt for every partition without a position; whether all succeeded."""
        try:
            await self._ensure_metadata(
                part.tp for part in self._subscriptions if part.phase != PositionPhase.READY
            )
            good = await self._find_committed(self._in(PositionPhase.UNPLACED))
            good &= await self._reset(self._in(PositionPhase.RESETTING))
            good &= await self._validate(self._in(PositionPhase.UNCHECKED))
        except OSError:
            return False
        return good

    def _in(self, phase: PositionPhase) -> list[AssignedPartition]:
        return [part for part in self._subscriptions if part.phase is phase and not part.leaving]

    async def _ensure_metadata(self, partitions: Iterable[TopicPartition]) -> None:
        view = self._watch.view
        if any(view.partition(tp) is None for tp in partitions):
            await self._watch.refresh()

    async def _find_committed(self, unplaced: list[AssignedPartition]) -> bool:
        """Start from the committed offset, else as `auto.offset.reset` says."""
        if not unplaced:
            return True
        before = {part.tp: part.version for part in unplaced}
        group = self._group()
        committed = {}
        if group is not None:
            try:
                committed = await self._lookup.committed_offsets(group, before)
            except KafkaError as error:
                return self._report(error)
        without_offset: list[AssignedPartition] = []
        for part in unplaced:
            if part.version != before[part.tp] or part.phase is not PositionPhase.UNPLACED:
                continue
            offset = committed.get(part.tp)
            if offset is not None:
                part.seek(offset.offset, offset.leader_epoch)
            elif not self._by_policy(part):
                without_offset.append(part)
        fault = NoOffset(frozenset(part.tp for part in without_offset))
        for part in without_offset:
            part.mark_stuck(fault)
        return True

    def _by_policy(self, part: AssignedPartition) -> bool:
        timestamp = self._policy.timestamp(self._cluster.clock.wall_ms())
        if timestamp is None:
            return False
        part.reset(timestamp)
        return True

    async def _reset(self, resetting: list[AssignedPartition]) -> bool:
        if not resetting:
            return True
        before = {part.tp: part.version for part in resetting}
        offsets, failed = await self._lookup.times({part.tp: part.reset_to for part in resetting})
        beyond: list[AssignedPartition] = []
        for part in resetting:
            if part.tp not in offsets or part.version != before[part.tp]:
                continue
            offset = offsets[part.tp]
            if offset is None:  # no record at or after it: read new records
                beyond.append(part)
                continue
            part.seek(offset.offset)
            part.epoch = offset.leader_epoch
        for part in beyond:
            part.reset(UNKNOWN)  # the end of the log
        good = all([self._report(error) for error in failed.values()])  # every error is reported
        return good and not beyond

    async def _validate(self, unchecked: list[AssignedPartition]) -> bool:
        if not unchecked:
            return True
        before = {part.tp: part.version for part in unchecked}
        epoch_ends, failed = await self._lookup.epoch_ends(
            {part.tp: part.epoch for part in unchecked}
        )
        good = True
        for part in unchecked:
            if part.version != before[part.tp]:
                continue
            error = failed.get(part.tp)
            if isinstance(error, UnsupportedVersion):
                part.mark_valid()  # an old broker cannot validate it
            elif error is not None:
                good &= self._report(error)
            else:
                self._apply_epoch_end(part, epoch_ends[part.tp])
        return good

    def _apply_epoch_end(self, part: AssignedPartition, end: EpochEnd) -> None:
        """Accept the position if the leader's log has it; else continue from the divergence."""
        unknown = end.end < 0 or end.leader_epoch < 0
        if not unknown and end.end >= part.offset:
            part.mark_valid()
        elif self._policy.name == "none":
            part.mark_stuck(LogTruncated(part.tp, part.offset, end.end))
        elif unknown:
            self._by_policy(part)
        else:
            part.seek(end.end)
            part.epoch = end.leader_epoch

    def _report(self, error: KafkaError | OSError) -> bool:
        """Whether the error is final, and reported to the user.

        An error of the group coordinator (committed offsets) or of a partition's leader (all else).
        """
        if is_retriable_lookup(error):
            return False
        self._callbacks.failed(error)
        return True
