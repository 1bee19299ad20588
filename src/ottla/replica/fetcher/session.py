"""Incremental fetch sessions, the follower's side: a request names only what changed.

Pure: owns the positions that the leader has, and those it must be sent. Its cost follows the
partitions that changed, not those of the session. A partition that is not to be fetched for a while
is forgotten, and added again later.

A session starts with a full request, continues with changes, and starts again if the leader has
dropped it or a request may not have arrived.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from ottla.protocol.encode import Fields

NO_SESSION: Final = 0
FULL: Final = 0
MAX_EPOCH: Final = 0x7FFF_FFFF


class FetchPosition(NamedTuple):
    """From where one partition is fetched."""

    topic_id: TopicId
    offset: Offset
    last_epoch: LeaderEpoch
    """Of the last batch before `offset`."""
    leader_epoch: LeaderEpoch
    log_start: Offset
    max_bytes: int


class FollowerSession:
    """The fetch session with one leader."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = FULL
        self._positions: dict[TopicPartition, FetchPosition] = {}
        self._changed: dict[TopicPartition, None] = {}
        self._forgotten: dict[TopicPartition, TopicId] = {}

    def __len__(self) -> int:
        return len(self._positions)

    def set(self, key: TopicPartition, position: FetchPosition) -> None:
        """Fetch a partition from here in the next request."""
        before = self._positions.get(key)
        if before == position:
            return
        if before is not None and before.topic_id != position.topic_id:
            self._forgotten[key] = before.topic_id
        elif self._forgotten.get(key) == position.topic_id:
            del self._forgotten[key]
        self._positions[key] = position
        self._changed[key] = None

    def forget(self, key: TopicPartition) -> None:
        """Do not fetch a partition any more."""
        before = self._positions.pop(key, None)
        if before is not None:
            self._changed.pop(key, None)
            self._forgotten[key] = before.topic_id

    def next_request(self) -> Fields:
        """The fields of a Fetch request about partitions and the session."""
        if self._epoch == FULL:
            changed, forgotten = self._positions, {}
        else:
            changed = {key: self._positions[key] for key in self._changed}
            forgotten = self._forgotten
        self._changed, self._forgotten = {}, {}
        return {
            "session_id": self._id,
            "session_epoch": self._epoch,
            "topics": _topics(changed),
            "forgotten_topics_data": _forgotten_fields(forgotten),
        }

    def on_reply(self, code: ErrorCode, session_id: int) -> None:
        """A leader without room for a session returns id 0: the next request is full again."""
        if code is not ErrorCode.none:
            self.reset()
        elif self._epoch == FULL:
            self._id = session_id
            self._epoch = FULL if session_id == NO_SESSION else 1
        else:
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1

    def reset(self) -> None:
        """Start a new session; the leader closes the one that it may still have."""
        self._epoch = FULL


def _topics(positions: Mapping[TopicPartition, FetchPosition]) -> list[Fields]:
    topics: dict[tuple[str, TopicId], list[dict[str, object]]] = {}
    for key, position in positions.items():
        topics.setdefault((key.topic, position.topic_id), []).append(
            {
                "partition": key.partition,
                "current_leader_epoch": position.leader_epoch,
                "fetch_offset": position.offset,
                "last_fetched_epoch": position.last_epoch,
                "log_start_offset": position.log_start,
                "partition_max_bytes": position.max_bytes,
            }
        )
    return [
        {"topic": topic, "topic_id": topic_id, "partitions": partitions}
        for (topic, topic_id), partitions in topics.items()
    ]


def _forgotten_fields(forgotten: Mapping[TopicPartition, TopicId]) -> list[Fields]:
    topics: dict[tuple[str, TopicId], list[int]] = {}
    for key, topic_id in forgotten.items():
        topics.setdefault((key.topic, topic_id), []).append(key.partition)
    return [
        {"topic": topic, "topic_id": topic_id, "partitions": partitions}
        for (topic, topic_id), partitions in topics.items()
    ]
