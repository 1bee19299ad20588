"""Drivers and workers killed with SIGKILL: every record once, none before its batch is decided."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.producer.sync import Producer
from ottla.spark.exactly_once import Step
from ottla.testing import Broker
from tests.spark.killed_query import PER_BATCH
from tests.spark.reading import committed_values
from tools.tidy import ROOT

PROGRAM = ROOT / "tests" / "spark" / "killed_query.py"
BATCHES = 4
VALUES = [f"{at:04}" for at in range(PER_BATCH * BATCHES)]
DEADLINE_S = 240


class Story:
    """One query, through all of its lives."""

    def __init__(self, servers: str, folder: Path, name: str) -> None:
        self.servers = servers
        self.source, self.target = f"{name}-in", f"{name}-out"
        self._checkpoint = str(folder / "checkpoint")
        self._log = folder / "log"
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic(self.source, 1), NewTopic(self.target, 2)]).all()
        with Producer(bootstrap_servers=servers) as producer:
            for value in VALUES:
                producer.send(self.source, value.encode())

    def start(self, *fatal: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(PROGRAM), self.servers, self.source, self.target]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*command, self._checkpoint, *fatal],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    "PYSPARK_PYTHON": sys.executable,
                    "PYTHONPATH": str(ROOT),
                    "PYTHONWARNINGS": "ignore",
                },
            )

    def live(self, *fatal: str) -> int:
        """One life, to its end."""
        return self.start(*fatal).wait(DEADLINE_S)

    def seen(self) -> Counter[str]:
        return Counter(
            value.decode() for value in committed_values(self.servers, self.target) if value
        )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")[-4_000:]


def upto(batch: int) -> Counter[str]:
    return Counter(VALUES[: PER_BATCH * batch])


@pytest.mark.spec("APP-11")
def test_a_driver_killed_around_its_decision_neither_loses_nor_repeats(
    broker: Broker, tmp_path: Path
) -> None:
    story = Story(broker.bootstrap_servers, tmp_path, "around")
    assert story.live(Step.FENCED.value, "1") == -signal.SIGKILL, story.log
    assert story.seen() == upto(1)  # prepared, and nobody may see it
    assert story.live(Step.DECIDED.value, "2") == -signal.SIGKILL, story.log
    assert story.seen() == upto(2)  # decided, and the next life must end it
    assert story.live() == 0, story.log
    assert story.seen() == upto(BATCHES)


def kill_at_random(story: Story, dice: random.Random) -> None:
    """Start the query and kill it, or one of its workers, at any moment."""
    process = story.start()
    time.sleep(dice.uniform(0, 20))
    if dice.random() < 0.5:
        for victim in dice.sample(found := workers(process.pid), min(1, len(found))):
            os.kill(victim, signal.SIGKILL)  # Spark starts the task again
        time.sleep(dice.uniform(0, 10))
    for victim in session_of(process.pid):
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait(DEADLINE_S)


def session_of(leader: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if os.getsid(int(folder.name)) == leader:
                    found.append(int(folder.name))
            except ProcessLookupError:
                continue
    return found


def workers(leader: int) -> list[int]:
    """The processes in which Spark runs our code."""
    found = []
    for pid in session_of(leader):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"pyspark.daemon" in command or b"pyspark.worker" in command:
            found.append(pid)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_a_query_killed_at_random_moments_neither_loses_nor_repeats(
    broker: Broker, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    story = Story(broker.bootstrap_servers, tmp_path, f"random-{seed}")
    for _ in range(dice.randint(1, 3)):
        if dice.random() < 0.5:
            step = dice.choice(list(Step)).value
            story.live(step, str(dice.randrange(BATCHES)))
        else:
            kill_at_random(story, dice)
        seen = story.seen()
        assert all(count == 1 for count in seen.values()), story.log
        assert len(seen) % PER_BATCH == 0, story.log  # whole batches only
    assert story.live() == 0, story.log
    assert story.seen() == upto(BATCHES)
