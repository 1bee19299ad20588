"""Delegation tokens kept in the store."""

from __future__ import annotations

import asyncio
import json

import pytest

from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.delegation_tokens import DelegationTokens, Token
from ottla.shared_state.token_store import TokenStore
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore
from tests.fakes.control_plane import until
from tests.fakes.virtual_loop import LoopClock

BASE_MS = WallMs(1_700_000_000_000)
TOKEN = Token(
    "Zm9v",
    "User:alice",
    "User:admin",
    ("User:b b",),
    BASE_MS,
    WallMs(BASE_MS + 9_000),
    WallMs(BASE_MS + 5_000),
)
KAFKAS = {
    "version": 3,
    "owner": "User%3Aalice",
    "tokenRequester": "User%3Aadmin",
    "renewers": ["User%3Ab%20b"],
    "issueTimestamp": BASE_MS,
    "maxTimestamp": BASE_MS + 9_000,
    "expiryTimestamp": BASE_MS + 5_000,
    "tokenId": "Zm9v",
}
pytestmark = pytest.mark.spec("SEC-06")


class Broker:
    def __init__(self, ensemble: Ensemble, secret: str = "key") -> None:
        self.store = MemoryStore(ensemble)
        self.tokens = DelegationTokens(secret, LoopClock())
        self.kept = TokenStore(self.store, self.tokens, bytes)

    async def start(self, tasks: asyncio.TaskGroup) -> asyncio.Task[None]:
        await self.store.start()
        await self.kept.load()
        return tasks.create_task(self.kept.run())


async def test_a_token_is_stored_as_kafka_stores_it_and_known_everywhere() -> None:
    ensemble = Ensemble()
    one, two, later = Broker(ensemble), Broker(ensemble), Broker(ensemble)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks), await two.start(tasks)]
        await one.kept.create(TOKEN)
        node = await one.store.get("/delegation_token/tokens/Zm9v")
        assert node is not None
        assert json.loads(node.data) == KAFKAS
        await until(lambda: dict(two.tokens.all) == {"Zm9v": TOKEN})
        changed = TOKEN._replace(expires_ms=WallMs(BASE_MS + 6_000))
        await two.kept.update(changed)
        await until(lambda: one.tokens.all["Zm9v"] == changed)
        running.append(await later.start(tasks))
        assert dict(later.tokens.all) == {"Zm9v": changed}
        await later.kept.remove("Zm9v")
        await until(lambda: not one.tokens.all and not two.tokens.all)
        with pytest.raises(KafkaError) as refused:
            await one.kept.update(changed)
        assert refused.value.code is ErrorCode.delegation_token_not_found
        for task in running:
            task.cancel()


async def test_the_active_controller_alone_deletes_expired_tokens() -> None:
    ensemble = Ensemble()
    one, two = Broker(ensemble), Broker(ensemble)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks), await two.start(tasks)]
        await one.kept.create(TOKEN)
        is_active = False
        running.append(tasks.create_task(two.kept.run_expiry(1.0, lambda: is_active)))
        await asyncio.sleep(20)
        assert one.tokens.expired_ids() == ["Zm9v"]
        is_active = True
        await until(lambda: not one.tokens.all)
        assert await one.store.get(paths.token("Zm9v")) is None
        for task in running:
            task.cancel()


async def test_tokens_of_older_versions_are_read_and_unreadable_ones_ignored() -> None:
    ensemble = Ensemble()
    broker = Broker(ensemble)
    await broker.store.start()
    for path in (paths.DELEGATION_TOKEN, paths.TOKENS, paths.TOKEN_CHANGES):
        await broker.store.create(path)
    old = {**KAFKAS, "version": 1}
    del old["tokenRequester"]
    for id, data in (("Zm9v", json.dumps(old).encode()), ("bad", b"{"), ("other", b"")):
        await broker.store.create(paths.token(id), data)
    await broker.kept.load()
    assert dict(broker.tokens.all) == {"Zm9v": TOKEN._replace(requester="User:alice")}


async def test_without_a_secret_key_there_are_no_nodes() -> None:
    broker = Broker(Ensemble(), "")
    await broker.store.start()
    await broker.kept.load()
    assert await broker.store.get(paths.DELEGATION_TOKEN) is None
