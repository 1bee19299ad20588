"""One cluster of three brokers for all tests that leave it as they found it.

Owns when a new one is started: for the first test, and after a test that failed or left brokers
down. Tests share nothing else: each makes topics of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.three_brokers import IDS, ThreeBrokers
from tests.store.zookeeper_server import Ensemble


class SharedCluster:
    def __init__(self, ensemble: Ensemble, folder: Path) -> None:
        self._ensemble = ensemble
        self._folder = folder
        self._started = 0
        self._cluster: ThreeBrokers | None = None

    @contextmanager
    def healthy(self) -> Iterator[ThreeBrokers]:
        """Every replica is in sync when the block begins, and must be when it ends."""
        cluster = self._cluster or self._start()
        try:
            yield cluster
            cluster.heal()
            assert all(cluster.brokers[id].process.poll() is None for id in IDS)
            cluster.wait_until_all_in_sync()
        except BaseException:
            print(cluster.describe_if_possible(), file=sys.stderr)
            self.close()
            raise

    def close(self) -> None:
        if self._cluster is not None:
            cluster, self._cluster = self._cluster, None
            cluster.__exit__(None, None, None)

    def _start(self) -> ThreeBrokers:
        self._started += 1
        folder = self._folder / f"{self._folder.name}-{self._started}"
        folder.mkdir()
        self._cluster = ThreeBrokers(self._ensemble, folder).__enter__()
        return self._cluster
