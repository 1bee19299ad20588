"""`ottla.client` in a simulation: the asyncio producer and consumer on virtual time.

Owns where clock and dice come from. Nothing else of the clients is replaced: they talk through
the simulated loop's own connections.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from ottla.client.cluster import Cluster
from ottla.client.consumer.aio import Consumer
from ottla.client.consumer.core import Core
from ottla.client.consumer.fetch.chunk import ChunkReader
from ottla.client.consumer.interceptors import Interceptors
from ottla.client.producer.aio import Producer
from ottla.client.producer.buffer.record_intake import Hooks
from ottla.client.producer.core import ProducerCore
from ottla.client.producer.send_path import SendPath
from ottla.config.client import ProducerConfig
from ottla.model.clock import Clock
from tests.sim.broker import HOST, PORT

SOON: Final = {
    "bootstrap_servers": f"{HOST}:{PORT}",
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 500,
    "retry_backoff_ms": 20,
    "retry_backoff_max_ms": 300,
    "request_timeout_ms": 2_000,
}


class SimProducer(Producer):
    def __init__(self, clock: Clock, dice: Random, **options: Any) -> None:
        config = ProducerConfig.from_options({**SOON, **options}, None)
        stamp_ns = lambda: clock.wall_ms() * 1_000_000  # noqa: E731
        SendPath.__init__(self, ProducerCore(config, Hooks(), clock, dice, stamp_ns))


class SimConsumer(Consumer[bytes, bytes]):
    def __init__(self, clock: Clock, dice: Random, *topics: str, **options: Any) -> None:
        super().__init__(*topics, **{**SOON, **options})
        self._builder._dice = dice
        cluster = Cluster(self._builder.config, clock, dice, auto_create=False)
        self._core = Core(cluster, ChunkReader(None, None, check_crc=True), Interceptors(()))
        self._core.unread = self._iteration.unread
        self._set_up()
