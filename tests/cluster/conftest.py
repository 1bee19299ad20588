"""One ZooKeeper ensemble of three servers for a session's tests; each has a path of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.zookeeper_server import Ensemble, zookeeper_ensemble


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with zookeeper_ensemble(tmp_path_factory.mktemp("ensemble"), 3) as servers:
        yield Ensemble(servers)
