from __future__ import annotations

import pytest

from ottla.config.logs import LogSettings
from tests.config.defaults import Row, check, marked

LONG_MAX = "9223372036854775807"
ROWS: list[Row] = [
    ("log.dirs", None, ("CFG-019",)),
    ("log.dir", "./data", ("CFG-019",)),
    ("log.dirs.accept.missing", "false", ()),
    ("num.recovery.threads.per.data.dir", "2", ("CFG-020",)),
    ("log.retention.ms", None, ("CFG-024",)),
    ("log.retention.minutes", None, ("CFG-025",)),
    ("log.retention.hours", "168", ("CFG-026",)),
    ("log.retention.bytes", "-1", ("CFG-027",)),
    ("log.retention.check.interval.ms", "300000", ("CFG-028",)),
    ("log.segment.bytes", "1073741824", ("CFG-029",)),
    ("log.roll.ms", None, ("CFG-030",)),
    ("log.roll.hours", "168", ("CFG-030",)),
    ("log.roll.jitter.ms", None, ("CFG-031",)),
    ("log.roll.jitter.hours", "0", ("CFG-031",)),
    ("message.max.bytes", "1048588", ("CFG-032",)),
    ("log.index.interval.bytes", "4096", ("CFG-033",)),
    ("log.index.size.max.bytes", "10485760", ("CFG-034",)),
    ("log.message.timestamp.type", "CreateTime", ("CFG-035",)),
    ("compression.type", "producer", ("CFG-037",)),
    ("log.cleanup.policy", "delete", ("CFG-038",)),
    ("log.cleaner.delete.retention.ms", "86400000", ("CFG-039",)),
    ("log.cleaner.min.cleanable.ratio", "0.5", ("CFG-040",)),
    ("log.cleaner.threads", "1", ("CFG-041",)),
    ("log.segment.delete.delay.ms", "60000", ("CFG-042",)),
    ("log.flush.offset.checkpoint.interval.ms", "60000", ("CFG-043",)),
    ("log.flush.start.offset.checkpoint.interval.ms", "60000", ("CFG-044",)),
    ("internal.segment.bytes", None, ()),
    ("log.preallocate", "false", ()),
    ("log.initial.task.delay.ms", "30000", ()),
    ("log.cleaner.enable", "true", ()),
    ("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", ()),
    ("log.cleaner.dedupe.buffer.size", "134217728", ()),
    ("log.cleaner.io.buffer.size", "524288", ()),
    ("log.cleaner.io.buffer.load.factor", "0.9", ()),
    ("log.cleaner.backoff.ms", "15000", ()),
    ("log.cleaner.min.compaction.lag.ms", "0", ()),
    ("log.cleaner.max.compaction.lag.ms", LONG_MAX, ()),
    ("flush.before.ack", "auto", ()),
    ("log.flush.interval.messages", LONG_MAX, ()),
    ("log.flush.interval.ms", None, ()),
    ("log.flush.scheduler.interval.ms", LONG_MAX, ()),
    ("record.validation", "auto", ()),
    ("log.message.timestamp.before.max.ms", LONG_MAX, ()),
    ("log.message.timestamp.after.max.ms", "3600000", ()),
    ("compression.gzip.level", "-1", ()),
    ("compression.lz4.level", "9", ()),
    ("compression.zstd.level", "3", ()),
    ("producer.id.expiration.ms", "86400000", ()),
    ("producer.id.expiration.check.interval.ms", "600000", ()),
    ("max.open.segments", "4096", ()),
]


@pytest.mark.parametrize(("name", "text"), marked(ROWS))
def test_a_log_setting_has_the_default_of_kafka_4_2(name: str, text: str | None) -> None:
    check(LogSettings, name, text)


def test_every_log_setting_is_in_the_table() -> None:
    assert {name for name, _, _ in ROWS} == set(LogSettings.SETTINGS)
