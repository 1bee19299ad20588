"""The encoding of a follower's Fetch request, from version 15 on.

A follower sends one for every batch that it copies. Tests compare it with kio. Hot:
benchmarks/cluster.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Any, Final, TypeAlias

from ottla.protocol.hot.parts import INT32, put_count, topic_bytes

FIRST: Final = 15
"""Of these versions: topics by id, and the replica's state as a tagged field."""

_HEAD: Final = Struct(">iiibii")  # wait, least and most bytes, isolation, session, its epoch
_PARTITION: Final = Struct(">iiqiqib")  # its last byte: no tagged fields
_STATE: Final = Struct(">bbbiqb")  # tagged fields: one, its tag and size, replica, epoch, no tags
_STATE_TAG: Final = 1
_STATE_BYTES: Final = 13

FollowerFetch: TypeAlias = Mapping[str, Any]
"""The fields of a request, as `protocol/encode.py` takes them."""


def encode_follower_fetch(fields: FollowerFetch) -> bytes:
    """The body of the request; its rack is empty."""
    out = bytearray(
        _HEAD.pack(
            fields["max_wait"],
            fields["min_bytes"],
            fields["max_bytes"],
            fields["isolation_level"],
            fields["session_id"],
            fields["session_epoch"],
        )
    )
    _put_topics(out, fields["topics"])
    _put_forgotten(out, fields["forgotten_topics_data"])
    out.append(1)  # no rack
    state = fields["replica_state"]
    epoch = state["replica_epoch"]
    out += _STATE.pack(1, _STATE_TAG, _STATE_BYTES, state["replica_id"], epoch, 0)
    return bytes(out)


def _put_topics(out: bytearray, topics: Sequence[Mapping[str, Any]]) -> None:
    put_count(out, len(topics), True)
    for topic in topics:
        out += topic_bytes(topic["topic_id"], True)
        partitions = topic["partitions"]
        put_count(out, len(partitions), True)
        for each in partitions:
            out += _PARTITION.pack(
                each["partition"],
                each["current_leader_epoch"],
                each["fetch_offset"],
                each["last_fetched_epoch"],
                each["log_start_offset"],
                each["partition_max_bytes"],
                0,
            )
        out.append(0)


def _put_forgotten(out: bytearray, topics: Sequence[Mapping[str, Any]]) -> None:
    put_count(out, len(topics), True)
    for topic in topics:
        out += topic_bytes(topic["topic_id"], True)
        put_count(out, len(topic["partitions"]), True)
        for index in topic["partitions"]:
            out += INT32.pack(index)
        out.append(0)
