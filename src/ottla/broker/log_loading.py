"""Opening every log of a broker at its start.

Owns what becomes of each. Never serves anything: after `load` each partition is open, or known to
be offline.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeAlias

from ottla.broker.log_tasks import ProgressInterval, run_in_chunks
from ottla.config.dynamic import DynamicConfig
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.log import CorruptLog, Log
from ottla.log.recovery.startup_scan import PendingLog, StartupScan
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)

Loaded: TypeAlias = tuple[PendingLog, Log | CorruptLog | OSError]


async def load(
    directories: LogDirectories, config: DynamicConfig, pace: ProgressInterval
) -> list[TopicPartition]:
    """Load what the directories hold; the partitions that must stay offline."""
    corrupt: list[TopicPartition] = []
    loading = StartupScan(directories)

    def load_chunk(chunk: Sequence[PendingLog]) -> list[Loaded]:
        return [_load(pending, config) for pending in chunk]

    def admit(loaded: Loaded) -> None:
        what, result = loaded
        if isinstance(result, Log):
            loading.admit(what, result)
        elif isinstance(result, CorruptLog):
            log.error("%s stays offline: %s", what.partition, result)
            corrupt.append(what.partition)
        else:
            directories.failed(what.directory.path, result)

    await run_in_chunks("opened", loading.pending(), load_chunk, admit, pace)
    loading.ready()
    return corrupt


def _load(pending: PendingLog, config: DynamicConfig) -> Loaded:
    try:
        return pending, pending.load(config.topic(pending.partition.topic))
    except (CorruptLog, OSError) as fault:
        return pending, fault
