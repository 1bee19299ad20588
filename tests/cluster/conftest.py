"""One ZooKeeper ensemble of three servers for a session's tests, and one cluster on it.

A cluster that a test starts for itself has a path of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.shared_cluster import SharedCluster
from tests.store.zookeeper_server import Ensemble, zookeeper_ensemble


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with zookeeper_ensemble(tmp_path_factory.mktemp("ensemble"), 3) as servers:
        yield Ensemble(servers)


@pytest.fixture(scope="session")
def shared(ensemble: Ensemble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedCluster]:
    cluster = SharedCluster(ensemble, tmp_path_factory.mktemp("shared"))
    yield cluster
    cluster.close()
