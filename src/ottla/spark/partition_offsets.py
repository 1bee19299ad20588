"""Partitions of a subscription and their offsets, as the driver fetches them before it plans.

Owns: turning a subscription into partitions and a point into offsets, through a `Session`.
Never: reads a record. What it finds is judged in `offsets` and cut in `plan`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from ottla.client.admin.log_dirs import describe_log_dirs
from ottla.client.admin.offsets import OffsetSpec, list_offsets
from ottla.client.admin.session import Session
from ottla.client.cluster_view import ClusterView
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError, UserError
from ottla.model.ids import TopicPartition
from ottla.spark.offsets import EARLIEST, LATEST, AtOffsets, AtTimes, Edge, Offsets, check_named
from ottla.spark.options import SourceOptions, Subscription

log = logging.getLogger(__name__)

T = TypeVar("T")
GONE: Final = frozenset({ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id})


async def partitions(session: Session, subscription: Subscription) -> list[TopicPartition]:
    """The partitions that exist now; missing topics have none.

    A query that runs outlasts a restart of the brokers (`Session.view`).
    """
    return _of(subscription, await session.view(_topics_to_list(subscription)))


def _topics_to_list(subscription: Subscription) -> Sequence[str] | None:
    """The topics to ask for; None: all."""
    if subscription.partitions:
        return sorted({tp.topic for tp in subscription.partitions})
    return None if subscription.pattern is not None else subscription.topics


def _of(subscription: Subscription, view: ClusterView) -> list[TopicPartition]:
    if subscription.partitions:
        return [tp for tp in subscription.partitions if view.partition(tp) is not None]
    if subscription.pattern is not None:
        names = [
            name
            for name, topic in sorted(view.topics.items())
            if re.search(subscription.pattern, name) and not topic.internal
        ]
    else:
        names = [name for name in subscription.topics if name in view.topics]
    return sorted(
        TopicPartition(name, partition.index)
        for name in names
        for partition in view.topics[name].partitions
    )


async def initial_partitions(session: Session, options: SourceOptions) -> list[TopicPartition]:
    """The partitions of a query that starts: topics that it names must exist.

    Partitions that it names and that do not exist are left out, as Spark's own source does.
    """
    subscription = options.subscription
    view = await _again(options, lambda: session.cluster.refresh(_topics_to_list(subscription)))
    option = "assign" if subscription.partitions else "subscribe"
    for topic in _topics_to_list(subscription) or ():
        if view.errors.get(topic) is ErrorCode.topic_authorization_failed:
            raise UserError(f"{option}: not authorized to access topic {topic}: no ACL allows it")
        if topic not in view.topics:
            raise UserError(f"{option}: there is no topic {topic}")
    partitions_found = _of(subscription, view)
    for tp in set(subscription.partitions).difference(partitions_found):
        log.warning("assign: there is no partition %s; reading the others", tp)
    return partitions_found


async def at(
    session: Session,
    options: SourceOptions,
    partitions_found: Iterable[TopicPartition],
    *,
    end: bool = False,
) -> Offsets:
    """The offsets of the point where a query begins, or where a batch ends."""
    point, option = (
        (options.end, options.end_option) if end else (options.start, options.start_option)
    )
    listed_partitions = list(partitions_found)
    if isinstance(point, Edge):
        return await ends(session, options, dict.fromkeys(listed_partitions, point.value))
    if isinstance(point, AtOffsets):
        check_named(option, point.offsets, listed_partitions)
        edges = {tp: offset for tp, offset in point.offsets.items() if offset < 0}
        return {**point.offsets, **await ends(session, options, edges)}
    if isinstance(point.times_ms, dict):
        check_named(option, point.times_ms, listed_partitions)
    return await _at_times(session, options, point, option, listed_partitions)


async def latest(
    session: Session,
    options: SourceOptions,
    partitions_found: Iterable[TopicPartition],
    now_ms: WallMs,
) -> Offsets:
    """Where readers of this isolation stop; without what is deleted at this very moment.

    With a delay they stop before the first record that is not old enough.
    """
    last = await ends(session, options, dict.fromkeys(partitions_found, LATEST), skip_gone=True)
    too_young = options.delays.youngest_ms(last, now_ms)
    if not too_young:
        return last
    due = await list_offsets(session, too_young)
    young = {tp: result.offset for tp, result in due.succeeded.items() if result.offset is not None}
    return {tp: min(offset, young.get(tp, offset)) for tp, offset in last.items()}


async def earliest(
    session: Session, options: SourceOptions, partitions_found: Iterable[TopicPartition]
) -> Offsets:
    """Where partitions begin now; without what is deleted at this very moment."""
    return await ends(session, options, dict.fromkeys(partitions_found, EARLIEST), skip_gone=True)


async def ends(
    session: Session,
    options: SourceOptions,
    specs: Mapping[TopicPartition, int],
    *,
    skip_gone: bool = False,
) -> Offsets:
    """The first or last offset of each partition, as `specs` says."""
    committed = _reads_committed(options)

    async def ask() -> Offsets:
        outcomes = await list_offsets(
            session,
            {tp: OffsetSpec(number) for tp, number in specs.items()},
            read_committed=committed,
        )
        for failure in outcomes.failed.values():
            if not (skip_gone and isinstance(failure, KafkaError) and failure.code in GONE):
                raise failure
        return {tp: result.offset or 0 for tp, result in outcomes.succeeded.items()}

    return await _again(options, ask) if specs else {}


async def end_of_logs(session: Session, options: SourceOptions, end: Offsets) -> Offsets:
    """An end that was named, no further than the logs go: for a batch that may miss records."""
    listed = await _again(
        options, lambda: list_offsets(session, dict.fromkeys(end, OffsetSpec.LATEST))
    )
    logs = {tp: result.offset or 0 for tp, result in listed.all().items()}
    for tp in sorted(end):
        if end[tp] > logs[tp]:
            log.warning(
                "data loss: %s: the log ends at %d, before %s, %d; continuing, because "
                "failOnDataLoss is false", tp, logs[tp], options.end_option, end[tp],
            )  # fmt: skip
    return {tp: min(offset, logs[tp]) for tp, offset in end.items()}


async def bytes_each(session: Session, end: Offsets) -> dict[TopicPartition, float]:
    """What an offset of each partition weighs on its leader's disk, on average."""
    starts = (await list_offsets(session, dict.fromkeys(end, OffsetSpec.EARLIEST))).succeeded
    disks = (await describe_log_dirs(session, None, list(end))).succeeded
    leader = session.cluster.metadata.leader
    return {
        tp: replica.size_bytes / max(end[tp] - (starts[tp].offset or 0), 1)
        for broker, directories in disks.items()
        for directory in directories
        for tp, replica in directory.replicas.items()
        if tp in starts and leader(tp) == broker and not replica.is_future
    }


async def _at_times(
    session: Session,
    options: SourceOptions,
    point: AtTimes,
    option: str,
    partitions_read: list[TopicPartition],
) -> Offsets:
    async def ask() -> dict[TopicPartition, int | None]:
        times = {tp: point.time_ms(tp) for tp in partitions_read}
        outcomes = await list_offsets(session, times, read_committed=_reads_committed(options))
        return {tp: result.offset for tp, result in outcomes.all().items()}

    listed = await _again(options, ask)
    late = [tp for tp in partitions_read if listed[tp] is None]
    if late and not point.latest_if_none:
        listing = ", ".join(f"{tp} ({point.time_ms(tp)})" for tp in late)
        raise UserError(
            f"{option}: no record at or after this time in {listing}. To start at their end, set "
            "startingOffsetsByTimestampStrategy to latest."
        )
    at_end = await ends(session, options, dict.fromkeys(late, LATEST))
    return {tp: at_end[tp] if (offset := listed[tp]) is None else offset for tp in partitions_read}


def _reads_committed(options: SourceOptions) -> bool:
    return options.config().isolation_level == "read_committed"


async def _again(options: SourceOptions, ask: Callable[[], Awaitable[T]]) -> T:
    """Try as often as `fetchOffset.numRetries` says; a user's mistake is one the first time.

    Any error is tried again, whoever's it is, as Spark's own source does: the tries are few.
    """
    failures = 0
    while True:
        try:
            return await ask()
        except (KafkaError, OSError):
            failures += 1
            if failures > options.offset_retries:
                raise
        await asyncio.sleep(options.offset_retry_ms / 1e3)
