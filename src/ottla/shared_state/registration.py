"""The registration of this broker in the metadata store.

Owns the broker's node and epoch, the persistent root nodes, the cluster id and generated broker
ids. Never watches other brokers.
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
    """Another broker is registered that prevents this one from running."""


async def create_root_nodes(store: Store, cluster_id: str | None, dice: Random) -> str:
    """Create the root nodes that are missing; returns the cluster id.

    `cluster_id` comes from `meta.properties`; it is written to a store that has no cluster id.
    """
    while True:
        *roots, id_node = await store.get_many([*paths.ROOTS, paths.CLUSTER_ID])
        missing = [path for path, node in zip(paths.ROOTS, roots, strict=True) if node is None]
        ops: list[Op] = [Create(path) for path in missing]
        if id_node is not None:
            id = ClusterIdNode.decode(id_node.data).id
        else:
            id = cluster_id or _new_cluster_id(dice)
            ops.append(Create(paths.CLUSTER_ID, ClusterIdNode(id).encode()))
        if not ops:
            return id
        try:
            await store.multi(ops)
        except NodeExists:
            continue  # another broker starts at the same time: read what it created
        return id


async def generate_broker_id(store: Store, reserved_max: int) -> BrokerId:
    """A unique id above `reserved.broker.max.id`: the version of one node counts them."""
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
        """Create the broker's node, if need be after an earlier session of ours has expired."""
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
            registered = await self._store.get(path)
            assert registered is not None, f"{path} was deleted during the registration"
            await self._check_alone()  # if two brokers register at once, at most one may stay
            self.epoch = BrokerEpoch(registered.created)
            self.on_epoch(self.epoch)
            log.info("broker %d registered with epoch %d", self.broker_id, self.epoch)
            return self.epoch

    async def update(self) -> None:
        """Write the current description into the broker's node; its epoch stays the same.

        Retried until the store is available and the broker is registered.
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
                f"broker {others[0]} is already registered in the metadata store of broker "
                f"{self._name}: clusters of several brokers are not supported; give each broker a "
                "zookeeper.connect path of its own"
            )

    @property
    def _name(self) -> str:
        return str(self.broker_id)


def _ignore(epoch: BrokerEpoch) -> None:
    """The default of `on_epoch`."""


def _new_cluster_id(dice: Random) -> str:
    """22 characters of URL-safe base64, as Kafka's; never with a leading dash, like an option."""
    while True:
        id = urlsafe_b64encode(dice.getrandbits(128).to_bytes(16, "big")).decode().rstrip("=")
        if not id.startswith("-"):
            return id
