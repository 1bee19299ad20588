"""The controller's task with a real tree, real handlers and several brokers, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from ottla.controller.events import ElectionKind, NewTopic
from ottla.controller.topics import Created
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_BROKER, BrokerId, TopicPartition
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.nodes import (
    ControllerEpochNode,
    ControllerNode,
    LogDirEventNode,
    PartitionsNode,
    ReassignmentNode,
    StateNode,
    TopicNode,
)
from ottla.store.port import Node as Stored
from ottla.store.port import Op, Result, Session, StoreUnavailable
from tests.fakes.control_plane import Node, control_plane, settle, until
from tests.fakes.virtual_loop import run

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
            await one.store.set(paths.CONTROLLER, ControllerNode(BrokerId(9), 0).encode())
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


@pytest.mark.spec("CTL-23", "CTL-28", "CTL-29")
def test_after_its_session_expired_a_broker_registers_anew_and_stands_again() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await settle()
            await create(one, "t", 1)
            before = one.registration.epoch
            plane.ensemble.expire(cast(MemoryStore, one.store))
            await until(lambda: one.loop.state.epoch == 2)
            assert one.registration.epoch > before
            await until(lambda: leader(one) == 1)

    run(story())


@pytest.mark.spec("CTL-28", "CTL-29")
def test_who_waits_when_the_session_expires_is_told_to_ask_the_next_controller() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await settle()
            number, answer = one.loop.open_request()
            plane.ensemble.expire(cast(MemoryStore, one.store))
            with pytest.raises(KafkaError) as refused:
                await answer
            assert refused.value.code is ErrorCode.not_controller
            assert number > 0

    run(story())


def test_a_store_that_cannot_be_reached_for_a_while_delays_and_loses_nothing() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            await settle()
            store = cast(MemoryStore, one.store)
            store.turn(Session.SUSPENDED)
            with pytest.raises(KafkaError) as refused:  # at once: who asks again is not forgotten
                await one.controller.create_topics([NewTopic("t")], 60_000)
            assert refused.value.code is ErrorCode.not_controller
            store.turn(Session.CONNECTED)
            await create(one, "u", 1)
            assert leader(one, TopicPartition("u", 0)) == 1

    run(story())


def test_a_store_that_falls_silent_just_after_the_election_delays_the_start() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one = await plane.start(1)
            store = cast(MemoryStore, one.store)

            def silence(_: str) -> None:
                store.turn(Session.SUSPENDED)
                asyncio.get_running_loop().call_later(2, store.turn, Session.CONNECTED)

            await store.delete(paths.CONTROLLER)
            await store.watch_data(paths.CONTROLLER_EPOCH, silence)
            await asyncio.sleep(10)
            assert one.controller.is_active
            assert one.loop.state.epoch == 2
            await create(one, "t", 1)

    run(story())


@pytest.mark.spec("CTL-23")
def test_a_session_that_cannot_be_opened_again_at_once_is_tried_until_it_can() -> None:
    class Reluctant(MemoryStore):
        refusals = 3

        async def start(self) -> None:
            if self.session and self.refusals:
                self.refusals -= 1
                raise StoreUnavailable("not yet")
            await super().start()

    async def story() -> None:
        async with control_plane() as plane:
            store = Reluctant(plane.ensemble)
            one = await plane.start(1, store=store)
            plane.ensemble.expire(store)
            await asyncio.sleep(10)
            assert store.refusals == 0
            assert one.controller.is_active
            assert one.loop.state.epoch == 2

    run(story())


@pytest.mark.spec("CTL-19", "CTL-77")
def test_after_a_moment_without_contact_a_broker_still_hears_of_the_controllers_death() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one, two = await plane.start(1), await plane.start(2)
            await settle()
            assert one.controller.is_active
            store = cast(MemoryStore, two.store)
            store.turn(Session.SUSPENDED)
            store.reconnect()
            await settle()
            await plane.kill(1)
            await until(lambda: two.controller.is_active)

    run(story())


@pytest.mark.spec("CTL-43", "CTL-77")
def test_after_a_moment_without_contact_the_controller_reads_and_watches_everything_again() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            one, two = await plane.start(1), await plane.start(2)
            await settle()
            await create(one, "t", 2, 1)
            store = cast(MemoryStore, one.store)
            store.turn(Session.SUSPENDED)
            await plane.kill(2)  # nobody tells the controller
            store.reconnect()
            await until(lambda: leader(one) == 1)
            assert one.loop.state.epoch == 1
            await plane.start(3)
            await until(lambda: 3 in one.loop.state.brokers)
            assert two.id not in one.loop.state.brokers

    run(story())


@pytest.mark.spec("CTL-01", "CTL-15")
def test_a_broker_whose_election_was_not_answered_takes_office_all_the_same() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            store = _LosesOneReply(plane.ensemble, paths.CONTROLLER)
            one = await plane.start(1, store=store)
            await asyncio.sleep(5)
            assert store.lost
            assert one.controller.is_active
            assert one.loop.state.epoch == 1
            await create(one, "t", 1)

    run(story())


@pytest.mark.spec("CTL-23", "CTL-28")
@pytest.mark.parametrize("path", [paths.CONTROLLER, paths.broker(BrokerId(1))])
def test_an_expired_session_is_replaced_although_a_reply_is_lost_meanwhile(path: str) -> None:
    async def story() -> None:
        async with control_plane() as plane:
            store = _LosesOneReply(plane.ensemble, path, in_session=2)
            one = await plane.start(1, store=store)
            before = one.registration.epoch
            plane.ensemble.expire(store, keep_nodes=True)
            await asyncio.sleep(30)
            assert store.lost
            assert one.registration.epoch > before
            assert one.controller.is_active
            await create(one, "t", 1)

    run(story())


@pytest.mark.spec("CTL-24", "CTL-28")
def test_a_controller_without_contact_resigns_by_itself_and_comes_back_if_it_may() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            store = MemoryStore(plane.ensemble, session_timeout_s=6)
            one = await plane.start(1, store=store)
            two = await plane.start(2)
            await settle()
            await create(one, "t", 1, 2)
            store.turn(Session.SUSPENDED)
            await asyncio.sleep(5)
            assert one.controller.is_active
            await asyncio.sleep(2)
            assert not one.controller.is_active
            assert one.held.states[T0].assigned.leader == 1, "its partitions go on"
            with pytest.raises(KafkaError) as refused:
                await one.controller.create_topics([NewTopic("u")], 60_000)
            assert refused.value.code is ErrorCode.not_controller
            store.reconnect()  # the session lived on
            await until(lambda: one.controller.is_active)
            assert one.loop.state.epoch == 1
            assert two.loop.active_id == 1
            await create(one, "u", 2)

    run(story())


@pytest.mark.spec("CTL-19", "CTL-24")
def test_a_controller_that_was_replaced_while_it_had_no_contact_follows_the_new_one() -> None:
    async def story() -> None:
        async with control_plane() as plane:
            store = MemoryStore(plane.ensemble, session_timeout_s=6)
            one = await plane.start(1, store=store)
            two = await plane.start(2)
            await settle()
            before = one.registration.epoch
            store.turn(Session.SUSPENDED)
            plane.ensemble.end(store.session)
            await until(lambda: two.controller.is_active)
            await asyncio.sleep(10)
            store.reconnect()
            await until(lambda: one.registration.epoch > before)
            await until(lambda: one.loop.active_id == 2)
            assert not one.controller.is_active
            await until(lambda: BrokerId(1) in two.loop.state.brokers)

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
            times = families["kafka_controller_controllereventmanager_event_time_ms"].metrics
            assert (("event", "TopicCreationRequested"),) in times

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


class _LosesOneReply(MemoryStore):
    """Loses the reply to the first write of a node in one session, and its connection."""

    def __init__(self, ensemble: Ensemble, path: str, in_session: int = 1) -> None:
        super().__init__(ensemble)
        self.lost = False
        self._path = path
        self._in_session = in_session

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        results = await super().multi(ops)
        is_first = not self.lost and len(self.sessions) == self._in_session
        if is_first and any(op.path == self._path for op in ops):
            self.lost = True
            self.turn(Session.SUSPENDED)
            asyncio.get_running_loop().call_later(1, self.reconnect)
            raise StoreUnavailable("the reply was lost")
        return results
