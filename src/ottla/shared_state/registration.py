"""The registration of this broker in the metadata store.

Owns the broker's node and epoch, the persistent root nodes, the cluster id and generated broker
ids. Never watches other brokers.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from ottla.model.clock import Clock, MonoMs
from ottla.model.errors import UserError
from ottla.model.ids import BrokerEpoch, BrokerId
from ottla.store import paths
from ottla.store.nodes import BrokerNode, ClusterIdNode, EndpointNode, LogDirsNode
from ottla.store.port import (
    BadVersion,
    Create,
    Node,
    NodeExists,
    NoNode,
    Op,
    Owner,
    SessionExpired,
    Store,
    StoreUnavailable,
    owner_of,
)

log = logging.getLogger(__name__)

NOT_REGISTERED: Final = BrokerEpoch(-1)
RETRY_S: Final = 0.5
ATTEMPTS: Final = 3
"""Writes without a pause, after a node that has just gone or was deleted by us."""
EXPIRY_MARGIN_MS: Final = 5_000
"""How much later than its timeout a session may end: ZooKeeper counts in ticks."""


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
        self.log_dirs: LogDirsNode | None = None
        """The log directories, if the store remembers others that were lost."""
        self._patience_ms = 0

    def describe(self, endpoints: Sequence[EndpointNode], rack: str | None) -> None:
        """What `register` will publish."""
        self._endpoints = tuple(endpoints)
        self._rack = rack

    async def register(self, patience_ms: int | None = None) -> BrokerEpoch:
        """Create the broker's node in this session, whatever became of earlier attempts.

        A node of an earlier session of this process is deleted. A node of another session, such as
        that of an earlier process with this id, is waited for: `patience_ms`, which also bounds how
        long an unavailable store is retried, is remembered for the next registration.
        """
        if patience_ms is not None:
            self._patience_ms = patience_ms
        deadline = MonoMs(self._clock.mono_ms() + self._patience_ms)
        data = self._node().encode()
        while True:
            try:
                node = await self._try_to_register(data)
            except StoreUnavailable:
                if self._clock.mono_ms() >= deadline:
                    raise
                node = None
            if node is not None:
                return self._set_epoch(BrokerEpoch(node.created))
            if self._clock.mono_ms() >= deadline:
                raise RegistrationError(
                    f"broker.id={self.broker_id}: a broker with this id is already running; its "
                    f"registration did not end within {self._patience_ms} ms"
                )
            await asyncio.sleep(RETRY_S)

    async def _try_to_register(self, data: bytes) -> Node | None:
        """The node if it belongs to this session; None if another session has it."""
        path = paths.broker(self.broker_id)
        for _ in range(ATTEMPTS):
            await self._check_alone()
            with suppress(NodeExists):
                await self._store.create(path, data, ephemeral=True)
                await self._check_alone()  # if two brokers register at once, at most one may stay
            node = await self._store.get(path)
            if node is None:
                continue  # it has just gone
            match owner_of(node, self._store):
                case Owner.THIS_SESSION:
                    if node.data != data:  # of an earlier registration, whose reply was lost
                        await self._store.set(path, data)
                    return node
                case Owner.EARLIER_SESSION:
                    with suppress(NoNode, BadVersion):
                        await self._store.delete(path, node.version)
                case Owner.ANOTHER:
                    return None
        return None

    def _set_epoch(self, epoch: BrokerEpoch) -> BrokerEpoch:
        self.epoch = epoch
        self.on_epoch(epoch)
        log.info("broker %d registered with epoch %d", self.broker_id, epoch)
        return epoch

    async def update(self) -> None:
        """Write the current description into the broker's node; its epoch stays the same.

        Retried until the store is available and the broker is registered.
        """
        data = self._node().encode()
        while True:
            try:
                await self._store.set(paths.broker(self.broker_id), data)
                return
            except (StoreUnavailable, SessionExpired, NoNode):
                await asyncio.sleep(RETRY_S)

    def _node(self) -> BrokerNode:
        return BrokerNode(self._endpoints, self._clock.wall_ms(), self._rack, self.log_dirs)

    async def _check_alone(self) -> None:
        if not self._alone:
            return
        others = [id for id in await self._store.children(paths.BROKER_IDS) if id != self._name]
        if others:
            raise RegistrationError(
                f"broker {others[0]} is already registered in the embedded metadata store of "
                f"broker {self._name}, which serves a single broker; for a cluster move the "
                "metadata to ZooKeeper (ottla metadata move) and set zookeeper.connect on every "
                "broker"
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
