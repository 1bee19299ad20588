"""Producer ids."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ottla.model.errors import KafkaError
from ottla.model.ids import BrokerId, ProducerId
from ottla.shared_state.producer_ids import BLOCK, LAST_ID, ProducerIds
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore, StoreFaults
from ottla.store.nodes import ProducerIdBlockNode
from ottla.store.port import StoreUnavailable


async def opened(ensemble: Ensemble, faults: StoreFaults | None = None) -> MemoryStore:
    store = MemoryStore(ensemble, faults=faults)
    await store.start()
    return store


@pytest.mark.spec("TXN-05", "CTL-13")
async def test_ids_come_in_blocks_of_a_thousand_and_a_restart_takes_the_next() -> None:
    store = await opened(Ensemble())
    ids = ProducerIds(store, BrokerId(3))
    assert [await ids.next() for _ in range(1_001)] == list(range(1_001))
    node = await store.get(paths.PRODUCER_ID_BLOCK)
    assert node is not None
    assert ProducerIdBlockNode.decode(node.data) == (3, 1_000, 1_999)
    assert await ProducerIds(store, BrokerId(3)).next() == 2_000


@pytest.mark.spec("TXN-05")
async def test_no_id_is_given_twice_however_many_ask_at_once() -> None:
    ensemble = Ensemble()
    brokers = [ProducerIds(await opened(ensemble), BrokerId(id)) for id in range(3)]
    calls = [broker.next() for broker in brokers for _ in range(BLOCK + 10)]
    producer_ids = await asyncio.gather(*calls)
    assert len(set(producer_ids)) == len(producer_ids)
    assert max(producer_ids) < 6 * BLOCK, "those who wait share a block"


@pytest.mark.spec("TXN-05")
async def test_a_block_whose_reply_was_lost_is_skipped() -> None:
    store = await opened(Ensemble(), StoreFaults(Random(1), lost_replies=1))
    ids = ProducerIds(store, BrokerId(1))
    with pytest.raises(StoreUnavailable):
        await ids.next()
    await asyncio.sleep(1)
    store._faults = None
    assert await ids.next() == BLOCK


@pytest.mark.spec("TXN-05")
@pytest.mark.parametrize("seed", range(20))
async def test_no_id_is_given_twice_however_unkind_the_store_is(seed: int) -> None:
    ensemble, given = Ensemble(), list[ProducerId]()
    dice = Random(seed)
    faults = StoreFaults(dice, lost_requests=0.1, lost_replies=0.3, lag_s=2, reply_s=0.1)

    async def take(id: int) -> None:
        ids = ProducerIds(await opened(ensemble, faults), BrokerId(id))
        while len(given) < 10 * BLOCK:
            try:
                given.append(await ids.next())
            except StoreUnavailable:
                await asyncio.sleep(dice.random())

    await asyncio.gather(*(take(id) for id in range(3) for _ in range(3)))
    assert len(set(given)) == len(given)


async def test_the_last_ids_of_all_are_not_given_out() -> None:
    store = await opened(Ensemble())
    last = ProducerIdBlockNode(BrokerId(1), ProducerId(0), ProducerId(LAST_ID - 10))
    await store.create(paths.PRODUCER_ID_BLOCK, last.encode())
    with pytest.raises(KafkaError):
        await ProducerIds(store, BrokerId(1)).next()
