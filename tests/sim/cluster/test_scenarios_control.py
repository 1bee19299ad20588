"""Scenarios of the controller, of reassignments and of restarts on virtual time.

The numbers are those of the table of scenarios in docs/reliability.md; see
`test_scenarios_replication`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any, TypeAlias

import pytest

from ottla.client.producer.delivery import Delivery
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.testing.history import Send
from tests.fakes.async_tests import played_by
from tests.sim import admin
from tests.sim.cluster.moments import Moment
from tests.sim.cluster.operator import ALTER_REASSIGNMENTS, ELECT_LEADERS
from tests.sim.cluster.stage import T0, Stage, play
from tests.sim.cluster.verdict import log_of
from tests.sim.ottla_client import SimProducer

Work: TypeAlias = Callable[[], Coroutine[Any, Any, object]]
UNCLEAN = 1
ACTIVE = "kafka_controller_kafkacontroller_active_controller_count"
UNCLEAN_ELECTIONS = "kafka_controller_controllerstats_unclean_leader_elections_total"


async def reassign(stage: Stage, *replicas: int, tp: TopicPartition = T0) -> ErrorCode:
    """With no replicas: cancel."""
    partition = {"partition_index": tp.partition, "replicas": list(replicas) or None}
    fields = {"timeout": 3_000, "topics": [{"name": tp.topic, "partitions": [partition]}]}
    reply = await stage.cluster.admin.ask_until_answered(ALTER_REASSIGNMENTS, 0, fields)
    return ErrorCode(reply.responses[0].partitions[0].error_code)


def replicas_of(stage: Stage, tp: TopicPartition = T0) -> tuple[int, ...]:
    return tuple(map(int, stage.cluster.view.topics()[tp.topic].partitions[tp.partition]))


async def elect_unclean(stage: Stage) -> ErrorCode:
    partitions = [{"topic": "t", "partitions": [0]}]
    fields = {"election_type": UNCLEAN, "topic_partitions": partitions, "timeout": 3_000}
    reply = await stage.cluster.admin.ask_until_answered(ELECT_LEADERS, 2, fields)
    return ErrorCode(reply.replica_election_results[0].partition_result[0].error_code)


def test_scenario_10_an_unclean_election_happens_only_on_demand_and_is_counted() -> None:
    """Its losses are promised: the records of the dead leader are judged here, not at the end."""

    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3), min_insync_replicas="1")
        await stage.write(5)
        stage.node(2).kill()
        stage.node(3).kill()
        await stage.until(lambda: stage.isr() == {1})
        lost = await stage.write(5)
        stage.node(1).kill()
        await stage.start(2)
        await stage.start(3)
        await asyncio.sleep(5.0)
        assert stage.leader() == -1, "nobody is elected by itself"
        assert await elect_unclean(stage) is ErrorCode.none
        await stage.until(lambda: stage.leader() in (2, 3))
        assert stage.metric(stage.cluster.view.controller(), UNCLEAN_ELECTIONS) == 1
        end = log_of(stage.node(stage.leader()), T0).end
        assert end <= lost[0].offset
        await stage.start(1)
        await stage.until(lambda: stage.isr() == {1, 2, 3})
        assert log_of(stage.node(1), T0).end == end
        gone = {send.value for send in lost}
        stage.book.events[:] = [
            event
            for event in stage.book.events
            if not (isinstance(event, Send) and event.value in gone)
        ]

    stage = play(scenario, promises=lambda violation: violation.invariant != "complete_leaders")
    assert stage.logged("unclean")


@played_by(play)
async def test_scenario_11_a_controller_paused_past_its_session_is_replaced_for_good(
    stage: Stage,
) -> None:
    await stage.topic((1, 2, 3))
    old = stage.cluster.view.controller()
    creating = asyncio.get_running_loop().create_task(
        admin.create(stage.cluster.client("late"), admin.NewTopic("late", 3, {}, 3))
    )
    await stage.cluster.moments.wait(Moment.TOPIC_CHANGED, 5.0)
    stage.node(old).pause()  # it has written, and not sent
    await stage.until(lambda: stage.cluster.view.controller() not in (old, -1))
    new, epoch = stage.cluster.view.controller(), stage.cluster.view.controller_epoch()
    stage.node(old).resume()
    await creating
    await asyncio.sleep(5.0)
    assert stage.cluster.view.controller() == new
    assert stage.cluster.view.controller_epoch() == epoch
    await stage.write(5)


@pytest.mark.parametrize("operation", ["creation", "deletion", "reassignment"])
@pytest.mark.parametrize("seed", range(3))
def test_scenario_12_what_a_killed_controller_began_is_completed_or_undone(
    operation: str, seed: int
) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        await stage.topic((1, 2), name="moved", min_insync_replicas="1")
        moved = TopicPartition("moved", 0)
        client = stage.cluster.client("operator")
        topic_id = await admin.create(client, admin.NewTopic("doomed", 3, {}, 3))
        work: dict[str, Work] = {
            "creation": lambda: admin.create(client, admin.NewTopic("new", 3, {}, 3)),
            "deletion": lambda: admin.delete(client, topic_id),
            "reassignment": lambda: reassign(stage, 3, 2, tp=moved),
        }
        task = asyncio.get_running_loop().create_task(work[operation]())
        await stage.cluster.moments.wait(Moment.TOPIC_CHANGED, 5.0)
        await asyncio.sleep(0.01 * seed)
        controller = stage.cluster.view.controller()
        stage.node(controller).kill()
        await asyncio.sleep(2.0)
        await stage.start(controller)
        if operation == "reassignment":
            task.cancel()
            await stage.until(lambda: replicas_of(stage, moved) in ((1, 2), (3, 2)))
        else:
            await task
            there = {"doomed": operation != "deletion", "new": operation == "creation"}
            for name, is_there in there.items():
                await stage.until(
                    lambda name=name, is_there=is_there: (  # type: ignore[misc]
                        (name in stage.cluster.view.topics()) is is_there
                    )
                )

    play(scenario, seed=seed)


@played_by(play)
async def test_scenario_13_the_data_path_goes_on_while_the_store_has_no_quorum(
    stage: Stage,
) -> None:
    await stage.topic((1, 2, 3))
    async with stage.load():
        await stage.until_acknowledged(20)
        for node in stage.cluster.nodes.values():
            node.cut_from_store(expires=False)
        epoch = stage.epoch()
        for _ in range(6):
            before = stage.acknowledged()
            await asyncio.sleep(10.0)
            assert stage.acknowledged() > before + 50
        assert (stage.leader(), stage.epoch()) == (1, epoch)
        for node in stage.cluster.nodes.values():
            node.heal_store()


@played_by(play)
async def test_scenario_14_a_broker_registers_again_although_its_old_node_is_still_there(
    stage: Stage,
) -> None:
    await stage.topic((1, 2, 3))
    async with stage.load():
        await stage.node(1).expire_session_first(keep_s=3.0)
        await stage.until(lambda: stage.isr() == {1, 2, 3})
    assert stage.cluster.view.registered() == [1, 2, 3]


@played_by(play)
async def test_scenario_15_a_broker_that_bounces_faster_than_watches_is_treated_as_gone(
    stage: Stage,
) -> None:
    await stage.topic((1, 2, 3))
    async with stage.load():
        await stage.until_acknowledged(20)
        epoch = stage.epoch()
        controller = stage.cluster.view.controller()
        stage.node(controller).pause()  # it sees nothing of what happens now
        broker = 1 if controller != 1 else 2
        stage.node(broker).kill()
        stage.node(broker).end_sessions()
        await stage.start(broker)
        stage.node(controller).resume()
        await stage.until(lambda: stage.epoch() > epoch)
        await stage.until(lambda: stage.isr() == {1, 2, 3})


@pytest.mark.parametrize("operation", ["election", "deletion", "reassignment"])
def test_scenario_16_late_requests_of_an_old_controller_are_ignored(operation: str) -> None:
    """LeaderAndIsr, StopReplica and UpdateMetadata, as each operation sends them: one broker gets
    those of the old controller after those of the new one."""

    async def scenario(stage: Stage) -> None:
        old = stage.cluster.view.controller()
        late, other = [broker for broker in (1, 2, 3) if broker != old]
        await stage.topic((late, other), min_insync_replicas="1")
        client = stage.cluster.client("operator")
        topic = admin.NewTopic("u", 1, {}, assignment=(late, other))
        topic_id = await admin.create(client, topic)
        await asyncio.sleep(0.5)
        stage.cut((old, late), one_way=True)
        work: dict[str, Work] = {
            "election": lambda: stage.node(other).expire_session_first(keep_s=0.1),
            "deletion": lambda: admin.delete(client, topic_id),
            "reassignment": lambda: reassign(stage, other, old),
        }
        task = asyncio.get_running_loop().create_task(work[operation]())
        await asyncio.sleep(0.5)
        stage.node(old).expire_session()
        stage.node(old).cut_from_store()  # it is not elected again
        await stage.until(lambda: stage.cluster.view.controller() not in (old, -1))
        await asyncio.sleep(2.0)
        if operation == "deletion":
            await task
            await admin.create(client, topic, [topic_id])
        stage.heal()  # now the old requests arrive
        await asyncio.sleep(1.0)
        stage.node(old).heal_store()
        if operation == "reassignment":
            task.cancel()
            await reassign(stage, late, other)
            await stage.until(lambda: replicas_of(stage) == (late, other))

    play(scenario)


@played_by(play)
async def test_scenario_17_a_controlled_shutdown_fails_no_produce(stage: Stage) -> None:
    await stage.topic((1, 2, 3))
    async with stage.load():
        await stage.until_acknowledged(20)
        began_ns = stage.book.now_ns
        await stage.node(1).stop()
        await asyncio.sleep(1.0)
        done = [e.completed_ns for e in stage.book.events if isinstance(e, Send)]
        recent = sorted(at_ns for at_ns in done if at_ns > began_ns - 500_000_000)
        pauses = [later - earlier for earlier, later in pairwise(recent)]
        assert max(pauses) < 600_000_000, "a back-off of the client included"
        await stage.start(1)


@played_by(play)
async def test_scenario_18_no_error_reaches_the_application_in_a_rolling_restart(
    stage: Stage,
) -> None:
    await stage.topic((1, 2, 3))
    producer = SimProducer(
        stage.cluster.clock,
        stage.cluster.admin.dice,
        bootstrap_servers=stage.cluster.admin.bootstrap,
    )
    deliveries: list[Delivery] = []
    async with producer:

        async def write() -> None:
            while not restarted.done():
                value = f"app-{len(deliveries)}".encode()
                deliveries.append(await producer.send("t", value, partition=0))
                await asyncio.sleep(0.02)

        async def restart() -> None:
            for broker in (1, 2, 3):
                await stage.node(broker).stop()
                await stage.start(broker)
                await stage.until(lambda: stage.isr() == {1, 2, 3})
                await asyncio.sleep(1.0)

        restarted = asyncio.get_running_loop().create_task(restart())
        await write()
        await restarted
        offsets = [(await delivery).offset for delivery in deliveries]
    assert offsets == list(range(len(offsets))) and len(offsets) > 100
    stage.topics.clear()  # its records are in no history


@played_by(play)
async def test_scenario_21_a_reassignment_under_load_moves_or_is_cancelled_without_loss(
    stage: Stage,
) -> None:
    await stage.topic((1, 2), min_insync_replicas="2")
    async with stage.load():
        await stage.until_acknowledged(20)
        assert await reassign(stage, 3, 2) is ErrorCode.none
        await stage.until(lambda: replicas_of(stage) == (3, 2))
        stage.node(1).kill()
        await stage.until_gone(1)
        assert await reassign(stage, 1, 2) is ErrorCode.invalid_replica_assignment
        await stage.start(1)
        stage.cut((1, 2), (1, 3))
        assert await reassign(stage, 1, 2) is ErrorCode.none  # it cannot catch up
        stage.node(1).kill()
        await asyncio.sleep(3.0)
        assert await reassign(stage) is ErrorCode.none
        await stage.until(lambda: set(replicas_of(stage)) == {3, 2})
        assert stage.isr() == {3, 2}
        stage.heal()
        await stage.start(1)


@played_by(play)
async def test_scenario_22_a_topic_deleted_during_its_reassignment_and_recreated_is_another_one(
    stage: Stage,
) -> None:
    await stage.topic((1, 2), min_insync_replicas="1")
    client = stage.cluster.client("operator")
    await stage.write(20)
    first = (await admin.topic_ids(client))["t"]
    stage.cut((3, 1), (3, 2))
    await reassign(stage, 3, 2)  # cannot complete yet
    deletion = asyncio.get_running_loop().create_task(admin.delete(client, first))
    await asyncio.sleep(1.0)  # it waits for the reassignment
    stage.heal()
    await deletion
    second = await admin.create(client, admin.NewTopic("t", 1, {}, assignment=(3, 1)), [first])
    assert second != first
    await stage.until(lambda: stage.isr() == {3, 1})
    stage.book.events.clear()  # of the first topic
    sent = await stage.write(5)
    assert sent[0].offset == 0


@played_by(play)
async def test_the_store_knows_one_controller_after_each_election(stage: Stage) -> None:
    await stage.topic((1, 2, 3))
    for _ in range(5):
        epoch = stage.cluster.view.controller_epoch()
        stage.cluster.view.delete_controller()
        await stage.until(lambda epoch=epoch: stage.cluster.view.controller_epoch() > epoch)  # type: ignore[misc]
        await asyncio.sleep(1.0)
        active = [broker for broker in (1, 2, 3) if stage.metric(broker, ACTIVE)]
        assert active == [stage.cluster.view.controller()]
