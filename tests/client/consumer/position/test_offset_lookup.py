from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.consumer.position.offset_lookup import EpochEnd
from ottla.client.errors import KafkaError
from ottla.client.offsets import OffsetAndMetadata, OffsetAndTimestamp
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.client.consumer.scripted import (
    LIST_OFFSETS,
    OFFSET_FETCH,
    Rig,
    committed,
    offsets_at,
    view,
)

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.spec("CON-10")
async def test_each_leader_is_asked_about_its_own_partitions() -> None:
    rig = Rig()
    topic = rig.cluster.metadata.topics["t"]
    second = topic.partitions[1]._replace(leader=2)
    changed = topic._replace(partitions=(topic.partitions[0], second))
    object.__setattr__(rig.cluster.metadata, "topics", {"t": changed})
    rig.cluster.script[LIST_OFFSETS] = offsets_at(5, 1)
    found = await rig.core.lookup.offsets_at({ONE: 1_000, TWO: -1}, 1_000)
    assert found == {ONE: OffsetAndTimestamp(5, -1, 1), TWO: OffsetAndTimestamp(5, -1, 1)}
    assert {asked.node for asked in rig.cluster.asked} == {1, 2}


async def test_what_failed_in_passing_is_asked_again_and_nothing_else() -> None:
    rig = Rig()

    def one_fails(fields: Any) -> Any:
        reply = offsets_at(5)(fields)
        reply.topics[0].partitions[1].error_code = ErrorCode.not_leader_or_follower
        return reply

    rig.cluster.script[LIST_OFFSETS] = [one_fails, offsets_at(7)]
    found = await rig.core.lookup.offsets_at({ONE: -2, TWO: -2}, 10_000)
    assert [found[tp].offset for tp in (ONE, TWO) if found[tp]] == [5, 7]  # type: ignore[union-attr]
    assert rig.cluster.refreshed == [frozenset({"t"})]


async def test_a_topic_that_is_not_there_is_refused_in_time() -> None:
    rig = Rig()
    with pytest.raises(TimeoutError, match="unknown_topic_or_partition"):
        await rig.core.lookup.offsets_at({TopicPartition("gone", 0): -2}, 1_000)


async def test_what_is_committed_is_asked_of_the_coordinator() -> None:
    rig = Rig()
    rig.cluster.script[OFFSET_FETCH] = committed({ONE: (7, 3)})
    found = await rig.core.lookup.committed_offsets(GroupMetadata("g", 4, "me"), [ONE, TWO])
    assert found == {ONE: OffsetAndMetadata(7, "", 3)}
    asked = rig.cluster.last(OFFSET_FETCH)
    assert asked["require_stable"] is True
    assert (asked["groups"][0]["member_id"], asked["groups"][0]["member_epoch"]) == ("me", 4)


async def test_an_old_coordinator_answers_for_the_one_group() -> None:
    rig = Rig()
    each = SimpleNamespace(
        partition_index=0,
        error_code=ErrorCode.none,
        committed_offset=7,
        committed_leader_epoch=-1,
        metadata=None,
    )
    old = SimpleNamespace(
        groups=(),
        error_code=ErrorCode.none,
        topics=[SimpleNamespace(name="t", partitions=[each])],
    )
    rig.cluster.script[OFFSET_FETCH] = [
        old,
        SimpleNamespace(groups=(), error_code=ErrorCode.not_coordinator, topics=()),
    ]
    group = GroupMetadata("g")
    assert await rig.core.lookup.committed_offsets(group, [ONE]) == {ONE: OffsetAndMetadata(7)}
    with pytest.raises(KafkaError):
        await rig.core.lookup.committed_offsets(group, [ONE])
    assert rig.cluster.forgotten == 1


async def test_where_an_epoch_ends() -> None:
    rig = Rig()
    found, failed = await rig.core.lookup.epoch_ends({ONE: 3})
    assert (found, failed) == ({ONE: EpochEnd(3, 1 << 40)}, {})
    rig.cluster.metadata = view({"t": 1}, leader=-1)
    found, failed = await rig.core.lookup.epoch_ends({ONE: 3})
    assert found == {}
    error = failed[ONE]
    assert isinstance(error, KafkaError) and error.code is ErrorCode.leader_not_available
