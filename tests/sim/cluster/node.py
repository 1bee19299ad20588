"""One broker of a simulated cluster: its host, disk and clock, and its session with the store.

Owns what can happen to one machine: the process is paused, killed or stopped, the power goes, the
store becomes unreachable. The session of a process that is silent for longer than its timeout is
ended by the ensemble, and the process learns of it when it is heard again. Never looks inside the
broker.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import replace
from random import Random
from typing import Final

from ottla.store.memory import Ensemble, StoreFaults
from ottla.store.port import Session, StoreUnavailable
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.sim.broker import PORT, SimBroker, SimStore
from tests.sim.cluster.routing import host_of
from tests.sim.loop import SimClock
from tests.sim.network import NetLoop

NOTICE_S: Final = 0.3
"""Within which a process that was paused learns that its connection to the store is lost."""
CONNECT_S: Final = 1.0


def rack_of(broker: int) -> str:
    """Of a broker whose settings let consumers read in their own rack."""
    return f"rack{broker}"


class NodeStore(SimStore):
    """The session of one life of a node."""

    is_cut = False

    async def start(self) -> None:
        if self.is_cut:
            await asyncio.sleep(CONNECT_S)
            if self.is_cut:
                raise StoreUnavailable(errno.EHOSTUNREACH, "no reply from the metadata store")
        await super().start()
        if self.is_cut:  # meanwhile
            self.cut()

    def set_faults(self, faults: StoreFaults) -> None:
        self._faults = faults

    def cut(self) -> None:
        self.is_cut = True
        if self._state is Session.CONNECTED:
            self.turn(Session.SUSPENDED)

    def heal(self) -> None:
        self.is_cut = False
        self.reconnect()

    def reconnect(self) -> None:
        if not self.is_cut:
            super().reconnect()

    def notice_silence(self) -> None:
        """After a pause: the connection is found to be lost, and another one is made."""
        if self._state is Session.CONNECTED:
            self.turn(Session.SUSPENDED)
            asyncio.get_running_loop().call_later(NOTICE_S, self.reconnect)


class SimNode(SimBroker):
    def __init__(
        self, loop: NetLoop, broker_id: int, settings: Mapping[str, str], ensemble: Ensemble
    ) -> None:
        self.id = broker_id
        self.clock = SimClock(loop)
        disk = ForgettingDisk(self.clock.wall_ms)
        own = {"broker.id": str(broker_id), "zookeeper.connect": "store:2181"}
        if "replica.selector.class" in settings:
            own["broker.rack"] = rack_of(broker_id)
        if "sasl.enabled.mechanisms" in settings:
            own["listeners"] = f"SASL_PLAINTEXT://{host_of(broker_id)}:{PORT}"
        super().__init__(loop, self.clock, disk, {**settings, **own}, host_of(broker_id))
        self.ensemble = ensemble
        self._store_faults = StoreFaults(Random(self._dice.random()))
        self._store_reply_s = 0.0
        self._ahead_ms = 0
        self._ending: list[tuple[asyncio.TimerHandle, int]] = []
        self.store_is_cut = False
        self._session_s = int(settings["zookeeper.session.timeout.ms"]) / 1e3
        self._expiry: asyncio.TimerHandle | None = None

    @property
    def store(self) -> NodeStore | None:
        store = self._stores[-1] if self._stores else None
        assert store is None or isinstance(store, NodeStore)
        return store

    @property
    def paused(self) -> bool:
        return self.running and self.lives[-1].paused

    # The process

    def pause(self) -> None:
        self.loop.pause(self.lives[-1])
        self._expire_later()

    def resume(self) -> None:
        self.loop.resume(self.lives[-1])
        self._is_heard_again()
        store = self.store
        if store is not None:
            delay_s = self._dice.random() * NOTICE_S
            self.loop.call_later(delay_s, store.notice_silence, context=store.context)

    def kill(self) -> None:
        self._forget_pause()
        super().kill()

    def cut_power(self) -> None:
        self._forget_pause()
        super().cut_power()

    def bury(self) -> None:
        """It failed to start."""
        self._buried()

    def _forget_pause(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def _end_session(self, session: int) -> None:
        """Nothing tells the store that a process died: its session times out."""
        delay_s = self._session_s * (0.6 + 0.4 * self._dice.random())
        timer = self.loop.call_later(delay_s, self.ensemble.end, session)
        self._ending.append((timer, session))

    def set_clock(self, ahead_ms: int) -> None:
        """Wrong by so much, or right again."""
        self._ahead_ms, before_ms = 0 if self._ahead_ms else ahead_ms, self._ahead_ms
        self.clock.wall_ahead_ms += self._ahead_ms - before_ms

    # The store

    def set_store_faults(self, faults: StoreFaults) -> None:
        """Of this session and of later ones."""
        self._store_reply_s = faults.reply_s
        self._put_store_faults(faults)

    def slow_store(self, *, reply_s: float) -> None:
        """Let each reply of the store take up to so much longer than planned."""
        slow_s = self._store_reply_s + reply_s
        self._put_store_faults(replace(self._store_faults, reply_s=slow_s))

    def _put_store_faults(self, faults: StoreFaults) -> None:
        self._store_faults = faults
        if self.store is not None:
            self.store.set_faults(faults)

    def cut_from_store(self, *, expires: bool = True) -> None:
        """Without a quorum nothing `expires`: nobody is there to end a session."""
        self.store_is_cut = True
        if self.store is not None:
            self.store.cut()
        if expires:
            self._expire_later()

    def heal_store(self) -> None:
        self.store_is_cut = False
        self._is_heard_again()
        if self.store is not None:
            self.store.heal()

    def expire_session(self) -> None:
        """The ensemble ends the session although the broker is reachable."""
        store = self.store
        if store is not None and self.ensemble.has(store.session):
            self.ensemble.expire(store)

    async def expire_session_first(self, keep_s: float) -> None:
        """The session ends, and its nodes are still there for a while."""
        store = self.store
        if store is not None and self.ensemble.has(store.session):
            session = store.session
            self.ensemble.expire(store, keep_nodes=True)
            await asyncio.sleep(keep_s)
            self.ensemble.end(session)

    def end_sessions(self) -> None:
        """The ensemble ends the sessions of dead processes without waiting for their timeouts."""
        for timer, session in self._ending:
            timer.cancel()
            self.ensemble.end(session)
        self._ending.clear()

    def _expire_later(self) -> None:
        if self._expiry is None:
            self._expiry = self.loop.call_later(self._session_s, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        store = self.store
        if store is not None and self.ensemble.has(store.session):
            self.loop.trace.note("session expired", self.host)
            self.ensemble.end(store.session)

    def _is_heard_again(self) -> None:
        if not self.paused and not self.store_is_cut:
            self._forget_pause()

    def _open_store(self) -> SimStore:
        store = NodeStore(
            self.ensemble, self._pause, faults=self._store_faults, session_timeout_s=self._session_s
        )
        store.context = copy_context()
        store.is_cut = self.store_is_cut
        self._stores.append(store)
        return store
