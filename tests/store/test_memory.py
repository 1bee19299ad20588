"""The shared tree of simulations: the contract, and what several sessions see of each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from ottla.store.memory import Ensemble, MemoryStore, StoreFaults
from ottla.store.port import (
    BadVersion,
    NodeExists,
    Owner,
    Session,
    SessionExpired,
    StoreUnavailable,
    owner_of,
)
from tests.store.contract import (
    CONTRACT,
    CONTRACT_ON_SUSPENSION,
    Heard,
    Promise,
    PromiseOnSuspension,
    keep,
    title,
)


@pytest.mark.parametrize("promise", CONTRACT, ids=title)
async def test_the_memory_store_keeps_the_contract(promise: Promise) -> None:
    await keep(MemoryStore(Ensemble()), promise)


@pytest.mark.parametrize("promise", CONTRACT, ids=title)
async def test_a_session_whose_server_is_behind_keeps_the_contract(promise: Promise) -> None:
    faults = StoreFaults(Random(1), lag_s=5, reply_s=0.5)
    await keep(MemoryStore(Ensemble(), faults=faults), promise)


@pytest.mark.parametrize("promise", CONTRACT_ON_SUSPENSION, ids=title)
async def test_the_memory_store_keeps_the_contract_on_suspension(
    promise: PromiseOnSuspension,
) -> None:
    async with two_sessions() as (one, other, _):

        async def interrupt() -> None:
            one.turn(Session.SUSPENDED)
            one.reconnect()

        await promise(one, other, interrupt)


async def test_a_write_whose_reply_is_lost_has_happened_and_the_session_comes_back() -> None:
    ensemble, states = Ensemble(), list[Session]()
    store = MemoryStore(ensemble, faults=StoreFaults(Random(1), lost_replies=1))
    store.on_session(states.append)
    await store.start()
    with pytest.raises(StoreUnavailable):
        await store.create("/mine", ephemeral=True)
    await asyncio.sleep(1)
    assert states == [Session.CONNECTED, Session.SUSPENDED, Session.CONNECTED]
    node = await store.get("/mine")
    assert node is not None
    assert owner_of(node, store) is Owner.THIS_SESSION


async def test_a_request_that_is_lost_has_not_happened() -> None:
    ensemble = Ensemble()
    store = MemoryStore(ensemble, faults=StoreFaults(Random(1), lost_requests=1))
    await store.start()
    with pytest.raises(StoreUnavailable):
        await store.create("/a")
    assert ensemble.tree.find("/a") is None


async def test_reads_may_be_behind_but_never_behind_a_write_of_the_session() -> None:
    ensemble = Ensemble()
    prompt = MemoryStore(ensemble)
    late = MemoryStore(ensemble, faults=StoreFaults(Random(2), lag_s=60))
    await prompt.start()
    await late.start()
    heard = Heard()
    assert await late.watch_data("/a", heard) is None
    await prompt.create("/a", b"1")
    assert await late.get("/a") is None
    assert heard.paths == []
    with pytest.raises(NodeExists):  # a refused write shows it too
        await late.create("/a", b"2")
    node = await late.get("/a")
    assert node is not None
    assert node.data == b"1"
    await heard.until(["/a"])
    await prompt.set("/a", b"3")
    await asyncio.sleep(60)
    node = await late.get("/a")
    assert node is not None
    assert node.data == b"3"


async def test_without_contact_for_as_long_as_the_session_lasts_the_client_says_so_by_itself() -> (
    None
):
    ensemble, states = Ensemble(), list[Session]()
    store = MemoryStore(ensemble, session_timeout_s=6)
    store.on_session(states.append)
    await store.start()
    store.turn(Session.SUSPENDED)
    await asyncio.sleep(5)
    assert states == [Session.CONNECTED, Session.SUSPENDED]
    await asyncio.sleep(2)
    assert states[2:] == [Session.OVERDUE]
    ensemble.end(store.session)
    store.reconnect()  # only now it learns what became of its session
    await asyncio.sleep(60)
    assert states[3:] == [Session.EXPIRED]


async def test_sessions_see_each_others_writes() -> None:
    async with two_sessions() as (one, other, _):
        await one.create("/a", b"1")
        node = await other.get("/a")
        assert node is not None
        assert node.data == b"1"
        await other.set("/a", b"2", version=0)
        with pytest.raises(BadVersion):
            await one.set("/a", b"3", version=0)


@pytest.mark.spec("CTL-01")
async def test_of_two_sessions_one_wins_an_election_and_the_other_hears_when_it_is_over() -> None:
    async with two_sessions() as (one, other, _):
        heard = Heard()
        await one.create("/controller", b"1", ephemeral=True)
        with pytest.raises(NodeExists):
            await other.create("/controller", b"2", ephemeral=True)
        assert await other.watch_data("/controller", heard) is not None
        await one.close()
        await heard.until(["/controller"])
        await other.create("/controller", b"2", ephemeral=True)


async def test_an_expired_session_loses_its_ephemerals_and_its_word() -> None:
    async with two_sessions() as (one, other, ensemble):
        states: list[Session] = []
        one.on_session(states.append)
        late = Heard()
        await one.create("/mine", ephemeral=True)
        await one.create("/kept")
        await one.watch_data("/kept", late)
        ensemble.expire(one)
        with pytest.raises(SessionExpired):
            await one.set("/kept", b"zombie")
        assert await other.get("/mine") is None
        await other.set("/kept", b"x")
        await other.get("/kept")
        assert late.paths == []  # watches end with the session
        assert states == [Session.EXPIRED]
        await one.start()
        await one.create("/mine", ephemeral=True)


async def test_a_session_without_contact_can_do_nothing_until_it_is_joined_again() -> None:
    async with two_sessions() as (one, other, _):
        await one.create("/mine", ephemeral=True)
        one.turn(Session.SUSPENDED)
        with pytest.raises(StoreUnavailable):
            await one.get("/mine")
        assert await other.get("/mine") is not None  # the session itself lives on
        one.turn(Session.CONNECTED)
        assert await one.get("/mine") is not None


async def test_nested_ephemerals_of_a_session_vanish_together() -> None:
    async with two_sessions() as (one, other, _):
        await other.create("/ids")
        for number in range(3):
            await one.create(f"/ids/{number}", ephemeral=True)
        await one.close()
        assert await other.children("/ids") == []


async def test_the_same_calls_give_the_same_tree() -> None:
    async def history() -> list[str]:
        seen: list[str] = []
        async with two_sessions() as (one, other, _):
            await one.create("/q")
            await one.watch_children("/q", seen.append)
            for store in (one, other, one):
                seen.append(await store.create("/q/n_", sequential=True, ephemeral=True))
            await other.close()
            seen.extend(await one.children("/q"))
        return seen

    assert await history() == await history()


@asynccontextmanager
async def two_sessions() -> AsyncIterator[tuple[MemoryStore, MemoryStore, Ensemble]]:
    ensemble = Ensemble()
    one, other = MemoryStore(ensemble), MemoryStore(ensemble)
    await one.start()
    await other.start()
    yield one, other, ensemble
