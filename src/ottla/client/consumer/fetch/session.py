"""Incremental fetch sessions: a broker is told only what changed since the last fetch.

Pure. Owns what one broker has been told; `fetcher` asks it what to send next and tells it how that
went. A session begins with everything, goes on with changes, and begins anew when the broker has
forgotten it or nobody knows whether a request arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

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
    """What is asked of one partition."""

    topic_id: TopicId
    offset: int
    leader_epoch: int
    max_bytes: int


class FetchSession:
    """What one broker knows that we want."""

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = FULL
        self._told: dict[TopicPartition, FetchPosition] = {}

    def next(self, wanted: Mapping[TopicPartition, FetchPosition]) -> Fields:
        """The fields of a Fetch that concern partitions and the session."""
        if self.epoch == FULL:
            changed, gone = dict(wanted), {}
        else:
            changed = {tp: want for tp, want in wanted.items() if self._told.get(tp) != want}
            gone = {
                tp: told
                for tp, told in self._told.items()
                if tp not in wanted or wanted[tp].topic_id != told.topic_id
            }
        self._told = dict(wanted)
        return {
            "session_id": self.id,
            "session_epoch": self.epoch,
            "topics": _topics(changed),
            "forgotten_topics_data": _forgotten(gone),
        }

    def closing(self) -> Fields | None:
        """The fields that end the session; None when there is none."""
        if self.id == NO_SESSION:
            return None
        return {
            "session_id": self.id,
            "session_epoch": CLOSE,
            "topics": [],
            "forgotten_topics_data": [],
        }

    def on_response(self, code: ErrorCode, session_id: int) -> None:
        """A fetch was answered; brokers that have no room for a session say 0."""
        if code:
            self.lost(forgotten=code in FORGOTTEN)
            return
        if self.epoch == FULL:
            self.id = session_id
            self.epoch = FULL if session_id == NO_SESSION else 1
        else:
            self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def lost(self, *, forgotten: bool = False) -> None:
        """Begin anew; the broker closes the session that it may still have."""
        self.epoch = FULL
        if forgotten:
            self.id = NO_SESSION


def _topics(wanted: Mapping[TopicPartition, FetchPosition]) -> list[Fields]:
    """Grouped by topic, in the order given: the broker fills partitions in this order."""
    return [
        {
            "topic": topic,
            "topic_id": topic_id,
            "partitions": [_partition(tp, want) for tp, want in group],
        }
        for (topic, topic_id), group in groupby(
            wanted.items(), key=lambda each: (each[0].topic, each[1].topic_id)
        )
    ]


def _partition(tp: TopicPartition, want: FetchPosition) -> dict[str, Any]:
    return {
        "partition": tp.partition,
        "current_leader_epoch": want.leader_epoch,
        "fetch_offset": want.offset,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": want.max_bytes,
    }


def _forgotten(gone: Mapping[TopicPartition, FetchPosition]) -> Sequence[Fields]:
    grouped = groupby(sorted(gone), key=lambda tp: (tp.topic, gone[tp].topic_id))
    return [
        {"topic": topic, "topic_id": topic_id, "partitions": [tp.partition for tp in group]}
        for (topic, topic_id), group in grouped
    ]
