"""A follower's Fetch request is encoded as kio would."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.encode import writer_of
from ottla.protocol.hot.fetch_request import FIRST, encode_follower_fetch
from ottla.protocol.schema import MessageKind, message, versions

FETCH = 1
VERSIONS = [version for version in versions(FETCH) if version >= FIRST]

int8, int32, int64 = (st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 32, 64))
times = st.integers(0, 2**31 - 1)
ids = st.uuids().filter(lambda id: id != UUID(int=0))
partitions = st.fixed_dictionaries(
    {
        "partition": int32,
        "current_leader_epoch": int32,
        "fetch_offset": int64,
        "last_fetched_epoch": int32,
        "log_start_offset": int64,
        "partition_max_bytes": int32,
    }
)
requests = st.fixed_dictionaries(
    {
        "replica_id": st.just(-1),
        "replica_state": st.fixed_dictionaries(
            {"replica_id": st.integers(0, 2**31 - 1), "replica_epoch": int64}
        ),
        "max_wait": times,
        "min_bytes": int32,
        "max_bytes": int32,
        "isolation_level": int8,
        "session_id": int32,
        "session_epoch": int32,
        "topics": st.lists(
            st.fixed_dictionaries(
                {"topic": st.just(""), "topic_id": ids, "partitions": st.lists(partitions)}
            ),
            max_size=3,
        ),
        "forgotten_topics_data": st.lists(
            st.fixed_dictionaries(
                {"topic": st.just(""), "topic_id": ids, "partitions": st.lists(int32)}
            ),
            max_size=3,
        ),
        "rack_id": st.just(""),
    }
)


@pytest.mark.parametrize("version", VERSIONS)
@given(fields=requests)
def test_it_is_the_same_as_by_the_schema(version: int, fields: dict[str, Any]) -> None:
    assert encode_follower_fetch(fields) == _by_schema(version, fields)


def test_a_request_of_many_partitions_is_the_same() -> None:
    each = {
        "current_leader_epoch": 3, "fetch_offset": 2**40, "last_fetched_epoch": 2,
        "log_start_offset": 7, "partition_max_bytes": 1 << 20,
    }  # fmt: skip
    topics = [
        {"topic": "", "topic_id": UUID(int=number), "partitions": [
            {"partition": index, **each} for index in range(300)
        ]}
        for number in range(1, 200)
    ]  # fmt: skip
    fields = {
        "replica_id": -1, "replica_state": {"replica_id": 2, "replica_epoch": 5},
        "max_wait": 500, "min_bytes": 1, "max_bytes": 10 << 20, "isolation_level": 0,
        "session_id": 9, "session_epoch": 4, "topics": topics,
        "forgotten_topics_data": [
            {"topic": "", "topic_id": UUID(int=1), "partitions": list(range(500))}
        ],
        "rack_id": "",
    }  # fmt: skip
    assert encode_follower_fetch(fields) == _by_schema(VERSIONS[-1], fields)


def _by_schema(version: int, fields: dict[str, Any]) -> bytes:
    out = bytearray()
    writer_of(message(FETCH, version, MessageKind.REQUEST))(fields, out)
    return bytes(out)
