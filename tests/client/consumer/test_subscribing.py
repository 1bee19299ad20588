from __future__ import annotations

from typing import Any

import pytest
import re2

from ottla.client.consumer import subscribing
from ottla.client.consumer.subscription import SubscriptionMode
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition
from tests.client.consumer.batches import batch
from tests.client.consumer.scripted import OFFSET_COMMIT, Rig

HERE = TopicPartition("t", 0)


@pytest.mark.spec("CON-01")
@pytest.mark.parametrize(
    ("topics", "pattern", "complaint"),
    [
        (None, None, "takes either topics or pattern="),
        (["t"], "t", "takes either topics or pattern="),
        ([""], None, "invalid topic name"),
        ([7], None, "invalid topic name 7"),
        (None, "(", "invalid regular expression"),
    ],
)
def test_a_bad_subscription_is_named(topics: Any, pattern: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        subscribing.subscribe(Rig().core, topics, pattern, None)


def test_one_name_is_a_list_of_one() -> None:
    rig = Rig()
    subscribing.subscribe(rig.core, "orders", None, None)
    assert rig.core.subscriptions.topics == {"orders"}


def test_a_pattern_may_be_of_another_library_than_re() -> None:
    rig = Rig()
    subscribing.subscribe(rig.core, None, re2.compile("^orders-"), None)
    assert rig.core.subscriptions.apply_pattern(["orders-eu", "my-orders-eu"])
    assert rig.core.subscriptions.topics == {"orders-eu"}


@pytest.mark.parametrize("bad", ["t", ("t", -1), ("t", 0, 0)])
def test_a_bad_partition_is_named(bad: Any) -> None:
    with pytest.raises(UserError, match=r"expected TopicPartition\(topic, partition\)"):
        subscribing.assign(Rig().core, [bad])


@pytest.mark.spec("CON-51")
async def test_closing_commits_also_for_partitions_chosen_by_hand() -> None:
    rig = Rig(group_id="g")
    rig.cluster.logs[HERE] = [batch(0, 3)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await rig.poll()
        await subscribing.close(core, 1_000)
    sent = rig.cluster.last(OFFSET_COMMIT)["topics"][0]["partitions"][0]
    assert sent["committed_offset"] == 3


async def test_unsubscribing_from_what_was_chosen_by_hand_only_forgets_it() -> None:
    rig = Rig()
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await subscribing.unsubscribe(core)
        assert core.subscriptions.mode is SubscriptionMode.NOTHING
