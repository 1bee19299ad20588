"""The brokers under measurement, and what the machine knows about their processes.

Owns: their processes for the time of a run, and the topics of a measurement.
Never: measures throughput or time; it hands out a running broker and counts its CPU and memory.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from tools import nodes

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_WAIT_S: Final = 60.0
_GONE_S: Final = 1.0
SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    # So that what a measurement wrote leaves the page cache before the next one.
    "log.segment.delete.delay.ms": "1",
}
# As `pip install ottla` runs: without the native kernels of the extra `arrow`, and their memory.
OTTLA_SETTINGS: Final = {**SETTINGS, "record.validation": "header"}
KAFKA_SETTINGS: Final = {**SETTINGS, "log.initial.task.delay.ms": "1000"}  # it would wait 30 s
_numbers: Final = itertools.count()


class Contender(NamedTuple):
    """A broker that runs, and the topic settings under which it is measured."""

    name: str
    node: nodes.Node
    settings: Mapping[str, str]

    @property
    def bootstrap(self) -> str:
        return self.node.bootstrap

    @contextmanager
    def topic(self, partitions: int) -> Iterator[str]:
        """A topic for one measurement; it is deleted afterwards."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        name = f"bench-{next(_numbers)}"
        new = NewTopic(name, partitions, 1, config=dict(self.settings))
        _done(admin.create_topics([new]))
        _until(lambda: _is_served(admin, name, partitions), f"leaders of {name}")
        try:
            yield name
        finally:
            _done(admin.delete_topics([name]))
            self._let_go(name)

    def _let_go(self, topic: str) -> None:
        """Gives the files a moment to leave the disk, so that their going disturbs no one."""
        deadline = time.monotonic() + _GONE_S
        while any(self.node.data_dir.glob(f"{topic}-*")) and time.monotonic() < deadline:
            time.sleep(0.02)

    def drive(self, driver: str, **load: Any) -> dict[str, float]:
        """Runs a load driver in a process of its own; its figures, and the server's CPU seconds."""
        job = json.dumps({"bootstrap": self.bootstrap, **load})
        before = cpu_s(self.node.pid)
        command = [sys.executable, "-m", f"benchmarks.{driver}", job]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: {driver} {job}:\n{done.stderr[-3000:]}")
        figures: dict[str, float] = json.loads(done.stdout)
        return {**figures, "cpu_s": cpu_s(self.node.pid) - before}


@contextmanager
def running(folder: Path) -> Iterator[list[Contender]]:
    """Apache Kafka and Ottla, up for the whole run; they take turns, so one is always idle."""
    with ExitStack() as stack:
        kafka = stack.enter_context(nodes.kafka(folder / "kafka", KAFKA_SETTINGS))
        ottla = stack.enter_context(nodes.ottla(folder / "ottla", OTTLA_SETTINGS))
        yield [
            Contender("kafka", kafka, {}),
            Contender("ottla", ottla, {"flush.before.ack": "never"}),
            Contender("ottla-default", ottla, {"flush.before.ack": "auto"}),
        ]


def cpu_s(pid: int) -> float:
    """User and system time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def rss_mb(pid: int, *, peak: bool = False) -> float:
    """Memory a process holds, or the most it ever held, in MB."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(wanted):
            return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(f"process {pid} tells no {wanted}")


def _is_served(admin: AdminClient, topic: str, partitions: int) -> bool:
    """Whether every partition answers: a leader is named in metadata before it serves."""
    if len(admin.list_topics(topic, timeout=_WAIT_S).topics[topic].partitions) < partitions:
        return False
    latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    specs = {TopicPartition(topic, number): latest for number in range(partitions)}
    try:
        _done(admin.list_offsets(specs))
    except KafkaException:
        return False
    return True


def _done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(_WAIT_S)


def _until(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"timed out waiting for {what}")
        time.sleep(0.02)
