"""A client for code that Spark calls and waits for.

Owns: one cluster's connections on a thread with an event loop, and the one that a worker process
keeps. Never: knows what is asked.

Spark uses its Python processes again, batch after batch. `shared` therefore keeps a connection for
each set of client settings as long as the process lives: a small batch would otherwise spend more
time on greetings than on its records. So does `shared_producer` for writers without transactions.
It is a saving only; nothing depends on finding them there.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

from ottla.client.admin.session import Session
from ottla.client.cluster import Cluster
from ottla.client.loop_thread import LoopThread
from ottla.config.client import AdminConfig, ClientConfig
from ottla.model.clock import SystemClock

if TYPE_CHECKING:
    from ottla.client.producer.sync import Producer

T = TypeVar("T")
MAX_KEPT: Final = 8
"""Clusters a process stays connected to; a worker rarely meets more than two."""


class Connection:
    """A cluster, and a thread on which it is asked."""

    def __init__(self, config: ClientConfig) -> None:
        self.clock = SystemClock()
        self.dice = Random()
        self.config = config
        self.session = Session(Cluster(config, self.clock, self.dice), _admin(config))
        self._thread = LoopThread("ottla-spark")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._thread.call_soon(self.session.cluster.close)
        self._thread.stop()

    def run(self, work: Coroutine[object, None, T]) -> T:
        """Do something on the thread, and wait for it."""
        return self._thread.run(work)

    def submit(self, work: Coroutine[object, None, T]) -> Future[T]:
        """Do something on the thread, and do not wait."""
        return self._thread.submit(work)

    def ask(self, work: Callable[[Session], Coroutine[object, None, T]]) -> T:
        """The same, for something that is asked of the cluster."""
        return self._thread.run(work(self.session))


_producers: dict[tuple[tuple[str, str], ...], Producer] = {}


@contextmanager
def shared_producer(settings: Mapping[str, str]) -> Iterator[Producer]:
    """This process's idempotent producer for these settings; one that failed is not kept."""
    from ottla.client.producer.sync import Producer

    key = tuple(sorted(settings.items()))
    producer = _producers.pop(key, None) or Producer(config=settings)
    try:
        yield producer
    except BaseException:
        producer.close(0)
        raise
    for other in _producers.values():
        other.close()
    _producers.clear()
    _producers[key] = producer


_kept: dict[tuple[type[ClientConfig], tuple[tuple[str, str], ...]], Connection] = {}


def shared_connection(kind: type[ClientConfig], settings: Mapping[str, str]) -> Connection:
    """This process's connection for these settings."""
    key = (kind, tuple(sorted(settings.items())))
    connection = _kept.pop(key, None)
    if connection is None:
        if len(_kept) >= MAX_KEPT:
            _kept.pop(next(iter(_kept))).close()
        connection = Connection(kind.from_options({}, settings)).__enter__()
    _kept[key] = connection  # the last one used is the last to go
    return connection


def _admin(config: ClientConfig) -> AdminConfig:
    return AdminConfig(
        **{
            setting.attribute: getattr(config, setting.attribute)
            for setting in AdminConfig.SETTINGS.values()
            if hasattr(config, setting.attribute)
        }
    )
