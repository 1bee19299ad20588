"""Incremental fetch sessions: a request contains only what changed since the last fetch.

Pure. Owns what was sent to one broker; `fetcher` gets the next request from it and passes on the
outcome. A session starts with a full request, continues with changes, and restarts if the broker
has dropped it or a request may not have arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicId, TopicPartition
from ottla.protocol.encode import Fields

NO_SESSION: Final = 0
FULL: Final = 0
CLOSE: Final = -1
MAX_EPOCH: Final = 0x7FFF_FFFF

FORGOTTEN: Final = frozenset(
    {
        ErrorCode.fetch_session_id_not_found,
        ErrorCode.invalid_fetch_session_epoch,
        ErrorCode.fetch_session_topic_id_error,
        ErrorCode.unknown_topic_id,
        ErrorCode.inconsistent_topic_id,
    }
)


class FetchPosition(NamedTuple):
    """The fetch of one partition."""

    topic_id: TopicId
    offset: int
    leader_epoch: int
    max_bytes: int


class FetchSession:
    """The fetch session with one broker."""

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = FULL
        self._sent_positions: dict[TopicPartition, FetchPosition] = {}

    def next_request(self, positions: Mapping[TopicPartition, FetchPosition]) -> Fields:
        """The fields of a Fetch request about partitions and the session."""
        if self.epoch == FULL:
            changed, forgotten = dict(positions), {}
        else:
            changed = {
                tp: position
                for tp, position in positions.items()
                if self._sent_positions.get(tp) != position
            }
            forgotten = {
                tp: sent
                for tp, sent in self._sent_positions.items()
                if tp not in positions or positions[tp].topic_id != sent.topic_id
            }
        self._sent_positions = dict(positions)
        return {
            "session_id": self.id,
            "session_epoch": self.epoch,
            "topics": _topics(changed),
            "forgotten_topics_data": _forgotten_topics(forgotten),
        }

    def close_request(self) -> Fields | None:
        """The fields that close the session; None if there is none."""
        if self.id == NO_SESSION:
            return None
        return {
            "session_id": self.id,
            "session_epoch": CLOSE,
            "topics": [],
            "forgotten_topics_data": [],
        }

    def on_response(self, code: ErrorCode, session_id: int) -> None:
        """Handle a response; brokers without room for a session return id 0."""
        if code:
            self.reset(forgotten=code in FORGOTTEN)
            return
        if self.epoch == FULL:
            self.id = session_id
            self.epoch = FULL if session_id == NO_SESSION else 1
        else:
            self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def reset(self, *, forgotten: bool = False) -> None:
        """Start a new session; the broker closes the one that it may still have."""
        self.epoch = FULL
        if forgotten:
            self.id = NO_SESSION


def _topics(positions: Mapping[TopicPartition, FetchPosition]) -> list[Fields]:
    """Grouped by topic, in the order given: the broker fills partitions in this order."""
    return [
        {
            "topic": topic,
            "topic_id": topic_id,
            "partitions": [_partition(tp, position) for tp, position in group],
        }
        for (topic, topic_id), group in groupby(
            positions.items(), key=lambda item: (item[0].topic, item[1].topic_id)
        )
    ]


def _partition(tp: TopicPartition, position: FetchPosition) -> dict[str, object]:
    return {
        "partition": tp.partition,
        "current_leader_epoch": position.leader_epoch,
        "fetch_offset": position.offset,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": position.max_bytes,
    }


def _forgotten_topics(forgotten: Mapping[TopicPartition, FetchPosition]) -> Sequence[Fields]:
    grouped = groupby(sorted(forgotten), key=lambda tp: (tp.topic, forgotten[tp].topic_id))
    return [
        {"topic": topic, "topic_id": topic_id, "partitions": [tp.partition for tp in group]}
        for (topic, topic_id), group in grouped
    ]
