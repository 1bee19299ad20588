"""Sending commits, one request after the other.

Owns the task that commits, its retries and its deadlines. The order of commits is decided in
`commit_queue`. User callbacks are not called here: they run in the user's next call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import groupby
from typing import Final, Protocol

from ottla.client.cluster import Cluster, ConnectionLane, CoordinatorKind
from ottla.client.consumer.errors import CommitFailed
from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.consumer.group.commit_queue import (
    MOVED_ON,
    Commit,
    CommitQueue,
    Positions,
    classify,
    merge_offsets,
)
from ottla.client.consumer.group.error_reactions import ErrorReaction
from ottla.client.errors import KafkaError
from ottla.client.retry import is_retriable
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.encode import Fields
from ottla.protocol.schema import KioMessage

OFFSET_COMMIT: Final = 8
BY_NAME: Final = 9


class Committer(Protocol):
    """What the commit loop needs of the group."""

    def commit_metadata(self) -> GroupMetadata | None:
        """The member to commit as; None if it is no longer a member."""
        ...

    def on_commit_error(self, after: ErrorReaction) -> None: ...


class CommitLoop:
    """The task that commits."""

    def __init__(
        self, cluster: Cluster, group: Committer, on_committed: Callable[[Positions], None]
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._on_committed = on_committed
        self._queue = CommitQueue()
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.commits = 0

    def start(
        self, offsets: Positions, done: Callable[[Exception | None], None], *, is_retried: bool
    ) -> None:
        """Queue a commit."""
        self._queue.add(Commit(offsets, done, is_retried))
        self._idle.clear()
        self._work.set()

    async def commit(self, offsets: Positions, timeout_ms: int) -> None:
        """Commit and wait; raises the error, or TimeoutError."""
        if not offsets:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self.start(offsets, done, is_retried=True)
        try:
            async with asyncio.timeout(timeout_ms / 1e3):
                await future
        except TimeoutError:
            raise TimeoutError(f"offset commit timed out after {timeout_ms} ms") from None

    async def settle(self, timeout_ms: int) -> None:
        """Wait until no commit is in flight, or until the timeout."""
        try:
            async with asyncio.timeout(timeout_ms / 1e3):
                await self._idle.wait()
        except TimeoutError:
            self._queue.give_up(
                TimeoutError("the consumer was closed before the offsets were committed")
            )

    async def run(self) -> None:
        while True:
            commits = self._queue.next()
            if not commits:
                self._idle.set()
                self._work.clear()
                await self._work.wait()
                continue
            pause_ms = self._cluster.backoff.after(max(commit.failures for commit in commits))
            if pause_ms:
                await asyncio.sleep(pause_ms / 1e3)
            await self._send(commits)

    async def _send(self, commits: list[Commit]) -> None:
        group = self._group.commit_metadata()
        if group is None:
            lost = CommitFailed(ErrorCode.unknown_member_id, MOVED_ON)
            self._queue.fail(commits, lost, retriable=False)
            return
        offsets = merge_offsets(commits)
        try:
            codes = await self._ask(group, offsets)
        except (KafkaError, OSError) as fault:
            # The coordinator was not found or not reached; its error codes are handled below.
            self._cluster.forget_coordinator(CoordinatorKind.GROUP, group.group_id)
            self._queue.fail(commits, fault, retriable=is_retriable(fault))
            return
        reaction, error = classify(codes)
        if error is None:
            self.commits += 1
            self._on_committed(offsets)
            for commit in commits:
                commit.on_done(None)
            return
        if reaction is ErrorReaction.FIND_COORDINATOR:
            self._cluster.forget_coordinator(CoordinatorKind.GROUP, group.group_id)
        if reaction in (ErrorReaction.JOIN_AGAIN, ErrorReaction.JOIN_ANEW):
            self._group.on_commit_error(reaction)
        retriable = reaction in (ErrorReaction.FIND_COORDINATOR, ErrorReaction.TRY_LATER)
        self._queue.fail(commits, error, retriable=retriable)

    async def _ask(
        self, group: GroupMetadata, offsets: Positions
    ) -> dict[TopicPartition, ErrorCode]:
        node = await self._cluster.coordinator(CoordinatorKind.GROUP, group.group_id)
        reply: KioMessage = await self._cluster.ask(
            node,
            OFFSET_COMMIT,
            _fields(group, offsets),
            at_most=BY_NAME,
            lane=ConnectionLane.COORDINATION,
        )
        return {
            TopicPartition(topic.name, partition.partition_index): partition.error_code
            for topic in reply.topics
            for partition in topic.partitions
        }


def _fields(group: GroupMetadata, offsets: Positions) -> Fields:
    generation = group.generation_id if group.member_id else -1
    return {
        "group_id": group.group_id,
        "generation_id_or_member_epoch": generation,
        "member_id": group.member_id,
        "group_instance_id": group.group_instance_id,
        "retention_time": -1,
        "topics": [
            {
                "name": topic,
                "partitions": [
                    {
                        "partition_index": tp.partition,
                        "committed_offset": offsets[tp].offset,
                        "committed_leader_epoch": offsets[tp].leader_epoch,
                        "committed_metadata": offsets[tp].metadata,
                    }
                    for tp in partitions
                ],
            }
            for topic, partitions in groupby(sorted(offsets), key=lambda tp: tp.topic)
        ],
    }
