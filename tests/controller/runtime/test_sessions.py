"""The controller's task when the session with the metadata store is interrupted or expires."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.port import Op, Result, Session, StoreUnavailable
from tests.controller.runtime.topic_state import T0, create, leader
from tests.fakes.control_plane import control_plane, settle, until


@pytest.mark.spec("CTL-23", "CTL-28", "CTL-29")
async def test_after_its_session_expired_a_broker_registers_anew_and_stands_again() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await settle()
        await create(one, "t", 1)
        before = one.registration.epoch
        plane.ensemble.expire(cast(MemoryStore, one.store))
        await until(lambda: one.loop.state.epoch == 2)
        assert one.registration.epoch > before
        await until(lambda: leader(one) == 1)


@pytest.mark.spec("CTL-28", "CTL-29")
async def test_who_waits_when_the_session_expires_is_told_to_ask_the_next_controller() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await settle()
        number, answer = one.loop.open_request()
        plane.ensemble.expire(cast(MemoryStore, one.store))
        with pytest.raises(KafkaError) as refused:
            await answer
        assert refused.value.code is ErrorCode.not_controller
        assert number > 0


async def test_a_topic_created_on_first_use_is_refused_when_the_session_expires() -> None:
    """Not raised: a client that asks for a coordinator is not told NOT_CONTROLLER."""
    async with control_plane() as plane:
        one = await plane.start(1)
        await settle()
        creation = asyncio.ensure_future(one.controller.auto_create(["t"], 5_000))
        await asyncio.sleep(0)
        plane.ensemble.expire(cast(MemoryStore, one.store))
        refusal = (await creation)["t"]
        assert isinstance(refusal, KafkaError)
        assert refusal.code is ErrorCode.not_controller


async def test_a_store_that_cannot_be_reached_for_a_while_delays_and_loses_nothing() -> None:
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


async def test_a_store_that_falls_silent_just_after_the_election_delays_the_start() -> None:
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


@pytest.mark.spec("CTL-23")
async def test_a_session_that_cannot_be_opened_again_at_once_is_tried_until_it_can() -> None:
    class Reluctant(MemoryStore):
        refusals = 3

        async def start(self) -> None:
            if self.session and self.refusals:
                self.refusals -= 1
                raise StoreUnavailable("not yet")
            await super().start()

    async with control_plane() as plane:
        store = Reluctant(plane.ensemble)
        one = await plane.start(1, store=store)
        plane.ensemble.expire(store)
        await asyncio.sleep(10)
        assert store.refusals == 0
        assert one.controller.is_active
        assert one.loop.state.epoch == 2


@pytest.mark.spec("CTL-19", "CTL-77")
async def test_after_a_moment_without_contact_a_broker_still_hears_of_the_controllers_death() -> (
    None
):
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


@pytest.mark.spec("CTL-43", "CTL-77")
async def test_after_a_moment_without_contact_the_controller_reads_and_watches_all_again() -> None:
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


@pytest.mark.spec("CTL-01", "CTL-15")
async def test_a_broker_whose_election_was_not_answered_takes_office_all_the_same() -> None:
    async with control_plane() as plane:
        store = _LosesOneReply(plane.ensemble, paths.CONTROLLER)
        one = await plane.start(1, store=store)
        await asyncio.sleep(5)
        assert store.lost
        assert one.controller.is_active
        assert one.loop.state.epoch == 1
        await create(one, "t", 1)


@pytest.mark.spec("CTL-23", "CTL-28")
@pytest.mark.parametrize("path", [paths.CONTROLLER, paths.broker(BrokerId(1))])
async def test_an_expired_session_is_replaced_although_a_reply_is_lost_meanwhile(path: str) -> None:
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


@pytest.mark.spec("CTL-24", "CTL-28")
async def test_a_controller_without_contact_resigns_by_itself_and_comes_back_if_it_may() -> None:
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


@pytest.mark.spec("CTL-19", "CTL-24")
async def test_a_controller_that_was_replaced_while_it_had_no_contact_follows_the_new_one() -> None:
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
