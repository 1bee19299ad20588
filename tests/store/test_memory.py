"""The shared tree of simulations: the contract, and what several sessions see of each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.port import BadVersion, NodeExists, Session, SessionExpired, StoreUnavailable
from tests.store.contract import CONTRACT, Heard, Promise, keep, title


@pytest.mark.parametrize("promise", CONTRACT, ids=title)
def test_the_memory_store_keeps_the_contract(promise: Promise) -> None:
    asyncio.run(keep(MemoryStore(Ensemble()), promise))


def test_sessions_see_each_others_writes() -> None:
    async def scenario(one: MemoryStore, other: MemoryStore, _: Ensemble) -> None:
        await one.create("/a", b"1")
        node = await other.get("/a")
        assert node is not None
        assert node.data == b"1"
        await other.set("/a", b"2", version=0)
        with pytest.raises(BadVersion):
            await one.set("/a", b"3", version=0)

    _with_two(scenario)


@pytest.mark.spec("CTL-01")
def test_of_two_sessions_one_wins_an_election_and_the_other_hears_when_it_is_over() -> None:
    async def scenario(one: MemoryStore, other: MemoryStore, _: Ensemble) -> None:
        heard = Heard()
        await one.create("/controller", b"1", ephemeral=True)
        with pytest.raises(NodeExists):
            await other.create("/controller", b"2", ephemeral=True)
        assert await other.watch_data("/controller", heard) is not None
        await one.close()
        await heard.until(["/controller"])
        await other.create("/controller", b"2", ephemeral=True)

    _with_two(scenario)


def test_an_expired_session_loses_its_ephemerals_and_its_word() -> None:
    async def scenario(one: MemoryStore, other: MemoryStore, ensemble: Ensemble) -> None:
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

    _with_two(scenario)


def test_a_session_without_contact_can_do_nothing_until_it_is_joined_again() -> None:
    async def scenario(one: MemoryStore, other: MemoryStore, _: Ensemble) -> None:
        await one.create("/mine", ephemeral=True)
        one.turn(Session.SUSPENDED)
        with pytest.raises(StoreUnavailable):
            await one.get("/mine")
        assert await other.get("/mine") is not None  # the session itself lives on
        one.turn(Session.CONNECTED)
        assert await one.get("/mine") is not None

    _with_two(scenario)


def test_nested_ephemerals_of_a_session_vanish_together() -> None:
    async def scenario(one: MemoryStore, other: MemoryStore, _: Ensemble) -> None:
        await other.create("/ids")
        for number in range(3):
            await one.create(f"/ids/{number}", ephemeral=True)
        await one.close()
        assert await other.children("/ids") == []

    _with_two(scenario)


def test_the_same_calls_give_the_same_tree() -> None:
    def history() -> list[str]:
        seen: list[str] = []

        async def scenario(one: MemoryStore, other: MemoryStore, _: Ensemble) -> None:
            await one.create("/q")
            await one.watch_children("/q", seen.append)
            for store in (one, other, one):
                seen.append(await store.create("/q/n_", sequential=True, ephemeral=True))
            await other.close()
            seen.extend(await one.children("/q"))

        _with_two(scenario)
        return seen

    assert history() == history()


def _with_two(
    scenario: Callable[[MemoryStore, MemoryStore, Ensemble], Awaitable[None]],
) -> None:
    async def run() -> None:
        ensemble = Ensemble()
        one, other = MemoryStore(ensemble), MemoryStore(ensemble)
        await one.start()
        await other.start()
        await scenario(one, other, ensemble)

    asyncio.run(run())
