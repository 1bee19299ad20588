"""The options of `format("ottla")`: those of Spark's Kafka connector, and a few of ours.

Owns: names, defaults, precedence, and the error for each bad one, which names the option and comes
before anything is read or written. Never: connects.

Names are compared without regard to case, as Spark does. What begins with `kafka.` goes to the
client; the settings that the source or the sink decides itself are refused there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ottla.config.client import ConsumerConfig, ProducerConfig
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition
from ottla.spark.delays import Delays, parse_delays
from ottla.spark.offsets import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    AtOffsets,
    AtTimes,
    Edge,
    Point,
    check_order,
    parse_offsets,
    parse_partitions,
    parse_times,
)
from ottla.spark.parsed_options import ParsedOptions, parse_duration_ms
from ottla.spark.plan import Cut, Limits
from ottla.spark.rows import COLUMNS, HEADERS

SOURCE: Final = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    "startingOffsetsByTimestampStrategy",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "endingOffsets",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "minRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "maxBytesPerTrigger",
    "includeHeaders",
    "columns",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "partition.metadata.cache.ttl.ms",
    "ottla.delay",
    "ottla.until",
)
SINK: Final = ("topic", "includeHeaders", "ottla.exactly.once", "ottla.sink")
SOURCE_OWNS: Final[Mapping[str, str]] = {
    "auto.offset.reset": "use the option startingOffsets",
    "enable.auto.commit": "the query's progress is committed when a batch is done",
    "key.deserializer": "keys are bytes; use DataFrame functions",
    "value.deserializer": "values are bytes; use DataFrame functions",
    "interceptor.classes": "an interceptor could change what is read",
    "group.instance.id": "a query joins no group",
}
SINK_OWNS: Final[Mapping[str, str]] = {
    "key.serializer": "keys are written as bytes",
    "value.serializer": "values are written as bytes",
    "transactional.id": "the sink names its transactions itself",
    "transaction.timeout.ms": "a prepared transaction has no timeout",
    "transaction.two.phase.commit.enable": "use the option ottla.exactly.once",
    "interceptor.classes": "an interceptor could change what is written",
    "partitioner.class": "write each row's partition in the column partition",
}

UNTIL: Final = "ottla.until"
"""Where a stream ends: the offsets of every partition that it reads, as JSON."""
DEFAULT_GROUP_PREFIX: Final = "ottla-spark-source"
POLL_TIMEOUT_MS: Final = 120_000


@dataclass(frozen=True)
class Subscription:
    """Which partitions are read: all of some topics, of all that match, or those named."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True)
class SourceOptions:
    """All that a reader is told. Plain data: it travels to other machines."""

    subscription: Subscription
    start: Point
    end: Point = Edge.LATEST
    cut: Cut = field(default_factory=Cut)
    limits: Limits = field(default_factory=Limits)
    columns: tuple[str, ...] = COLUMNS
    fail_on_data_loss: bool = True
    group: str = ""
    poll_timeout_ms: int = POLL_TIMEOUT_MS
    offset_retries: int = 3
    offset_retry_ms: int = 10
    partitions_cached_ms: int = 0
    delays: Delays = field(default_factory=Delays)
    start_option: str = "startingOffsets"
    end_option: str = "endingOffsets"
    client: Mapping[str, str] = field(default_factory=dict)

    def config(self) -> ConsumerConfig:
        """The client's settings, under Kafka's names."""
        return ConsumerConfig.from_options({}, self.client)


@dataclass(frozen=True)
class SinkOptions:
    """All that a writer is told."""

    topic: str | None
    exactly_once: bool
    name: str | None = None
    """Of the sink within its query, so that a batch write in foreachBatch counts as one."""
    client: Mapping[str, str] = field(default_factory=dict)

    def config(self, **more: object) -> ProducerConfig:
        return ProducerConfig.from_options(more, self.client)


def any_source(options: Mapping[str, str]) -> SourceOptions:
    """What can be checked before it is known whether a batch or a stream is read."""
    parsed = ParsedOptions(options, SOURCE + SINK)
    start, start_option = _start(parsed, Edge.EARLIEST)
    end, end_option = _end(parsed)
    limits = _streaming(parsed)
    return _source(parsed, start, start_option, end=end, end_option=end_option, limits=limits)


def batch_source(options: Mapping[str, str]) -> SourceOptions:
    """Options of `spark.read`; those of streaming are of no effect there, as in Spark's own."""
    parsed = ParsedOptions(options, SOURCE + SINK)
    _streaming(parsed)  # of no effect, and yet not to be wrong
    for name in ("ottla.delay", UNTIL):
        if parsed.text(name) is not None:
            raise UserError(f"{name}: only for streaming queries")
    start, start_option = _start(parsed, Edge.EARLIEST)
    end, end_option = _end(parsed)
    _refuse_edge(start, start_option, Edge.LATEST, LATEST, "a batch begins before the latest")
    _refuse_edge(end, end_option, Edge.EARLIEST, EARLIEST, "a batch ends after the earliest")
    check_order(start, end, start_option, end_option)
    return _source(parsed, start, start_option, end=end, end_option=end_option)


def stream_source(options: Mapping[str, str]) -> SourceOptions:
    """Options of `spark.readStream`."""
    parsed = ParsedOptions(options, SOURCE + SINK)
    for name in ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"):
        if parsed.text(name) is not None:
            raise UserError(f"{name}: only for batch queries")
    start, start_option = _start(parsed, Edge.LATEST)
    text = parsed.text(UNTIL)
    end = Edge.LATEST if text is None else AtOffsets(parse_offsets(UNTIL, text))
    limits = _streaming(parsed)
    return _source(parsed, start, start_option, end=end, end_option=UNTIL, limits=limits)


def sink(options: Mapping[str, str]) -> SinkOptions:
    """Options of `write` and `writeStream`."""
    parsed = ParsedOptions(options, SINK + SOURCE)
    topic = parsed.text("topic")
    if topic is not None and not topic:
        raise UserError("topic='': expected the name of a topic, or a column named topic")
    sink_options = SinkOptions(
        topic,
        exactly_once=parsed.flag("ottla.exactly.once", True),
        name=_sink_name(parsed),
        client=parsed.client(SINK_OWNS, "sink", ProducerConfig),
    )
    _as_option(sink_options.config)
    return sink_options


def _sink_name(parsed: ParsedOptions) -> str | None:
    text = parsed.text("ottla.sink")
    if text is not None and re.fullmatch(r"[A-Za-z0-9_.]+", text) is None:
        raise UserError(f"ottla.sink={text!r}: expected letters, digits, _ and .")
    return text


def _source(
    parsed: ParsedOptions,
    start: Point,
    start_option: str,
    *,
    end: Point = Edge.LATEST,
    end_option: str = "endingOffsets",
    limits: Limits | None = None,
) -> SourceOptions:
    subscription = _subscription(parsed)
    client = {
        "isolation.level": "read_committed",
        **parsed.client(SOURCE_OWNS, "source", ConsumerConfig),
    }
    source_options = SourceOptions(
        subscription,
        start,
        end,
        cut=_cut(parsed),
        limits=limits or Limits(),
        columns=_columns(parsed),
        fail_on_data_loss=parsed.flag("failOnDataLoss", True),
        group=_group(parsed, client, subscription),
        poll_timeout_ms=parsed.number("kafkaConsumer.pollTimeoutMs") or POLL_TIMEOUT_MS,
        offset_retries=_or(parsed.number("fetchOffset.numRetries", least=0), 3),
        offset_retry_ms=_or(parsed.number("fetchOffset.retryIntervalMs", least=0), 10),
        partitions_cached_ms=_cached_ms(parsed),
        delays=_delays(parsed, subscription),
        start_option=start_option,
        end_option=end_option,
        client=client,
    )
    _as_option(source_options.config)
    return source_options


def _as_option(build: Callable[[], object]) -> None:
    """A client's complaint under the name the user wrote, `kafka.` included."""
    try:
        build()
    except UserError as mistake:
        raise UserError(f"kafka.{mistake}") from None


def _subscription(parsed: ParsedOptions) -> Subscription:
    ways = {"subscribe": _topics, "subscribePattern": _pattern, "assign": _assigned_partitions}
    named = [name for name in ways if parsed.text(name) is not None]
    if len(named) != 1:
        present = " and ".join(named) if named else "none of them"
        raise UserError(f"expected one of subscribe, subscribePattern and assign, got {present}")
    text = parsed.text(named[0])
    assert text is not None
    return ways[named[0]](named[0], text)


def _topics(name: str, text: str) -> Subscription:
    topics = tuple(dict.fromkeys(topic.strip() for topic in text.split(",") if topic.strip()))
    if not topics:
        raise UserError(f"{name}={text!r}: expected topics, separated by commas")
    return Subscription(topics=topics)


def _pattern(name: str, text: str) -> Subscription:
    try:
        re.compile(text)
    except re.error as mistake:
        raise UserError(f"{name}={text!r}: expected a regular expression: {mistake}") from None
    if not text:
        raise UserError(f"{name}='': expected a regular expression")
    return Subscription(pattern=text)


def _assigned_partitions(name: str, text: str) -> Subscription:
    return Subscription(partitions=parse_partitions(name, text))


def _start(parsed: ParsedOptions, default: Edge) -> tuple[Point, str]:
    """`startingTimestamp`, before `startingOffsetsByTimestamp`, before `startingOffsets`."""
    name = "startingOffsetsByTimestampStrategy"
    strategy = (parsed.text(name) or "error").lower()
    if strategy not in ("error", "latest"):
        raise UserError(f"{name}={strategy!r}: expected error or latest")
    names = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
    return _point(parsed, names, default, latest_if_none=strategy == "latest")


def _end(parsed: ParsedOptions) -> tuple[Point, str]:
    names = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
    return _point(parsed, names, Edge.LATEST, latest_if_none=True)


def _point(
    parsed: ParsedOptions, names: tuple[str, str, str], default: Edge, *, latest_if_none: bool
) -> tuple[Point, str]:
    everywhere, by_partition, offsets = names
    time_ms = parsed.number(everywhere, least=MAX_TIMESTAMP)
    if time_ms is not None:
        return AtTimes(time_ms, latest_if_none), everywhere
    times = parsed.read(by_partition, parse_times)
    if times is not None:
        return AtTimes(times, latest_if_none), by_partition
    text = parsed.text(offsets)
    if text is None:
        return default, offsets
    if text.upper() in Edge.__members__:
        return Edge[text.upper()], offsets
    if not text.startswith("{"):
        raise UserError(f"{offsets}={text!r}: expected earliest, latest or JSON")
    return AtOffsets(parse_offsets(offsets, text)), offsets


def _refuse_edge(point: Point, option: str, edge: Edge, number: int, why: str) -> None:
    if point is edge:
        raise UserError(f"{option}={edge.name.lower()}: {why}")
    if isinstance(point, AtOffsets):
        for tp, offset in sorted(point.offsets.items()):
            if offset == number:
                raise UserError(f"{option}: {number} ({edge.name.lower()}) for {tp}: {why}")


def _streaming(parsed: ParsedOptions) -> Limits:
    most, least = parsed.number("maxOffsetsPerTrigger"), parsed.number("minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise UserError(f"minOffsetsPerTrigger={least} is more than maxOffsetsPerTrigger={most}")
    delay_ms = parsed.read("maxTriggerDelay", parse_duration_ms)
    limits = Limits(most, least, max_bytes=parsed.number("maxBytesPerTrigger"))
    return limits if delay_ms is None else Limits(most, least, delay_ms, limits.max_bytes)


def _cut(parsed: ParsedOptions) -> Cut:
    return Cut(
        parsed.number("minPartitions"),
        parsed.number("maxRecordsPerPartition"),
        parsed.number("minRecordsPerPartition") or Cut.together,
    )


def _delays(parsed: ParsedOptions, subscription: Subscription) -> Delays:
    delays = parsed.read("ottla.delay", parse_delays) or Delays()
    delays.check("ottla.delay", subscription.topics or [tp.topic for tp in subscription.partitions])
    return delays


def _columns(parsed: ParsedOptions) -> tuple[str, ...]:
    headers = parsed.flag("includeHeaders", False)
    every = (*COLUMNS, HEADERS) if headers else COLUMNS
    text = parsed.text("columns")
    if text is None:
        return every
    by_name = {name.lower(): name for name in (*COLUMNS, HEADERS)}
    chosen: list[str] = []
    for word in (word.strip() for word in text.split(",")):
        name = by_name.get(word.lower())
        if name is None:
            raise UserError(f"columns: {word!r}: expected one of {', '.join(by_name.values())}")
        if name in chosen:
            raise UserError(f"columns: {name} is listed more than once")
        chosen.append(name)
    if HEADERS in chosen and parsed.text("includeHeaders") is not None and not headers:
        raise UserError("columns: headers requires includeHeaders=true")
    return tuple(chosen)


def _group(parsed: ParsedOptions, client: Mapping[str, str], subscription: Subscription) -> str:
    """The group under which progress is committed: the same after a restart.

    Where the user named none, it follows from what is read. Two queries that read the same should
    be told apart by `kafka.group.id` or `groupIdPrefix`.
    """
    named = client.get("group.id")
    if named is not None:
        if not named:
            raise UserError("kafka.group.id='': expected the name of a group")
        return named
    prefix = parsed.text("groupIdPrefix")
    if prefix is not None and not prefix:
        raise UserError("groupIdPrefix='': expected the beginning of a group's name")
    read = repr((subscription.topics, subscription.pattern, subscription.partitions)).encode()
    return f"{prefix or DEFAULT_GROUP_PREFIX}-{hashlib.sha256(read).hexdigest()[:12]}"


def _cached_ms(parsed: ParsedOptions) -> int:
    name = "partition.metadata.cache.ttl.ms"
    ttl_ms = parsed.number(name, least=-1)
    if ttl_ms == 0:
        raise UserError(f"{name}='0': expected a time in milliseconds, or -1 for none")
    return 0 if ttl_ms is None else max(ttl_ms, 0)


def _or(number: int | None, default: int) -> int:
    return default if number is None else number
