"""Kafka's own clients under load: its two perf tools, and its consumer without a group.

Owns: their command lines, and how their figures are read. The clock is theirs, so the start of
their virtual machine does not count.
"""

from __future__ import annotations

import re
import socket
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.contenders import Contender, cpu_s
from tools import kafka_cache

_ASSIGNED: Final = Path(__file__).parent / "java" / "AssignedConsumer.java"
_JVM: Final = ("-Xmx512m", "-XX:+UseG1GC")
_JOIN_GROUP: Final = 11


class Load:
    """One topic of one contender, and the size of the records it holds or shall hold."""

    def __init__(self, contender: Contender, topic: str, partitions: int, size: int) -> None:
        self._contender = contender
        self._topic = topic
        self._partitions = partitions
        self._size = size

    def produce(self, count: int, acks: int) -> dict[str, float]:
        """kafka-producer-perf-test, as fast as it goes."""
        options = {"--num-records": count, "--record-size": self._size, "--throughput": -1}
        words = self._tool_words(options)
        words += ["--command-property", f"acks={'all' if acks < 0 else acks}"]
        said, spent = self._run("server", "kafka-producer-perf-test", words)
        return self._figures(count, count / perf_test_rate(said), spent)

    def consume(self) -> dict[str, float]:
        """The consumer of kafka-clients reads every partition, assigned by hand."""
        words = [self._contender.bootstrap, self._topic, str(self._partitions)]
        said, spent = self._run("clients", "AssignedConsumer", words)
        seconds, records = said.split()
        return self._figures(int(records), float(seconds), spent)

    def consume_in_group(self, count: int) -> dict[str, float]:
        """kafka-consumer-perf-test, which is a member of a group; joining does not count."""
        words = self._tool_words({"--num-records": count, "--timeout": 60_000})
        said, spent = self._run("server", "kafka-consumer-perf-test", words)
        return self._figures(count, count / consumer_perf_rate(said), spent)

    def _tool_words(self, options: dict[str, int]) -> list[str]:
        common = {"--bootstrap-server": self._contender.bootstrap, "--topic": self._topic}
        return [str(word) for pair in (common | options).items() for word in pair]

    def _run(self, kind: str, program: str, words: Sequence[str]) -> tuple[str, float]:
        if program in kafka_cache.TOOLS:
            path, main = kafka_cache.classpath(kind), kafka_cache.TOOLS[program]
        else:
            path, main = kafka_cache.compiled(kind, [_ASSIGNED]), program
        command = kafka_cache.java(path, main, *words, options=_JVM)
        before = cpu_s(self._contender.node.pid)
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout, cpu_s(self._contender.node.pid) - before

    def _figures(self, records: int, seconds: float, spent: float) -> dict[str, float]:
        return {"seconds": seconds, "bytes": records * self._size, "cpu_s": spent}


def perf_test_rate(said: str) -> float:
    """Records a second, from the last line that kafka-producer-perf-test writes."""
    return float(re.findall(r"([\d.]+) records/sec", said)[-1])


def consumer_perf_rate(said: str) -> float:
    """Records a second once it fetched, from the columns of kafka-consumer-perf-test."""
    names, values = (line.split(", ") for line in said.strip().splitlines()[-2:])
    return float(dict(zip(names, values, strict=True))["fetch.nMsg.sec"])


def offers_groups(bootstrap: str) -> bool:
    """Whether a broker lists JoinGroup among what it can do."""
    host, _, port = bootstrap.rpartition(":")
    request = struct.pack(">hhih", 18, 0, 1, -1)
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
        reply = connection.recv(size, socket.MSG_WAITALL)
    (count,) = struct.unpack_from(">i", reply, 6)
    keys = (struct.unpack_from(">h", reply, 10 + 6 * number)[0] for number in range(count))
    return _JOIN_GROUP in keys
