"""Kafka's command-line tools, all in one virtual machine.

Owns the process of `java/ToolDriver.java`. What a tool prints is the same; a dozen of them take a
second instead of half a minute.
"""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

from ottla.coordinator.runtime import partition_for
from tools import kafka_cache

INTERNAL_PARTITIONS: Final = 50
_SOURCE: Final = Path(__file__).parent / "java" / "ToolDriver.java"


class KafkaTools:
    """Runs one tool at a time; kafka_cache.Missing where there is no Java."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._jvm = subprocess.Popen(
            kafka_cache.java(kafka_cache.compiled("server", [_SOURCE]), "ToolDriver"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, name: str, *args: str) -> subprocess.CompletedProcess[str]:
        assert self._jvm.stdin is not None and self._jvm.stdout is not None
        command = [kafka_cache.TOOLS[name], "--bootstrap-server", self._bootstrap, *args]
        self._jvm.stdin.write("\t".join(command) + "\n")
        self._jvm.stdin.flush()
        code, out, err = self._jvm.stdout.readline().rstrip("\n").split("\t")
        texts = (base64.b64decode(text).decode() for text in (out, err))
        return subprocess.CompletedProcess([name, *args], int(code), *texts)

    def done(self, name: str, *args: str) -> str:
        """Of a tool that must succeed: what it printed."""
        finished = self.run(name, *args)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout

    def formatted(self, topic: str, key: str, formatter: str) -> list[Any]:
        """What a formatter of Kafka's makes of the partition of an internal topic a key is in."""
        partition = partition_for(key, INTERNAL_PARTITIONS)
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "nobody"})
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)
        consumer.close()
        printed = self.done(
            "kafka-console-consumer",
            "--topic", topic, "--partition", str(partition), "--offset", "earliest",
            "--max-messages", str(end), "--timeout-ms", "30000",
            "--formatter", f"org.apache.kafka.tools.consumer.{formatter}",
        ).lstrip()  # fmt: skip
        found, decoder = [], json.JSONDecoder()
        while printed:  # it writes no newline between two
            one, ended = decoder.raw_decode(printed)
            found.append(one)
            printed = printed[ended:].lstrip()
        return found

    def close(self) -> None:
        assert self._jvm.stdin is not None and self._jvm.stdout is not None
        self._jvm.stdin.close()
        self._jvm.wait(30)
        self._jvm.stdout.close()
