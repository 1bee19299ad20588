"""Kafka's own Java client, in the version its jars have, through `java/InteropDriver.java`.

One virtual machine a version answers all questions: starting one takes longer than most of them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Final

from tests.interop.client import Fault, Found, Position, Refusal
from tests.interop.series import Series
from tools import kafka_cache

_SOURCE: Final = Path(__file__).parent / "java" / "InteropDriver.java"


class Refused(Exception):
    """An exception of the Java client, by name and by Kafka's code."""

    def __init__(self, exception: str, code: str, message: str) -> None:
        super().__init__(f"{exception} ({code}): {message}")
        self.refusal = Refusal(exception, int(code))


class JavaClient:
    name: str
    kind: str  # of jars, in the cache
    stamps = True
    cannot: Mapping[str, str] = {}
    refusals: Mapping[Fault, str] = {
        Fault.TOO_LARGE: "RecordTooLargeException",
        Fault.UNKNOWN_TOPIC: "UnknownTopicOrPartitionException",
        Fault.OUT_OF_RANGE: "OffsetOutOfRangeException",
        Fault.BAD_NAME: "InvalidTopicException",
    }

    def __init__(self, bootstrap: str) -> None:
        path = kafka_cache.compiled(self.kind, [_SOURCE])
        self._jvm = subprocess.Popen(
            kafka_cache.java(path, "InteropDriver", bootstrap),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        self.ask("create", topic, partitions, *_pairs(settings))

    def partition_count(self, topic: str) -> int:
        return int(self.ask("count", topic)[0])

    def add_partitions(self, topic: str, total: int) -> None:
        self.ask("grow", topic, total)

    def settings(self, topic: str) -> Mapping[str, str]:
        return dict(pair.split("=", 1) for pair in self.ask("settings", topic))

    def alter(self, topic: str, changes: Mapping[str, str]) -> None:
        self.ask("alter", topic, *_pairs(changes))

    def delete_topic(self, topic: str) -> None:
        self.ask("delete", topic)

    def delete_records(self, topic: str, before: int) -> None:
        self.ask("trim", topic, before)

    def produce(self, topic: str, series: Series, codec: str) -> None:
        self.ask("produce", topic, codec, *astuple(series))

    def read(self, topic: str, count: int, *, stamped: bool) -> Found:
        found, digest = self.ask("read", topic, count, stamped, 0)
        return Found(int(found), digest)

    def offset_at(self, topic: str, place: Position | int) -> int | None:
        asked = place if isinstance(place, int) else place.value
        offset = int(self.ask("offset", topic, asked)[0])
        return None if offset < 0 else offset

    def provoke(self, fault: Fault, topic: str) -> Refusal:
        try:
            match fault:
                case Fault.TOO_LARGE:
                    self.produce(topic, Series(1, -1, value_bytes=2 << 20), "none")
                case Fault.UNKNOWN_TOPIC:
                    self.partition_count(topic)
                case Fault.OUT_OF_RANGE:
                    self.ask("read", topic, 1, False, 1_000_000)
                case Fault.BAD_NAME:
                    self.create_topic(topic, 1, {})
        except Refused as refused:
            return refused.refusal
        raise AssertionError(f"{fault} was accepted")

    def ask(self, *question: object) -> list[str]:
        """One question of `InteropDriver`, and its answer's values."""
        assert self._jvm.stdin is not None and self._jvm.stdout is not None
        self._jvm.stdin.write("\t".join(map(str, question)) + "\n")
        self._jvm.stdin.flush()
        verdict, *values = self._jvm.stdout.readline().rstrip("\n").split("\t")
        if verdict == "refused":
            raise Refused(*values)
        assert verdict == "ok", f"the Java client ended: {verdict}"
        return values

    def close(self) -> None:
        assert self._jvm.stdin is not None and self._jvm.stdout is not None
        self._jvm.stdin.close()  # it ends at the end of its input
        self._jvm.wait(30)
        self._jvm.stdout.close()


class Java39Client(JavaClient):
    name = "java-3.9"
    kind = "clients-3.9"


class Java4Client(JavaClient):
    name = "java-4"
    kind = "clients"


def _pairs(settings: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]
