"""Where partitions begin and end, and which there are: what a driver asks before it plans.

Owns: turning a subscription into partitions and a point into offsets, through a `Session`.
Never: reads a record. What it finds is judged in `offsets` and cut in `plan`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from ottla.client.admin.log_dirs import describe_log_dirs
from ottla.client.admin.offsets import OffsetSpec, list_offsets
from ottla.client.admin.session import Session
from ottla.client.cluster_view import ClusterView
from ottla.model.errors import ErrorCode, KafkaError, UserError
from ottla.model.ids import TopicPartition
from ottla.spark.offsets import EARLIEST, LATEST, AtOffsets, AtTimes, Edge, Offsets, check_named
from ottla.spark.options import SourceOptions, Subscription

T = TypeVar("T")
GONE: Final = frozenset({ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id})


async def partitions(session: Session, what: Subscription) -> list[TopicPartition]:
    """The partitions that are there now; topics that are not have none.

    A query that runs outlasts a restart of the brokers (`Session.view`).
    """
    return _of(what, await session.view(_topics_to_list(what)))


def _topics_to_list(what: Subscription) -> Sequence[str] | None:
    """The topics to ask for; None: all."""
    if what.partitions:
        return sorted({tp.topic for tp in what.partitions})
    return None if what.pattern is not None else what.topics


def _of(what: Subscription, view: ClusterView) -> list[TopicPartition]:
    if what.partitions:
        return [tp for tp in what.partitions if view.partition(tp) is not None]
    if what.pattern is not None:
        names = [
            name
            for name, topic in sorted(view.topics.items())
            if re.fullmatch(what.pattern, name) and not topic.internal
        ]
    else:
        names = [name for name in what.topics if name in view.topics]
    return sorted(
        TopicPartition(name, each.index) for name in names for each in view.topics[name].partitions
    )


async def initial_partitions(session: Session, options: SourceOptions) -> list[TopicPartition]:
    """The partitions of a query that begins: what it names must be there, and a broker too."""
    what = options.subscription
    found = _of(what, await _again(options, lambda: session.cluster.refresh(_topics_to_list(what))))
    there = {tp.topic for tp in found}
    for topic in what.topics:
        if topic not in there:
            raise UserError(f"subscribe: there is no topic {topic}")
    for tp in what.partitions:
        if tp not in found:
            raise UserError(f"assign: there is no partition {tp}")
    return found


async def at(
    session: Session, options: SourceOptions, found: Iterable[TopicPartition], *, end: bool = False
) -> Offsets:
    """The offsets of the point where a query begins, or where a batch ends."""
    point, option = (
        (options.end, options.end_option) if end else (options.start, options.start_option)
    )
    there = list(found)
    if isinstance(point, Edge):
        return await ends(session, options, dict.fromkeys(there, point.value))
    if isinstance(point, AtOffsets):
        check_named(option, point.offsets, there)
        edges = {tp: offset for tp, offset in point.offsets.items() if offset < 0}
        return {**point.offsets, **await ends(session, options, edges)}
    if isinstance(point.times_ms, dict):
        check_named(option, point.times_ms, there)
    return await _at_times(session, options, point, option, there)


async def latest(
    session: Session, options: SourceOptions, found: Iterable[TopicPartition], now_ms: int
) -> Offsets:
    """Where readers of this isolation stop; without what is deleted at this very moment.

    With a delay they stop before the first record that is not old enough.
    """
    last = await ends(session, options, dict.fromkeys(found, LATEST), skip_gone=True)
    too_young = options.delays.youngest_ms(last, now_ms)
    if not too_young:
        return last
    due = await list_offsets(session, too_young)
    young = {tp: one.offset for tp, one in due.succeeded.items() if one.offset is not None}
    return {tp: min(offset, young.get(tp, offset)) for tp, offset in last.items()}


async def earliest(
    session: Session, options: SourceOptions, found: Iterable[TopicPartition]
) -> Offsets:
    """Where partitions begin now; without what is deleted at this very moment."""
    return await ends(session, options, dict.fromkeys(found, EARLIEST), skip_gone=True)


async def ends(
    session: Session,
    options: SourceOptions,
    wanted: Mapping[TopicPartition, int],
    *,
    skip_gone: bool = False,
) -> Offsets:
    """The first or last offset of each partition, as `wanted` says."""
    committed = options.config().isolation_level == "read_committed"

    async def ask() -> Offsets:
        told = await list_offsets(
            session,
            {tp: OffsetSpec(number) for tp, number in wanted.items()},
            read_committed=committed,
        )
        for failure in told.failed.values():
            if not (skip_gone and isinstance(failure, KafkaError) and failure.code in GONE):
                raise failure
        return {tp: one.offset or 0 for tp, one in told.succeeded.items()}

    return await _again(options, ask) if wanted else {}


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
    there: list[TopicPartition],
) -> Offsets:
    async def ask() -> dict[TopicPartition, int | None]:
        told = await list_offsets(session, {tp: point.time_ms(tp) for tp in there})
        return {tp: one.offset for tp, one in told.all().items()}

    listed = await _again(options, ask)
    late = [tp for tp in there if listed[tp] is None]
    if late and not point.latest_if_none:
        said = ", ".join(f"{tp} ({point.time_ms(tp)})" for tp in late)
        raise UserError(
            f"{option}: no record at or after this time in {said}. To start at their end, set "
            "startingOffsetsByTimestampStrategy to latest."
        )
    at_end = await ends(session, options, dict.fromkeys(late, LATEST))
    return {tp: at_end[tp] if (found := listed[tp]) is None else found for tp in there}


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
