"""One broker: builds its parts in order and closes them in reverse.

Owns the order. Each step that opens something registers at once how it is closed, so a failure
half-way leaves nothing open and a stop needs no list of its own. `_open`, read from top to bottom,
lists the parts of a broker, and `_begin` the order in which they start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ottla.api import BY_KEY
from ottla.api.dispatch import Dispatch
from ottla.api.services import BrokerContext, Services
from ottla.broker.broker_links import BrokerLinks
from ottla.broker.control_plane import ControlPlane
from ottla.broker.coordinators import Coordinators
from ottla.broker.data_plane import Cluster, DataPlane
from ottla.broker.environment import Environment
from ottla.broker.identity import identify
from ottla.broker.link_security import LinkSecurity
from ottla.broker.listener_security import ListenerSecurity
from ottla.broker.listeners import ListenerSet
from ottla.broker.memory import memory_shares
from ottla.broker.metadata_store import choose_store, open_store, retry_store_reads
from ottla.broker.metrics_server import MetricsServer
from ottla.broker.transaction_coordinator import ClusterAccess
from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.config.listeners import Endpoint, Listeners
from ottla.delay.rates import Windows
from ottla.log.directories.log_directories import LogDirectories
from ottla.metadata.cache import MetadataCache
from ottla.model.errors import UserError
from ottla.model.ids import BrokerId
from ottla.model.metrics import Registry
from ottla.net.limits import NO_DESCRIPTOR_LIMITS, DescriptorLimits, NetLimits
from ottla.net.network import Network
from ottla.net.request_metrics import RequestMetrics
from ottla.security.authorizer import Authorizer
from ottla.shared_state.registration import EXPIRY_MARGIN_MS
from ottla.store.nodes import EndpointNode


def net_limits(
    config: BrokerConfig, machine_bytes: int, descriptors: DescriptorLimits = NO_DESCRIPTOR_LIMITS
) -> NetLimits:
    """`machine_bytes`: the memory that limits without a setting are derived from."""
    memory = memory_shares(config, machine_bytes)
    listeners = Listeners.of(config)
    return NetLimits(
        socket_request_max_bytes=config.socket_request_max_bytes,
        sasl_server_max_receive_size=config.sasl_server_max_receive_size,
        socket_send_buffer_bytes=config.socket_send_buffer_bytes,
        socket_receive_buffer_bytes=config.socket_receive_buffer_bytes,
        socket_listen_backlog_size=config.socket_listen_backlog_size,
        queued_max_requests=config.queued_max_requests,
        queued_max_request_bytes=memory.requests,
        reply_memory_bytes=memory.replies,
        max_inflight_requests_per_connection=config.max_inflight_requests_per_connection,
        connections_max_idle_ms=config.connections_max_idle_ms,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connections_per_ip_overrides=config.connections_per_ip_overrides,
        listener_max_connections=config.of_listeners.max_connections,
        max_connection_creation_rate=config.max_connection_creation_rate,
        listener_max_connection_creation_rate=config.of_listeners.max_connection_creation_rate,
        quota_windows=Windows(config.quota_window_num, config.quota_window_size_seconds * 1_000),
        descriptors=descriptors,
        protected_listener=listeners.inter_broker if len(listeners.bound) > 1 else None,
    )


class TaskStarter:
    """Starts tasks in the broker's task group, and ends those that are left when it stops."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._running: dict[asyncio.Task[None], None] = {}  # in the order of their start

    def __call__(self, work: Coroutine[object, None, None]) -> asyncio.Task[None] | None:
        """None if the broker is stopping."""
        try:
            task = self._group.create_task(work)
        except RuntimeError:
            work.close()
            return None
        self._running[task] = None
        task.add_done_callback(self._running.pop)
        return task

    async def cancel(self) -> None:
        """What a task waits for may never come in a broker that stops: nobody waits for it."""
        left = list(self._running)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)


log = logging.getLogger(__name__)


class _Parts(NamedTuple):
    """What a broker consists of, connected and not yet running."""

    control: ControlPlane
    data: DataPlane
    coordination: Coordinators
    security: ListenerSecurity
    listeners: ListenerSet


class App:
    """A broker from `start` to `stop`, both called from the same task."""

    def __init__(self, settings: Mapping[str, str], environment: Environment) -> None:
        self._environment = environment
        self.dynamic = DynamicConfig(settings)
        self.registry = Registry()
        self.broker_id = BrokerId(-1)
        self.endpoints: tuple[Endpoint, ...] = ()
        self.metrics_port: int | None = None
        self._stack = AsyncExitStack()

    @property
    def config(self) -> BrokerConfig:
        return self.dynamic.current

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{endpoint.host}:{endpoint.port}" for endpoint in self.endpoints)

    @property
    def ready_line(self) -> str:
        where = ", ".join(map(str, self.endpoints))
        data = ", ".join(self.config.data_dirs)
        return f"broker {self.broker_id} ready on {where}, data in {data}"

    async def start(self) -> None:
        with _unwrap_exception_groups():
            async with AsyncExitStack() as stack:
                await self._open(stack)
                self._stack = stack.pop_all()

    async def stop(self) -> None:
        """Finish running requests, flush, write checkpoints and the clean-shutdown marker."""
        with _unwrap_exception_groups():
            await self._stack.aclose()

    async def _open(self, stack: AsyncExitStack) -> None:
        environment, config = self._environment, self.config
        directories = _log_directories(config, environment)
        stack.callback(directories.release)
        directories.open()
        store_choice = choose_store(config, directories, environment)
        stack.push_async_callback((store := store_choice.store).close)
        await open_store(store_choice)
        identify_broker = partial(
            identify, store_choice, directories, self.dynamic, environment.dice
        )
        identity = await retry_store_reads(identify_broker, environment.clock, config)
        self.broker_id = identity.broker_id
        metadata = MetadataCache(self.broker_id, environment.clock)
        authorizer = _authorizer(config)
        links = self._links(stack, metadata)
        control = ControlPlane(
            environment, self.dynamic, links, store=store, metadata=metadata,
            registry=self.registry, authorizer=authorizer,
        )  # fmt: skip
        await retry_store_reads(control.load, environment.clock, config)
        listeners = Listeners.of(self.config)  # with the dynamic settings just loaded
        spawn = TaskStarter(tasks := await stack.enter_async_context(asyncio.TaskGroup()))
        stack.push_async_callback(spawn.cancel)
        cluster = Cluster(self.broker_id, links.to, control.channel)
        data = DataPlane(
            environment, self.dynamic, cluster, store=store, metadata=metadata,
            directories=directories, registry=self.registry, spawn=spawn,
        )  # fmt: skip
        stack.push_async_callback(data.close)
        await data.load()
        await retry_store_reads(data.prepare_to_lead, environment.clock, config)
        access = ClusterAccess(links, store, control.shared.producer_ids.next)
        coordination = Coordinators(environment, self.dynamic, data, access, spawn)
        services = Services(
            BrokerContext(*identity[:2], listeners, environment.clock), self.dynamic, authorizer,
            metadata, control.controller, control.shared, data.services, coordination.groups,
            coordination.txns,
        )  # fmt: skip
        network = self._network(control)
        stack.push_async_callback((requests := TaskStarter(tasks)).cancel)
        links.answer = Dispatch(services, requests, memory=network.buffers.admission)
        listener_set, security = await self._bind(stack, control, links, network)
        control.registration.log_dirs = identity.log_dirs
        await self._begin(stack, tasks, _Parts(control, data, coordination, security, listener_set))

    async def _begin(self, stack: AsyncExitStack, tasks: asyncio.TaskGroup, parts: _Parts) -> None:
        """Register this broker, start its loops and serve clients."""
        control, data, coordination, security, listener_set = parts
        await self._register(control, data, listener_set.advertised)
        publish = partial(self._publish_endpoints, control)
        changes = listener_set.apply_changes(self.dynamic, publish)
        _run(stack, tasks, [*control.loops(), *data.loops(), changes, security.run()])
        await self._wait_for_metadata(control, listener_set)
        stack.push_async_callback(listener_set.stop)  # on a clean stop: before the loops end
        stack.callback(data.services.reads.stop_waiting)
        data.check_directories()  # loading and registering wrote to each of them
        await listener_set.serve()
        await self._start_metrics_server(stack)
        stack.callback(coordination.close)  # ends requests of waiting members
        stack.push_async_callback(control.hand_over)  # first, while this broker still serves
        stack.callback(data.services.transitions.begin_shutdown)

    def _links(self, stack: AsyncExitStack, metadata: MetadataCache) -> BrokerLinks:
        environment, listener = self._environment, Listeners.of(self.config).inter_broker
        links = BrokerLinks(self.broker_id, listener, metadata, environment.clock, environment.dice)
        if self.config.zookeeper_connect is not None:  # else there is no other broker
            links.security = LinkSecurity(self.config, environment.clock, environment.random_bytes)
        stack.callback(links.close)
        return links

    async def _bind(
        self, stack: AsyncExitStack, control: ControlPlane, links: BrokerLinks, network: Network
    ) -> tuple[ListenerSet, ListenerSecurity]:
        """The listening sockets, not served yet, and what secures them."""
        environment, answer = self._environment, links.answer
        assert answer is not None
        security = ListenerSecurity(
            self.dynamic, control.configs.credentials, environment, network, answer
        )
        security.links = links.security
        stack.callback(security.close)
        listener_set = ListenerSet(network, answer, environment.host_name, security)
        stack.push_async_callback(listener_set.stop)
        await listener_set.bind(Listeners.of(self.config))
        return listener_set, security

    async def _wait_for_metadata(self, control: ControlPlane, listener_set: ListenerSet) -> None:
        if self.config.zookeeper_connect is not None:
            await listener_set.serve()  # the controller may be another broker, which calls us
        await control.controller.wait_started()

    def _network(self, control: ControlPlane) -> Network:
        names = {key: api.name for key, api in BY_KEY.items()}
        machine = (self._environment.memory_bytes, self._environment.descriptors.net)
        network = Network(
            net_limits(self.config, *machine),
            self._environment.clock,
            RequestMetrics(self.registry, names, self._environment.clock),
            self._environment.pool,
        )
        network.waiting_connections.rate_of_address = control.quotas.connection_rate
        self.dynamic.on_broker(lambda _, config: network.apply(net_limits(config, *machine)))
        return network

    async def _register(
        self, control: ControlPlane, data: DataPlane, advertised: tuple[Endpoint, ...]
    ) -> None:
        self._set_endpoints(control, advertised)
        control.registration.on_epoch = data.services.transitions.set_broker_epoch
        await control.registration.register(
            self.config.zookeeper_session_timeout_ms + EXPIRY_MARGIN_MS
        )

    async def _publish_endpoints(
        self, control: ControlPlane, advertised: tuple[Endpoint, ...]
    ) -> None:
        self._set_endpoints(control, advertised)
        await control.registration.update()

    def _set_endpoints(self, control: ControlPlane, advertised: tuple[Endpoint, ...]) -> None:
        self.endpoints = advertised
        nodes = [EndpointNode(*endpoint) for endpoint in advertised]
        control.registration.describe(nodes, self.config.broker_rack)

    async def _start_metrics_server(self, stack: AsyncExitStack) -> None:
        if self.config.metrics_port is None:
            return
        server = MetricsServer(self.registry, self._environment.clock)
        stack.push_async_callback(server.stop)
        host = self.config.metrics_host
        if host is None:
            host = Listeners.of(self.config).bound[0].host
        try:
            self.metrics_port = await server.start(host, self.config.metrics_port)
        except OSError as error:
            settings = f"metrics.host={host}, metrics.port={self.config.metrics_port}"
            raise UserError(f"{settings}: cannot bind the metrics endpoint: {error}") from None


def _log_directories(config: BrokerConfig, environment: Environment) -> LogDirectories:
    paths = [Path(path) for path in config.data_dirs]
    return LogDirectories(paths, environment.disk, environment.clock, environment.dice)


def _authorizer(config: BrokerConfig) -> Authorizer:
    return Authorizer(
        in_force=bool(config.authorizer_class_name),
        super_users=config.super_user_names,
        open_by_default=config.allow_everyone_if_no_acl_found,
    )


@contextmanager
def _unwrap_exception_groups() -> Iterator[None]:
    """Raise the first failure itself instead of the group that a task group wraps it in."""
    try:
        yield
    except BaseExceptionGroup as group:
        failure: BaseException = group
        while isinstance(failure, BaseExceptionGroup):
            failure = failure.exceptions[0]
        raise failure from (group if len(group.exceptions) > 1 else None)


def _run(
    stack: AsyncExitStack, tasks: asyncio.TaskGroup, loops: list[Coroutine[object, None, None]]
) -> None:
    """Start the loops that run until the broker stops; the stop cancels them and waits."""
    running = [tasks.create_task(loop) for loop in loops]

    async def cancel() -> None:
        for task in running:
            task.cancel()
        await asyncio.wait(running)

    stack.push_async_callback(cancel)
