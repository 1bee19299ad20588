"""What a broker is handed instead of reaching for it: clock, randomness, disk, store, threads.

Owns nothing. `Environment.real` builds the one of a process; tests build simulated ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from resource import RLIMIT_NOFILE, getrlimit
from socket import getfqdn
from typing import Final

from ottla.broker.descriptors import UNLIMITED_SHARES, DescriptorShares, descriptor_shares
from ottla.broker.memory import memory_bytes
from ottla.config.broker import BrokerConfig
from ottla.log.files import Disk, RealDisk
from ottla.log.io_uring import SyncRing
from ottla.model.clock import Clock, SystemClock
from ottla.replica.flush_loop import Ring
from ottla.shared_state.zookeeper_access import zookeeper_store
from ottla.store.embedded import EmbeddedStore
from ottla.store.port import Store

POOL_THREADS: Final = 4
"""For work that may block: fsync, recompression, compaction, cold reads, large decisions of the
controller."""


@dataclass(frozen=True, slots=True)
class Environment:
    clock: Clock
    dice: Random
    disk: Disk
    open_store: Callable[[Path], Store]
    """The metadata store of one node, given the first log directory."""
    pool: Executor | None
    """None: the loop's own executor."""
    join_store: Callable[[BrokerConfig], Store] = zookeeper_store
    """The metadata store that `zookeeper.connect` names."""
    host_name: Callable[[], str] = lambda: "localhost"
    """The host name to advertise for a listener on every address."""
    random_bytes: Callable[[int], bytes] = os.urandom
    """For nonces and secrets: nobody may guess them."""
    ring: Ring | None = None
    """io_uring, which syncs files without a thread; None where the system has none."""
    memory_bytes: int = 8 << 30
    """Memory the process may use; limits without a setting are derived from it."""
    descriptors: DescriptorShares = UNLIMITED_SHARES
    """File descriptors that each part may take."""

    def close(self) -> None:
        """Stop the threads after the work they have begun."""
        if self.pool is not None:
            self.pool.shutdown()
        if self.ring is not None:
            self.ring.close()
        if isinstance(self.disk, RealDisk):
            self.disk.open_files.reserve(0)

    @classmethod
    def real(cls) -> Environment:
        descriptors = descriptor_shares(getrlimit(RLIMIT_NOFILE)[0])
        disk = RealDisk(descriptors.log_files)
        disk.open_files.reserve(descriptors.reserve)
        return cls(
            clock=SystemClock(),
            dice=Random(),
            disk=disk,
            open_store=EmbeddedStore.at,
            pool=ThreadPoolExecutor(POOL_THREADS, thread_name_prefix="ottla"),
            host_name=getfqdn,
            ring=SyncRing.open(),
            memory_bytes=memory_bytes(),
            descriptors=descriptors,
        )
