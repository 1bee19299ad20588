"""Three simulated brokers, the store they share, and clients of them.

Owns the brokers and what happens to them from start to stop. Seeded runs (`simulation`) and single
scenarios use the same cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random

from ottla.store.memory import StoreFaults
from tests.sim.book import Book
from tests.sim.cluster.faults import Faults
from tests.sim.cluster.logins import Logins, write_users
from tests.sim.cluster.moments import Moments, ObservedEnsemble
from tests.sim.cluster.node import SimNode
from tests.sim.cluster.routing import BROKERS, RoutedClient
from tests.sim.cluster.verdict import StoreView
from tests.sim.loop import SimClock
from tests.sim.network import NetLoop


class SimCluster:
    def __init__(
        self,
        settings: Mapping[str, str],
        loop: NetLoop,
        seed: int,
        logins: Logins | None = None,
    ) -> None:
        settings = {**settings, **(logins.settings if logins else {})}
        self._logins = logins
        self.loop = loop
        self.book = Book(loop)
        self.clock = SimClock(loop)
        self.moments = Moments()
        self.ensemble = ObservedEnsemble(self.moments)
        self.nodes = {id: SimNode(loop, id, settings, self.ensemble) for id in BROKERS}
        self.view = StoreView(self.ensemble)
        self.faults = Faults(self.nodes, self.view, self.moments, self.book, Random(seed + 4))
        self._dice = Random(seed + 3)
        self.admin = self.client("admin")

    def client(self, name: str) -> RoutedClient:
        dice, logins = Random(self._dice.random()), self._logins
        if logins is None:
            return RoutedClient(name, self.clock, dice)
        login = logins.of_client(self.clock, dice)
        return RoutedClient(name, self.clock, dice, login, logins.options)

    async def start(self) -> None:
        if self._logins is not None:
            await write_users(self.ensemble)
        await asyncio.gather(*(node.begin() for node in self.nodes.values()))

    async def stop(self) -> None:
        await asyncio.gather(*(node.stop() for node in self.nodes.values()))

    def set_store_faults(self, faults: Mapping[str, float]) -> None:
        for node in self.nodes.values():
            node.set_store_faults(StoreFaults(Random(self._dice.random()), **faults))
