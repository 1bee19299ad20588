"""This broker's own node in the store: what tells the others that it is there.

Owns the broker's epoch and the ground of the tree: its fixed nodes, the cluster's id, generated
broker ids. Never watches others.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from ottla.model.clock import Clock
from ottla.model.errors import UserError
from ottla.model.ids import BrokerEpoch, BrokerId
from ottla.store import paths
from ottla.store.nodes import BrokerNode, ClusterIdNode, EndpointNode
from ottla.store.port import Create, NodeExists, NoNode, Op, SessionExpired, Store, StoreUnavailable

log = logging.getLogger(__name__)

NOT_REGISTERED: Final = BrokerEpoch(-1)
RETRY_S: Final = 0.5


class RegistrationError(UserError):
    """Somebody is there whom this broker cannot be beside: it must not run."""


async def create_root_nodes(store: Store, cluster_id: str | None, dice: Random) -> str:
    """Make the fixed nodes where they are missing, and say which cluster this is.

    `cluster_id` is what the log directories remember; a tree without an id takes it over.
    """
    while True:
        known = await store.get_many([*paths.ROOTS, paths.CLUSTER_ID])
        missing = [path for path, node in zip(paths.ROOTS, known[:-1], strict=True) if node is None]
        ops: list[Op] = [Create(path) for path in missing]
        if known[-1] is not None:
            id = ClusterIdNode.decode(known[-1].data).id
        else:
            id = cluster_id or _new_cluster_id(dice)
            ops.append(Create(paths.CLUSTER_ID, ClusterIdNode(id).encode()))
        if not ops:
            return id
        try:
            await store.multi(ops)
        except NodeExists:
            continue  # another broker starts at the same time: see what it made
        return id


async def generate_broker_id(store: Store, reserved_max: int) -> BrokerId:
    """An id no operator may use and no other broker gets: the version of one node counts them."""
    return BrokerId(reserved_max + await store.set(paths.BROKER_SEQUENCE, b""))


class Registration:
    def __init__(
        self, store: Store, clock: Clock, broker_id: BrokerId, *, alone: bool = False
    ) -> None:
        self._store = store
        self._clock = clock
        self._alone = alone
        self.broker_id = broker_id
        self.epoch = NOT_REGISTERED
        self.on_epoch: Callable[[BrokerEpoch], None] = _ignore
        self._endpoints: tuple[EndpointNode, ...] = ()
        self._rack: str | None = None

    def describe(self, endpoints: Sequence[EndpointNode], rack: str | None) -> None:
        """What `register` will publish."""
        self._endpoints = tuple(endpoints)
        self._rack = rack

    async def register(self, patience_ms: int = 0) -> BrokerEpoch:
        """Appear. A node left by our own earlier life is waited out until patience ends."""
        path = paths.broker(self.broker_id)
        deadline = self._clock.mono_ms() + patience_ms
        node = BrokerNode(self._endpoints, self._clock.wall_ms(), self._rack)
        while True:
            await self._check_alone()
            try:
                await self._store.create(path, node.encode(), ephemeral=True)
            except NodeExists:
                if self._clock.mono_ms() >= deadline:
                    raise RegistrationError(
                        f"broker.id={self.broker_id}: a broker with this id is already running"
                    ) from None
                await asyncio.sleep(RETRY_S)
                continue
            made = await self._store.get(path)
            assert made is not None, f"{path} vanished while it was registered"
            await self._check_alone()  # one of two that came at once may stay, or none; never both
            self.epoch = BrokerEpoch(made.created)
            self.on_epoch(self.epoch)
            log.info("broker %d registered with epoch %d", self.broker_id, self.epoch)
            return self.epoch

    async def update(self) -> None:
        """Publish what was described since; the broker stays who it is.

        Where the store is silent, or has lost us, that is done once it has us again.
        """
        node = BrokerNode(self._endpoints, self._clock.wall_ms(), self._rack)
        while True:
            try:
                await self._store.set(paths.broker(self.broker_id), node.encode())
                return
            except (StoreUnavailable, SessionExpired, NoNode):
                await asyncio.sleep(RETRY_S)

    async def _check_alone(self) -> None:
        if not self._alone:
            return
        others = [id for id in await self._store.children(paths.BROKER_IDS) if id != self._name]
        if others:
            raise RegistrationError(
                f"broker {others[0]} is registered where broker {self._name} would be: clusters of "
                "several brokers are not offered; give each a zookeeper.connect path of its own"
            )

    @property
    def _name(self) -> str:
        return str(self.broker_id)


def _ignore(epoch: BrokerEpoch) -> None:
    """Nobody wants to know."""


def _new_cluster_id(dice: Random) -> str:
    """22 characters of URL-safe base64, like Kafka's, and not like a command line option."""
    while True:
        id = urlsafe_b64encode(dice.getrandbits(128).to_bytes(16, "big")).decode().rstrip("=")
        if not id.startswith("-"):
            return id
