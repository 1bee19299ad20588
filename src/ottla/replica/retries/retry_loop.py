"""Tries again to open, load or delete the logs of replicas that wait for a passing reason to pass.

Owns the rounds of attempts. The one error that is retried is `OutOfResources`: no descriptor, no
memory, or interrupted (`log.files.SHORTAGES`). After any other the replica stays offline, as its
log directory does after an error of the disk.

A log that is available again gets no role here: the controller, which may have elected another
leader, is notified and sends LeaderAndIsr and StopReplica again. Until then the broker replies as
for a partition that it does not host.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from ottla.delay.slices import in_slices
from ottla.log.directories.directory import LogDirectory
from ottla.log.directories.log_directories import HostedLog, LogDirectories
from ottla.log.files import OutOfResources
from ottla.log.recovery import log_loader
from ottla.log.recovery.log_loader import CheckpointedState
from ottla.log.results import CorruptLog
from ottla.model.clock import MonoMs
from ottla.model.errors import KafkaError
from ottla.model.ids import Offset, TopicPartition
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.transitions import (
    TURN,
    PartialTruncation,
    PartitionStop,
    PartitionTransition,
    PendingWork,
    Transitions,
)

log = logging.getLogger(__name__)


class RetryLoop:
    def __init__(
        self,
        transitions: Transitions,
        hosted: HostedPartitions,
        directories: LogDirectories,
        checkpoint_offsets: Callable[[], Awaitable[None]],
        notify_controller: Callable[[], None],
    ) -> None:
        self._transitions = transitions
        self._retries = transitions.retries
        self._hosted = hosted
        self._directories = directories
        self._checkpoint_offsets = checkpoint_offsets
        self._notify_controller = notify_controller

    def reload_later(self, key: TopicPartition, cut_from: Offset) -> None:
        """The log was cut in part: load it again when that is possible."""
        self._transitions.retry_later(PartialTruncation(key, cut_from))

    async def run(self) -> None:
        while True:
            await self._transitions.has_retries.wait()
            while len(self._retries):
                await asyncio.sleep(max(1, self._retries.pause_ms(self._now_ms())) / 1e3)
                await self.retry()
            self._transitions.has_retries.clear()

    async def retry(self) -> None:
        """One round: the replicas that wait, until one fails again for a passing reason."""
        touched: dict[LogDirectory, None] = {}
        attempted = await self._attempt_all(touched)
        done = attempted and await self._sync(touched)
        recovered = 0
        for key, work in attempted.items() if done else ():
            if self._retries.get(key) is not work:
                continue  # the controller has sent another request
            self._retries.remove(key)
            if isinstance(work, PartitionStop) or self._directories.get(key) is not None:
                self._hosted.remove(key)
                recovered += 1
        self._retries.end_round(self._now_ms(), any_done=recovered > 0)
        if recovered:
            text = "%d replicas are available again, %d still wait for descriptors or memory"
            log.info(text, recovered, len(self._retries))
            self._notify_controller()

    async def _attempt_all(
        self, touched: dict[LogDirectory, None]
    ) -> dict[TopicPartition, PendingWork]:
        """What was done; it is durable once the directories in `touched` are synced."""
        attempted: dict[TopicPartition, PendingWork] = {}
        async for key in in_slices(self._retries, TURN, self._hosted.environment.clock):
            work = self._retries.get(key)
            if work is None:
                continue
            try:
                touched.update(dict.fromkeys(await self._attempt(work)))
                attempted[key] = work
            except OutOfResources:
                self._retries.add(key, work, self._now_ms())
                break
            except (OSError, KafkaError, CorruptLog) as error:
                log.error("replica %s stays offline: %s", key, error)
                self._retries.remove(key)
        return attempted

    async def _attempt(self, work: PendingWork) -> list[LogDirectory]:
        """The directories to be synced."""
        match work:
            case PartialTruncation():
                hosted_log = self._directories.logs.get(work.key)
                if hosted_log is not None:  # else its log directory has failed
                    await self._reload(work, hosted_log)
            case PartitionTransition():
                directory = self._transitions.open_log(work)
                if directory is not None:
                    return [directory]
                self._retries.remove(work.key)  # the controller must decide again
                self._hosted.remove(work.key)
            case PartitionStop():
                self._transitions.delete_log(work)
                return self._directories.online  # it may have been renamed the first time
        return []

    async def _reload(self, cut: PartialTruncation, hosted_log: HostedLog) -> None:
        """Load the log from its files, as after a crash: in memory it is neither whole nor cut."""
        finished = asyncio.get_running_loop().create_future()
        self._transitions.reloading[cut.key] = finished
        try:
            with self._directories.guard(hosted_log.directory, reraise=True):
                await self._load(hosted_log, cut)
        except CorruptLog:
            self._directories.logs.pop(cut.key, None)
            self._directories.quarantined[cut.key] = hosted_log.directory
            raise
        finally:
            del self._transitions.reloading[cut.key]
            finished.set_result(None)

    async def _load(self, before: HostedLog, cut: PartialTruncation) -> None:
        old = before.log
        old.release()
        flushed = min(old.recovery_point, cut.cut_from)
        load = partial(
            log_loader.load, cut.key, old.dir, old.config, self._directories.place,
            CheckpointedState(clean=False, recovery_point=flushed, start_offset=old.start_offset),
        )  # fmt: skip
        new = await self._hosted.environment.thread_pool.run(load)
        if self._directories.logs.get(cut.key) is before:
            new.set_high_watermark(old.high_watermark)
            self._directories.logs[cut.key] = HostedLog(new, before.directory)
            await self._checkpoint_offsets()  # before it is appended to, as after any truncation

    async def _sync(self, directories: Iterable[LogDirectory]) -> bool:
        """Make durable what was created or renamed; False if that must wait."""
        for directory in directories:
            try:
                await self._hosted.environment.thread_pool.run(directory.sync)
            except OutOfResources:
                return False
            except OSError as error:
                self._directories.failed(directory.path, error)
        return True

    def _now_ms(self) -> MonoMs:
        return self._hosted.environment.clock.mono_ms()
