"""The control plane of a broker: registration, controller, dynamic settings and ACLs.

Owns how these parts are connected. Never decides anything about the cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Final, Self

from ottla.api.services import SharedState
from ottla.broker.broker_links import Address, BrokerLinks, ControllerChannel, Link
from ottla.broker.environment import Environment
from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.config.listeners import Listeners
from ottla.controller.controller import Controller
from ottla.controller.runtime.forwarding import Forwarder
from ottla.controller.runtime.loop import ControllerLoop
from ottla.controller.runtime.metadata_waiter import MetadataWaiter
from ottla.controller.runtime.metrics import ControllerMetrics
from ottla.controller.state import BrokerState
from ottla.delay.rates import Windows
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId
from ottla.model.metrics import Registry
from ottla.protocol.interbroker import CONTROLLED_SHUTDOWN
from ottla.security.authorizer import Authorizer
from ottla.security.delegation_tokens import DelegationTokens
from ottla.security.password_encoder import PasswordEncoder
from ottla.security.quotas.client_quotas import ClientQuotas
from ottla.security.quotas.metrics import register_metrics
from ottla.shared_state.acl_store import AclStore
from ottla.shared_state.config_store import ConfigStore
from ottla.shared_state.producer_ids import ProducerIds
from ottla.shared_state.quota_store import QuotaStore
from ottla.shared_state.registration import Registration
from ottla.shared_state.token_store import TokenStore
from ottla.store import paths
from ottla.store.nodes import BrokerNode, EndpointNode
from ottla.store.port import SessionExpired, Store

log = logging.getLogger(__name__)

REFUSE_S: Final = 0.2
"""How long a broker serves on after its leaders were moved. A client that writes or reads meanwhile
is refused, and told the new leader; one that finds no broker here would have to look for it, after
a back-off (benchmarks/failover.py)."""


class ControllerLinks:
    """The links of the active controller to brokers, itself included."""

    def __init__(self, links: BrokerLinks, listener: str, reply_ms: int) -> None:
        self._links = links
        self._listener = listener
        self.reply_ms = reply_ms

    @classmethod
    def of(cls, config: BrokerConfig, links: BrokerLinks) -> Self:
        listeners = Listeners.of(config)
        listener = listeners.control_plane or listeners.inter_broker
        return cls(links, listener, config.controller_socket_timeout_ms)

    def open(self, broker: BrokerState) -> Link:
        if broker.id == self._links.broker_id:
            return self._links.local()
        address = _address(broker.listeners, self._listener)
        if address is None:
            raise ConnectionError(f"broker {broker.id} has no listener {self._listener}")
        return self._links.open(*address, "controller")


class ControlPlane:
    def __init__(
        self,
        environment: Environment,
        config: DynamicConfig,
        links: BrokerLinks,
        *,
        store: Store,
        metadata: MetadataCache,
        registry: Registry,
        authorizer: Authorizer,
    ) -> None:
        settings = config.current
        self._store = store
        self.links = links
        self.registration = Registration(
            store, environment.clock, links.broker_id, alone=settings.zookeeper_connect is None
        )
        self.configs = ConfigStore(store, config, links.broker_id)
        self.configs.passwords = PasswordEncoder.of(settings, environment.random_bytes)
        self.quotas = _client_quotas(settings, registry, environment.clock)
        self.configs.quotas = QuotaStore(store, self.quotas)
        self.acls = AclStore(store, authorizer)
        producer_ids = ProducerIds(store, links.broker_id)
        tokens = DelegationTokens(settings.token_secret, environment.clock)
        self.tokens = TokenStore(store, tokens, environment.random_bytes)
        if tokens.enabled:
            self.configs.credentials.tokens = tokens
        self.shared = SharedState(self.configs, self.acls, producer_ids, self.quotas, self.tokens)
        self.loop = ControllerLoop(
            store,
            ControllerLinks.of(settings, links),
            self.registration,
            environment.clock,
            environment.dice,
            metrics=ControllerMetrics(registry, environment.clock),
            pool=environment.pool,
        )
        self.channel = ControllerChannel(links, lambda: self.loop.active_id, self._read_address)
        """Requests of this broker to the active controller."""
        alone = settings.zookeeper_connect is None
        self.controller = Controller(
            self.loop,
            config,
            MetadataWaiter(metadata),
            dice=environment.dice,
            forwarder=None if alone else Forwarder(self.channel, environment.clock),
        )
        self._config = config
        self._authorizer = authorizer
        self._random_bytes = environment.random_bytes

    async def load(self) -> None:
        """Read dynamic settings and ACLs from the metadata store."""
        await self.configs.load()
        await self.configs.load_secret(self._random_bytes)
        await self.acls.load()
        await self.tokens.load()

    def loops(self) -> list[Coroutine[object, None, None]]:
        config = self._config.current
        balance_s = (
            float(config.leader_imbalance_check_interval_seconds)
            if config.auto_leader_rebalance_enable
            else None
        )
        loops = [self.loop.run(balance_s), self.configs.run()]
        if self._authorizer.in_force:
            loops.append(self.acls.run())
        if self.tokens.tokens.enabled:
            check_s = config.delegation_token_expiry_check_interval_ms / 1000
            loops += [
                self.tokens.run(),
                self.tokens.run_expiry(check_s, lambda: self.loop.is_active),
            ]
        return loops

    async def hand_over(self) -> None:
        """Controlled shutdown: have the controller move this broker's leaders to other brokers.

        The broker stops in any case, after `controlled.shutdown.max.retries` attempts.
        """
        config = self._config.current
        if config.zookeeper_connect is None or not config.controlled_shutdown_enable:
            return
        if self.loop.has_ended and self.loop.active_id == self.registration.broker_id:
            return  # this broker is the controller, and a failure has ended it: others elect
        attempts = config.controlled_shutdown_max_retries
        for attempt in range(attempts):
            if attempt:
                await asyncio.sleep(config.controlled_shutdown_retry_backoff_ms / 1000)
            problem = await self._request_shutdown(config.controller_socket_timeout_ms)
            if problem is None:
                await asyncio.sleep(REFUSE_S)
                return
            log.warning("controlled shutdown %d of %d failed: %s", attempt + 1, attempts, problem)

    async def _request_shutdown(self, timeout_ms: int) -> str | None:
        """None if this broker leads nothing any more; otherwise the reason."""
        registration = self.registration
        fields = {"broker_id": registration.broker_id, "broker_epoch": registration.epoch}
        try:
            reply = await self.channel.ask(CONTROLLED_SHUTDOWN, fields, timeout_ms)
        except (KafkaError, OSError) as error:
            return f"no reply of the controller: {error}"
        if reply.error_code is not ErrorCode.none:
            return str(reply.error_code.name)
        left = len(reply.remaining_partitions)
        return f"{left} partitions have no other in-sync replica" if left else None

    async def _read_address(self, broker: BrokerId) -> Address | None:
        """OSError while the store cannot be asked: callers retry."""
        try:
            node = await self._store.get(paths.broker(broker))
        except SessionExpired as error:
            raise ConnectionError("metadata store session expired") from error
        return (
            None
            if node is None
            else _address(BrokerNode.decode(node.data).endpoints, self.links.listener)
        )


def _client_quotas(config: BrokerConfig, registry: Registry, clock: Clock) -> ClientQuotas:
    quotas = ClientQuotas(
        Windows(config.quota_window_num, config.quota_window_size_seconds * 1000),
        Windows(
            config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1000
        ),
    )
    register_metrics(quotas, registry, clock.mono_ms)
    return quotas


def _address(endpoints: Iterable[EndpointNode], listener: str) -> Address | None:
    """Where a broker listens under this name."""
    return next((Address(e.host, e.port) for e in endpoints if e.name == listener), None)
