"""Three broker processes on one ZooKeeper: what is acknowledged survives the leader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.load import produce, values
from tests.cluster.process import BrokerProcess, wait_for
from tests.cluster.replicated_topics import create, everyone, in_sync
from tests.store.zookeeper_server import Server, zookeeper_server

SETTINGS = {
    "zookeeper.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "3000",
    "min.insync.replicas": "2",
    "log.level": "info",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def brokers(server: Server, tmp_path: Path) -> Iterator[list[BrokerProcess]]:
    path = f"/{tmp_path.name}"
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                BrokerProcess(
                    tmp_path / str(number),
                    {
                        **SETTINGS,
                        "broker.id": str(number),
                        "zookeeper.connect": f"{server.address}{path}",
                    },
                )
            )
            for number in range(3)
        ]


@pytest.mark.spec("REP-21", "REP-23", "REP-24")
def test_what_is_acknowledged_by_all_survives_a_killed_leader(
    brokers: list[BrokerProcess],
) -> None:
    address = everyone(brokers)
    create(address, "orders", 3)
    names = [f"before {number}" for number in range(300)]
    produce(address, "orders", names)
    leader, isr = in_sync(address, "orders")[0]
    assert isr == [0, 1, 2]
    brokers[leader].kill()
    more = [f"after {number}" for number in range(300)]
    produce(address, "orders", more)
    assert sorted(values(address, "orders", 3)) == sorted(names + more)
    brokers[leader].start()
    wait_for(
        lambda: all(isr == [0, 1, 2] for _, isr in in_sync(address, "orders").values()),
        what="the killed broker is in sync again",
    )
