"""How the directories inside a log directory are called, and what their names say.

`<topic>-<partition>` holds a partition. `<topic>-<partition>.<32 hex digits>-delete` waits for its
removal, `...-future` is a copy that will take the partition's place, `...-stray` is a replica that
Kafka found to belong nowhere. Never touches a disk; the unique part is handed in.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

from ottla.model.ids import TopicPartition

MAX_NAME: Final = 255
CLUSTER_METADATA: Final = TopicPartition("__cluster_metadata", 0)


class DirectoryKind(Enum):
    """What a directory is for."""

    CURRENT = ""
    DELETED = "-delete"
    FUTURE = "-future"
    STRAY = "-stray"


class DirectoryName(NamedTuple):
    """A directory's meaning. Of a deleted partition the topic may be cut short."""

    partition: TopicPartition
    kind: DirectoryKind


_NAME: Final = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)"
    r"(?:\.[^.\s]+(?P<kind>-delete|-future|-stray))?"
)


def parse(name: str) -> DirectoryName | None:
    """What the directory of that name holds; None when it is no partition's."""
    match = _NAME.fullmatch(name)
    if match is None or int(match["partition"]) > 0x7FFF_FFFF:
        return None
    partition = TopicPartition(match["topic"], int(match["partition"]))
    return DirectoryName(partition, DirectoryKind(match["kind"] or ""))


def name_of(partition: TopicPartition, kind: DirectoryKind, unique: UUID) -> str:
    """A directory's name, cut to what file systems take.

    A copy in the making is found again by its name, so that one is never cut.
    """
    suffix = f"-{partition.partition}.{unique.hex}{kind.value}"
    room = None if kind is DirectoryKind.FUTURE else MAX_NAME - len(suffix)
    return partition.topic[:room] + suffix
