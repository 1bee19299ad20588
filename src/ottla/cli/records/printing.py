"""Records to stdout, until there are no more, or enough, or somebody interrupts.

Owns: what counts as read, and committing exactly that: a record that was fetched and not reached
is read again next time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from ottla.cli.argument_parsing import pattern
from ottla.cli.records.formatting import Show
from ottla.cli.records.ranges import Batch
from ottla.client.consumer.record import Record
from ottla.client.consumer.sync import Consumer
from ottla.model.clock import Clock
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

RecordFilter: TypeAlias = Callable[[Record[bytes, bytes]], bool]
OPTION: Final = "--filter"
HEADER: Final = "header."

COMMIT_S: Final = 5.0
"""For the last commit: a broker that does not answer must not hold up the end."""


def record_filter(filters: Sequence[str]) -> RecordFilter:
    """What holds for a record that passes every filter."""
    checks = [_check(text) for text in filters]
    return lambda record: all(check(record) for check in checks)


def _check(text: str) -> RecordFilter:
    field, equals, expression = text.partition("=")
    regex = pattern(OPTION, expression)
    if equals and field == "key":
        return lambda record: _matches(regex, record.key)
    if equals and field == "value":
        return lambda record: _matches(regex, record.value)
    if equals and field.startswith(HEADER) and field != HEADER:
        name = field.removeprefix(HEADER)
        return lambda record: any(
            key == name and _matches(regex, value) for key, value in record.headers
        )
    raise UserError(f"{OPTION} {text!r}: expected key=REGEX, value=REGEX or header.NAME=REGEX")


def _matches(regex: re.Pattern[str], data: bytes | None) -> bool:
    return data is not None and regex.search(data.decode(errors="backslashreplace")) is not None


class PrintOptions(NamedTuple):
    """Which records are shown, how, and when it is enough."""

    show: Show
    accepts: RecordFilter = lambda record: True
    most: int | None = None
    silence_ms: int | None = None
    """Stop after hearing nothing for so long."""


def print_all(
    batches: Iterable[Batch],
    showing: PrintOptions,
    clock: Clock,
    *,
    commits: Consumer[bytes, bytes] | None = None,
    tell: Callable[[int], None] = lambda records_read: None,
) -> int:
    """Print what is wanted; how many records were printed. An interrupt is a good end."""
    count, records_read, heard_ms = 0, 0, clock.mono_ms()
    next_offsets: dict[TopicPartition, int] = {}
    out = sys.stdout.buffer
    try:
        for batch in batches:
            for record in batch:
                next_offsets[TopicPartition(record.topic, record.partition)] = record.offset + 1
                if showing.accepts(record):
                    out.write(showing.show(record))
                    count += 1
                    if count == showing.most:
                        return count
            out.flush()
            records_read += len(batch)
            tell(records_read)
            if batch and commits is not None:
                commits.commit_async(dict(next_offsets))
            heard_ms = clock.mono_ms() if batch else heard_ms
            if showing.silence_ms is not None and clock.mono_ms() - heard_ms >= showing.silence_ms:
                return count
    except KeyboardInterrupt:
        return count
    finally:
        out.flush()
        if commits is not None and next_offsets:
            commits.commit(next_offsets, COMMIT_S)
    return count
