"""Opening every log of a broker at its start.

Owns what becomes of each. Never serves anything: after `load` each partition is open, or known to
be offline.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeAlias

from ottla.broker.log_tasks import Pace, in_chunks
from ottla.config.dynamic import DynamicConfig
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.log import CorruptLog, Log
from ottla.log.recovery.startup_scan import Loading, Pending
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)

Loaded: TypeAlias = tuple[Pending, Log | CorruptLog | OSError]


async def load(
    directories: LogDirectories, config: DynamicConfig, pace: Pace
) -> list[TopicPartition]:
    """Load what the directories hold; the partitions that must stay offline."""
    corrupt: list[TopicPartition] = []
    loading = Loading(directories)

    def load_chunk(chunk: Sequence[Pending]) -> list[Loaded]:
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

    await in_chunks("opened", loading.pending(), load_chunk, admit, pace)
    loading.ready()
    return corrupt


def _load(pending: Pending, config: DynamicConfig) -> Loaded:
    try:
        return pending, pending.load(config.topic(pending.partition.topic))
    except (CorruptLog, OSError) as fault:
        return pending, fault
