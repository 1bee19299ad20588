"""Settings of the logs on disk: segments, retention, compaction, flushes, checkpoints."""

from typing import Annotated, Final

from ottla.config.settings import (
    LONG_MAX,
    AtLeast,
    Between,
    Doc,
    Dynamic,
    Long,
    Matches,
    NoEffect,
    OneOf,
    Settings,
    Words,
)

CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
SEGMENT_BYTES_MIN = 1024 * 1024
HOUR_MS = 3_600_000
NO_PREALLOCATION: Final = NoEffect("files grow as they are written")


class LogSettings(Settings):
    log_dirs: Annotated[Words | None, Doc("Directories of the logs; `log.dir` when not set.")] = (
        None
    )
    log_dir: Annotated[Words, Doc("Directory of the logs; `log.dirs` takes precedence.")] = (
        "./data",
    )
    log_dirs_accept_missing: Annotated[
        bool, Doc("Ours. Start even if a log directory is missing, without its records.")
    ] = False
    log_dirs_umask: Annotated[
        str,
        Matches(r"0?[0-7]{3}", "three octal digits, such as 077 or 027"),
        Doc("Ours. Permissions that files and directories of the broker do not get."),
    ] = "077"
    num_recovery_threads_per_data_dir: Annotated[
        int, AtLeast(1), Dynamic("cluster"), Doc("Threads per directory for loading and recovery.")
    ] = 2

    log_segment_bytes: Annotated[
        int, AtLeast(SEGMENT_BYTES_MIN), Dynamic("cluster"), Doc("Size at which a segment is full.")
    ] = 1_073_741_824
    internal_segment_bytes: Annotated[
        int | None, AtLeast(1), Doc("Overrides `log.segment.bytes` without its minimum; for tests.")
    ] = None
    log_roll_ms: Annotated[
        Long | None, AtLeast(1), Dynamic("cluster"), Doc("Age at which a segment is full.")
    ] = None
    log_roll_hours: Annotated[
        int, AtLeast(1), Doc("The same in hours; `log.roll.ms` takes precedence.")
    ] = 168
    log_roll_jitter_ms: Annotated[
        Long | None, AtLeast(0), Dynamic("cluster"), Doc("Largest random time subtracted from it.")
    ] = None
    log_roll_jitter_hours: Annotated[
        int, AtLeast(0), Doc("The same in hours; `log.roll.jitter.ms` takes precedence.")
    ] = 0
    log_index_size_max_bytes: Annotated[
        int, AtLeast(4), Dynamic("cluster"), Doc("Size at which an index fills its segment.")
    ] = 10_485_760
    log_index_interval_bytes: Annotated[
        int, AtLeast(0), Dynamic("cluster"), Doc("Bytes of log between two index entries.")
    ] = 4_096
    log_preallocate: Annotated[
        bool,
        Dynamic("cluster"),
        Doc("Preallocate the files of new segments."),
        NO_PREALLOCATION,
    ] = False

    log_retention_ms: Annotated[
        Long | None,
        AtLeast(1, (-1,)),
        Dynamic("cluster"),
        Doc("How long records are kept; -1 for ever."),
    ] = None
    log_retention_minutes: Annotated[
        int | None,
        AtLeast(1, (-1,)),
        Doc("The same in minutes; `log.retention.ms` takes precedence."),
    ] = None
    log_retention_hours: Annotated[
        int, AtLeast(1, (-1,)), Doc("The same in hours; the other two take precedence.")
    ] = 168
    log_retention_bytes: Annotated[
        Long, AtLeast(-1), Dynamic("cluster"), Doc("Bytes a partition keeps; -1 for no limit.")
    ] = -1
    log_retention_check_interval_ms: Annotated[
        Long, AtLeast(1), Doc("How often retention looks for segments to delete.")
    ] = 300_000
    log_initial_task_delay_ms: Annotated[
        Long, AtLeast(0), Doc("Wait after the start before background work on logs begins.")
    ] = 30_000
    log_segment_delete_delay_ms: Annotated[
        Long, AtLeast(0), Dynamic("cluster"), Doc("Wait between a segment's rename and removal.")
    ] = 60_000
    log_cleanup_policy: Annotated[
        Words,
        OneOf(("compact", "delete")),
        Dynamic("cluster"),
        Doc("What happens to old records: delete, compact, or both."),
    ] = ("delete",)

    log_cleaner_enable: Annotated[bool, Doc("Enable log compaction.")] = True
    log_cleaner_threads: Annotated[
        int,
        AtLeast(0),
        Dynamic("cluster"),
        Doc("Logs compacted at the same time."),
        NoEffect("one log is compacted at a time"),
    ] = 1
    log_cleaner_io_max_bytes_per_second: Annotated[
        float,
        AtLeast(1),
        Dynamic("cluster"),
        Doc("Most bytes a second compaction reads and writes."),
    ] = 1.7976931348623157e308
    log_cleaner_dedupe_buffer_size: Annotated[
        Long, AtLeast(1), Dynamic("cluster"), Doc("Memory for the map of keys.")
    ] = 134_217_728
    log_cleaner_io_buffer_size: Annotated[
        int,
        AtLeast(0),
        Dynamic("cluster"),
        Doc("Memory for reading and writing segments."),
        NoEffect("segments are copied in steps of one size"),
    ] = 524_288
    log_cleaner_io_buffer_load_factor: Annotated[
        float, Between(0, 1), Dynamic("cluster"), Doc("How full the map of keys may get.")
    ] = 0.9
    log_cleaner_backoff_ms: Annotated[
        Long, AtLeast(0), Dynamic("cluster"), Doc("Wait when there is nothing to compact.")
    ] = 15_000
    log_cleaner_min_cleanable_ratio: Annotated[
        float,
        Between(0, 1),
        Dynamic("cluster"),
        Doc("Dirty part that makes a log worth compacting."),
    ] = 0.5
    log_cleaner_delete_retention_ms: Annotated[
        Long, AtLeast(0), Dynamic("cluster"), Doc("How long a tombstone stays readable.")
    ] = 86_400_000
    log_cleaner_min_compaction_lag_ms: Annotated[
        Long, AtLeast(0), Dynamic("cluster"), Doc("Age below which a record is not compacted.")
    ] = 0
    log_cleaner_max_compaction_lag_ms: Annotated[
        Long, AtLeast(1), Dynamic("cluster"), Doc("Age above which a log must be compacted.")
    ] = LONG_MAX

    flush_before_ack: Annotated[
        str,
        OneOf(("auto", "all", "never")),
        Dynamic("cluster"),
        Doc(
            "Ours. fsync before acks=all is answered: auto when fewer than two copies are in sync."
        ),
    ] = "auto"
    log_flush_interval_messages: Annotated[
        Long, AtLeast(1), Dynamic("cluster"), Doc("Records a partition takes before a flush.")
    ] = LONG_MAX
    log_flush_interval_ms: Annotated[
        Long | None, AtLeast(0), Dynamic("cluster"), Doc("Longest time a record stays unflushed.")
    ] = None
    log_flush_scheduler_interval_ms: Annotated[
        Long, AtLeast(1), Doc("How often logs are checked for that; also its default.")
    ] = LONG_MAX
    log_flush_offset_checkpoint_interval_ms: Annotated[
        int, AtLeast(0), Doc("How often the recovery points are written.")
    ] = 60_000
    log_flush_start_offset_checkpoint_interval_ms: Annotated[
        int, AtLeast(0), Doc("How often the log start offsets are written.")
    ] = 60_000

    message_max_bytes: Annotated[
        int, AtLeast(0), Dynamic("cluster"), Doc("Largest record batch accepted.")
    ] = 1_048_588
    record_validation: Annotated[
        str,
        OneOf(("auto", "full", "header")),
        Dynamic("cluster"),
        Doc("Ours. Walk the records of each batch: auto where the native kernels are installed."),
    ] = "auto"
    log_message_timestamp_type: Annotated[
        str,
        OneOf(("CreateTime", "LogAppendTime")),
        Dynamic("cluster"),
        Doc("Whose clock sets timestamps: the producer's or the broker's."),
    ] = "CreateTime"
    log_message_timestamp_before_max_ms: Annotated[
        Long, AtLeast(0), Dynamic("cluster"), Doc("How far a timestamp may lie in the past.")
    ] = LONG_MAX
    log_message_timestamp_after_max_ms: Annotated[
        Long, AtLeast(0), Dynamic("cluster"), Doc("How far a timestamp may lie in the future.")
    ] = HOUR_MS
    compression_type: Annotated[
        str,
        OneOf(CODECS),
        Dynamic("cluster"),
        Doc("Codec of stored batches; producer keeps theirs."),
    ] = "producer"
    compression_gzip_level: Annotated[
        int, Between(1, 9, (-1,)), Dynamic("cluster"), Doc("gzip level when we compress.")
    ] = -1
    compression_lz4_level: Annotated[
        int, Between(1, 17), Dynamic("cluster"), Doc("lz4 level when we compress.")
    ] = 9
    compression_zstd_level: Annotated[
        int, Between(-131_072, 22), Dynamic("cluster"), Doc("zstd level when we compress.")
    ] = 3

    producer_id_expiration_ms: Annotated[
        int, AtLeast(1), Dynamic("cluster"), Doc("Idle time after which a producer id expires.")
    ] = 86_400_000
    producer_id_expiration_check_interval_ms: Annotated[
        int, AtLeast(1), Doc("How often idle producers are removed.")
    ] = 600_000
