"""On which processors the kernel's sync workers run: all but one, which is left to the loop.

Owns that choice. Never moves the loop, which may run wherever the system puts it.

A sync worker wakes at every step of the disk, and where it wakes on the loop's processor the loop
has to stop for it. One processor without workers is enough: the system then prefers it for the
loop. It is the one that devices interrupt least, so that the workers are where the disk reports to
(benchmarks/transactions.py, docs/decisions/0012-flushes-through-io-uring.md).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

INTERRUPTS: Final = Path("/proc/interrupts")


def for_workers() -> frozenset[int]:
    """Where this process's sync workers should be; none: wherever they like."""
    try:
        interrupts = INTERRUPTS.read_text()
    except OSError:  # hidden from us
        interrupts = ""
    return all_but_one(frozenset(os.sched_getaffinity(0)), interrupts)


def all_but_one(allowed: frozenset[int], interrupts: str) -> frozenset[int]:
    """All that are allowed but the least interrupted; none where only one is."""
    if len(allowed) < 2:
        return frozenset()
    counts = device_interrupts(interrupts)
    return allowed - {min(sorted(allowed), key=lambda cpu: counts.get(cpu, 0))}


def device_interrupts(table: str) -> dict[int, int]:
    """By processor, from what /proc/interrupts says: a column for each, a row for each source."""
    head, _, rows = table.partition("\n")
    processors = [int(name[3:]) for name in head.split() if name[3:].isdigit()]
    counts = dict.fromkeys(processors, 0)
    for row in rows.splitlines():
        source, _, rest = row.partition(":")
        if not source.strip().isdigit():
            continue  # timers, and processors that call each other
        for processor, count in zip(processors, rest.split(), strict=False):
            if not count.isdigit():
                break  # a row that does not count by processor
            counts[processor] += int(count)
    return counts
