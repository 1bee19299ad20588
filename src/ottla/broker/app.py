"""One broker: its parts, built in order by hand, and taken down in reverse.

Owns the order. Each step that opens something says at once how it is closed, so that a failure
half-way leaves nothing behind and a stop needs no list of its own. Whoever wants to know what a
broker is made of reads `_open` from top to bottom.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

from ottla.api import BY_KEY
from ottla.api.dispatch import Dispatch
from ottla.api.services import Identity, Services
from ottla.broker.control_plane import ControlPlane
from ottla.broker.coordinators import Coordinators
from ottla.broker.data_plane import DataPlane
from ottla.broker.environment import Environment
from ottla.broker.identity import identify
from ottla.broker.listeners import ListenerSet
from ottla.broker.memory_shares import memory_shares
from ottla.broker.metadata_store import choose, open_store
from ottla.broker.metrics_server import MetricsServer
from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.config.listeners import Endpoint, Listeners
from ottla.log.directories.log_directories import LogDirectories
from ottla.metadata.cache import MetadataCache
from ottla.model.errors import UserError
from ottla.model.ids import BrokerId
from ottla.model.metrics import Registry
from ottla.net.limits import NetLimits
from ottla.net.network import Network
from ottla.net.request_metrics import RequestMetrics
from ottla.security.authorizer import Authorizer
from ottla.store.nodes import EndpointNode


def net_limits(config: BrokerConfig, machine_bytes: int) -> NetLimits:
    """`machine_bytes` is what bounds are derived from that are not set."""
    memory = memory_shares(config, machine_bytes)
    listeners = Listeners.of(config)
    return NetLimits(
        socket_request_max_bytes=config.socket_request_max_bytes,
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
        protected_listener=listeners.inter_broker if len(listeners.bound) > 1 else None,
    )


def task_starter(tasks: asyncio.TaskGroup) -> Callable[[Coroutine[Any, Any, None]], bool]:
    """A function that starts work in this group; False: the broker ends, it was not begun."""

    def spawn(work: Coroutine[Any, Any, None]) -> bool:
        try:
            tasks.create_task(work)
        except RuntimeError:
            work.close()
            return False
        return True

    return spawn


log = logging.getLogger(__name__)


class App:
    """A broker between `start` and `stop`, both called from the same task."""

    def __init__(self, settings: Mapping[str, str], world: Environment) -> None:
        self._world = world
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
        with _what_failed():
            async with AsyncExitStack() as stack:
                await self._open(stack)
                self._stack = stack.pop_all()

    async def stop(self) -> None:
        """Answer what has begun, flush, write checkpoints and the clean-shutdown marker."""
        with _what_failed():
            await self._stack.aclose()

    async def _open(self, stack: AsyncExitStack) -> None:
        world, config = self._world, self.config
        directories = LogDirectories(
            [Path(path) for path in config.data_dirs], world.disk, world.clock, world.dice
        )
        stack.callback(directories.release)
        directories.open()
        home = choose(config, directories, world)
        store = home.store
        stack.push_async_callback(store.close)
        await open_store(home)
        identity = await identify(home, directories, self.dynamic, world.dice)
        self.broker_id = identity.broker_id
        metadata = MetadataCache(self.broker_id)
        authorizer = _authorizer(config)
        control = ControlPlane(
            world, self.dynamic, self.broker_id, store=store, metadata=metadata,
            registry=self.registry, authorizer=authorizer,
        )  # fmt: skip
        await control.load()
        listeners = Listeners.of(self.config)  # with what was changed in an earlier life
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        spawn = task_starter(tasks)
        data = DataPlane(
            world, self.dynamic, self.broker_id, store=store, metadata=metadata,
            directories=directories, registry=self.registry, spawn=spawn,
        )  # fmt: skip
        stack.push_async_callback(data.close)
        await data.load()
        coordination = Coordinators(world, self.dynamic, data, control, tasks.create_task)
        services = Services(
            Identity(*identity, listeners), world.clock, self.dynamic, authorizer, metadata,
            control.facade, data.services, coordination.groups, coordination.txns,
        )  # fmt: skip
        network = self._network()
        dispatch = Dispatch(services, spawn, memory=network.buffers.admission)
        control.links.answer = dispatch
        doors = ListenerSet(network, dispatch, world.host_name)
        stack.push_async_callback(doors.stop)
        await doors.bind(listeners)
        await self._register(control, data, doors.told)
        moves = doors.follow(self.dynamic, lambda told: self._moved(control, told))
        _run(stack, tasks, [*control.loops(), *data.loops(), moves])
        await control.facade.started()
        stack.push_async_callback(doors.stop)  # before the loops end, when all goes well
        stack.callback(data.services.reads.stop_waiting)
        data.check_directories()  # loading and registering have written to all of them
        await doors.serve()
        await self._expose(stack)
        stack.callback(coordination.close)  # first of all: requests that wait for others end

    def _network(self) -> Network:
        names = {key: api.name for key, api in BY_KEY.items()}
        memory_bytes = self._world.memory_bytes
        network = Network(
            net_limits(self.config, memory_bytes),
            self._world.clock,
            RequestMetrics(self.registry, names, self._world.clock),
            self._world.pool,
        )
        self.dynamic.on_broker(lambda _, now: network.apply(net_limits(now, memory_bytes)))
        return network

    async def _register(
        self, control: ControlPlane, data: DataPlane, told: tuple[Endpoint, ...]
    ) -> None:
        self._describe(control, told)
        control.registration.on_epoch = data.services.transitions.set_broker_epoch
        await control.registration.register(self.config.zookeeper_session_timeout_ms)

    async def _moved(self, control: ControlPlane, told: tuple[Endpoint, ...]) -> None:
        self._describe(control, told)
        await control.registration.update()

    def _describe(self, control: ControlPlane, told: tuple[Endpoint, ...]) -> None:
        self.endpoints = told
        nodes = [EndpointNode(*endpoint) for endpoint in told]
        control.registration.describe(nodes, self.config.broker_rack)

    async def _expose(self, stack: AsyncExitStack) -> None:
        if self.config.metrics_port is None:
            return
        exposition = MetricsServer(self.registry, self._world.clock)
        stack.push_async_callback(exposition.stop)
        host = self.config.metrics_host
        if host is None:
            host = Listeners.of(self.config).bound[0].host
        try:
            self.metrics_port = await exposition.start(host, self.config.metrics_port)
        except OSError as error:
            where = f"metrics.host={host}, metrics.port={self.config.metrics_port}"
            raise UserError(f"{where}: cannot be bound: {error}") from None


def _authorizer(config: BrokerConfig) -> Authorizer:
    return Authorizer(
        in_force=bool(config.authorizer_class_name),
        super_users=config.super_user_names,
        open_by_default=config.allow_everyone_if_no_acl_found,
    )


@contextmanager
def _what_failed() -> Iterator[None]:
    """Say it as it is, without the group that a task group puts around it."""
    try:
        yield
    except BaseExceptionGroup as group:
        failure: BaseException = group
        while isinstance(failure, BaseExceptionGroup):
            failure = failure.exceptions[0]
        raise failure from (group if len(group.exceptions) > 1 else None)


def _run(
    stack: AsyncExitStack, tasks: asyncio.TaskGroup, loops: list[Coroutine[Any, Any, None]]
) -> None:
    """Start what runs for as long as the broker does; a stop ends it and waits until it has."""
    running = [tasks.create_task(loop) for loop in loops]

    async def end() -> None:
        for task in running:
            task.cancel()
        await asyncio.wait(running)

    stack.push_async_callback(end)
