"""What the controller tells this broker to be: leader, follower, or nothing, of which partition.

Owns the order of these changes and the highest controller epoch heard. Never decides who leads.
Work on many partitions gives the loop a turn now and then.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ottla.config.topic import TopicConfig
from ottla.delay.slices import in_slices
from ottla.log.directories.directory import LogDirectory
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.log import Log
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import (
    NO_TOPIC_ID,
    BrokerEpoch,
    ControllerEpoch,
    LeaderEpoch,
    TopicId,
    TopicPartition,
)
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.leader import LeaderAssignment

log = logging.getLogger(__name__)

TURN: Final = 16
"""Partitions changed between two turns of the loop: each may make or rename a few files."""


class PartitionTransition(NamedTuple):
    """One partition of a LeaderAndIsr."""

    key: TopicPartition
    topic_id: TopicId
    assigned: LeaderAssignment
    is_new: bool = False
    """The partition has just been made: there can be no replica of it anywhere yet."""


class PartitionStop(NamedTuple):
    """One partition of a StopReplica."""

    key: TopicPartition
    leader_epoch: LeaderEpoch
    delete: bool


class EpochFence(NamedTuple):
    """Who says so: what an old controller or an old life of this broker is refused by."""

    controller_epoch: ControllerEpoch
    broker_epoch: BrokerEpoch


class Transitions:
    def __init__(
        self,
        hosted: HostedPartitions,
        directories: LogDirectories,
        topic_config: Callable[[str], TopicConfig],
        flushes: FlushLoop,
    ) -> None:
        self._hosted = hosted
        self._flushes = flushes
        self._directories = directories
        self._topic_config = topic_config
        self.controller_epoch = ControllerEpoch(0)
        self.broker_epoch = BrokerEpoch(-1)

    def begin_life(self, epoch: BrokerEpoch) -> None:
        """Registered, for the first time or anew: what is meant for an earlier life is refused."""
        self.broker_epoch = epoch

    def check(self, fence: EpochFence) -> None:
        """Refuse what an older controller, or one that means our former life, says."""
        if fence.controller_epoch < self.controller_epoch:
            raise KafkaError(ErrorCode.stale_controller_epoch)
        if -1 < fence.broker_epoch < self.broker_epoch:
            raise KafkaError(ErrorCode.stale_broker_epoch)
        self.controller_epoch = fence.controller_epoch

    async def become(
        self, states: Iterable[PartitionTransition]
    ) -> dict[TopicPartition, ErrorCode]:
        return {one.key: self._become_one(one) async for one in in_slices(states, TURN)}

    def _become_one(self, state: PartitionTransition) -> ErrorCode:
        hosted, me = self._hosted, self._hosted.around.me
        try:
            if state.key in hosted.offline:
                return ErrorCode.kafka_storage_error
            if me not in state.assigned.replicas:
                return ErrorCode.unknown_topic_or_partition
            partition = hosted.find(state.key)
            if partition is None:
                partition = hosted.host(self._log(state))
            if not _is_same_topic(partition.log, state.topic_id):
                return ErrorCode.inconsistent_topic_id
            if state.assigned.leader_epoch <= partition.leader_epoch:
                return ErrorCode.stale_controller_epoch
            if state.assigned.leader == me:
                partition.lead(state.assigned)
                if partition.waits_for_flush:
                    self._flushes.want(partition)
            else:
                partition.follow(state.assigned)
            hosted.role_changed(partition)
        except (OSError, KafkaError) as error:
            log.error(
                "cannot open the log of %s: %s; marking the replica offline", state.key, error
            )
            hosted.lose([state.key])
            return ErrorCode.kafka_storage_error
        return ErrorCode.none

    def _log(self, state: PartitionTransition) -> Log:
        found = self._directories.get(state.key)
        if found is not None:
            return found
        if not state.is_new and len(self._directories.online) < len(self._directories.all):
            # It may well be in the directory that is offline: an empty one must not replace it.
            raise OSError(
                errno.EIO, "not creating an empty log: an offline log directory may contain it"
            )
        config = self._topic_config(state.key.topic)
        return self._directories.create(state.key, state.topic_id, config)

    async def stop(self, stops: Iterable[PartitionStop]) -> dict[TopicPartition, ErrorCode]:
        """What is deleted is so durably when this returns: each directory is synced once."""
        touched: dict[TopicPartition, list[LogDirectory]] = {}
        codes = {one.key: self._stop_one(one, touched) async for one in in_slices(stops, TURN)}
        for directory in dict.fromkeys(one for some in touched.values() for one in some):
            try:
                await self._hosted.around.off.run(directory.sync)
            except OSError as error:
                log.error(
                    "cannot sync log directory %s: %s; marking it offline", directory.path, error
                )
                self._directories.failed(directory.path, error)
                lost = [key for key, some in touched.items() if directory in some]
                self._hosted.lose(lost)
                codes |= dict.fromkeys(lost, ErrorCode.kafka_storage_error)
        return codes

    def _stop_one(
        self, one: PartitionStop, touched: dict[TopicPartition, list[LogDirectory]]
    ) -> ErrorCode:
        partition = self._hosted.find(one.key)
        if one.key in self._hosted.offline:
            return ErrorCode.kafka_storage_error
        if partition is not None and 0 <= one.leader_epoch < partition.leader_epoch:
            return ErrorCode.fenced_leader_epoch
        self._hosted.drop(one.key)
        try:
            if one.delete and self._directories.get(one.key) is not None:
                touched[one.key] = self._directories.delete(one.key)
        except OSError as error:
            log.error(
                "cannot delete the log of %s: %s; marking the replica offline", one.key, error
            )
            self._hosted.lose([one.key])
            return ErrorCode.kafka_storage_error
        return ErrorCode.none


def _is_same_topic(log: Log, topic_id: TopicId) -> bool:
    """A log without an id, from before topics had them, takes the one it is told."""
    if log.topic_id in (None, NO_TOPIC_ID):
        if topic_id != NO_TOPIC_ID:
            log.set_topic_id(topic_id)
        return True
    return topic_id in (NO_TOPIC_ID, log.topic_id)
