"""Producer ids, unique in the cluster.

Owns the block of ids that this broker has reserved. A block of 1000 is reserved by compare-and-set
on one node; ids unused at a restart are lost, which is cheaper than storing them. Never returns an
id twice.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, ProducerId
from ottla.store import paths
from ottla.store.nodes import ProducerIdBlockNode
from ottla.store.port import BadVersion, NodeExists, Store

BLOCK: Final = 1_000
LAST_ID: Final = 2**63 - 1


class ProducerIds:
    def __init__(self, store: Store, broker_id: BrokerId) -> None:
        self._store = store
        self._broker_id = broker_id
        self._next = 0
        self._end = 0
        self._refilling: asyncio.Future[None] | None = None

    async def next(self) -> ProducerId:
        while self._next == self._end:
            await self._refill()
        producer_id = ProducerId(self._next)
        self._next += 1
        return producer_id

    async def _refill(self) -> None:
        """The first caller that finds the block empty reserves the next; others wait for it."""
        if self._refilling is not None:
            await asyncio.shield(self._refilling)
            return
        self._refilling = asyncio.get_running_loop().create_future()
        try:
            start = await self._reserve_block()
            self._next, self._end = start, start + BLOCK
        finally:
            self._refilling.set_result(None)
            self._refilling = None

    async def _reserve_block(self) -> int:
        while True:
            node = await self._store.get(paths.PRODUCER_ID_BLOCK)
            start = 0 if node is None else ProducerIdBlockNode.decode(node.data).last + 1
            if start > LAST_ID - BLOCK:
                raise KafkaError(
                    ErrorCode.unknown_server_error,
                    "no producer ids left: all blocks of this cluster are reserved",
                )
            block = ProducerIdBlockNode(
                self._broker_id, ProducerId(start), ProducerId(start + BLOCK - 1)
            )
            try:
                if node is None:
                    await self._store.create(paths.PRODUCER_ID_BLOCK, block.encode())
                else:
                    await self._store.set(paths.PRODUCER_ID_BLOCK, block.encode(), node.version)
            except (BadVersion, NodeExists):
                continue  # another broker reserved this block
            return start
