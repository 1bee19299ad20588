"""Records to stdout, until there are no more, or enough, or somebody interrupts.

Owns: what counts as read, and committing exactly that: a record that was fetched and not reached
is read again next time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.cli.records.filters import Wanted
from ottla.cli.records.formatting import Show
from ottla.cli.records.ranges import Batch
from ottla.client.consumer.sync import Consumer
from ottla.model.clock import Clock
from ottla.model.ids import TopicPartition


class PrintOptions(NamedTuple):
    """Which records are shown, how, and when it is enough."""

    show: Show
    wanted: Wanted = lambda record: True
    most: int | None = None
    silence_ms: int | None = None
    """Stop after hearing nothing for so long."""


def print_all(
    batches: Iterable[Batch],
    showing: PrintOptions,
    clock: Clock,
    *,
    commits: Consumer[bytes, bytes] | None = None,
    tell: Callable[[int], None] = lambda done: None,
) -> int:
    """Print what is wanted; how many records were printed. An interrupt is a good end."""
    count, done, heard_ms = 0, 0, clock.mono_ms()
    read: dict[TopicPartition, int] = {}
    out = sys.stdout.buffer
    try:
        for batch in batches:
            for record in batch:
                read[TopicPartition(record.topic, record.partition)] = record.offset + 1
                if showing.wanted(record):
                    out.write(showing.show(record))
                    count += 1
                    if count == showing.most:
                        return count
            out.flush()
            done += len(batch)
            tell(done)
            if batch and commits is not None:
                commits.commit_async(dict(read))
            heard_ms = clock.mono_ms() if batch else heard_ms
            if showing.silence_ms is not None and clock.mono_ms() - heard_ms >= showing.silence_ms:
                return count
    except KeyboardInterrupt:
        return count
    finally:
        out.flush()
        if commits is not None and read:
            commits.commit(read)
    return count
