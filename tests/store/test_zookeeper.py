"""The store on a real ZooKeeper: the contract, and what becomes of sessions.

Runs where a JDK is installed and the jars of Kafka 3.9, which carry ZooKeeper's server, have been
fetched (`make interop` does); never downloads anything itself.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, ConnectionLoss

from ottla.store.port import BadVersion, Session, SessionExpired, StoreUnavailable
from ottla.store.zookeeper import ZooKeeperStore, _translated
from tests.store.contract import CONTRACT, Promise, keep, title
from tools.kafka_cache import cache_dir

SESSION_MS = 2_000
_number = count()


class Server(subprocess.Popen[bytes]):
    """One ZooKeeper server with a tick short enough for tests."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self.port = _free_port()
        config = folder / "zoo.cfg"
        config.write_text(
            f"tickTime=200\ndataDir={folder}\nclientPort={self.port}\nadmin.enableServer=false\n"
        )
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        super().__init__(
            ["java", "-Xmx128m", "-cp", f"{jars}/*", main, str(config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def store(self) -> ZooKeeperStore:
        """A session on a tree of its own."""
        where = f"127.0.0.1:{self.port}/tree{next(_number)}"
        return ZooKeeperStore(where, session_timeout_ms=SESSION_MS, connection_timeout_ms=20_000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folders = sorted((cache_dir() / "jars").glob("server-3.9-*"))
    if not folders or shutil.which("java") is None:
        pytest.skip("no JDK, or the jars of Kafka 3.9 were never fetched")
    with Server(tmp_path_factory.mktemp("zookeeper"), folders[-1]) as running:
        yield running
        running.send_signal(signal.SIGCONT)
        running.terminate()


@pytest.mark.parametrize("promise", CONTRACT, ids=title)
def test_the_zookeeper_store_keeps_the_contract(promise: Promise, server: Server) -> None:
    asyncio.run(keep(server.store(), promise))


def test_an_expired_session_loses_its_ephemerals_and_its_word(server: Server) -> None:
    async def scenario() -> None:
        store, heard = server.store(), Heard()
        store.on_session(heard)
        await store.start()
        await heard.until(Session.CONNECTED)
        await store.create("/mine", ephemeral=True)
        await asyncio.to_thread(_expire, store._client)
        await heard.until(Session.EXPIRED)
        with pytest.raises(SessionExpired):
            await store.get("/mine")
        await store.start()
        await heard.until(Session.CONNECTED)
        assert await store.get("/mine") is None
        await store.create("/mine", ephemeral=True)
        await store.close()

    asyncio.run(scenario())


def test_without_contact_calls_are_refused_at_once_and_the_session_goes_on(
    server: Server,
) -> None:
    async def scenario() -> None:
        store, heard = server.store(), Heard()
        store.on_session(heard)
        await store.start()
        await heard.until(Session.CONNECTED)
        server.send_signal(signal.SIGSTOP)
        await heard.until(Session.SUSPENDED)
        with pytest.raises(StoreUnavailable):
            await store.get("/")
        with pytest.raises(StoreUnavailable):
            await store.create("/a")
        server.send_signal(signal.SIGCONT)
        state = await heard.next()  # the server, too, was asleep: it may or may not have waited
        if state is Session.EXPIRED:
            await store.start()
        await store.create("/a")
        await store.close()

    asyncio.run(scenario())


def test_an_ensemble_that_does_not_answer_is_unavailable() -> None:
    async def scenario() -> None:
        where = f"127.0.0.1:{_free_port()}"
        store = ZooKeeperStore(where, session_timeout_ms=500, connection_timeout_ms=200)
        with pytest.raises(StoreUnavailable):
            await store.start()
        with pytest.raises(SessionExpired):
            await store.get("/a")
        await store.close()

    asyncio.run(scenario())


def test_kazoos_refusals_become_ours() -> None:
    refusal = _translated(BadVersionError(), "/a", 3)
    assert isinstance(refusal, BadVersion)
    assert (refusal.path, refusal.at) == ("/a", 3)
    assert isinstance(_translated(ConnectionLoss(), "/a"), StoreUnavailable)


class Heard:
    """What a session listener was told, in order."""

    def __init__(self) -> None:
        self._states: asyncio.Queue[Session] = asyncio.Queue()

    def __call__(self, state: Session) -> None:
        self._states.put_nowait(state)

    async def next(self) -> Session:
        async with asyncio.timeout(30):
            return await self._states.get()

    async def until(self, wanted: Session) -> None:
        while await self.next() is not wanted:
            pass


def _expire(client: KazooClient) -> None:
    """End a client's session behind its back: ZooKeeper sees the same session twice."""
    host, port = client.hosts[0]
    double = KazooClient(hosts=f"{host}:{port}", client_id=client.client_id)
    double.start()
    double.stop()
    double.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
