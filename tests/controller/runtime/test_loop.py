"""The controller's task with a real tree, real handlers and several brokers, on virtual time."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.controller.events import ElectionKind, NewTopic
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
from tests.controller.runtime.topic_state import T0, create, leader, stored
from tests.fakes.control_plane import control_plane, settle, until
from tests.fakes.virtual_loop import LoopClock


@pytest.mark.spec("CTL-01", "CTL-02", "CTL-03", "CTL-14", "CTL-15", "CTL-20")
async def test_the_first_broker_becomes_controller_and_the_second_knows_it() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        assert one.controller.is_active
        assert not two.controller.is_active
        assert two.loop.active_id == 1
        epoch = await stored(one, paths.CONTROLLER_EPOCH)
        assert ControllerEpochNode.decode(epoch.data).epoch == 1
        assert ControllerNode.decode((await stored(one, paths.CONTROLLER)).data).broker == 1


@pytest.mark.spec("CTL-48", "CTL-64", "MDC-01")
async def test_a_created_topic_has_leaders_in_every_brokers_metadata_when_it_is_answered() -> None:
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


@pytest.mark.spec("CTL-42", "CTL-43", "CTL-46")
async def test_a_dead_brokers_partitions_are_led_by_another() -> None:
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


@pytest.mark.spec("CTL-19", "CTL-24", "CTL-57")
async def test_when_the_controller_dies_another_takes_over_with_a_higher_epoch() -> None:
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


async def test_a_controller_that_stops_refuses_what_waits_for_it_and_what_comes_later() -> None:
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


@pytest.mark.spec("CTL-20", "CTL-21", "CTL-22", "CTL-31")
async def test_an_operator_who_deletes_the_node_forces_an_election() -> None:
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


@pytest.mark.spec("CTL-20")
async def test_a_rewritten_controller_node_makes_the_controller_resign_without_a_fight() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.store.set(paths.CONTROLLER, ControllerNode(BrokerId(9), WallMs(0)).encode())
        await until(lambda: one.loop.active_id == 9)
        assert not one.controller.is_active
        assert one.loop.state.topics == {}


@pytest.mark.spec("CTL-16")
async def test_a_controller_node_that_cannot_be_read_counts_as_none() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.store.set(paths.CONTROLLER, b"")
        await until(lambda: one.loop.active_id == NO_BROKER)
        assert not one.controller.is_active


@pytest.mark.spec("CTL-03", "CTL-24", "CTL-65")
async def test_a_replaced_controller_cannot_write_any_more() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await settle()
        epoch = await stored(one, paths.CONTROLLER_EPOCH)
        await one.store.set(paths.CONTROLLER_EPOCH, b"5", epoch.version)
        with pytest.raises(KafkaError) as refused:
            await one.controller.create_topics([NewTopic("t")], 5_000)
        assert refused.value.code is ErrorCode.not_controller
        assert await one.store.get(paths.topic("t")) is None


@pytest.mark.spec("REP-71")
async def test_a_broker_registered_with_other_disks_leaves_the_isrs_and_they_are_remembered() -> (
    None
):
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


@pytest.mark.spec("CTL-30")
async def test_one_events_fault_does_not_stop_the_controller() -> None:
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


@pytest.mark.spec("CTL-08", "CTL-50", "CTL-54", "CTL-77")
async def test_a_deletion_written_into_the_store_is_carried_out() -> None:
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


@pytest.mark.spec("CTL-48", "CTL-49", "CTL-77", "CTL-06")
async def test_a_topic_written_into_the_store_without_an_id_comes_up_and_grows() -> None:
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


@pytest.mark.spec("CTL-10", "REP-30")
async def test_an_isr_change_a_leader_announced_reaches_everybodys_metadata() -> None:
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


@pytest.mark.spec("CTL-65")
async def test_a_write_that_meets_a_newer_isr_is_decided_again_on_what_is_there() -> None:
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


@pytest.mark.spec("CTL-11", "REP-74")
async def test_a_lost_log_directory_moves_the_leaders_that_were_on_it() -> None:
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


@pytest.mark.spec("CTL-09", "CTL-68", "CTL-78", "TOOL-17")
async def test_a_preferred_election_written_into_the_store_is_carried_out() -> None:
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


@pytest.mark.spec("CTL-09", "REP-73")
async def test_a_reassignment_written_into_the_store_is_begun() -> None:
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


@pytest.mark.spec("CTL-25", "CTL-77")
async def test_only_the_controller_watches_the_cluster() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        await create(one, "t", 1)
        assert two.loop._reader._watched == {paths.CONTROLLER}
        assert paths.topic("t") in one.loop._reader._watched


@pytest.mark.spec("CTL-26", "CTL-27", "MON-14", "MON-16")
async def test_what_a_controller_does_can_be_read_from_outside() -> None:
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


@pytest.mark.spec("CTL-63")
async def test_leaders_are_balanced_by_themselves_after_a_while() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        two = await plane.start(2)
        await settle()
        await create(one, "t", 1, 2)
        codes = await one.controller.elect_leaders(ElectionKind.PREFERRED, [T0], 1_000)
        assert codes == {T0: ErrorCode.election_not_needed}
        left = await one.controller.controlled_shutdown(two.id, two.registration.epoch)
        assert left == frozenset()
