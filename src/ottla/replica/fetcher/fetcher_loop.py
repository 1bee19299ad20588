"""One fetcher: a task that copies partitions from one broker.

Owns the fetch session with that broker and the order of its steps: truncate, fetch, append, flush.
Never decides what a reply means (`follower` does) and never decodes records: batches go from the
reply to the log after their checksums were compared.

Between a request and its reply a partition may have been removed, truncated or given another leader
epoch. So a reply counts only for the `FollowedPartition` that was asked for and an offset that is
still the end of its log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

from ottla.log.flush import Sync, restart_steps, truncation_steps
from ottla.log.follower_append import base_before
from ottla.log.results import FAULTS
from ottla.model.clock import MonoMs
from ottla.model.errors import Disconnect, ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.hot.fetch_response import FetchResponse, PartitionResponse, read_fetch_response
from ottla.replica.fetch.replication_quota import is_throttled
from ottla.replica.fetcher.follower import (
    Append,
    AskBounds,
    Delay,
    FollowedPartition,
    LogState,
    Restart,
    Truncate,
    first_truncation,
    on_bounds,
    on_reply,
)
from ottla.replica.fetcher.leader_requests import (
    FETCH,
    FetchLink,
    ask_bounds,
    encode_fetch,
    fetch_fields,
)
from ottla.replica.fetcher.session import FetchPosition, FollowerSession
from ottla.replica.fetcher.settings import FetcherSettings, Replication
from ottla.replica.partition import HostedPartition

log = logging.getLogger(__name__)

TURN_BYTES: Final = 1 << 20
"""Appended between two turns of the event loop."""


class FetcherLoop:
    def __init__(
        self,
        leader: BrokerId,
        connect: Callable[[], FetchLink],
        replication: Replication,
        settings: Callable[[], FetcherSettings],
    ) -> None:
        self.leader = leader
        self._connect = connect
        self._replication = replication
        self._settings = settings
        self._hosted = replication.hosted
        self._clock = replication.hosted.environment.clock
        self._session = FollowerSession()
        self._followed: dict[TopicPartition, FollowedPartition] = {}
        self._by_id: dict[tuple[str | UUID, int], FollowedPartition] = {}
        self._delayed: dict[TopicPartition, FollowedPartition] = {}
        self._truncations: dict[TopicPartition, Truncate | Restart] = {}
        self._first_replies: dict[TopicPartition, PartitionResponse] = {}
        """Replies that are appended once the log has been restarted where their batches begin: the
        leader could not be asked for that offset."""
        self._woken = asyncio.Event()
        self.stopped = False

    def __len__(self) -> int:
        return len(self._followed)

    def __iter__(self) -> Iterator[FollowedPartition]:
        return iter(self._followed.values())

    def add(self, followed: FollowedPartition) -> None:
        """Copy a partition from now on."""
        key = followed.key
        self._followed[key] = followed
        self._by_id[(followed.topic_id, key.partition)] = followed
        self._delayed[key] = followed  # its first position is taken before the next fetch
        partition = self._partition(followed)
        offset = None if partition is None else first_truncation(_state(partition))
        if offset is not None:
            self._truncations[key] = Truncate(offset)
        self._woken.set()

    def remove(self, key: TopicPartition) -> None:
        followed = self._followed.pop(key, None)
        if followed is not None:
            del self._by_id[(followed.topic_id, key.partition)]
        self._delayed.pop(key, None)
        self._truncations.pop(key, None)
        self._first_replies.pop(key, None)
        self._session.forget(key)

    def stop(self) -> None:
        """End `run` before its next request."""
        self.stopped = True
        self._woken.set()

    async def run(self) -> None:
        self._session.reset()
        while not self.stopped:
            self._woken.clear()
            try:
                await self._truncate()
                self._resume_due()
                if len(self._session):
                    await self._fetch_once()
                else:
                    await self._wait_for_work()
            except (OSError, Disconnect) as error:
                self._session.reset()
                backoff_ms = self._settings().backoff_ms
                text = "cannot fetch from broker %d: %s; retrying in %d ms"
                log.info(text, self.leader, error, backoff_ms)
                await asyncio.sleep(backoff_ms / 1e3)

    # Which partitions are fetched, and from where

    def _resume_due(self) -> None:
        """Fetch again what is no longer delayed."""
        now_ms = self._clock.mono_ms()
        due = [each for each in self._delayed.values() if not each.is_delayed(now_ms)]
        for followed in due:
            del self._delayed[followed.key]
            partition = self._partition(followed)
            if partition is None:
                self.remove(followed.key)
            else:
                self._go_on(followed, partition)

    async def _wait_for_work(self) -> None:
        until_ms = min((each.delayed_until_ms for each in self._delayed.values()), default=None)
        if until_ms is None:
            await self._woken.wait()
            return
        try:
            async with asyncio.timeout(max(0, until_ms - self._clock.mono_ms()) / 1e3):
                await self._woken.wait()
        except TimeoutError:
            return

    def _partition(self, followed: FollowedPartition) -> HostedPartition | None:
        """The partition, unless it is gone or this broker no longer follows in this epoch."""
        partition = self._hosted.find(followed.key)
        if (
            partition is None
            or partition.leadership is not None
            or partition.leader_epoch != followed.leader_epoch
            or self._followed.get(followed.key) is not followed
        ):
            return None
        return partition

    def _set_position(self, followed: FollowedPartition) -> None:
        partition = self._partition(followed)
        if partition is None:
            self.remove(followed.key)
            return
        hosted_log = partition.log
        followed.requested_offset = hosted_log.end_offset
        self._session.set(
            followed.key,
            FetchPosition(
                followed.topic_id,
                hosted_log.end_offset,
                hosted_log.epochs.latest,
                followed.leader_epoch,
                hosted_log.start_offset,
                self._settings().max_bytes,
            ),
        )

    def _delay(self, followed: FollowedPartition, until_ms: MonoMs) -> None:
        followed.delay(until_ms)
        self._session.forget(followed.key)
        self._delayed[followed.key] = followed

    # Fetching

    async def _fetch_once(self) -> None:
        settings, link = self._settings(), self._connect()
        broker, epoch = self._hosted.environment.broker_id, self._replication.broker_epoch()
        fields = {**fetch_fields(broker, epoch, settings), **self._session.next_request()}
        raw = await link.ask_encoded(
            FETCH, lambda version: encode_fetch(version, fields), settings.timeout_ms
        )
        reply = read_fetch_response(raw.version, raw.frame)
        self._replication.metrics.requests.value += 1
        self._session.on_reply(reply.error_code, reply.session_id)
        if reply.error_code is not ErrorCode.none:
            if reply.error_code not in RENEWED_AT_ONCE:
                raise ConnectionError(f"fetch refused: {reply.error_code.name}")
            return
        await self._apply(reply, link)

    async def _apply(self, reply: FetchResponse, link: FetchLink) -> None:
        out_of_range: list[FollowedPartition] = []
        to_flush: list[HostedPartition] = []
        size = 0
        for response in reply.partitions:
            followed = self._by_id.get((response.topic, response.partition))
            partition = None if followed is None else self._partition(followed)
            if followed is None or partition is None:
                continue
            if self._apply_one(followed, partition, response, out_of_range):
                to_flush.append(partition)
            size += len(response.records)
            if size >= TURN_BYTES:
                size = 0
                await asyncio.sleep(0)
        if out_of_range:
            await self._find_bounds(out_of_range, link)
        for partition in to_flush:  # the next fetch tells the leader that it is on the disk
            await self._replication.flushes.wait_until_flushed(partition, partition.log.end_offset)

    def _apply_one(
        self,
        followed: FollowedPartition,
        partition: HostedPartition,
        response: PartitionResponse,
        out_of_range: list[FollowedPartition],
    ) -> bool:
        """Handle the reply for one partition; whether it must be flushed before the next fetch."""
        code = ErrorCode(response.error_code)
        pause_ms = followed.pause_ms(code, self._settings().backoff_ms)
        retry_at_ms = MonoMs(self._clock.mono_ms() + pause_ms)
        decision = on_reply(
            followed.requested_offset, _state(partition), code, response.diverging, retry_at_ms
        )
        match decision:
            case Append():
                return self._append(followed, partition, response)
            case Truncate():
                self._session.forget(followed.key)
                self._truncations[followed.key] = decision
            case AskBounds():
                out_of_range.append(followed)
            case Delay(until_ms, code):
                if followed.refusals <= 1:
                    text = "broker %d refused the fetch of %s: %s"
                    log.info(text, self.leader, followed.key, code.name)
                self._delay(followed, until_ms)
            case _:
                pass
        return False

    def _append(
        self, followed: FollowedPartition, partition: HostedPartition, response: PartitionResponse
    ) -> bool:
        if self._hosted.on_first_append is not None and len(response.records):
            self._hosted.announce_first_append()
        before = partition.log.end_offset
        if before == partition.log.start_offset and len(response.records):
            base = base_before(response.records, before)
            if base is not None:
                self._session.forget(followed.key)
                self._truncations[followed.key] = Restart(base)
                self._first_replies[followed.key] = response
                return False
        try:
            appended = partition.append_as_follower(
                response.records, response.high_watermark, response.log_start
            )
        except KafkaError as refusal:
            self._on_corrupt(followed, before, refusal)
            return False
        except FAULTS as fault:
            self._hosted.fail(partition, fault)
            return False
        end = partition.log.end_offset
        followed.on_appended(end, response.high_watermark)
        if appended is not None:
            self._count_throttled(partition, appended.size)
            self._replication.metrics.on_appended(partition, appended.size)
            if appended.rolled:
                self._replication.flushes.request(partition)
        self._hosted.waiting.fetch.check(followed.key)
        self._go_on(followed, partition)
        return end > before and partition.log.config.flush_before_ack == "all"

    def _count_throttled(self, partition: HostedPartition, size: int) -> None:
        if self._is_throttled(partition):
            self._replication.quota.record(size, self._clock.mono_ms())

    def _is_throttled(self, partition: HostedPartition) -> bool:
        replicas = partition.log.config.follower_replication_throttled_replicas
        return is_throttled(replicas, partition.key, self._hosted.environment.broker_id)

    def _go_on(self, followed: FollowedPartition, partition: HostedPartition) -> None:
        """Fetch a partition further: at once, or if it lags when its throttle allows."""
        now_ms = self._clock.mono_ms()
        delay_ms = 0
        if followed.lag > 0 and self._is_throttled(partition):
            delay_ms = self._replication.quota.delay_ms(now_ms)
        if delay_ms:
            self._delay(followed, MonoMs(now_ms + delay_ms))
        else:
            self._set_position(followed)

    def _on_corrupt(self, followed: FollowedPartition, offset: int, refusal: KafkaError) -> None:
        backoff_ms = self._settings().backoff_ms
        repeated = followed.on_corrupt(offset, self._clock.mono_ms(), backoff_ms)
        log.log(
            logging.ERROR if repeated else logging.WARNING,
            "records of %s from offset %d, sent by broker %d, cannot be appended: %s%s",
            followed.key,
            offset,
            self.leader,
            refusal,
            "; the partition is marked failed" if repeated else "",
        )
        self._delay(followed, followed.delayed_until_ms)

    # Out of range

    async def _find_bounds(self, out_of_range: list[FollowedPartition], link: FetchLink) -> None:
        """Ask where the leader's logs begin and end, and decide where to go on."""
        broker_id, timeout_ms = self._hosted.environment.broker_id, self._settings().timeout_ms
        bounds = await ask_bounds(link, broker_id, out_of_range, timeout_ms)
        for followed in out_of_range:
            partition = self._partition(followed)
            if partition is None:
                continue
            leader_bounds = bounds.get(followed.key)
            if leader_bounds is None:
                self._delay(followed, MonoMs(self._clock.mono_ms() + self._settings().backoff_ms))
                continue
            decision = on_bounds(_state(partition), leader_bounds)
            log.warning(
                "%s: offset %d is not in the log of broker %d, which has %d to %d",
                followed.key,
                partition.log.end_offset,
                self.leader,
                *leader_bounds,
            )
            if isinstance(decision, Truncate | Restart):
                self._session.forget(followed.key)
                self._truncations[followed.key] = decision
            else:
                self._delay(followed, MonoMs(self._clock.mono_ms() + self._settings().backoff_ms))

    # Truncation

    async def _truncate(self) -> None:
        """Perform the truncations that were decided; then lower recovery points, all at once."""
        if not self._truncations:
            return
        truncations, self._truncations = self._truncations, {}
        for key, decision in truncations.items():
            followed = self._followed.get(key)
            partition = None if followed is None else self._partition(followed)
            if followed is None or partition is None:
                continue
            _log_truncation(partition, decision.offset)
            await self._truncate_one(partition, decision)
            self._delayed[key] = followed
        await self._replication.checkpoint_offsets()
        await self._append_first_replies()

    async def _append_first_replies(self) -> None:
        replies, self._first_replies = self._first_replies, {}
        for key, response in replies.items():
            followed = self._followed.get(key)
            partition = None if followed is None else self._partition(followed)
            if followed is None or partition is None:
                continue
            if self._append(followed, partition, response):
                end = partition.log.end_offset
                await self._replication.flushes.wait_until_flushed(partition, end)

    async def _truncate_one(self, partition: HostedPartition, decision: Truncate | Restart) -> None:
        steps = truncation_steps if isinstance(decision, Truncate) else restart_steps
        syncs: Iterator[Sync] = steps(partition.log, decision.offset)
        partition.truncating = finished = asyncio.get_running_loop().create_future()
        try:
            for sync in syncs:
                await self._hosted.environment.thread_pool.run(sync)
        except FAULTS as fault:
            if self._hosted.find(partition.key) is partition:
                cut_from = decision.offset if isinstance(decision, Truncate) else 0
                self._hosted.fail_truncation(partition, fault, cut_from)
        finally:
            partition.truncating = None
            finished.set_result(None)
        self._hosted.waiting.fetch.check(partition.key)


RENEWED_AT_ONCE: Final = frozenset(
    {
        ErrorCode.fetch_session_id_not_found,
        ErrorCode.invalid_fetch_session_epoch,
        ErrorCode.fetch_session_topic_id_error,
    }
)
"""The leader has dropped the session: the next request is full, and starts another."""


def _log_truncation(partition: HostedPartition, offset: int) -> None:
    """Below the high watermark only after an unclean election, or because a leader lost records."""
    hosted_log, lost = partition.log, ""
    watermark = hosted_log.high_watermark
    if offset < min(watermark, hosted_log.end_offset):
        lost = f", below its high watermark {watermark}: the leader lacks committed records"
    log.log(
        logging.WARNING if lost else logging.INFO,
        "truncating %s from %d to %d%s",
        partition.key,
        hosted_log.end_offset,
        offset,
        lost,
    )


def _state(partition: HostedPartition) -> LogState:
    hosted_log = partition.log
    return LogState(
        hosted_log.start_offset,
        hosted_log.end_offset,
        hosted_log.high_watermark,
        hosted_log.epochs,
    )
