"""An example as a company runs it: a process that a service manager starts again, whatever killed
it, with records that keep coming.

`KilledExample.survive` is the whole story: feed, kill something while a batch runs, feed again;
nothing else is done for the pipeline than to start its process again. What it has written in the
end is the example's own to compare (`Example.check`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import ottla
from ottla.client.admin import NewTopic
from tests.cluster.process import BrokerProcess, wait_for
from tests.spark.killed_story import kill, session_of
from tests.spark.quick_jvm import QUICK_SPARK
from tools.tidy import ROOT

VICTIMS: Final = ("driver", "worker", "broker")
WORKERS: Final = (b"pyspark.daemon", b"pyspark.worker", b"pyspark.sql")
DEADLINE_S: Final = 600.0
MAX_PAUSE_S: Final = 3.0
PER_ROUND: Final = 40


class Example(ABC):
    """One of the examples: what is fed to it, and what it must have written."""

    file: str
    topics: Sequence[str]

    def __init__(self, servers: str, folder: Path) -> None:
        self.servers = servers
        self.folder = folder
        self.changed = False

    @property
    def overrides(self) -> list[str]:
        """Beside those that every example gets."""
        return []

    @property
    def profile(self) -> str | None:
        return None

    @property
    def environment(self) -> Mapping[str, str]:
        return {}

    @abstractmethod
    def feed(self, producer: ottla.Producer, numbers: range) -> None:
        """Send the records of these numbers."""

    @abstractmethod
    def done(self) -> bool:
        """Whether everything that was fed has been written, once."""

    @abstractmethod
    def check(self) -> None:
        """Output equals input."""

    def halfway(self) -> None:
        """What changes in the middle: a schema, a price."""
        self.changed = True


class KilledExample:
    """The process of an example's pipeline, through all of its lives."""

    def __init__(self, example: Example, broker: BrokerProcess, dice: Random) -> None:
        self._example = example
        self._broker = broker
        self._dice = dice
        self._log = example.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._fed = 0
        self.told: list[str] = []

    def survive(self, kills: int) -> None:
        topics = [NewTopic(name, 2) for name in self._example.topics]
        with ottla.Admin(bootstrap_servers=self._broker.address) as admin:
            admin.create_topics(topics).all()
        try:
            for number in range(kills):
                before = self._batches()
                self._feed()
                if number == kills // 2:
                    self._example.halfway()
                self._run_until_batch_after(before)
                self._feed()
                self._run_for(self._dice.uniform(0.0, MAX_PAUSE_S))
                self._kill(VICTIMS[number % len(VICTIMS)])
            self._feed()
            self._supervise(now_and_then(self._example.done))
        finally:
            self._end()
        self._example.check()

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")[-4_000:]

    def _feed(self) -> None:
        numbers = range(self._fed, self._fed + PER_ROUND)
        with ottla.Producer(bootstrap_servers=self._broker.address) as producer:
            self._example.feed(producer, numbers)
        self._fed += PER_ROUND

    def _run_until_batch_after(self, count: int) -> None:
        self._supervise(lambda: self._batches() > count)

    def _run_for(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        self._supervise(lambda: time.monotonic() > ends)

    def _batches(self) -> int:
        history = self._example.folder / "checkpoints" / "progress.jsonl"
        return history.read_text().count("\n") if history.exists() else 0

    def _supervise(self, condition: Callable[[], bool]) -> None:
        """As a service manager: a process that ended is started again."""

        def holds() -> bool:
            if self._process is None or self._process.poll() is not None:
                self._start()
            return condition()

        try:
            wait_for(holds, DEADLINE_S, "the pipeline")
        except AssertionError as error:
            raise AssertionError(f"{error} after {self.told}:\n{self.log}") from None

    def _start(self) -> None:
        example = self._example
        command = [sys.executable, "-m", "ottla", "pipeline", "run", example.file, "--master"]
        command += ["local[2]", "--json"]
        for each in (
            f"bootstrap={self._broker.address}",
            f"checkpoint={example.folder}/checkpoints",
            "trigger=200 milliseconds",
            f"spark={json.dumps(QUICK_SPARK)}",
            *example.overrides,
        ):
            command += ["--set", each]
        if example.profile is not None:
            command += ["--profile", example.profile]
        environment = {**os.environ, **example.environment, "PYTHONWARNINGS": "ignore"}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env=environment, cwd=ROOT
            )

    def _kill(self, victim: str) -> None:
        assert self._process is not None
        self.told.append(victim)
        match victim:
            case "broker":
                self._broker.kill()
                self._broker.start()
            case "worker":
                found = session_of(self._process.pid, WORKERS)
                assert found, self.log
                kill([self._dice.choice(sorted(found))])
            case _:
                kill(session_of(self._process.pid))
                self._process.wait()

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        kill(session_of(self._process.pid))
        self._process.wait()


def now_and_then(condition: Callable[[], bool]) -> Callable[[], bool]:
    """The same condition, looked at once a second: looking takes work."""
    due = time.monotonic()

    def holds() -> bool:
        nonlocal due
        if time.monotonic() < due:
            return False
        found = condition()
        due = time.monotonic() + 1.0
        return found

    return holds
