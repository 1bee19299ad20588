from __future__ import annotations

import pytest

from ottla.client.consumer import subscribing
from ottla.client.consumer.group import offset_commits
from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.errors import KafkaError
from ottla.client.offsets import OffsetAndMetadata
from ottla.model.errors import ErrorCode, UserError
from ottla.model.ids import TopicPartition
from tests.client.consumer.batches import batch
from tests.client.consumer.scripted import OFFSET_COMMIT, OFFSET_FETCH, Rig, commits, committed

HERE = TopicPartition("t", 0)


@pytest.mark.spec("CON-40", "CON-43")
async def test_without_offsets_the_positions_are_committed() -> None:
    rig = Rig(group_id="g", enable_auto_commit=False)
    rig.cluster.logs[HERE] = [batch(0, 8, leader_epoch=0)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await rig.poll()
        await offset_commits.commit(core, None, 1_000)
    sent = rig.cluster.last(OFFSET_COMMIT)
    assert sent["topics"][0]["partitions"][0]["committed_offset"] == 8
    assert sent["topics"][0]["partitions"][0]["committed_leader_epoch"] == 0
    assert (sent["member_id"], sent["generation_id_or_member_epoch"]) == ("", -1)


async def test_nothing_to_commit_is_committed_at_once() -> None:
    rig = Rig(group_id="g")
    on_heartbeat: list[object] = []
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await offset_commits.commit(core, {}, 1_000)
        offset_commits.commit_async(
            core, {}, lambda offsets, error: on_heartbeat.append((offsets, error))
        )
        await core.run_callbacks()
    assert on_heartbeat == [({}, None)]
    assert rig.cluster.times(OFFSET_COMMIT) == 0


@pytest.mark.spec("CFG-106")
async def test_committing_needs_a_group() -> None:
    core = Rig().core
    for ask in (
        offset_commits.commit(core, None, 1_000),
        offset_commits.committed_offsets(core, [HERE], 1_000),
    ):
        with pytest.raises(UserError, match="group_id="):
            await ask
    with pytest.raises(UserError, match="group_id="):
        offset_commits.group_metadata(core)


async def test_what_is_committed_is_asked_until_it_is_known() -> None:
    rig = Rig(group_id="g")
    rig.cluster.script[OFFSET_FETCH] = [OSError("gone"), committed({HERE: (4, -1)})]
    found = await offset_commits.committed_offsets(rig.core, [HERE], 10_000)
    assert found == {HERE: OffsetAndMetadata(4)}


def test_without_a_subscription_a_producer_commits_for_the_bare_group() -> None:
    rig = Rig(group_id="g")
    subscribing.assign(rig.core, [HERE])
    assert offset_commits.group_metadata(rig.core) == GroupMetadata("g")


async def test_a_callback_hears_what_went_wrong() -> None:
    rig = Rig(group_id="g")
    rig.cluster.script[OFFSET_COMMIT] = commits(ErrorCode.group_authorization_failed)
    on_heartbeat: list[Exception | None] = []
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        offset_commits.commit_async(core, {HERE: 1}, lambda _, error: on_heartbeat.append(error))
        await rig.until(lambda: bool(on_heartbeat))
    (error,) = on_heartbeat
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.group_authorization_failed
