from __future__ import annotations

import pytest

from ottla.config.logs import LogSettings
from tests.config.defaults import Row, check, marked, spec

LONG_MAX = "9223372036854775807"
ROWS: list[Row] = [
    ("log.dirs", None, "start", spec("CFG-019")),
    ("log.dir", "./data", "start", spec("CFG-019")),
    ("log.dirs.accept.missing", "false", "start"),
    ("log.dirs.umask", "077", "start"),
    ("num.recovery.threads.per.data.dir", "2", "cluster", spec("CFG-020")),
    ("log.retention.ms", None, "cluster", spec("CFG-024")),
    ("log.retention.minutes", None, "start", spec("CFG-025")),
    ("log.retention.hours", "168", "start", spec("CFG-026")),
    ("log.retention.bytes", "-1", "cluster", spec("CFG-027")),
    ("log.retention.check.interval.ms", "300000", "start", spec("CFG-028")),
    ("log.segment.bytes", "1073741824", "cluster", spec("CFG-029")),
    ("log.roll.ms", None, "cluster", spec("CFG-030")),
    ("log.roll.hours", "168", "start", spec("CFG-030")),
    ("log.roll.jitter.ms", None, "cluster", spec("CFG-031")),
    ("log.roll.jitter.hours", "0", "start", spec("CFG-031")),
    ("message.max.bytes", "1048588", "cluster", spec("CFG-032")),
    ("log.index.interval.bytes", "4096", "cluster", spec("CFG-033")),
    ("log.index.size.max.bytes", "10485760", "cluster", spec("CFG-034")),
    ("log.message.timestamp.type", "CreateTime", "cluster", spec("CFG-035")),
    ("compression.type", "producer", "cluster", spec("CFG-037")),
    ("log.cleanup.policy", "delete", "cluster", spec("CFG-038")),
    ("log.cleaner.delete.retention.ms", "86400000", "cluster", spec("CFG-039")),
    ("log.cleaner.min.cleanable.ratio", "0.5", "cluster", spec("CFG-040")),
    ("log.cleaner.threads", "1", "cluster"),
    ("log.segment.delete.delay.ms", "60000", "cluster", spec("CFG-042")),
    ("log.flush.offset.checkpoint.interval.ms", "60000", "start", spec("CFG-043")),
    ("log.flush.start.offset.checkpoint.interval.ms", "60000", "start", spec("CFG-044")),
    ("internal.segment.bytes", None, "start"),
    ("log.preallocate", "false", "cluster"),
    ("log.initial.task.delay.ms", "30000", "start"),
    ("log.cleaner.enable", "true", "start"),
    ("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", "cluster"),
    ("log.cleaner.dedupe.buffer.size", "134217728", "cluster"),
    ("log.cleaner.io.buffer.size", "524288", "cluster"),
    ("log.cleaner.io.buffer.load.factor", "0.9", "cluster"),
    ("log.cleaner.backoff.ms", "15000", "cluster"),
    ("log.cleaner.min.compaction.lag.ms", "0", "cluster"),
    ("log.cleaner.max.compaction.lag.ms", LONG_MAX, "cluster"),
    ("flush.before.ack", "auto", "cluster"),
    ("log.flush.interval.messages", LONG_MAX, "cluster"),
    ("log.flush.interval.ms", None, "cluster"),
    ("log.flush.scheduler.interval.ms", LONG_MAX, "start"),
    ("record.validation", "auto", "cluster"),
    ("log.message.timestamp.before.max.ms", LONG_MAX, "cluster"),
    ("log.message.timestamp.after.max.ms", "3600000", "cluster"),
    ("compression.gzip.level", "-1", "cluster"),
    ("compression.lz4.level", "9", "cluster"),
    ("compression.zstd.level", "3", "cluster"),
    ("producer.id.expiration.ms", "86400000", "cluster"),
    ("producer.id.expiration.check.interval.ms", "600000", "start"),
]


@pytest.mark.parametrize(("name", "text", "scope"), marked(ROWS))
def test_a_log_setting_has_the_default_of_kafka_4_2(
    name: str, text: str | None, scope: str
) -> None:
    check(LogSettings, name, text, scope)


def test_every_log_setting_is_in_the_table() -> None:
    assert {row[0] for row in ROWS} == set(LogSettings.SETTINGS)
