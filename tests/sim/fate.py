"""What befalls a simulated broker, and its coming back.

Owns when the broker runs. Each misfortune ends with the broker up and the world in order again, so
that the next one begins from there.
"""

from __future__ import annotations

import asyncio
import errno
from random import Random
from typing import Final

from ottla.model.ids import TopicPartition
from tests.sim import admin
from tests.sim.book import Book
from tests.sim.broker import SimBroker
from tests.sim.client import Client
from tests.sim.loop import SimClock
from tests.sim.network import NetLoop, Weather
from tests.sim.plan import Misfortune
from tests.sim.rot import rot

HOUR_MS: Final = 3_600_000


class Fate:
    def __init__(
        self,
        broker: SimBroker,
        loop: NetLoop,
        clock: SimClock,
        book: Book,
        dice: Random,
        *,
        power: bool,
    ) -> None:
        self._broker = broker
        self._loop = loop
        self._clock = clock
        self._book = book
        self._dice = dice
        self._ahead_ms = 0
        self._power = power

    async def start(self) -> None:
        await self._broker.begin()

    async def meet(
        self, misfortune: Misfortune, client: Client, deletable: list[TopicPartition]
    ) -> None:
        self._book.fault(misfortune.value)
        match misfortune:
            case Misfortune.KILL | Misfortune.POWER | Misfortune.STOP:
                await self._restart(misfortune)
            case Misfortune.KILL_IN_RECOVERY:
                await self._die_again_and_again()
            case Misfortune.STORM:
                self._loop.network.storm()
            case Misfortune.STALLS:
                await self._bad_weather()
            case Misfortune.SLOW_DISK:
                await self._slow_disk()
            case Misfortune.ROT:
                await self._rot()
            case Misfortune.FULL_DISK | Misfortune.BAD_SYNC:
                await self._bad_disk(misfortune)
            case Misfortune.CLOCK:
                self._set_clock()
            case Misfortune.DELETE_RECORDS:
                await self._delete_records(client, deletable)

    async def end(self, how: Misfortune) -> None:
        """The last restart before everything is read."""
        self._book.fault(f"{how.value}, for the last time")
        await self._restart(how)

    async def finish(self) -> None:
        await self._broker.stop()

    # How it goes down

    async def _down(self, how: Misfortune) -> None:
        self._broker.check()
        if how is not Misfortune.STOP:
            await self._worst_moment()
        match how:
            case Misfortune.KILL:
                self._broker.kill()
            case Misfortune.POWER:
                self._broker.cut_power()
            case _:
                await self._broker.stop()

    async def _worst_moment(self) -> None:
        """Wait a little for a write to the disk: what comes right behind it is most at risk."""
        before = self._broker.disk.written_bytes
        for _ in range(200):
            if self._broker.disk.written_bytes != before:
                break
            await asyncio.sleep(0.001)
        if self._dice.random() < 0.5:
            await asyncio.sleep(self._dice.random() * 0.005)

    async def _restart(self, how: Misfortune) -> None:
        await self._down(how)
        await asyncio.sleep(self._dice.random() ** 3 * 3.0)
        await self._broker.begin()

    async def _die_again_and_again(self) -> None:
        """Down before it was ready, as often as the dice say."""
        ends = [self._broker.kill, self._broker.cut_power] if self._power else [self._broker.kill]
        await self._down(Misfortune.POWER if self._power else Misfortune.KILL)
        for _ in range(self._dice.randint(1, 3)):
            ready = self._broker.begin()
            await asyncio.wait([ready], timeout=self._dice.random() ** 2 * 0.1)
            self._dice.choice(ends)()
        await self._broker.begin()

    # What else goes wrong

    async def _bad_weather(self) -> None:
        dice, network = self._dice, self._loop.network
        calm = network.weather
        network.weather = Weather(
            delay_s=dice.choice([0.001, 0.05]),
            stall=dice.choice([0.0, 0.05]),
            reset=dice.choice([0.0, 0.02]),
            silence=dice.choice([0.0, 0.01]),
            fragment=0.5,
        )
        await asyncio.sleep(1.0 + dice.random() * 3.0)
        network.weather = calm

    async def _slow_disk(self) -> None:
        self._loop.slowness = self._dice.choice([20.0, 200.0])
        await asyncio.sleep(1.0 + self._dice.random() * 2.0)
        self._loop.slowness = 1.0

    async def _bad_disk(self, how: Misfortune) -> None:
        """The directory is given up; an operator mends the disk and starts the broker again."""
        disk = self._broker.disk
        if how is Misfortune.FULL_DISK:
            disk.capacity_bytes = disk.written_bytes + self._dice.randrange(3_000)
        else:
            disk.sync_error = OSError(errno.EIO, "input/output error")
        await asyncio.sleep(1.0 + self._dice.random())
        if not self._broker.gave_up():
            await self._down(self._dice.choice([Misfortune.KILL, Misfortune.STOP]))
        disk.mend()
        await self._broker.begin()

    async def _rot(self) -> None:
        """While it is down, files that can be derived from others are damaged or lost."""
        await self._down(self._dice.choice([Misfortune.KILL, Misfortune.STOP]))
        damaged = rot(self._broker.disk, self._broker.data_dirs, self._dice)
        self._loop.trace.note("rot", *damaged)
        await self._broker.begin()

    def _set_clock(self) -> None:
        """An hour either way, or right again."""
        ahead_ms = 0 if self._ahead_ms else self._dice.choice([-HOUR_MS, HOUR_MS])
        self._clock.wall_ahead_ms += ahead_ms - self._ahead_ms
        self._ahead_ms = ahead_ms

    async def _delete_records(self, client: Client, deletable: list[TopicPartition]) -> None:
        if deletable:
            tp = self._dice.choice(deletable)
            await admin.delete_records(client, tp, self._dice.choice([-1, 1, 5, 20]))
