"""Every setting of a topic, and the broker setting each one falls back to.

A topic stores only its overrides; all else follows the broker, at run time too.
`TopicConfig.of(broker, overrides)` combines the two.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Self

from ottla.config.broker import BrokerConfig
from ottla.config.logs import CODECS, HOUR_MS, NO_PREALLOCATION, SEGMENT_BYTES_MIN
from ottla.config.settings import (
    LONG_MAX,
    AtLeast,
    Between,
    Doc,
    Long,
    Matches,
    OneOf,
    Settings,
    TypedValue,
    Words,
)
from ottla.model.errors import UserError

_THROTTLED: Final = Matches(r"\*|[0-9]+:[0-9]+", "* or a list of partition:broker")

# The broker settings that each one falls back to, by precedence, as Kafka lists synonyms.
SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    "cleanup.policy": ("log.cleanup.policy",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.type": ("compression.type",),
    "compression.zstd.level": ("compression.zstd.level",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "flush.before.ack": ("flush.before.ack",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "internal.segment.bytes": ("internal.segment.bytes",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "max.message.bytes": ("message.max.bytes",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "min.insync.replicas": ("min.insync.replicas",),
    "preallocate": ("log.preallocate",),
    "record.validation": ("record.validation",),
    "retention.bytes": ("log.retention.bytes",),
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "segment.bytes": ("log.segment.bytes",),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
}

# These fall back to several broker settings in several units: the broker computes the value.
_DERIVED: Final[Mapping[str, str]] = {
    "flush.ms": "flush_ms",
    "retention.ms": "retention_ms",
    "segment.jitter.ms": "roll_jitter_ms",
    "segment.ms": "roll_ms",
}


class TopicConfig(Settings):
    cleanup_policy: Annotated[
        Words,
        OneOf(("compact", "delete")),
        Doc("What happens to old records: delete, compact, or both."),
    ] = ("delete",)
    compression_type: Annotated[
        str, OneOf(CODECS), Doc("Codec of stored batches; producer keeps theirs.")
    ] = "producer"
    compression_gzip_level: Annotated[
        int, Between(1, 9, (-1,)), Doc("gzip level when we compress.")
    ] = -1
    compression_lz4_level: Annotated[int, Between(1, 17), Doc("lz4 level when we compress.")] = 9
    compression_zstd_level: Annotated[
        int, Between(-131_072, 22), Doc("zstd level when we compress.")
    ] = 3
    delete_retention_ms: Annotated[
        Long, AtLeast(0), Doc("How long a tombstone stays readable.")
    ] = 86_400_000
    file_delete_delay_ms: Annotated[
        Long, AtLeast(0), Doc("Wait between a segment's rename and removal.")
    ] = 60_000
    flush_before_ack: Annotated[
        str,
        OneOf(("auto", "all", "never")),
        Doc(
            "Ours. fsync before acks=all is answered: auto when fewer than two copies are in sync."
        ),
    ] = "auto"
    flush_messages: Annotated[
        Long, AtLeast(1), Doc("Records a partition takes before a flush.")
    ] = LONG_MAX
    flush_ms: Annotated[Long, AtLeast(0), Doc("Longest time a record stays unflushed.")] = LONG_MAX
    follower_replication_throttled_replicas: Annotated[
        Words, _THROTTLED, Doc("Replicas whose fetching is throttled.")
    ] = ()
    index_interval_bytes: Annotated[
        int, AtLeast(0), Doc("Bytes of log between two index entries.")
    ] = 4_096
    internal_segment_bytes: Annotated[
        int | None, AtLeast(1), Doc("Overrides `segment.bytes` without its minimum; for tests.")
    ] = None
    leader_replication_throttled_replicas: Annotated[
        Words, _THROTTLED, Doc("Replicas whose serving of followers is throttled.")
    ] = ()
    max_compaction_lag_ms: Annotated[
        Long, AtLeast(1), Doc("Age above which the log must be compacted.")
    ] = LONG_MAX
    max_message_bytes: Annotated[int, AtLeast(0), Doc("Largest record batch accepted.")] = 1_048_588
    message_timestamp_after_max_ms: Annotated[
        Long, AtLeast(0), Doc("How far a timestamp may lie in the future.")
    ] = HOUR_MS
    message_timestamp_before_max_ms: Annotated[
        Long, AtLeast(0), Doc("How far a timestamp may lie in the past.")
    ] = LONG_MAX
    message_timestamp_type: Annotated[
        str,
        OneOf(("CreateTime", "LogAppendTime")),
        Doc("Whose clock sets timestamps: the producer's or the broker's."),
    ] = "CreateTime"
    min_cleanable_dirty_ratio: Annotated[
        float, Between(0, 1), Doc("Dirty part that makes the log worth compacting.")
    ] = 0.5
    min_compaction_lag_ms: Annotated[
        Long, AtLeast(0), Doc("Age below which a record is not compacted.")
    ] = 0
    min_insync_replicas: Annotated[
        int, AtLeast(1), Doc("Fewest in-sync copies that acks=all accepts.")
    ] = 1
    preallocate: Annotated[
        bool, Doc("Preallocate the files of new segments."), NO_PREALLOCATION
    ] = False
    record_validation: Annotated[
        str,
        OneOf(("auto", "full", "header")),
        Doc("Ours. Walk the records of each batch: auto where the native kernels are installed."),
    ] = "auto"
    retention_bytes: Annotated[
        Long, AtLeast(-1), Doc("Bytes a partition keeps; -1 for no limit.")
    ] = -1
    retention_ms: Annotated[Long, AtLeast(-1), Doc("How long records are kept; -1 for ever.")] = (
        604_800_000
    )
    segment_bytes: Annotated[
        int, AtLeast(SEGMENT_BYTES_MIN), Doc("Size at which a segment is full.")
    ] = 1_073_741_824
    segment_index_bytes: Annotated[
        int, AtLeast(4), Doc("Size at which an index fills its segment.")
    ] = 10_485_760
    segment_jitter_ms: Annotated[
        Long, AtLeast(0), Doc("Largest random time subtracted from `segment.ms`.")
    ] = 0
    segment_ms: Annotated[Long, AtLeast(1), Doc("Age at which a segment is full.")] = 604_800_000
    unclean_leader_election_enable: Annotated[
        bool, Doc("Let a replica outside the ISR lead, losing records.")
    ] = False

    @classmethod
    def of(cls, broker: BrokerConfig, overrides: Mapping[str, str] | None = None) -> Self:
        """The settings of a topic with these overrides on this broker."""
        values = {**cls._inherited_values(broker), **cls.read(overrides or {})}
        config = cls(**values)
        if config.internal_segment_bytes is not None:
            config = config.changed(segment_bytes=config.internal_segment_bytes)
        return config

    @classmethod
    def check(cls, broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
        """UserError for an unknown setting, an invalid value, or contradicting values."""
        for name in overrides:
            if name not in cls.SETTINGS:
                raise UserError(f"Unknown topic config name: {name}")
        config = cls.of(broker, overrides)
        if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
            raise UserError(
                f"min.compaction.lag.ms={config.min_compaction_lag_ms}: expected at most "
                f"max.compaction.lag.ms, {config.max_compaction_lag_ms}"
            )

    @classmethod
    def _inherited_values(cls, broker: BrokerConfig) -> dict[str, TypedValue]:
        """Only what differs from our own default, so that an instance stays small."""
        values: dict[str, TypedValue] = {}
        for name, synonyms in SYNONYMS.items():
            setting = cls.SETTINGS[name]
            attribute = _DERIVED.get(name) or broker.SETTINGS[synonyms[0]].attribute
            value = getattr(broker, attribute)
            if value != setting.default:
                values[setting.attribute] = value
        return values
