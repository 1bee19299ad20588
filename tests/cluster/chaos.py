"""Random faults under load on three brokers and three ZooKeeper servers.

Owns the draw of faults, and that each is repaired before the next begins: what is tested is that
nothing acknowledged is lost, not how much can fail at once.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from random import Random
from typing import Final

from tests.cluster.load import Load
from tests.cluster.three_brokers import IDS, SESSION_MS, ThreeBrokers, name_of

LONG_S: Final = 1.5 * SESSION_MS / 1e3
"""Long enough for a session to expire."""


class Chaos:
    def __init__(self, cluster: ThreeBrokers, topic: str, seed: int) -> None:
        self._cluster = cluster
        self._topic = topic
        self._dice = Random(seed)
        self._faults: list[tuple[str, Callable[[int], None]]] = [
            ("kill -9", self._kill),
            ("kill -9", self._kill),
            ("SIGSTOP", self._pause),
            ("cut off from the brokers", self._cut_from_brokers),
            ("cut off from ZooKeeper", self._cut_from_zookeeper),
            ("no longer heard by another broker", self._one_way),
            ("connections reset", self._reset),
            ("kill -9 of a ZooKeeper server", self._kill_zookeeper),
            ("SIGSTOP of a ZooKeeper server", self._pause_zookeeper),
            ("clean restart", self._restart),
        ]

    def inject(self, load: Load) -> str:
        """One fault, repaired again; its name."""
        name, fault = self._dice.choice(self._faults)
        role, broker = self._target()
        load.fault(f"{name}: {role} {broker}")
        fault(broker)
        self._cluster.heal()
        return f"{name}: {role} {broker}"

    def _target(self) -> tuple[str, int]:
        cluster, dice = self._cluster, self._dice
        partitions = cluster.partitions()
        role = dice.choice(["leader", "follower", "controller", "coordinator"])
        match role:
            case "controller":
                broker = cluster.controller
            case "coordinator":
                internal = [(t, p) for t, p, _ in partitions if t.startswith("__")]
                broker = cluster.leader(*dice.choice(internal)) if internal else -1
            case "leader":
                broker = cluster.leader(self._topic)
            case _:
                followers = [id for id in IDS if id != cluster.leader(self._topic)]
                broker = dice.choice(followers)
        return role, broker if broker in IDS else dice.choice(IDS)

    # Faults

    def _kill(self, broker: int) -> None:
        self._cluster.kill(broker)
        self._wait(LONG_S)
        self._cluster.start(broker)

    def _restart(self, broker: int) -> None:
        assert self._cluster.brokers[broker].terminate() == 0
        self._cluster.start(broker)

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

    def _reset(self, broker: int) -> None:
        for other in IDS:
            if other != broker:
                self._cluster.proxies.reset(name_of(broker), name_of(other))

    def _kill_zookeeper(self, _: int) -> None:
        self._dice.choice(self._cluster.ensemble.servers).kill()
        self._wait(LONG_S)
        self._cluster.ensemble.restore()

    def _pause_zookeeper(self, _: int) -> None:
        self._dice.choice(self._cluster.ensemble.servers).signal(signal.SIGSTOP)
        self._wait(LONG_S)
        self._cluster.ensemble.restore()

    def _wait(self, up_to_s: float) -> None:
        time.sleep(self._dice.random() * up_to_s)
