"""The controller's task with a real tree, real handlers and several brokers, on virtual time."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.controller.events import ElectionKind, NewTopic
from ottla.controller.topics import Created
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_BROKER, BrokerId, TopicPartition
from ottla.model.metrics import Histogram
from ottla.shared_state.registration import Registration
from ottla.store import paths
from ottla.store.memory import MemoryStore
from ottla.store.nodes import (
    ControllerEpochNode,
    ControllerNode,
    LogDirEventNode,
    LogDirsNode,
    PartitionsNode,
    ReassignmentNode,
    StateNode,
    TopicNode,
)
from ottla.store.port import Node as Stored
from tests.fakes.control_plane import Node, control_plane, settle, until
from tests.fakes.virtual_loop import LoopClock, run

T0 = TopicPartition("t", 0)


async def create(node: Node, name: str, *replicas: int, partitions: int = 1) -> Created:
    chosen = {number: tuple(map(BrokerId, replicas)) for number in range(partitions)}
    created = await node.controller.create_topics([NewTopic(name, assignment=chosen)], 5_000)
    outcome = created[name]
    assert isinstance(outcome, Created), outcome
    return outcome


def leader(node: Node, tp: TopicPartition = T0) -> int | None:
    partition = node.metadata.image.partition(tp)
    return None if partition is None else partition.leader


async def stored(node: Node, path: str) -> Stored:
    node_found = await node.store.get(path)
    assert node_found is not None, path
    return node_found


@pytest.mark.spec("CTL-01", "CTL-02", "CTL-03", "CTL-14", "CTL-15", "CTL-20")
def test_the_first_broker_becomes_controller_and_the_second_knows_it() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one, two = await plane.start(1), await plane.start(2)
            assert one.controller.is_active
            assert not two.controller.is_active
            assert two.loop.active_id == 1
            epoch = await stored(one, paths.CONTROLLER_EPOCH)
            assert ControllerEpochNode.decode(epoch.data).epoch == 1
            assert ControllerNode.decode((await stored(one, paths.CONTROLLER)).data).broker == 1

    run(story())


@pytest.mark.spec("CTL-48", "CTL-64", "MDC-01")
def test_a_created_topic_has_leaders_in_every_brokers_metadata_when_it_is_answered() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one, two = await plane.start(1), await plane.start(2)
            await settle()
            created = await create(one, "t", 2, 1, partitions=3)
            assert created.partition_count == 3
            assert one.metadata.image.topics["t"].id == created.id
            await until(lambda: leader(two) == 2)
            assert two.held.states[T0].topic_id == created.id
            assert two.held.states[T0].assigned.replicas == (2, 1)
            assert StateNode.decode((await stored(one, paths.partition_state(T0))).data).isr == (
                2,
                1,
            )

    run(story())


@pytest.mark.spec("CTL-42", "CTL-43", "CTL-46")
def test_a_dead_brokers_partitions_are_led_by_another() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await plane.start(2)
            await settle()
            await create(one, "t", 2, 1)
            await plane.kill(2)
            await until(lambda: leader(one) == 1)
            back = await plane.start(2)
            await until(lambda: T0 in back.held.states)
            assert back.held.states[T0].assigned.leader == 1
            await until(lambda: leader(back) == 1)

    run(story())


@pytest.mark.spec("CTL-19", "CTL-24", "CTL-57")
def test_when_the_controller_dies_another_takes_over_with_a_higher_epoch() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            two = await plane.start(2)
            await settle()
            await create(one, "t", 1, 2)
            await plane.kill(1)
            await until(lambda: two.controller.is_active)
            assert two.loop.state.epoch == 2
            await until(lambda: leader(two) == 2)
            assert two.metadata.image.controller_id == 2

    run(story())


def test_a_controller_that_stops_refuses_what_waits_for_it_and_what_comes_later() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await settle()
            _, waiting = one.loop.open_request()  # as of an event that is never decided
            await plane.kill(1)
            await settle()
            with pytest.raises(KafkaError) as refused:
                await waiting
            assert refused.value.code is ErrorCode.not_controller
            with pytest.raises(KafkaError):
                one.loop.open_request()

    run(story())


@pytest.mark.spec("CTL-20", "CTL-21", "CTL-22", "CTL-31")
def test_an_operator_who_deletes_the_node_forces_an_election() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one, two = await plane.start(1), await plane.start(2)
            await settle()
            await two.store.delete(paths.CONTROLLER)
            await until(lambda: one.loop.state.epoch == 2 or two.loop.state.epoch == 2)
            active = one if one.controller.is_active else two
            other = two if active is one else one
            await until(lambda: other.loop.active_id == active.id)
            assert not other.controller.is_active
            await create(active, "t", 1, 2)

    run(story())


@pytest.mark.spec("CTL-20")
def test_a_rewritten_controller_node_makes_the_controller_resign_without_a_fight() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await one.store.set(paths.CONTROLLER, ControllerNode(BrokerId(9), WallMs(0)).encode())
            await until(lambda: one.loop.active_id == 9)
            assert not one.controller.is_active
            assert one.loop.state.topics == {}

    run(story())


@pytest.mark.spec("CTL-16")
def test_a_controller_node_that_cannot_be_read_counts_as_none() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await one.store.set(paths.CONTROLLER, b"")
            await until(lambda: one.loop.active_id == NO_BROKER)
            assert not one.controller.is_active

    run(story())


@pytest.mark.spec("CTL-03", "CTL-24", "CTL-65")
def test_a_replaced_controller_cannot_write_any_more() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await settle()
            epoch = await stored(one, paths.CONTROLLER_EPOCH)
            await one.store.set(paths.CONTROLLER_EPOCH, b"5", epoch.version)
            with pytest.raises(KafkaError) as refused:
                await one.controller.create_topics([NewTopic("t")], 5_000)
            assert refused.value.code is ErrorCode.not_controller
            assert await one.store.get(paths.topic("t")) is None

    run(story())


@pytest.mark.spec("REP-71")
def test_a_broker_registered_with_other_disks_leaves_the_isrs_and_then_they_are_remembered() -> (
    None
):
    async def story() -> None:
        async with control_plane() as plane:
            one, two = await plane.start(1), await plane.start(2)
            await settle()
            await create(one, "t", 2)
            old, new = (LogDirsNode({UUID(int=number): "/data"}) for number in (1, 2))
            await one.store.create(paths.log_dirs(two.id), old.encode())
            await plane.kill(2)
            await until(lambda: leader(one) == NO_BROKER)
            back = MemoryStore(plane.ensemble)
            await back.start()
            registration = Registration(back, LoopClock(), two.id)
            registration.log_dirs = new
            await registration.register()
            await until(lambda: two.id in one.loop.state.brokers)
            assert (await stored(one, paths.log_dirs(two.id))).data == new.encode()
            state = StateNode.decode((await stored(one, paths.partition_state(T0))).data)
            assert (state.leader, state.isr) == (NO_BROKER, ())

    run(story())


@pytest.mark.spec("CTL-30")
def test_one_events_fault_does_not_stop_the_controller() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await settle()
            await one.store.create(f"{paths.ISR_CHANGES}/isr_change_0", b"not json")
            await one.store.create(f"{paths.BROKER_IDS}/not-a-number", b"")
            await settle()
            await plane.start(2)
            await until(lambda: len(one.metadata.image.brokers) == 2)
            await create(one, "t", 2)
            assert await one.store.children(paths.ISR_CHANGES) == []

    run(story())


@pytest.mark.spec("CTL-08", "CTL-50", "CTL-54", "CTL-77")
def test_a_deletion_written_into_the_store_is_carried_out() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await settle()
            await create(one, "t", 1)
            await one.store.create(paths.delete_topic("t"))
            await until(lambda: "t" not in one.loop.state.topics)
            assert one.held.deleted == [T0]
            assert await one.store.get(paths.topic("t")) is None
            assert await one.store.get(paths.topic_config("t")) is None
            await until(lambda: "t" not in one.metadata.image.topics)

    run(story())


@pytest.mark.spec("CTL-48", "CTL-49", "CTL-77", "CTL-06")
def test_a_topic_written_into_the_store_without_an_id_comes_up_and_grows() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await settle()
            old = b'{"version":1,"partitions":{"0":[1]}}'
            await one.store.create(paths.topic("t"), old)
            await until(lambda: leader(one) == 1)
            node = TopicNode.decode((await stored(one, paths.topic("t"))).data)
            assert node.topic_id == one.metadata.image.topics["t"].id
            grown = node._replace(partitions={0: (BrokerId(1),), 1: (BrokerId(1),)})
            await one.store.set(paths.topic("t"), grown.encode())
            await until(lambda: leader(one, TopicPartition("t", 1)) == 1)

    run(story())


@pytest.mark.spec("CTL-10", "REP-30")
def test_an_isr_change_a_leader_announced_reaches_everybodys_metadata() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one, two = await plane.start(1), await plane.start(2)
            await settle()
            await create(one, "t", 1, 2)
            path = paths.partition_state(T0)
            state = StateNode.decode((await stored(one, path)).data)
            await one.store.set(path, state._replace(isr=(BrokerId(1),)).encode())
            note = f"{paths.ISR_CHANGES}/{paths.ISR_CHANGE_PREFIX}"
            await one.store.create(note, PartitionsNode((T0,)).encode(), sequential=True)
            await until(lambda: two.metadata.image.topics["t"].partitions[0].isr == (1,))
            await until(lambda: not one.loop._queue)
            await settle()
            assert await one.store.children(paths.ISR_CHANGES) == []

    run(story())


@pytest.mark.spec("CTL-65")
def test_a_write_that_meets_a_newer_isr_is_decided_again_on_what_is_there() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await plane.start(2)
            await plane.start(3)
            await settle()
            await create(one, "t", 2, 3, 1)
            path = paths.partition_state(T0)
            state = StateNode.decode((await stored(one, path)).data)
            shrunk = state._replace(isr=(BrokerId(2), BrokerId(1)))
            await one.store.set(path, shrunk.encode())  # and nobody announced it
            await plane.kill(2)
            await until(lambda: leader(one) == 1)
            assert StateNode.decode((await stored(one, path)).data).isr == (1,)

    run(story())


@pytest.mark.spec("CTL-11", "REP-74")
def test_a_lost_log_directory_moves_the_leaders_that_were_on_it() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one, two = await plane.start(1), await plane.start(2)
            await settle()
            await create(one, "t", 2, 1, partitions=2)
            two.held.lost.add(T0)
            note = f"{paths.LOG_DIR_EVENTS}/{paths.LOG_DIR_EVENT_PREFIX}"
            await two.store.create(note, LogDirEventNode(BrokerId(2)).encode(), sequential=True)
            await until(lambda: leader(one) == 1)
            assert leader(one, TopicPartition("t", 1)) == 2
            partition = one.metadata.image.partition(T0)
            assert partition is not None
            assert partition.offline == (2,)

    run(story())


@pytest.mark.spec("CTL-09", "CTL-68", "CTL-78", "TOOL-17")
def test_a_preferred_election_written_into_the_store_is_carried_out() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await plane.start(2)
            await settle()
            await create(one, "t", 2, 1)
            await plane.kill(2)
            await until(lambda: leader(one) == 1)
            await plane.start(2)
            path = paths.partition_state(T0)
            state = StateNode.decode((await stored(one, path)).data)
            await one.store.set(path, state._replace(isr=(BrokerId(1), BrokerId(2))).encode())
            note = f"{paths.ISR_CHANGES}/{paths.ISR_CHANGE_PREFIX}"
            await one.store.create(note, PartitionsNode((T0,)).encode(), sequential=True)
            await settle()
            await one.store.create(paths.PREFERRED_ELECTION, PartitionsNode((T0,)).encode())
            await until(lambda: leader(one) == 2)
            await settle()
            assert await one.store.get(paths.PREFERRED_ELECTION) is None

    run(story())


@pytest.mark.spec("CTL-09", "REP-73")
def test_a_reassignment_written_into_the_store_is_begun() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one, two = await plane.start(1), await plane.start(2)
            await settle()
            await create(one, "t", 1)
            reassignment = ReassignmentNode({T0: (BrokerId(2),)})
            await one.store.create(paths.REASSIGN_PARTITIONS, reassignment.encode())
            await until(lambda: T0 in two.held.states)
            node = TopicNode.decode((await stored(one, paths.topic("t"))).data)
            assert node.adding == {0: (2,)}
            assert node.removing == {0: (1,)}

    run(story())


@pytest.mark.spec("CTL-25", "CTL-77")
def test_only_the_controller_watches_the_cluster() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one, two = await plane.start(1), await plane.start(2)
            await settle()
            await create(one, "t", 1)
            assert two.loop._reader._watched == {paths.CONTROLLER}
            assert paths.topic("t") in one.loop._reader._watched

    run(story())


@pytest.mark.spec("CTL-26", "CTL-27", "MON-14", "MON-16")
def test_what_a_controller_does_can_be_read_from_outside() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await settle()
            await create(one, "t", 1, partitions=4)
            families = {family.name: family for family in one.registry.families()}

            def read(name: str) -> float:
                (gauge,) = families[f"kafka_controller_kafkacontroller_{name}"].metrics.values()
                assert callable(gauge)
                return gauge()

            assert read("active_controller_count") == 1
            assert read("global_topic_count") == 1
            assert read("global_partition_count") == 4
            assert read("offline_partitions_count") == 0
            stats = "kafka_controller_controllerstats"
            (times,) = families[f"{stats}_topic_change_rate_and_time_ms"].metrics.values()
            assert isinstance(times, Histogram)
            assert times.count > 0

    run(story())


@pytest.mark.spec("CTL-63")
def test_leaders_are_balanced_by_themselves_after_a_while() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            two = await plane.start(2)
            await settle()
            await create(one, "t", 1, 2)
            codes = await one.controller.elect_leaders(ElectionKind.PREFERRED, [T0], 1_000)
            assert codes == {T0: ErrorCode.election_not_needed}
            left = await one.controller.controlled_shutdown(two.id, two.registration.epoch)
            assert left == frozenset()

    run(story())
