"""One partition of a fetch: the request and the result. Plain slots, created by the million.

Owns the two value classes that are handed along the read path. Never decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID, Offset, TopicId, TopicPartition
from ottla.protocol.hot import FetchedPartition

UNKNOWN_TOPIC: Final = "<unknown topic id>"
"""The topic name of a requested partition whose topic id is unknown; compared by identity."""


class PartitionFetch:
    """One partition of a fetch; in a session it lives on and changes from fetch to fetch."""

    __slots__ = (
        "key",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start",
        "max_bytes",
        "offset",
        "topic_id",
    )

    def __init__(self, key: TopicPartition, topic_id: TopicId = NO_TOPIC_ID) -> None:
        self.key = key
        self.topic_id = topic_id
        self.offset: Offset = 0
        self.log_start: Offset = -1
        self.max_bytes = 0
        self.leader_epoch = -1
        self.last_fetched_epoch = -1

    def resolve_name(self, names: Mapping[TopicId, str]) -> bool:
        """Look up the name of a topic id that was unknown; whether it is known now."""
        name = names.get(self.topic_id)
        if name is not None:
            self.key = TopicPartition(name, self.key.partition)
        return name is not None


@dataclass(slots=True)
class PartitionFetchResult:
    """One partition's part of a reply, with what a waiting fetch must remember."""

    request: PartitionFetch
    part: FetchedPartition
    size: int

    @property
    def failed(self) -> bool:
        return self.part.error_code is not ErrorCode.none
