"""The control plane of a broker: registration, controller, dynamic settings and ACLs.

Owns how these parts are connected. Never decides anything about the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from ottla.broker.environment import Environment
from ottla.config.dynamic import DynamicConfig
from ottla.controller.controller import Controller
from ottla.controller.runtime.loop import ControllerLoop
from ottla.controller.runtime.metadata_waiter import MetadataWaiter
from ottla.controller.runtime.metrics import ControllerMetrics
from ottla.controller.runtime.outbox import BrokerLink
from ottla.controller.state import BrokerState
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import Clock
from ottla.model.errors import UserError
from ottla.model.ids import BrokerId
from ottla.model.metrics import Registry
from ottla.net.request_slot import Answer, Peer, RequestSlot
from ottla.security.authorizer import Authorizer
from ottla.shared_state.acl_store import AclStore
from ottla.shared_state.config_store import ConfigStore
from ottla.shared_state.producer_ids import ProducerIds
from ottla.shared_state.registration import Registration
from ottla.store.port import Store

SIZE_BYTES: Final = 4


class LocalConnection:
    """A `BrokerLink` to this process: requests are handed to the dispatcher, without a socket."""

    def __init__(self, answer: Answer, clock: Clock) -> None:
        self._answer = answer
        self._clock = clock

    async def call(self, frame: bytes) -> bytes:
        exchange = _Exchange(asyncio.get_running_loop().create_future())
        now_ns = self._clock.mono_ns()
        key = int.from_bytes(frame[SIZE_BYTES : SIZE_BYTES + 2], "big")
        self._answer(memoryview(frame)[SIZE_BYTES:], RequestSlot(exchange, key, now_ns, now_ns))
        return await exchange.reply

    async def close(self) -> None:
        return


class _Exchange:
    """Holds the reply to a single request."""

    def __init__(self, reply: asyncio.Future[bytes]) -> None:
        self.reply = reply
        self.peer = Peer("127.0.0.1", 0, "LOCAL", "PLAINTEXT")
        self.peer.is_broker = True
        self.closed = False

    def on_reply(self, slot: RequestSlot) -> None:
        if self.reply.done():
            return
        parts = slot.parts or ()
        reply = b"".join(
            bytes(part) if isinstance(part, bytes | bytearray | memoryview) else part.read()
            for part in parts
        )
        self.reply.set_result(reply[SIZE_BYTES:])

    def end(self, reason: str) -> None:
        self.closed = True
        if not self.reply.done():
            self.reply.set_exception(ConnectionAbortedError(reason))


class LocalBroker:
    """The links of a controller whose cluster has no other broker."""

    def __init__(self, broker_id: BrokerId, clock: Clock) -> None:
        self._broker_id = broker_id
        self._clock = clock
        self.answer: Answer | None = None

    def open(self, broker: BrokerState) -> BrokerLink:
        assert self.answer is not None, "the dispatch is built before the controller runs"
        if broker.id != self._broker_id:
            raise UserError(
                f"broker {broker.id} is registered in the metadata store of broker "
                f"{self._broker_id}: clusters of several brokers are not supported; give each "
                "broker a zookeeper.connect path of its own"
            )
        return LocalConnection(self.answer, self._clock)


class ControlPlane:
    def __init__(
        self,
        environment: Environment,
        config: DynamicConfig,
        broker_id: BrokerId,
        *,
        store: Store,
        metadata: MetadataCache,
        registry: Registry,
        authorizer: Authorizer,
    ) -> None:
        self.links = LocalBroker(broker_id, environment.clock)
        self.registration = Registration(store, environment.clock, broker_id, alone=True)
        self.configs = ConfigStore(store, config, broker_id)
        self.acls = AclStore(store, authorizer)
        self.loop = ControllerLoop(
            store,
            self.links,
            self.registration,
            environment.clock,
            environment.dice,
            metrics=ControllerMetrics(registry, environment.clock),
        )
        self.controller = Controller(
            self.loop,
            config,
            self.configs,
            ProducerIds(store, broker_id),
            MetadataWaiter(metadata),
            acls=self.acls,
            dice=environment.dice,
        )
        self._config = config
        self._authorizer = authorizer
        self._random_bytes = environment.random_bytes

    async def load(self) -> None:
        """Read dynamic settings and ACLs from the metadata store."""
        await self.configs.load()
        await self.configs.load_secret(self._random_bytes)
        await self.acls.load()

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        config = self._config.current
        balance_s = (
            float(config.leader_imbalance_check_interval_seconds)
            if config.auto_leader_rebalance_enable
            else None
        )
        loops = [self.loop.run(balance_s), self.configs.run()]
        return [*loops, self.acls.run()] if self._authorizer.in_force else loops
