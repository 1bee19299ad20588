"""kcat: librdkafka from the shell; it can neither create topics nor stamp records."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Final

from tests.interop.client import Fault, Found, Position, Refusal
from tests.interop.series import HEADERS, Sample, Series, digest

_WAIT_S: Final = 60.0
_LIMIT: Final = str(8 << 20)
_NO_ADMIN: Final = "kcat has no administration"


class Failed(Exception):
    """What kcat wrote to stderr when it gave up."""


class KcatClient:
    name = "kcat"
    stamps = False
    cannot: Mapping[str, str] = {
        "test_topics_are_created_as_asked": _NO_ADMIN,
        "test_partitions_are_added": _NO_ADMIN,
        "test_settings_are_changed_and_told": _NO_ADMIN,
        "test_records_are_deleted_up_to_an_offset": _NO_ADMIN,
        "test_topics_are_deleted": _NO_ADMIN,
        "test_the_latest_timestamp_is_found": "kcat has no name for the latest timestamp",
    }
    refusals: Mapping[Fault, str] = {
        Fault.TOO_LARGE: "Message size too large",
        Fault.UNKNOWN_TOPIC: "Unknown topic or partition",
        Fault.OUT_OF_RANGE: "Offset out of range",
        Fault.BAD_NAME: "Invalid topic",
    }

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def partition_count(self, topic: str) -> int:
        told = json.loads(self._kcat("-L", "-J", "-t", topic))
        (described,) = told["topics"]
        return len(described["partitions"])

    def add_partitions(self, topic: str, total: int) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def settings(self, topic: str) -> Mapping[str, str]:
        raise NotImplementedError(_NO_ADMIN)

    def alter(self, topic: str, changes: Mapping[str, str]) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def delete_topic(self, topic: str) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def delete_records(self, topic: str, before: int) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def produce(self, topic: str, series: Series, codec: str) -> None:
        args = ["-P", "-t", topic, "-p", "0", "-K", "\\t", "-Z"]
        args += ["-X", f"compression.codec={codec}", "-X", f"message.max.bytes={_LIMIT}"]
        args += ["-X", "enable.idempotence=true"]
        for name, value in HEADERS[series.headers]:
            args += ["-H", name if value is None else f"{name}={value.decode()}"]
        lines = (
            (sample.key or b"") + b"\t" + (sample.value or b"") + b"\n"  # empty means null: -Z
            for sample in series
        )
        self._kcat(*args, stdin=b"".join(lines))

    def read(self, topic: str, count: int, *, stamped: bool) -> Found:
        samples = list(self._records(topic, count))
        return Found(len(samples), digest(samples, stamped=stamped))

    def offset_at(self, topic: str, place: Position | int) -> int | None:
        asked = place if isinstance(place, int) else place.value
        told = self._kcat("-Q", "-t", f"{topic}:0:{asked}")
        offset = int(told.split()[-1])
        return None if offset < 0 else offset

    def provoke(self, fault: Fault, topic: str) -> Refusal:
        try:
            match fault:
                case Fault.TOO_LARGE:
                    self.produce(topic, Series(1, -1, value_bytes=2 << 20), "none")
                case Fault.UNKNOWN_TOPIC:
                    list(self._records(topic, 1))
                case Fault.OUT_OF_RANGE:
                    list(self._records(topic, 1, start=1_000_000))
                case Fault.BAD_NAME:
                    # A producer says "Local: Unknown topic" instead when the broker's answer
                    # comes before its first record; the listing always gives the broker's word.
                    raise Failed(self._kcat("-L", "-t", topic))
        except Failed as failure:
            # kcat has no codes: its words are librdkafka's for exactly one of them.
            said = str(failure)
            known = {text: fault.value for fault, text in self.refusals.items()}
            for text, code in known.items():
                if f"Broker: {text}" in said:
                    return Refusal(text, code)
            raise
        raise AssertionError(f"{fault} was accepted")

    def close(self) -> None:
        """Every run ends by itself."""

    def _records(self, topic: str, count: int, start: int = 0) -> Iterator[Sample]:
        args = ["-C", "-t", topic, "-p", "0", "-o", str(start), "-c", str(count), "-J", "-q"]
        args += ["-X", "auto.offset.reset=error", "-X", f"fetch.message.max.bytes={_LIMIT}"]
        for line in self._kcat(*args).splitlines():
            yield _sample(json.loads(line))

    def _kcat(self, *args: str, stdin: bytes = b"") -> str:
        command = ["kcat", "-b", self._bootstrap, *args]
        done = subprocess.run(
            command, input=stdin, capture_output=True, check=False, timeout=_WAIT_S
        )
        if done.returncode != 0:
            raise Failed(done.stderr.decode())
        return done.stdout.decode()


def _sample(told: Mapping[str, object]) -> Sample:
    flat = told.get("headers") or []
    assert isinstance(flat, list)
    headers = tuple(
        (name, _bytes(value)) for name, value in zip(flat[::2], flat[1::2], strict=True)
    )
    stamp = told["ts"]
    assert isinstance(stamp, int)
    return Sample(_bytes(told["key"]), _bytes(told["payload"]), headers, stamp)


def _bytes(text: object) -> bytes | None:
    return None if text is None else str(text).encode()
