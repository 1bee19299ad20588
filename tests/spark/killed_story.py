"""One streaming query through all of its lives, and what must be true of it at any moment.

`looked` is the whole promise: what readers of committed records see is what was decided, once, and
all of it but for the last batch, whose transactions may be ending while one looks.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.producer.sync import Producer
from ottla.config.client import ClientConfig
from ottla.spark.abandoned_transactions import left_open
from ottla.spark.commit_decisions import Entry, Sink
from ottla.spark.commit_log import StoredCommitLog
from ottla.spark.connection import Connection
from tests.spark.committed_reader import committed
from tests.spark.killed_query import BEGUN, PER_BATCH
from tools.tidy import ROOT

PROGRAM: Final = ROOT / "tests" / "spark" / "killed_query.py"
BATCHES: Final = 4
"""What a life finds to do when it begins, at the least."""
PARTITIONS: Final = 2
REPEATED: Final = 5
"""Records of each batch that were in the one before: the query's state must know them."""
DEADLINE_S: Final = 240.0
LOOK_EVERY_S: Final = 0.2
MAX_LIFE_S: Final = 10.0
LOCAL: Final = "local[2,4]"
EXECUTORS: Final = "local-cluster[2,1,512]"
"""A driver, and two executors that are processes of their own."""
VICTIMS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "driver": (),  # and everything that it has started
    "worker": (b"pyspark.daemon", b"pyspark.worker", b"pyspark.sql"),
    "executor": (b"CoarseGrainedExecutorBackend",),
}

STEPS: Final = ("fenced", "decided", "ended", "cleaned")


class Story:
    """One query, through all of its lives."""

    def __init__(self, servers: str, folder: Path, name: str, kind: str = "distinct") -> None:
        self.servers = servers
        self.source, self.target = f"{name}-in", f"{name}-out"
        self._kind = kind
        self.checkpoint = folder / "checkpoint"
        self._log = folder / "log"
        # Batches of the stateful query are the same in every life, and known: one partition.
        self._partitions = 1 if kind == "distinct" else PARTITIONS
        self.batches = 0
        with Admin(bootstrap_servers=servers) as admin:
            topics = [NewTopic(self.source, self._partitions), NewTopic(self.target, PARTITIONS)]
            admin.create_topics(topics).all()

    def feed(self) -> None:
        """More to do for the next life."""
        begin, self.batches = self.batches * PER_BATCH, self.batches + BATCHES
        with Producer(bootstrap_servers=self.servers) as producer:
            for at in range(begin, self.batches * PER_BATCH):
                producer.send(self.source, value(at).encode(), partition=at % self._partitions)

    def start(self, *fatal: str, master: str = LOCAL) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(PROGRAM), self._kind, master, self.servers]
        command += [self.source, self.target, str(self.checkpoint), *fatal]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    "PYSPARK_PYTHON": sys.executable,
                    "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
                    "PYTHONWARNINGS": "ignore",
                },
            )

    def live(self, *fatal: str) -> int:
        """One life, to its end."""
        return self.start(*fatal).wait(DEADLINE_S)

    def live_and_be_killed(self, dice: Random) -> str | None:
        """One life with a misfortune in it, which is told; None if the life was over before."""
        how = dice.choice(("step", "driver", "worker", "executor"))
        if how == "step":
            batch, step = self.batches - dice.randint(1, BATCHES), dice.choice(STEPS)
            code = self.live(step, str(batch))
            assert code in (0, -signal.SIGKILL), self.log  # 0: that batch was over
            return f"driver, {step} of batch {batch}" if code else None
        process = self.start(master=EXECUTORS if how == "executor" else LOCAL)
        try:
            after_s = self._run_for(process, dice)
            found = session_of(process.pid, VICTIMS[how])
            if process.poll() is not None or not found:
                return None
            kill(found if how == "driver" else [dice.choice(sorted(found))])
            while process.poll() is None:  # Spark starts the task again, or the query fails
                self.looked()
                time.sleep(LOOK_EVERY_S)
            return f"{how}, {after_s:.1f} s after it began: ended {process.returncode}"
        finally:
            kill(session_of(process.pid))
            process.wait(DEADLINE_S)

    def _run_for(self, process: subprocess.Popen[bytes], dice: Random) -> float:
        """Let it run for a while, from when it has begun on, and look all the time."""
        begun = self.log.count(BEGUN)
        deadline = time.monotonic() + DEADLINE_S
        while self.log.count(BEGUN) == begun and process.poll() is None:
            assert time.monotonic() < deadline, self.log
            time.sleep(0.05)
        after_s = dice.uniform(0, MAX_LIFE_S)
        ends = time.monotonic() + after_s
        while time.monotonic() < ends and process.poll() is None:
            self.looked()
            time.sleep(dice.uniform(0, LOOK_EVERY_S))
        return after_s

    def looked(self, *, at_rest: bool = False) -> None:
        """Look at what readers see, and hold it against what has been decided by then."""
        if self._kind == "copied":
            self._looked_for_order()
            return
        seen = self.written_rows()
        decided = self.decided()
        assert not seen - upto(decided), f"seen, and not decided, or twice: {self.log}"
        if at_rest:
            assert upto(decided - 1) <= seen, f"decided, followed by others, and unseen: {self.log}"

    def _looked_for_order(self) -> None:
        """In each partition readers see a beginning of what is to come, in its order."""
        rows = committed(self.servers, self.target)
        for partition in range(PARTITIONS):
            found = [data.decode() for at, _, data in rows if at == partition and data]
            assert found == [value(partition + at * PARTITIONS) for at in range(len(found))]

    def written_rows(self) -> Counter[str]:
        rows = committed(self.servers, self.target)
        return Counter(data.decode() for _, _, data in rows if data)

    def decided(self) -> int:
        """How many batches the ledger calls decided."""
        entry = self.entry()
        return 0 if entry is None else entry.batch + 1

    def entry(self) -> Entry | None:
        """What the ledger says of the query."""
        if self.query is None:
            return None
        servers = {"bootstrap.servers": self.servers}
        with Connection(ClientConfig.from_options({}, servers)) as connection:
            return connection.run(StoredCommitLog(Sink(self.query), connection, servers).read())

    @property
    def query(self) -> str | None:
        """Spark's id of the query, once it has one."""
        try:
            id: str = json.loads((self.checkpoint / "metadata").read_text())["id"]
        except (OSError, ValueError):
            return None
        return id

    def left_open(self) -> list[str]:
        """The transactions that nobody has ended."""
        config = ClientConfig.from_options({"bootstrap_servers": self.servers})
        return [] if self.query is None else left_open(config, self.query)

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


def value(at: int) -> str:
    """The record at this place of the input."""
    again = at >= PER_BATCH and at % PER_BATCH < REPEATED
    return f"{at - PER_BATCH if again else at:05}"


def upto(batch: int) -> Counter[str]:
    """What so many batches write."""
    return Counter({value(at) for at in range(PER_BATCH * max(batch, 0))})


def session_of(leader: int, words: tuple[bytes, ...] = ()) -> list[int]:
    """The processes of a program's session; with words, those that have one in their command."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if os.getsid(int(folder.name)) != leader:
                continue
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if not words or any(word in command for word in words):
            found.append(int(folder.name))
    return found


def kill(victims: list[int]) -> None:
    for victim in victims:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
