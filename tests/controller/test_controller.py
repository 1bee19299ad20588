"""The interface of the controller for the rest of the broker."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from ottla.controller.events import ElectionKind, MorePartitions, NewTopic
from ottla.controller.topics import Created
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import CONSUMER_OFFSETS, BrokerEpoch, BrokerId, TopicPartition
from ottla.store import paths
from tests.fakes.control_plane import control_plane, settle, until

T0 = TopicPartition("t", 0)


def code(outcome: object) -> ErrorCode:
    return outcome.code if isinstance(outcome, KafkaError) else ErrorCode.none


async def test_bad_settings_are_refused_and_the_other_topics_are_made() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        new_topics = [
            NewTopic("good"),
            NewTopic("bad", config={"retention.ms": "soon"}),
            NewTopic("worse", config={"no.such": "1"}),
            NewTopic("a/b", config={"no.such": "1"}),
        ]
        results = await one.controller.create_topics(new_topics, 5_000)
        assert {name: code(outcome) for name, outcome in results.items()} == {
            "good": ErrorCode.none,
            "bad": ErrorCode.invalid_config,
            "worse": ErrorCode.invalid_config,
            "a/b": ErrorCode.invalid_topic_exception,
        }


async def test_a_topic_that_nobody_can_lead_in_time_is_answered_with_a_timeout_and_exists() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await plane.start(2)
        await settle()
        plane.wires.cut.add(BrokerId(1))
        results = await one.controller.create_topics([NewTopic("t")], 3_000)
        assert code(results["t"]) is ErrorCode.request_timed_out
        assert await one.store.get(paths.topic("t")) is not None
        plane.wires.cut.clear()


async def test_no_time_at_all_means_a_timeout_at_once_and_the_topic_all_the_same() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        results = await one.controller.create_topics([NewTopic("t")], 0)
        assert code(results["t"]) is ErrorCode.request_timed_out
        await until(lambda: "t" in one.metadata.image.topics)


async def test_trying_out_creates_nothing() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        results = await one.controller.create_topics([NewTopic("t", 3)], 5_000, validate_only=True)
        assert cast(Created, results["t"]).partition_count == 3
        grown = await one.controller.create_partitions(
            [MorePartitions("t", 4)], 5_000, validate_only=True
        )
        assert code(grown["t"]) is ErrorCode.unknown_topic_or_partition
        assert await one.store.get(paths.topic("t")) is None


@pytest.mark.spec("CTL-31")
async def test_who_is_not_the_controller_says_so() -> None:
    async with control_plane() as plane:
        await plane.start(1)
        two = await plane.start(2)
        for question in (
            two.controller.create_topics([NewTopic("t")], 1_000),
            two.controller.delete_topics(["t"], 1_000),
            two.controller.create_partitions([MorePartitions("t", 2)], 1_000),
            two.controller.elect_leaders(ElectionKind.PREFERRED, None, 1_000),
            two.controller.controlled_shutdown(BrokerId(2), BrokerEpoch(0)),
        ):
            with pytest.raises(KafkaError) as refused:
                await question
            assert refused.value.code is ErrorCode.not_controller
        results = await two.controller.auto_create(["t"], 1_000)
        assert code(results["t"]) is ErrorCode.not_controller


async def test_deleted_topics_are_gone_when_it_is_answered_and_may_be_made_again() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t", 2), NewTopic("u")], 5_000)
        results = await one.controller.delete_topics(["t", "u", "v"], 5_000)
        assert results == {
            "t": ErrorCode.none,
            "u": ErrorCode.none,
            "v": ErrorCode.unknown_topic_or_partition,
        }
        assert one.metadata.image.topics == {}
        again = await one.controller.create_topics([NewTopic("t")], 5_000)
        assert cast(Created, again["t"]).partition_count == 1
        assert one.config.topic_overrides("t") == {}


@pytest.mark.spec("GRP-07", "CFG-021", "LOG-17")
async def test_automatic_topics_have_defaults_and_our_own_have_theirs() -> None:
    async with control_plane() as plane:
        one = await plane.start(1, {"num.partitions": "4"})
        results = await one.controller.auto_create(["t", CONSUMER_OFFSETS], 5_000)
        assert cast(Created, results["t"]).partition_count == 4
        assert cast(Created, results[CONSUMER_OFFSETS]).partition_count == 50
        assert one.config.topic(CONSUMER_OFFSETS).cleanup_policy == ("compact",)


async def test_two_who_use_a_new_topic_at_once_both_find_it() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)

        async def use() -> bool:
            await one.controller.auto_create(["t"], 5_000)
            return "t" in one.metadata.image.topics

        assert all(await asyncio.gather(*(use() for _ in range(5))))


async def test_a_started_broker_shows_and_holds_what_it_had_before() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.wait_started()
        await one.controller.create_topics([NewTopic("t", 3)], 5_000)
        await plane.kill(1)
        again = await plane.start(1)
        await again.controller.wait_started()
        assert len(again.metadata.image.topics["t"].partitions) == 3
        assert len(again.held.states) == 3


async def test_more_partitions_are_shown_when_it_is_answered() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        results = await one.controller.create_partitions([MorePartitions("t", 3)], 5_000)
        assert results == {"t": None}
        assert len(one.metadata.image.topics["t"].partitions) == 3


async def test_a_broker_that_stops_in_order_hands_its_leaders_over() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        chosen = {0: (two.id, one.id)}
        await one.controller.create_topics([NewTopic("t", assignment=chosen)], 5_000)
        left = await one.controller.controlled_shutdown(two.id, two.registration.epoch)
        assert left == frozenset()
        await until(lambda: one.metadata.image.topics["t"].partitions[0].leader == 1)
        with pytest.raises(KafkaError) as refused:
            await one.controller.controlled_shutdown(two.id, BrokerEpoch(0))
        assert refused.value.code is ErrorCode.stale_broker_epoch


@pytest.mark.spec("REP-73")
async def test_moves_under_way_can_be_listed() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        await one.controller.create_topics([NewTopic("t", assignment={0: (one.id,)})], 5_000)
        results = await one.controller.reassign_partitions({T0: (two.id,)}, 5_000)
        assert results == {T0: None}
        assert one.controller.reassignments()[T0].adding == (two.id,)
        refused = await one.controller.reassign_partitions(
            {T0: (one.id, two.id)}, 5_000, keep_factor=True
        )
        assert code(refused[T0]) is ErrorCode.invalid_replication_factor
        with pytest.raises(KafkaError):
            two.controller.reassignments()


async def test_settings_changed_while_it_runs_reach_the_controllers_rules() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        unclean = {"unclean.leader.election.enable": "true"}
        await one.shared.configs.change_broker(None, lambda _: unclean)
        await until(lambda: one.loop.state.rules.unclean_leader_election_enable)
        await one.shared.configs.change_topic("t", lambda _: unclean)
        await until(lambda: one.loop.state.unclean == {"t": True})
        await one.shared.configs.change_topic("t", lambda _: {})
        await until(lambda: one.loop.state.unclean == {})
