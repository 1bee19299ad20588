"""Random faults under load on three brokers and three ZooKeeper servers.

Owns the draw of faults, and that each is repaired before the next begins: what is tested is that
nothing acknowledged is lost, not how much can fail at once. Not every time all replicas are in
sync again when the next one begins.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from tests.cluster.file_systems import fill
from tests.cluster.process import wait_for
from tests.cluster.three_brokers import IDS, SESSION_MS, ZOOKEEPER, ThreeBrokers, name_of

LONG_S: Final = 1.5 * SESSION_MS / 1e3
"""Long enough for a session to expire."""
NO_DISKS: Final[Mapping[int, Path]] = {}
ROLES: Final = ("leader", "follower", "controller", "coordinator")


class Kind(NamedTuple):
    """A kind of fault; without a role, which broker it strikes is drawn."""

    name: str
    inject: Callable[[int], None]
    role: str = ""


class Chaos:
    """`disks`: where each broker has a file system of its own, which may become full."""

    def __init__(
        self, cluster: ThreeBrokers, topic: str, seed: int, disks: Mapping[int, Path] = NO_DISKS
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._disks = disks
        self._dice = Random(seed)
        self._kinds = [
            *(Kind("kill -9", self._kill, role) for role in ROLES),
            Kind("SIGSTOP", self._pause),
            Kind("cut off from the brokers", self._cut_from_brokers),
            Kind("cut off from ZooKeeper", self._cut_from_zookeeper),
            Kind("no longer heard by another broker", self._one_way),
            Kind("no longer heard by ZooKeeper, or does not hear it", self._one_way_to_zookeeper),
            Kind("connections reset", self._reset),
            Kind("kill -9 of a ZooKeeper server", self._kill_zookeeper),
            Kind("kill -9 of two ZooKeeper servers", self._take_quorum),
            Kind("SIGSTOP of a ZooKeeper server", self._pause_zookeeper),
            Kind("clean restart", self._restart),
            Kind("rolling restart", self._roll),
        ]
        if disks:
            self._kinds.append(Kind("disk full", self._fill_disk))
        self._left: list[Kind] = []

    def draw(self) -> tuple[str, Callable[[], None]]:
        """The next fault: its name, and what injects and repairs it.

        Every kind comes once before one comes again.
        """
        if not self._left:
            self._left = self._dice.sample(self._kinds, len(self._kinds))
        kind = self._left.pop()
        role = kind.role or self._dice.choice(ROLES)
        broker = self._broker_in(role)

        def inject() -> None:
            kind.inject(broker)
            self._cluster.heal()
            if self._dice.random() < 0.75:
                self._cluster.wait_until_all_in_sync()

        return f"{kind.name}: {role} {broker}", inject

    def _broker_in(self, role: str) -> int:
        cluster, dice = self._cluster, self._dice
        match role:
            case "controller":
                broker = cluster.controller
            case "coordinator":
                internal = [(t, p) for t, p, _ in cluster.partitions() if t.startswith("__")]
                broker = cluster.leader(*dice.choice(internal)) if internal else -1
            case "leader":
                broker = cluster.leader(self._topic)
            case _:
                followers = [id for id in IDS if id != cluster.leader(self._topic)]
                broker = dice.choice(followers)
        return broker if broker in IDS else dice.choice(IDS)

    # Faults

    def _kill(self, broker: int) -> None:
        self._cluster.kill(broker)
        self._wait(LONG_S)
        self._cluster.start(broker)

    def _restart(self, broker: int) -> None:
        self._cluster.stop(broker)
        self._cluster.start(broker)

    def _roll(self, _: int) -> None:
        self._cluster.roll()

    def _pause(self, broker: int) -> None:
        self._cluster.pause(broker)
        self._wait(2 * LONG_S)
        self._cluster.resume(broker)

    def _cut_from_brokers(self, broker: int) -> None:
        self._cluster.isolate_from_brokers(broker)
        self._wait(2 * LONG_S)

    def _cut_from_zookeeper(self, broker: int) -> None:
        self._cluster.isolate_from_zookeeper(broker)
        self._wait(2 * LONG_S)

    def _one_way(self, broker: int) -> None:
        other = self._dice.choice([id for id in IDS if id != broker])
        self._cluster.cut(broker, other)
        self._wait(2 * LONG_S)

    def _one_way_to_zookeeper(self, broker: int) -> None:
        direction = (name_of(broker), ZOOKEEPER)
        self._cluster.proxies.cut(direction if self._dice.random() < 0.5 else direction[::-1])
        self._wait(2 * LONG_S)

    def _reset(self, broker: int) -> None:
        for other in IDS:
            if other != broker:
                self._cluster.proxies.reset(name_of(broker), name_of(other))

    def _kill_zookeeper(self, _: int) -> None:
        self._dice.choice(self._cluster.ensemble.servers).kill()
        self._wait(LONG_S)
        self._cluster.ensemble.restore()

    def _take_quorum(self, _: int) -> None:
        for server in self._dice.sample(self._cluster.ensemble.servers, 2):
            server.kill()
        self._wait(2 * LONG_S)
        self._cluster.ensemble.restore()

    def _pause_zookeeper(self, _: int) -> None:
        self._dice.choice(self._cluster.ensemble.servers).signal(signal.SIGSTOP)
        self._wait(LONG_S)
        self._cluster.ensemble.restore()

    def _fill_disk(self, broker: int) -> None:
        """The broker cannot write anything any more, and ends; with space again it comes back."""
        process, disk = self._cluster.brokers[broker].process, self._disks[broker]
        fill(disk)
        wait_for(lambda: process.poll() is not None, 60, f"broker {broker} to end")
        assert process.returncode == 1, self._cluster.brokers[broker].said[-2000:]
        (disk / "filler").unlink()
        self._cluster.start(broker)

    def _wait(self, up_to_s: float) -> None:
        time.sleep(self._dice.random() * up_to_s)
