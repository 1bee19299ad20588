"""Kafka's own clients at work while brokers are restarted, and what they complain of.

Owns: two processes of Java, a producer and a member of a group that reads what it sends. Both have
their default settings: the producer is idempotent and waits for all replicas.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.skips import skip_without
from tools import kafka_cache

RECORDS: Final = 6_000
PER_SECOND: Final = 200
BYTES: Final = 100
WAIT_S: Final = 180


class JavaLoad:
    """The processes run while in the block; `verify` waits until they have ended."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        folder: Path,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._bootstrap = str(bootstrap)
        self._topic = topic
        self._config = folder / f"{topic}.properties"
        lines = [f"{name}={value}\n" for name, value in (settings or {}).items()]
        self._config.write_text("".join(lines))
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        at = ["--bootstrap-server", self._bootstrap, "--topic", self._topic]
        self._run(
            "kafka-console-consumer", *at, "--group", f"java-{self._topic}", "--from-beginning",
            "--max-messages", str(RECORDS), "--timeout-ms", "120000",
            "--consumer.config", str(self._config),
        )  # fmt: skip
        self._run(
            "kafka-producer-perf-test", *at, "--num-records", str(RECORDS),
            "--throughput", str(PER_SECOND), "--record-size", str(BYTES),
            "--producer.config", str(self._config),
        )  # fmt: skip
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            for process in self._processes:
                process.kill()
                process.communicate()

    def _run(self, name: str, *arguments: str) -> None:
        try:
            command = kafka_cache.tool(name, *arguments)
        except kafka_cache.Missing as missing:
            skip_without(str(missing))
        self._processes.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )

    def verify(self) -> None:
        """Everything was sent, everything was read, and no error reached the application."""
        read, sent = [process.communicate(timeout=WAIT_S) for process in self._processes]
        for _, complaints in (read, sent):
            errors = [line for line in complaints.splitlines() if "Exception" in line]
            assert [line for line in errors if "WARN" not in line] == []  # those are of retries
        assert f"{RECORDS} records sent" in sent[0]
        assert f"Processed a total of {RECORDS} messages" in read[1], read[1][-2000:]
