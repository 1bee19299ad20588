from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.client.consumer import subscribing
from ottla.client.consumer.errors import CommitFailed
from ottla.client.consumer.group import offset_commits
from ottla.client.errors import KafkaError
from ottla.client.offsets import OffsetAndMetadata
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.client.consumer.scripted import OFFSET_COMMIT, Rig, commits

HERE = TopicPartition("t", 0)


def offsets_sent(rig: Rig) -> list[int]:
    return [
        each["committed_offset"]
        for asked in rig.cluster.asked
        if asked.key == OFFSET_COMMIT
        for topic in asked.fields["topics"]
        for each in topic["partitions"]
    ]


def rig_by_hand() -> Rig:
    rig = Rig(group_id="g", enable_auto_commit=False)
    subscribing.assign(rig.core, [HERE])
    return rig


@pytest.mark.spec("CON-43", "CON-47")
async def test_a_commit_that_waits_is_tried_until_it_lands() -> None:
    rig = rig_by_hand()
    rig.cluster.script[OFFSET_COMMIT] = [
        ConnectionError("gone"),
        commits(ErrorCode.coordinator_load_in_progress),
        commits(ErrorCode.not_coordinator),
        commits(),
    ]
    async with rig.run() as core:
        await offset_commits.commit(core, {HERE: OffsetAndMetadata(5, "note", 2)}, 60_000)
    assert offsets_sent(rig) == [5, 5, 5, 5]
    assert rig.cluster.forgotten == 2
    sent = rig.cluster.last(OFFSET_COMMIT)["topics"][0]["partitions"][0]
    assert (sent["committed_metadata"], sent["committed_leader_epoch"]) == ("note", 2)


@pytest.mark.spec("CON-43")
async def test_a_commit_that_cannot_land_is_raised() -> None:
    rig = rig_by_hand()
    rig.cluster.script[OFFSET_COMMIT] = [
        commits(ErrorCode.offset_metadata_too_large),
        commits(ErrorCode.illegal_generation),
    ]
    async with rig.run() as core:
        with pytest.raises(KafkaError, match="commit of t-0 failed: offset_metadata_too_large"):
            await offset_commits.commit(core, {HERE: 1}, 60_000)
        with pytest.raises(CommitFailed):
            await offset_commits.commit(core, {HERE: 1}, 60_000)


async def test_time_runs_out_for_a_commit_nobody_answers() -> None:
    rig = rig_by_hand()
    rig.cluster.script[OFFSET_COMMIT] = ConnectionError("gone")
    async with rig.run() as core:
        with pytest.raises(TimeoutError, match="timed out after 500 ms"):
            await offset_commits.commit(core, {HERE: 1}, 500)


@pytest.mark.spec("CON-44", "CON-45")
async def test_asynchronous_commits_are_not_tried_again_and_stay_in_order() -> None:
    rig = rig_by_hand()
    on_heartbeat: list[tuple[int, type[Exception] | None]] = []

    def note(offsets: Any, error: Exception | None) -> None:
        on_heartbeat.append((offsets[HERE].offset, type(error) if error else None))

    rig.cluster.script[OFFSET_COMMIT] = [
        commits(ErrorCode.coordinator_load_in_progress),
        commits(),
    ]
    async with rig.run() as core:
        offset_commits.commit_async(core, {HERE: 1}, note)
        await asyncio.sleep(0.0005)
        offset_commits.commit_async(core, {HERE: 2}, note)
        offset_commits.commit_async(core, {HERE: 3}, note)
        await asyncio.sleep(10)
        assert on_heartbeat == [], "callbacks wait for the user"
        await core.run_callbacks()
    assert offsets_sent(rig) == [1, 3], "those that waited went out as one"
    assert on_heartbeat == [(1, KafkaError), (2, None), (3, None)]


@pytest.mark.spec("CON-51", "CON-46")
@pytest.mark.parametrize("slow", [False, True])
async def test_closing_waits_for_what_is_under_way_and_gives_up_the_rest(slow: bool) -> None:
    rig = rig_by_hand()
    on_heartbeat: list[Exception | None] = []

    async def answer(fields: Any) -> Any:
        await asyncio.sleep(100 if slow else 1)
        return commits()(fields)

    rig.cluster.script[OFFSET_COMMIT] = answer
    async with rig.run() as core:
        offset_commits.commit_async(core, {HERE: 1}, lambda _, error: on_heartbeat.append(error))
        await asyncio.sleep(0.5)
        offset_commits.commit_async(core, {HERE: 2}, lambda _, error: on_heartbeat.append(error))
        await subscribing.close(core, 10_000)
    if slow:
        assert isinstance(on_heartbeat[-1], TimeoutError)
    else:
        assert on_heartbeat == [None, None]
