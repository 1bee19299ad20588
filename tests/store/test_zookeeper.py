"""The store on a real ZooKeeper: the contract, and what becomes of sessions."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from kazoo.exceptions import BadVersionError, ConnectionLoss

from ottla.store.port import (
    BadVersion,
    Owner,
    RequiredNode,
    Session,
    SessionExpired,
    StoreUnavailable,
    owner_of,
)
from ottla.store.zookeeper import ZooKeeperStore, _translate
from tests.store.contract import (
    CONTRACT,
    CONTRACT_ON_SUSPENSION,
    Promise,
    PromiseOnSuspension,
    keep,
    title,
)
from tests.store.zookeeper_server import Server, zookeeper_ensemble, zookeeper_server
from tools.nodes import free_ports

SESSION_MS = 2_000
_number = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


def store_on(server: Server) -> ZooKeeperStore:
    """A session on a tree of its own."""
    where = f"{server.address}/tree{next(_number)}"
    return ZooKeeperStore(where, session_timeout_ms=SESSION_MS, connection_timeout_ms=20_000)


@pytest.mark.parametrize("promise", CONTRACT, ids=title)
@pytest.mark.real_loop
async def test_the_zookeeper_store_keeps_the_contract(promise: Promise, server: Server) -> None:
    await keep(store_on(server), promise)


@pytest.mark.parametrize("promise", CONTRACT_ON_SUSPENSION, ids=title)
@pytest.mark.real_loop
async def test_the_zookeeper_store_keeps_the_contract_on_suspension(
    promise: PromiseOnSuspension, server: Server
) -> None:
    where = f"{server.address}/tree{next(_number)}"
    one, other = (
        ZooKeeperStore(where, session_timeout_ms=SESSION_MS, connection_timeout_ms=20_000)
        for _ in range(2)
    )
    heard = Heard()
    one.on_session(heard)
    await one.start()
    await other.start()
    await heard.until(Session.CONNECTED)

    async def interrupt() -> None:
        one._client._connection._socket.shutdown(socket.SHUT_RDWR)
        await heard.until(Session.SUSPENDED)
        await heard.until(Session.CONNECTED)

    await promise(one, other, interrupt)
    await one.close()
    await other.close()


@pytest.mark.real_loop
async def test_a_session_that_is_interrupted_while_it_is_replaced_can_be_started_again(
    server: Server,
) -> None:
    store, heard = store_on(server), Heard()
    store.on_session(heard)
    await store.start()
    await asyncio.to_thread(server.end_session, store._client.client_id)
    await heard.until(Session.EXPIRED)
    await store.start()
    store._client._connection._socket.shutdown(socket.SHUT_RDWR)
    await heard.until(Session.SUSPENDED)
    async with asyncio.timeout(20):
        await store.start()  # as a broker does whose registration was interrupted
    assert len(store.sessions) == 2
    await store.create("/mine", ephemeral=True)
    await store.close()


@pytest.mark.real_loop
async def test_a_store_without_contact_says_when_its_session_may_have_expired(
    server: Server,
) -> None:
    store, heard = store_on(server), Heard()
    store.on_session(heard)
    await store.start()
    server.signal(signal.SIGSTOP)
    try:
        await heard.until(Session.SUSPENDED)
        await heard.until(Session.OVERDUE)
        with pytest.raises(StoreUnavailable):
            await store.start()
    finally:
        server.signal(signal.SIGCONT)
    await store.close()


@pytest.mark.real_loop
async def test_a_server_that_accepts_and_says_nothing_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        store = ZooKeeperStore(where, session_timeout_ms=30_000, connection_timeout_ms=300)
        async with asyncio.timeout(5):
            with pytest.raises(StoreUnavailable, match=r"no reply within 0\.3 s"):
                await store.start()
            await store.close()


@pytest.mark.real_loop
async def test_of_three_servers_one_may_be_down(tmp_path: Path) -> None:
    with zookeeper_ensemble(tmp_path, 3) as servers:
        where = ",".join(server.address for server in servers)
        store = ZooKeeperStore(
            f"{where}/a/b", session_timeout_ms=SESSION_MS, connection_timeout_ms=30_000
        )
        await store.start()
        await store.create("/mine", b"kept", ephemeral=True)
        for server in servers:
            server.kill()
            async with asyncio.timeout(60):
                while True:
                    try:
                        node = await store.get("/mine")
                        break
                    except StoreUnavailable:
                        await asyncio.sleep(0.05)
            assert node is not None
            assert owner_of(node, store) is Owner.THIS_SESSION
            server.start_again()
            await asyncio.to_thread(server.wait_until_it_serves)
        await store.close()


@pytest.mark.real_loop
async def test_an_expired_session_loses_its_ephemerals_and_its_word(server: Server) -> None:
    store, heard = store_on(server), Heard()
    store.on_session(heard)
    await store.start()
    await heard.until(Session.CONNECTED)
    await store.create("/mine", ephemeral=True)
    await asyncio.to_thread(server.end_session, store._client.client_id)
    await heard.until(Session.EXPIRED)
    with pytest.raises(SessionExpired):
        await store.get("/mine")
    await store.start()
    await heard.until(Session.CONNECTED)
    assert await store.get("/mine") is None
    await store.create("/mine", ephemeral=True)
    await store.close()


@pytest.mark.real_loop
async def test_a_tree_that_was_lost_is_unavailable_until_it_is_restored(server: Server) -> None:
    where = f"{server.address}/tree{next(_number)}"
    store, operator = (
        ZooKeeperStore(where, session_timeout_ms=SESSION_MS, connection_timeout_ms=ms)
        for ms in (3_000, 20_000)
    )
    heard = Heard()
    store.on_session(heard)
    await store.start()
    await operator.start()
    await operator.create("/id", b"ours")
    store.required = RequiredNode("/id", b"ours")
    for lost in (None, b"another"):
        await operator.delete("/id")
        if lost is not None:
            await operator.create("/id", lost)
        await asyncio.to_thread(server.end_session, store._client.client_id)
        await heard.until(Session.EXPIRED)
        with pytest.raises(StoreUnavailable, match="ZooKeeper lost its data: /id of this cluster"):
            await store.start()
        with pytest.raises(SessionExpired):
            await store.get("/id")
        await (operator.create if lost is None else operator.set)("/id", b"ours")
        await store.start()
        await heard.until(Session.CONNECTED)
        assert await store.get("/id") is not None
    await store.close()
    await operator.close()


@pytest.mark.real_loop
async def test_without_contact_calls_are_refused_at_once_and_the_session_goes_on(
    server: Server,
) -> None:
    store, heard = store_on(server), Heard()
    store.on_session(heard)
    await store.start()
    await heard.until(Session.CONNECTED)
    server.signal(signal.SIGSTOP)
    await heard.until(Session.SUSPENDED)
    with pytest.raises(StoreUnavailable):
        await store.get("/")
    with pytest.raises(StoreUnavailable):
        await store.create("/a")
    server.signal(signal.SIGCONT)
    while (state := await heard.next()) is Session.OVERDUE:
        pass
    # the server, too, was asleep: it may or may not have waited
    if state is Session.EXPIRED:
        await store.start()
    await store.create("/a")
    await store.close()


@pytest.mark.real_loop
async def test_an_ensemble_that_does_not_answer_is_unavailable() -> None:
    where = f"127.0.0.1:{free_ports(1)[0]}"
    store = ZooKeeperStore(where, session_timeout_ms=500, connection_timeout_ms=200)
    with pytest.raises(StoreUnavailable):
        await store.start()
    with pytest.raises(SessionExpired):
        await store.get("/a")
    await store.close()


def test_kazoos_refusals_become_ours() -> None:
    refusal = _translate(BadVersionError(), "/a", 3)
    assert isinstance(refusal, BadVersion)
    assert (refusal.path, refusal.at) == ("/a", 3)
    assert isinstance(_translate(ConnectionLoss(), "/a"), StoreUnavailable)


class Heard:
    """What a session listener was told, in order."""

    def __init__(self) -> None:
        self._states: asyncio.Queue[Session] = asyncio.Queue()

    def __call__(self, state: Session) -> None:
        self._states.put_nowait(state)

    async def next(self) -> Session:
        async with asyncio.timeout(30):
            return await self._states.get()

    async def until(self, expected: Session) -> None:
        while await self.next() is not expected:
            pass
