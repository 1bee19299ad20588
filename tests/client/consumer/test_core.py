from __future__ import annotations

import asyncio

import pytest

from ottla.client.consumer import subscribing
from ottla.client.consumer.errors import Wakeup
from ottla.client.retry import Deadline
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition
from tests.client.consumer.batches import batch
from tests.client.consumer.scripted import OFFSET_COMMIT, Rig

HERE = TopicPartition("t", 0)


@pytest.mark.spec("CON-06")
async def test_a_wait_ends_with_data_with_time_or_with_a_wakeup() -> None:
    rig = Rig()
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        before = core.clock.mono_ms()
        assert not await core.wait(Deadline(core.clock, 7_000))
        assert core.clock.mono_ms() - before == 7_000
        asyncio.get_running_loop().call_later(2, core.wakeup)
        with pytest.raises(Wakeup):
            await core.wait(Deadline(core.clock, 60_000))
        rig.cluster.logs[HERE] = [batch(0, 1)]
        assert await core.wait(Deadline(core.clock, 60_000))


async def test_there_is_nothing_to_poll_without_a_subscription() -> None:
    rig = Rig()
    async with rig.run() as core:
        with pytest.raises(UserError, match="nothing to poll"):
            await core.wait(Deadline(core.clock, 0))


@pytest.mark.spec("CON-42", "CON-40", "CFG-108", "CFG-109")
async def test_commits_are_made_now_and_then_inside_polls_for_what_was_handed_out() -> None:
    rig = Rig(group_id="g", auto_commit_interval_ms=5_000)
    rig.cluster.logs[HERE] = [batch(0, 8)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        assert len(await rig.poll()) == 8
        await asyncio.sleep(60)
        assert rig.cluster.times(OFFSET_COMMIT) == 0, "not between polls"
        await rig.poll(12)
        assert rig.cluster.times(OFFSET_COMMIT) == 3
    sent = rig.cluster.last(OFFSET_COMMIT)["topics"][0]["partitions"][0]
    assert sent["committed_offset"] == 8, "one past the last"


async def test_without_auto_commit_nothing_is_committed() -> None:
    rig = Rig(group_id="g", enable_auto_commit=False)
    rig.cluster.logs[HERE] = [batch(0, 8)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await rig.poll()
        await rig.poll(60)
        await subscribing.close(core, 1_000)
    assert rig.cluster.times(OFFSET_COMMIT) == 0


async def test_what_the_user_has_not_seen_is_not_consumed() -> None:
    rig = Rig(group_id="g")
    rig.cluster.logs[HERE] = [batch(0, 8)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await rig.poll()
        core.unread = lambda: {HERE: 3}
        assert core.consumed_positions()[HERE].offset == 3


async def test_a_poll_is_quiet_only_when_there_is_nothing_but_records_to_take() -> None:
    rig = Rig(group_id="g", auto_commit_interval_ms=1_000)
    rig.cluster.logs[HERE] = [batch(0, 8)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await core.wait(Deadline(core.clock, 1_000))
        assert core.is_quiet
        core.pending_callbacks.append(lambda: None)
        assert not core.is_quiet
        core.pending_callbacks.clear()
        core.gate.fail(KeyError())
        assert not core.is_quiet
        with pytest.raises(KeyError):
            await core.wait(Deadline(core.clock, 0))
        await asyncio.sleep(2)
        assert not core.is_quiet, "a commit is due"


async def test_a_part_that_breaks_is_heard_of_in_the_next_poll(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig(group_id="g")
    del rig.cluster.script[OFFSET_COMMIT]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        core.commits.start(core.consumed_positions(), lambda _: None, is_retried=False)
        with pytest.raises(KeyError):
            await rig.poll()
    assert "consumer background task failed" in caplog.text
