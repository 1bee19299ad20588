"""Injects the faults of a plan into a simulated cluster, and repairs them.

Owns which fault each broker suffers, and whom each fault hits. Faults may overlap, also on one
broker: each ends by itself after its time, and `repair` ends all that are left.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Mapping
from random import Random
from typing import Final

from ottla.model.errors import UserError
from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.store.port import SessionExpired
from tests.sim.book import Book
from tests.sim.cluster.moments import Moments, Subject
from tests.sim.cluster.node import SimNode
from tests.sim.cluster.plan import ClusterFault, PlannedFault, Target
from tests.sim.cluster.verdict import StoreView
from tests.sim.network import NetLoop, Weather
from tests.sim.rot import rot

HOUR_MS: Final = 3_600_000
START_LIMIT_S: Final = 60.0
MOMENT_LIMIT_S: Final = 3.0
"""After which a fault no longer waits for its moment."""
CLIENTS: Final = "clients"
"""The host of all clients."""
INTERNAL: Final = (CONSUMER_OFFSETS, TRANSACTION_STATE)
RESTARTS: Final = (
    ClusterFault.KILL,
    ClusterFault.KILL_IN_RECOVERY,
    ClusterFault.POWER,
    ClusterFault.STOP,
    ClusterFault.ROT,
    ClusterFault.WIPED_DISK,
)
BAD_DISKS: Final = (ClusterFault.FULL_DISK, ClusterFault.BAD_SYNC, ClusterFault.BAD_DIRECTORY)


class Faults:
    def __init__(
        self,
        nodes: Mapping[int, SimNode],
        view: StoreView,
        moments: Moments,
        book: Book,
        dice: Random,
    ) -> None:
        self._moments = moments
        self._nodes = nodes
        self._loop: NetLoop = nodes[min(nodes)].loop
        self._view = view
        self._book = book
        self._dice = dice
        self._subject = Subject()
        self._hit: tuple[int, int] = (-1, -1)
        """The broker that the last fault hit, and the other end of its link."""
        self._busy: set[int] = set()
        """Brokers that a fault takes down and brings up again."""
        self._active = 0
        """Faults that have not ended."""
        self._alone = asyncio.Event()
        """Not set while a fault must be the only one."""
        self._alone.set()

    async def inject_all(self, planned: tuple[PlannedFault, ...]) -> None:
        """One after the other; each ends when its time is over."""
        async with asyncio.TaskGroup() as tasks:
            for fault in planned:
                await asyncio.sleep(fault.after_s)
                await self._alone.wait()
                subject = await self._moments.wait(fault.at, MOMENT_LIMIT_S)
                self._subject = subject or self._subject
                tasks.create_task(self._inject(fault, *self._ends(fault)))

    def _ends(self, planned: PlannedFault) -> tuple[SimNode, SimNode]:
        """The broker that a fault hits, and the other end if it hits a link."""
        broker = self._choose(planned.target, sorted(self._nodes))
        other = self._choose(planned.toward, sorted(self._nodes.keys() - {broker}))
        self._hit = (broker, other)
        return self._nodes[broker], self._nodes[other]

    def _choose(self, target: Target, brokers: list[int]) -> int:
        candidates = [broker for broker in self._candidates(target) if broker in brokers]
        return self._dice.choice(candidates or brokers)

    def _candidates(self, target: Target) -> list[int]:
        match target:
            case Target.CONTROLLER:
                return [self._view.controller()]
            case Target.JOINED:
                return [self._subject.joined]
            case Target.SAME:
                return [self._hit[0]]
            case Target.THIRD:
                return sorted(self._nodes.keys() - set(self._hit))
            case Target.ANY:
                return []
        states = self._view.states()
        about = self._subject.partition
        if about in states and target is not Target.COORDINATOR:
            states = {about: states[about]}
        else:
            of_coordinators = target is Target.COORDINATOR
            states = {
                tp: state
                for tp, state in states.items()
                if (tp.topic in INTERNAL) is of_coordinators
            }
        if target is Target.FOLLOWER:
            return [broker for s in states.values() for broker in s.isr if broker != s.leader]
        return [state.leader for state in states.values()]

    async def _inject(self, planned: PlannedFault, node: SimNode, other: SimNode) -> None:
        fault, lasts_s = planned.fault, planned.lasts_s
        self._book.fault(f"{fault.value}: {node.host}, {lasts_s:.1f} s")
        self._active += 1
        await self._perform(fault, node, other, lasts_s)
        self._active -= 1

    async def _perform(
        self, fault: ClusterFault, node: SimNode, other: SimNode, lasts_s: float
    ) -> None:
        if fault in RESTARTS:
            await self._restart(node, fault, lasts_s)
        elif fault in BAD_DISKS:
            await self._bad_disk(node, fault, lasts_s)
        elif fault is ClusterFault.POWER_ALL:
            async with asyncio.TaskGroup() as tasks:
                for each in self._nodes.values():
                    tasks.create_task(self._restart(each, fault, lasts_s))
        elif fault is ClusterFault.PAUSE:
            await self._pause(node, lasts_s)
        elif fault in (ClusterFault.STALLS, ClusterFault.CLIENT_STALLS):
            await self._bad_weather(node, other, fault, lasts_s)
        elif fault is ClusterFault.SLOW_DISK:
            self._loop.slow_hosts[node.host] = 20.0
            await asyncio.sleep(lasts_s)
            self._loop.slow_hosts.pop(node.host, None)
        elif not await self._of_the_store(node, fault, lasts_s):
            await self._cut(node, other, fault, lasts_s)

    async def _of_the_store(self, node: SimNode, fault: ClusterFault, lasts_s: float) -> bool:
        """Faults of the store and of clocks; False for any other."""
        match fault:
            case ClusterFault.EXPIRY:
                node.expire_session()
            case ClusterFault.EXPIRY_KEPT:
                await node.expire_session_first(min(lasts_s, 1.0))
            case ClusterFault.STORE_DOWN:
                for each in self._nodes.values():
                    each.cut_from_store(expires=False)
                await asyncio.sleep(lasts_s)
                for each in self._nodes.values():
                    each.heal_store()
            case ClusterFault.STORE_SLOW:
                node.slow_store(reply_s=1.0)
                await asyncio.sleep(lasts_s)
                node.slow_store(reply_s=0.0)
            case ClusterFault.CONTROLLER_DELETED:
                self._view.delete_controller()
            case ClusterFault.CLOCK:
                node.set_clock(self._dice.choice([-HOUR_MS, HOUR_MS]))
            case ClusterFault.RESETS:
                self._loop.network.storm()
            case _:
                return False
        return True

    # Restarts

    async def _restart(self, node: SimNode, fault: ClusterFault, lasts_s: float) -> None:
        if node.id in self._busy:
            return
        self._busy.add(node.id)
        try:
            node.check()
            await self._worst_moment(node)
            await self._take_down(node, fault)
            if fault is ClusterFault.ROT:
                damaged = rot(node.disk, node.data_dirs, self._dice)
                self._loop.trace.note("rot", *damaged)
            await asyncio.sleep(lasts_s * self._dice.random())
            if fault is ClusterFault.WIPED_DISK and self._may_be_wiped(node):
                self._alone.clear()
                node.disk.wipe()
            if fault is ClusterFault.KILL_IN_RECOVERY:
                await self.kill_while_it_starts(node)
            await self.start(node)
        finally:
            self._alone.set()
            self._busy.discard(node.id)

    async def _take_down(self, node: SimNode, fault: ClusterFault) -> None:
        if fault in (ClusterFault.POWER, ClusterFault.POWER_ALL):
            node.cut_power()
        elif fault is ClusterFault.STOP:
            if node.paused:
                node.resume()
            await node.stop()
        else:
            node.kill()

    def _may_be_wiped(self, node: SimNode) -> bool:
        """Whether every record in it stays in another replica that is in sync.

        Where it is listed in sync, the others must not leave before the controller knows of this.
        """
        listed = [state.isr for state in self._view.states().values() if node.id in state.isr]
        return not listed or (self._active == 1 and all(len(isr) > 1 for isr in listed))

    async def kill_while_it_starts(self, node: SimNode) -> None:
        for _ in range(self._dice.randint(1, 3)):
            ready = node.begin()
            await asyncio.wait([ready], timeout=self._dice.random() ** 2 * 0.1)
            if ready.done():
                ready.exception()
            node.kill()

    async def start(self, node: SimNode) -> None:
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

    async def _bad_disk(self, node: SimNode, fault: ClusterFault, lasts_s: float) -> None:
        """An operator mends the disk and starts the broker again."""
        if node.id in self._busy or not node.running or node.paused:
            return
        self._busy.add(node.id)
        disk = node.disk
        if fault is ClusterFault.FULL_DISK:
            disk.capacity_bytes = disk.written_bytes + self._dice.randrange(3_000)
        elif fault is ClusterFault.BAD_SYNC:
            disk.sync_error = OSError(errno.EIO, "input/output error")
        else:
            disk.failed_directory = self._dice.choice(node.data_dirs)
        await asyncio.sleep(lasts_s)
        if not node.gave_up():
            kind = self._dice.choice([ClusterFault.KILL, ClusterFault.STOP])
            await self._take_down(node, kind)
        disk.mend()
        await self.start(node)
        self._busy.discard(node.id)

    async def _pause(self, node: SimNode, lasts_s: float) -> None:
        if node.id in self._busy or not node.running or node.paused:
            return
        self._busy.add(node.id)
        node.pause()
        await asyncio.sleep(lasts_s)
        if node.paused:
            node.resume()
        self._busy.discard(node.id)

    # The network

    async def _cut(
        self, node: SimNode, other: SimNode, fault: ClusterFault, lasts_s: float
    ) -> None:
        network, here = self._loop.network, node.host
        others = [each.host for each in self._nodes.values() if each is not node]
        directions: list[tuple[str, str]] = []
        if fault is ClusterFault.ONE_WAY:
            directions = [(here, other.host)]
        elif fault is ClusterFault.PAIR_CUT:
            directions = [(here, other.host), (other.host, here)]
        elif fault is not ClusterFault.STORE_CUT:
            directions = [pair for host in others for pair in ((here, host), (host, here))]
        if fault in (ClusterFault.STORE_CUT, ClusterFault.ALL_CUT):
            node.cut_from_store()
        if directions:
            network.cut(*directions)
        await asyncio.sleep(lasts_s)
        if directions:
            network.heal(*directions)
        if fault in (ClusterFault.STORE_CUT, ClusterFault.ALL_CUT):
            node.heal_store()

    async def _bad_weather(
        self, node: SimNode, other: SimNode, fault: ClusterFault, lasts_s: float
    ) -> None:
        of_clients = fault is ClusterFault.CLIENT_STALLS
        pair = frozenset((node.host, CLIENTS if of_clients else other.host))
        self._loop.network.weather_between[pair] = Weather(
            delay_s=self._dice.choice([0.001, 0.05]),
            stall=self._dice.choice([0.02, 0.2]),
            stall_s=self._dice.choice([0.5, 2.0]),
            reset=self._dice.choice([0.0, 0.02]),
            silence=self._dice.choice([0.0, 0.01]) if of_clients else 0.0,
            fragment=0.5,
        )
        await asyncio.sleep(lasts_s)
        self._loop.network.weather_between.pop(pair, None)

    async def repair(self) -> None:
        """End every fault that is left, and start what does not run."""
        network = self._loop.network
        network.heal()
        network.weather_between.clear()
        self._loop.slow_hosts.clear()
        for node in self._nodes.values():
            if node.store_is_cut:
                node.heal_store()
            node.slow_store(reply_s=0.0)
            if node.paused:
                node.resume()
            if not node.running:
                await self.start(node)
            node.check()
