"""Injects the faults of a plan into a simulated cluster, and repairs them.

Owns which fault each broker suffers. Faults may overlap, also on one broker: each ends by itself
after its time, and `repair` ends all that are left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Final

from ottla.model.errors import UserError
from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.store.port import SessionExpired
from tests.sim.book import Book
from tests.sim.cluster.node import SimNode
from tests.sim.cluster.plan import ClusterFault, PlannedFault, Target
from tests.sim.cluster.verdict import StoreView
from tests.sim.network import NetLoop, Weather

HOUR_MS: Final = 3_600_000
START_LIMIT_S: Final = 60.0


class Faults:
    def __init__(
        self, nodes: Mapping[int, SimNode], loop: NetLoop, view: StoreView, book: Book, dice: Random
    ) -> None:
        self._nodes = nodes
        self._loop = loop
        self._view = view
        self._book = book
        self._dice = dice
        self._busy: set[int] = set()
        """Brokers that a fault takes down and brings up again."""

    async def inject(self, planned: PlannedFault) -> None:
        """Let one fault happen, and end it when its time is over."""
        node = self._nodes[self._target(planned.target)]
        self._book.fault(f"{planned.fault.value}: {node.host}, {planned.lasts_s:.1f} s")
        match planned.fault:
            case ClusterFault.KILL | ClusterFault.POWER | ClusterFault.STOP:
                await self._restart(node, planned)
            case ClusterFault.POWER_ALL:
                async with asyncio.TaskGroup() as tasks:
                    for each in self._nodes.values():
                        tasks.create_task(self._restart(each, planned))
            case ClusterFault.PAUSE:
                await self._pause(node, planned.lasts_s)
            case ClusterFault.EXPIRY:
                node.expire_session()
            case ClusterFault.CLOCK:
                node.clock.wall_ahead_ms += self._dice.choice([-HOUR_MS, HOUR_MS])
            case ClusterFault.RESETS:
                self._loop.network.storm()
            case ClusterFault.SLOW_DISK:
                self._loop.slowness = 20.0
                await asyncio.sleep(planned.lasts_s)
                self._loop.slowness = 1.0
            case ClusterFault.STALLS:
                await self._bad_weather(node, planned.lasts_s)
            case _:
                await self._cut(node, planned)

    def _target(self, target: Target) -> int:
        wanted = -1
        match target:
            case Target.LEADER:
                leaders = [
                    state.leader
                    for tp, state in self._view.states().items()
                    if tp.topic not in (CONSUMER_OFFSETS, TRANSACTION_STATE)
                ]
                wanted = self._dice.choice(leaders) if leaders else -1
            case Target.CONTROLLER:
                wanted = self._view.controller()
            case Target.COORDINATOR:
                leaders = [
                    state.leader
                    for tp, state in self._view.states().items()
                    if tp.topic in (CONSUMER_OFFSETS, TRANSACTION_STATE)
                ]
                wanted = self._dice.choice(leaders) if leaders else -1
        return wanted if wanted in self._nodes else self._dice.choice(sorted(self._nodes))

    async def _restart(self, node: SimNode, planned: PlannedFault) -> None:
        if node.id in self._busy:
            return
        self._busy.add(node.id)
        try:
            node.check()
            await self._worst_moment(node)
            match planned.fault:
                case ClusterFault.KILL:
                    node.kill()
                case ClusterFault.STOP:
                    if node.paused:
                        node.resume()
                    await node.stop()
                case _:
                    node.cut_power()
            await asyncio.sleep(planned.lasts_s * self._dice.random())
            await self._start(node)
        finally:
            self._busy.discard(node.id)

    async def _start(self, node: SimNode) -> None:
        """As a supervisor does: a start that fails for want of the store is tried again."""
        async with asyncio.timeout(START_LIMIT_S):
            while True:
                try:
                    await node.begin()
                    return
                except (UserError, OSError, SessionExpired) as error:
                    self._loop.trace.note("start failed", node.host, error)
                    node.bury()
                    await asyncio.sleep(0.5)

    async def _worst_moment(self, node: SimNode) -> None:
        """Wait a little for a write to the disk: what comes right behind it is most at risk."""
        before = node.disk.written_bytes
        for _ in range(50):
            if node.disk.written_bytes != before:
                break
            await asyncio.sleep(0.002)
        if self._dice.random() < 0.5:
            await asyncio.sleep(self._dice.random() * 0.01)

    async def _pause(self, node: SimNode, lasts_s: float) -> None:
        if node.id in self._busy or not node.running or node.paused:
            return
        self._busy.add(node.id)
        node.pause()
        await asyncio.sleep(lasts_s)
        if node.paused:
            node.resume()
        self._busy.discard(node.id)

    async def _cut(self, node: SimNode, planned: PlannedFault) -> None:
        network, here = self._loop.network, node.host
        others = [each.host for each in self._nodes.values() if each is not node]
        directions: list[tuple[str, str]] = []
        if planned.fault is ClusterFault.ONE_WAY:
            directions = [(here, self._dice.choice(others))]
        elif planned.fault is not ClusterFault.STORE_CUT:
            directions = [pair for other in others for pair in ((here, other), (other, here))]
        if planned.fault in (ClusterFault.STORE_CUT, ClusterFault.ALL_CUT):
            node.cut_from_store()
        if directions:
            network.cut(*directions)
        await asyncio.sleep(planned.lasts_s)
        if directions:
            network.heal(*directions)
        if node.store_is_cut:
            node.heal_store()

    async def _bad_weather(self, node: SimNode, lasts_s: float) -> None:
        others = [each.host for each in self._nodes.values() if each is not node]
        pair = frozenset((node.host, self._dice.choice(others)))
        self._loop.network.weather_between[pair] = Weather(
            delay_s=self._dice.choice([0.001, 0.05]),
            stall=self._dice.choice([0.02, 0.2]),
            stall_s=self._dice.choice([0.5, 2.0]),
            reset=self._dice.choice([0.0, 0.02]),
            fragment=0.5,
        )
        await asyncio.sleep(lasts_s)
        self._loop.network.weather_between.pop(pair, None)

    async def repair(self) -> None:
        """End every fault that is left, and start what does not run."""
        network = self._loop.network
        network.heal()
        network.weather_between.clear()
        self._loop.slowness = 1.0
        for node in self._nodes.values():
            if node.store_is_cut:
                node.heal_store()
            if node.paused:
                node.resume()
            if not node.running:
                await self._start(node)
            node.check()
