"""What a broker is given instead of taking it: time, dice, disk, store and threads.

Owns nothing. The real world is made here; a simulated one is made by the tests, of the same parts.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from resource import RLIMIT_NOFILE, getrlimit
from socket import getfqdn
from typing import Final

from ottla.broker.machine_memory import memory_bytes
from ottla.broker.metadata_store import zookeeper
from ottla.config.broker import BrokerConfig
from ottla.log.files import Disk, RealDisk
from ottla.log.io_uring import SyncRing
from ottla.model.clock import Clock, SystemClock
from ottla.replica.flush_loop import Ring
from ottla.store.embedded import EmbeddedStore
from ottla.store.port import Store

POOL_THREADS: Final = 4
"""For what can block: fsync, recompression, compaction, cold reads."""
OPEN_FILES_MAX: Final = 2_000
"""Files of logs held open. At most half of what the system allows: the rest is for connections."""


@dataclass(frozen=True, slots=True)
class Environment:
    clock: Clock
    dice: Random
    disk: Disk
    open_store: Callable[[Path], Store]
    """The metadata store of one node, given the first log directory."""
    pool: Executor | None
    """None: the loop's own executor."""
    join_store: Callable[[BrokerConfig], Store] = zookeeper
    """The metadata store of a cluster, which the settings name."""
    host_name: Callable[[], str] = lambda: "localhost"
    """What others reach this machine by, for a listener on every address."""
    ring: Ring | None = None
    """Syncs files without a thread, where the system has that."""
    memory_bytes: int = 8 << 30
    """What the process may use of the machine's memory; bounds are derived from it."""

    def close(self) -> None:
        """Let go of the threads, once what they do is done."""
        if self.pool is not None:
            self.pool.shutdown()
        if self.ring is not None:
            self.ring.close()

    @classmethod
    def real(cls) -> Environment:
        return cls(
            clock=SystemClock(),
            dice=Random(),
            disk=RealDisk(min(OPEN_FILES_MAX, getrlimit(RLIMIT_NOFILE)[0] // 2)),
            open_store=EmbeddedStore.at,
            pool=ThreadPoolExecutor(POOL_THREADS, thread_name_prefix="ottla"),
            host_name=getfqdn,
            ring=SyncRing.open(),
            memory_bytes=memory_bytes(),
        )
