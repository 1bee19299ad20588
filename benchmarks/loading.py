"""Promise: a million committed offsets are loaded in under 5 s, and nothing waits 50 ms meanwhile.

A thousand groups commit a thousand offsets each, the broker stops, and starts again. From then on
one connection asks for nothing but ApiVersions, a request after the other: the longest that one
takes is the longest that the loop stood still. Another asks for the list of groups, which is
refused until every partition of `__consumer_offsets` is loaded.

    python -m benchmarks.loading [OFFSETS]
"""

from __future__ import annotations

import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from benchmarks import frames
from benchmarks.contenders import OTTLA_SETTINGS
from benchmarks.crowd import Crowd, Pause, Talk
from tools import nodes

LOADED_S: Final = 5.0
HELD_MS: Final = 50.0
OFFSETS: Final = 1_000_000
PARTITIONS: Final = 1_000
TOPIC: Final = "committed-to"
_NOT_YET: Final = frozenset({14, 15, 16})
_NOTICED_S: Final = 0.01
_WAIT_S: Final = 120.0


def main(offsets: int = OFFSETS) -> int:
    groups = -(-offsets // PARTITIONS)
    met = True
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as name:
        for kind, start, again in _kinds(Path(name)):
            node = start()
            _commit(node.bootstrap, groups)
            nodes.stop(node)
            loaded_s, held_ms, answered_s = _load(again, groups)
            print(
                f"{kind}: {groups * PARTITIONS} offsets of {groups} groups loaded in "
                f"{loaded_s:.2f} s after it answered, which took {answered_s:.2f} s; "
                f"the slowest reply meanwhile {held_ms:.1f} ms",
                flush=True,
            )
            if kind == "ottla":
                met = loaded_s < LOADED_S and held_ms < HELD_MS
    print(f"promised: {LOADED_S:g} s, {HELD_MS:g} ms")
    return 0 if met else 1


Start = Callable[[], nodes.Node]


def _kinds(folder: Path) -> list[tuple[str, Start, Start]]:
    """Each broker, how it is started first, and how it is launched when it has its data."""
    ottla, kafka = folder / "ottla", folder / "kafka"
    properties, kafka_port = nodes.format_kafka(kafka)
    (port,) = nodes.free_ports(1)
    return [
        (
            "ottla",
            lambda: nodes.start_ottla(ottla, OTTLA_SETTINGS),
            lambda: nodes.launch_ottla(ottla, OTTLA_SETTINGS, port=port),
        ),
        (
            "kafka",
            lambda: nodes.run_kafka(kafka, properties, kafka_port),
            lambda: nodes.launch_kafka(kafka, properties, kafka_port),
        ),
    ]


def _commit(bootstrap: str, groups: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
        future.result(_WAIT_S)
    Crowd(bootstrap).run([_committing(range(first, groups, 4)) for first in range(4)])


def _committing(numbers: range) -> Talk:
    topic = frames.string(TOPIC)
    for number in numbers:
        group = frames.string(f"group-{number}")
        yield from _until_taken(frames.request(10, 1, group + b"\0"), 8)
        body = group + struct.pack(">i", -1) + frames.string("") + struct.pack(">h", -1)
        body += struct.pack(">i", 1) + topic + struct.pack(">i", PARTITIONS)
        empty = frames.string("")
        for partition in range(PARTITIONS):
            body += struct.pack(">iqi", partition, number + partition, -1) + empty
        first_code = 4 + 4 + 4 + len(topic) + 4 + 4
        yield from _until_taken(frames.request(8, 7, body), first_code)


def _until_taken(request: bytes, error_at: int) -> Talk:
    while True:
        reply = yield request
        (error,) = struct.unpack_from(">h", reply, error_at)
        if error == 0:
            return
        assert error in _NOT_YET or error == 3, f"error {error}"
        yield Pause(time.perf_counter() + _NOTICED_S)


def _load(launch: Start, groups: int) -> tuple[float, float, float]:
    """Seconds until all is loaded, the slowest reply in ms, and seconds to the first."""
    began = time.perf_counter()
    node = launch()
    try:
        _answered(node.bootstrap)
        answered = time.perf_counter()
        slowest = [0.0]
        loaded = [0.0]
        Crowd(node.bootstrap).run([_until_loaded(groups, loaded), _asking(loaded, slowest)])
        return loaded[0] - answered, 1000 * slowest[0], answered - began
    finally:
        nodes.stop(node)


def _answered(bootstrap: str) -> None:
    host, _, port = bootstrap.rpartition(":")
    deadline = time.monotonic() + _WAIT_S
    while not nodes.answers(int(port)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no reply from {host}")
        time.sleep(0.002)


def _until_loaded(groups: int, loaded: list[float]) -> Talk:
    while True:
        reply = yield frames.request(16, 2, b"")
        error, count = struct.unpack_from(">hi", reply, 8)
        if error == 0 and count >= groups:
            loaded[0] = time.perf_counter()
            return
        assert error == 0 or error in _NOT_YET, f"error {error}"
        yield Pause(time.perf_counter() + _NOTICED_S)


def _asking(loaded: list[float], slowest: list[float]) -> Talk:
    while not loaded[0]:
        start = time.perf_counter()
        yield frames.request(18, 0, b"")
        slowest[0] = max(slowest[0], time.perf_counter() - start)
        yield Pause(start + 0.001)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])) if len(sys.argv) > 1 else main())
