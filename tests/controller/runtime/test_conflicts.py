"""Writes of the controller that meet another version: nothing of an event is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random

import pytest

from ottla.controller.events import NewTopic
from ottla.controller.runtime.loop import CONFLICTS_MAX
from ottla.controller.topics import Created
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore, StoreFaults
from ottla.store.nodes import StateNode, TopicNode
from ottla.store.port import ANY_VERSION, Create, Op, Result, Set
from tests.fakes.control_plane import ControlPlane, Node, control_plane, settle, until

T0 = TopicPartition("t", 0)


class Contended(MemoryStore):
    """Somebody else writes the chosen nodes just before this session does, some times."""

    def __init__(self, ensemble: Ensemble) -> None:
        super().__init__(ensemble)
        self.contended: dict[str, int] = {}
        self.met = 0

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        for op in ops:
            if self.contended.get(op.path) and not (
                isinstance(op, Set) and op.version == ANY_VERSION
            ):
                self.contended[op.path] -= 1
                self.met += 1
                self._write_first(op)
        return await super().multi(ops)

    def _write_first(self, op: Op) -> None:
        entry = self._ensemble.tree.find(op.path)
        other: Op
        if entry is None:
            assert isinstance(op, Create)
            other = Create(op.path, op.data)
        else:
            other = Set(op.path, entry.node().data)
        self._ensemble.write([other], self.session)


async def contended_controller(plane: ControlPlane) -> tuple[Node, Contended]:
    store = Contended(plane.ensemble)
    return await plane.start(1, store=store), store


async def create(node: Node, count: int, *replicas: int, name: str = "t") -> Created | KafkaError:
    chosen = {number: tuple(map(BrokerId, replicas)) for number in range(count)}
    created = await node.controller.create_topics([NewTopic(name, assignment=chosen)], 60_000)
    return created[name]


def led_by(node: Node, broker: int, count: int = 1) -> Callable[[], bool]:
    def check() -> bool:
        partitions = (node.metadata.image.partition(TopicPartition("t", n)) for n in range(count))
        return all(p is not None and p.leader == broker for p in partitions)

    return check


async def stored_state(node: Node, tp: TopicPartition = T0) -> StateNode:
    found = await node.store.get(paths.partition_state(tp))
    assert found is not None
    return StateNode.decode(found.data)


async def in_time(condition: Callable[[], bool], limit_s: float = 60) -> None:
    """As `until`, while time passes."""
    for _ in range(round(limit_s / 0.05)):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the condition did not become true")


@pytest.mark.spec("CTL-65")
async def test_a_conflict_in_the_last_batch_of_a_large_step_loses_none_of_the_others() -> None:
    async with control_plane() as plane:
        one, store = await contended_controller(plane)
        await plane.start(2)
        await settle()
        assert isinstance(await create(one, 700, 2, 1), Created)
        store.contended[paths.partition_state(TopicPartition("t", 699))] = 1
        await plane.kill(2)
        await in_time(led_by(one, 1, 700))
        assert store.met == 1
        epochs = {
            (await stored_state(one, TopicPartition("t", n))).leader_epoch for n in range(700)
        }
        assert epochs == {1}, "each partition was decided once"


@pytest.mark.spec("CTL-65")
async def test_partitions_that_conflict_together_are_reloaded_together() -> None:
    async with control_plane() as plane:
        one, store = await contended_controller(plane)
        await plane.start(2)
        await settle()
        assert isinstance(await create(one, 40, 2, 1), Created)
        for number in range(40):
            store.contended[paths.partition_state(TopicPartition("t", number))] = 1
        await plane.kill(2)
        await until(led_by(one, 1, 40))
        assert store.met == 40


@pytest.mark.spec("CTL-30", "CTL-65")
async def test_an_event_that_meets_conflicts_again_and_again_is_put_back_and_others_go_first() -> (
    None
):
    async with control_plane() as plane:
        one, store = await contended_controller(plane)
        await plane.start(2)
        await settle()
        assert isinstance(await create(one, 1, 2, 1), Created)
        path = paths.partition_state(T0)
        store.contended[path] = 20 * CONFLICTS_MAX
        await plane.kill(2)
        await in_time(lambda: store.contended[path] <= 18 * CONFLICTS_MAX)
        assert isinstance(await create(one, 1, 1, name="other"), Created)
        assert store.contended[path] > 0, "the event waits meanwhile"
        await in_time(led_by(one, 1), limit_s=300)
        assert store.contended[path] == 0


@pytest.mark.spec("CTL-28", "CTL-65")
async def test_a_requester_whose_event_meets_too_many_conflicts_is_told_to_retry() -> None:
    async with control_plane() as plane:
        one, store = await contended_controller(plane)
        two = await plane.start(2)
        await settle()
        assert isinstance(await create(one, 1, 2, 1), Created)
        store.contended[paths.partition_state(T0)] = CONFLICTS_MAX
        with pytest.raises(KafkaError) as refused:
            await one.controller.controlled_shutdown(two.id, two.registration.epoch)
        assert refused.value.code is ErrorCode.not_controller
        await asyncio.sleep(60)
        assert led_by(one, 2)(), "a refused request is not carried out later"
        left = await one.controller.controlled_shutdown(two.id, two.registration.epoch)
        assert left == frozenset()
        assert led_by(one, 1)()


@pytest.mark.spec("CTL-48", "CTL-65")
async def test_a_topic_whose_creation_met_a_conflict_half_way_is_reported_as_created() -> None:
    async with control_plane() as plane:
        one, store = await contended_controller(plane)
        await settle()
        last = TopicPartition("t", 599)
        store.contended[paths.partition(last)] = 1  # its batch follows the topic's own node
        store.contended[paths.partition_state(last)] = 1
        created = await create(one, 600, 1)
        assert isinstance(created, Created), created
        assert created.partition_count == 600
        node = await one.store.get(paths.topic("t"))
        assert node is not None
        assert TopicNode.decode(node.data).topic_id == created.id
        await in_time(led_by(one, 1, 600))


@pytest.mark.spec("CTL-17", "CTL-65")
async def test_a_new_controller_that_meets_a_conflict_reads_everything_again() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        store = Contended(plane.ensemble)
        two = await plane.start(2, store=store)
        await settle()
        assert isinstance(await create(one, 3, 1, 2), Created)
        path = paths.partition_state(T0)
        store.contended[path] = 2 * CONFLICTS_MAX
        await plane.kill(1)
        await in_time(led_by(two, 2, 3))
        assert two.controller.is_active
        assert (await stored_state(two)).isr == (2,)


@pytest.mark.spec("CTL-66")
async def test_of_two_changes_of_a_setting_the_later_holds_although_the_first_met_conflicts() -> (
    None
):
    async with control_plane() as plane:
        one, store = await contended_controller(plane)
        await plane.start(2)
        await plane.start(3)
        await settle()
        assert isinstance(await create(one, 1, 2, 3), Created)
        await plane.kill(2)
        await until(led_by(one, 3))
        await plane.kill(3)
        await until(led_by(one, -1))
        await plane.start(2)
        await settle()
        path = paths.partition_state(T0)
        store.contended[path] = CONFLICTS_MAX
        unclean = {"unclean.leader.election.enable": "true"}
        one.config.set_cluster(unclean)
        await in_time(lambda: store.contended[path] == 0)
        one.config.set_cluster({})
        await asyncio.sleep(60)
        assert not one.loop.state.rules.unclean_leader_election_enable
        assert led_by(one, -1)()


@pytest.mark.spec("CTL-65")
@pytest.mark.parametrize("seed", range(8))
async def test_lost_replies_of_the_store_lose_no_election(seed: int) -> None:
    async with control_plane() as plane:
        store = MemoryStore(plane.ensemble, session_timeout_s=18)
        one = await plane.start(1, store=store)
        await plane.start(2)
        await settle()
        store._faults = StoreFaults(Random(seed), lost_requests=0.05, lost_replies=0.15)
        for _ in range(50):
            try:
                created = await create(one, 5, 2, 1)
            except KafkaError as refused:
                assert refused.code is ErrorCode.not_controller
                await asyncio.sleep(1)
                continue
            assert isinstance(created, Created) or (created.code is ErrorCode.topic_already_exists)
            break
        await in_time(led_by(one, 2, 5))
        await plane.kill(2)
        await in_time(led_by(one, 1, 5))
