"""How long one picture of the whole cluster takes, and what everybody else waits meanwhile.

A thousand topics of ten partitions. Some connections ask for the metadata of all of them, one
request after the other, as monitoring does; another asks for nothing but ApiVersions. No promise is
held to it: it says what a change of the code is worth.

    python -m benchmarks.metadata [SECONDS]
"""

from __future__ import annotations

import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from benchmarks import frames
from benchmarks.contenders import KAFKA_SETTINGS, OTTLA_SETTINGS
from benchmarks.crowd import Crowd, Pause, Talk
from tools import nodes

TOPICS: Final = 1_000
PARTITIONS: Final = 10
ASKERS: Final = 4
EVERY_S: Final = 0.05
_WAIT_S: Final = 300.0
_EVERYTHING: Final = frames.request(3, 7, struct.pack(">i?", -1, False))
_NOTHING: Final = frames.request(18, 0, b"")


def main(seconds: float = 5.0) -> int:
    for kind in ("kafka", "ottla"):
        with _node(kind) as bootstrap:
            _create(bootstrap)
            whole: list[float] = []
            beside: list[float] = []
            until = time.perf_counter() + seconds
            talks = [_asking(_EVERYTHING, until, whole) for _ in range(ASKERS)]
            Crowd(bootstrap).run([*talks, _asking(_NOTHING, until, beside)])
        print(
            f"{kind}: metadata of {TOPICS} topics with {PARTITIONS} partitions each: "
            f"{_shown(whole)}; a small request beside them: {_shown(beside)}",
            flush=True,
        )
    return 0


def _asking(frame: bytes, until: float, took_ms: list[float]) -> Talk:
    while time.perf_counter() < until:
        began = time.perf_counter()
        yield frame
        took_ms.append((time.perf_counter() - began) * 1e3)
        yield Pause(began + EVERY_S)


def _shown(took_ms: list[float]) -> str:
    cuts = quantiles(took_ms, n=100)
    return f"p50 {cuts[49]:.2f} ms, p99 {cuts[98]:.2f} ms"


@contextmanager
def _node(kind: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as name:
        folder = Path(name)
        node = nodes.kafka(folder, KAFKA_SETTINGS) if kind == "kafka" else None
        with node or nodes.ottla(folder, OTTLA_SETTINGS) as running:
            yield running.bootstrap


def _create(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for start in range(0, TOPICS, 100):
        new = [NewTopic(f"topic-{start + at}", PARTITIONS, 1) for at in range(100)]
        for future in admin.create_topics(new, operation_timeout=_WAIT_S).values():
            future.result(_WAIT_S)


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
