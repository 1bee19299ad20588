"""Where metadata live, and what is said of a place that cannot be entered."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from ottla.broker.environment import Environment
from ottla.broker.metadata_store import (
    MetadataStoreChoice,
    choose_store,
    open_store,
    retry_store_reads,
)
from ottla.config.broker import BrokerConfig
from ottla.log.directories.log_directories import LogDirectories
from ottla.model.errors import UserError
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.port import Store, StoreUnavailable
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.inline_pool import InlinePool
from tests.fakes.virtual_loop import LoopClock

NODE, CLUSTER = MemoryStore(Ensemble()), MemoryStore(Ensemble())
ON_ZOOKEEPER = BrokerConfig.parse({"zookeeper.connect": "zk1:2181,zk2:2181/ottla"})


def environment() -> Environment:
    return Environment(
        LoopClock(), Random(1), ForgettingDisk(), lambda _: NODE, InlinePool(), lambda _: CLUSTER
    )


def test_one_node_keeps_them_in_its_first_directory_and_a_cluster_on_zookeeper() -> None:
    here = environment()
    directories = LogDirectories([Path("/a"), Path("/b")], here.disk, here.clock, here.dice)
    directories.open()
    embedded = choose_store(BrokerConfig(), directories, here)
    assert embedded[:2] == (NODE, "/a")
    assert "then set zookeeper.connect" in embedded.why_empty
    joined = choose_store(ON_ZOOKEEPER, directories, here)
    assert joined[:2] == (CLUSTER, "ZooKeeper at zk1:2181,zk2:2181/ottla")
    command = "ottla metadata import FILE --to zookeeper://zk1:2181,zk2:2181/ottla"
    assert command in joined.why_empty
    directories.release()


async def test_a_store_that_cannot_be_opened_is_named() -> None:
    class Silent(MemoryStore):
        async def start(self) -> None:
            raise StoreUnavailable(110, "no reply")

    silent: Store = Silent(Ensemble())
    with pytest.raises(UserError, match="metadata store unavailable: over there: no reply"):
        await open_store(MetadataStoreChoice(silent, "over there", ""))


class Blinking:
    """A step of a start that loses its connection a few times."""

    def __init__(self, failures: int) -> None:
        self.calls = 0
        self._failures = failures

    async def step(self) -> str:
        self.calls += 1
        if self.calls <= self._failures:
            raise StoreUnavailable(113, "connection lost")
        return "done"


async def test_a_start_survives_lost_connections_within_the_connection_timeout() -> None:
    config = BrokerConfig.parse(
        {"zookeeper.connect": "zk:2181", "zookeeper.connection.timeout.ms": "3000"}
    )
    short, long = Blinking(5), Blinking(10_000)
    assert await retry_store_reads(short.step, LoopClock(), config) == "done"
    with pytest.raises(StoreUnavailable):
        await retry_store_reads(long.step, LoopClock(), config)
    assert long.calls == 7, "for 3 s, every half second"


async def test_what_the_embedded_store_cannot_do_is_not_tried_again() -> None:
    broken = Blinking(1)
    with pytest.raises(StoreUnavailable):
        await retry_store_reads(broken.step, LoopClock(), BrokerConfig())
    assert broken.calls == 1
