"""Promise: iterating records is on a par with confluent-kafka, `poll_arrow` ten times as fast.

One broker, one topic of 100-byte records, and one process for each way of reading it, one after the
other; the clock of each starts when its first records are there. Every reader looks at nothing but
the number of records. All fetch the same amounts. Beside the rate, the CPU time a record took in
the reading process: what a busy machine disturbs less.

    python -m benchmarks.clients_consumer [records] [partitions]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import rdkafka
from tools import nodes

SIZE: Final = 100
BEST_OF: Final = 3
TOPIC: Final = "hundred-bytes"
_WAIT_S: Final = 60.0


class Took(NamedTuple):
    """Seconds on the clock, and of CPU in this process."""

    seconds: float
    cpu_s: float


class Watch:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._cpu = time.process_time()

    def stop(self) -> Took:
        return Took(time.perf_counter() - self._began, time.process_time() - self._cpu)


def confluent(load: Mapping[str, Any]) -> Took:
    """`consumer.consume(10_000)`, which fetches ahead as far as it is let."""
    watch = Watch()
    seconds = rdkafka.consume(load)["seconds"]
    return Took(float(seconds), watch.stop().cpu_s)


def kafka_python(load: Mapping[str, Any]) -> Took:
    from kafka import KafkaConsumer
    from kafka.structs import TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=load["bootstrap"], auto_offset_reset="earliest", group_id=None
    )
    consumer.assign([TopicPartition(TOPIC, at) for at in range(load["partitions"])])
    next(consumer)
    watch = Watch()
    for seen, _ in enumerate(consumer, 2):
        if seen == load["records"]:
            break
    return watch.stop()


def iterate(load: Mapping[str, Any]) -> Took:
    """`for record in consumer`."""
    with _ottla(load) as consumer:
        records = iter(consumer)
        next(records)
        watch = Watch()
        for seen, _ in enumerate(records, 2):
            if seen == load["records"]:
                break
        return watch.stop()


def poll(load: Mapping[str, Any]) -> Took:
    """`consumer.poll()`, whose lists nobody goes through."""
    with _ottla(load, max_poll_records=10_000) as consumer:
        seen = len(consumer.poll(_WAIT_S, max_records=1))
        watch = Watch()
        while seen < load["records"]:
            seen += len(consumer.poll(_WAIT_S))
        return watch.stop()


def poll_arrow(load: Mapping[str, Any]) -> Took:
    """`consumer.poll_arrow()`."""
    with _ottla(load) as consumer:
        seen = len(consumer.poll(_WAIT_S, max_records=1))
        consumer.seek_to_beginning()
        consumer.poll_arrow(_WAIT_S)  # the kernels are loaded
        consumer.seek_to_beginning()
        seen = 0
        watch = Watch()
        while seen < load["records"]:
            seen += consumer.poll_arrow(_WAIT_S).num_rows
        return watch.stop()


def _ottla(load: Mapping[str, Any], **options: Any) -> Any:
    import ottla

    consumer = ottla.Consumer(
        bootstrap_servers=load["bootstrap"], auto_offset_reset="earliest", **options
    )
    consumer.assign([ottla.TopicPartition(TOPIC, at) for at in range(load["partitions"])])
    return consumer


READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Took]]] = {
    "confluent-kafka consume()": confluent,
    "kafka-python iteration": kafka_python,
    "ottla iteration": iterate,
    "ottla poll()": poll,
    "ottla poll_arrow()": poll_arrow,
}


class Rate(NamedTuple):
    """How quick a reader was, and how many microseconds of CPU a record took it."""

    records_per_s: float
    cpu_us: float


def measure(name: str, load: Mapping[str, Any]) -> Rate:
    """One reader, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.clients_consumer", "--read", name]
    done = subprocess.run(
        [*command, json.dumps(load)], check=True, capture_output=True, text=True, timeout=600
    )
    seconds, cpu_s = map(float, done.stdout.split())
    return Rate(load["records"] / seconds, cpu_s / load["records"] * 1e6)


def main(records: int, partitions: int) -> None:
    with tempfile.TemporaryDirectory() as folder, nodes.ottla(Path(folder)) as node:
        load = {
            "bootstrap": node.bootstrap,
            "topic": TOPIC,
            "partitions": partitions,
            "size": SIZE,
            "acks": 1,
            "bytes": records * SIZE,
        }
        _create(node.bootstrap, partitions)
        load["records"] = rdkafka.produce(load)["records"]
        first: Rate | None = None
        for name in READERS:
            runs = 1 if name.startswith("kafka-python") else BEST_OF
            rate = max(measure(name, load) for _ in range(runs))
            first = first or rate
            print(
                f"{name:26} {rate.records_per_s:>11,.0f} records/s {_ratio(rate, first)}"
                f"  {rate.cpu_us:5.2f} us CPU {first.cpu_us / rate.cpu_us:6.2f}",
                flush=True,
            )


def _ratio(rate: Rate, first: Rate) -> str:
    return f"{rate.records_per_s / first.records_per_s:6.2f}"


def _create(bootstrap: str, partitions: int) -> None:
    from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
        AdminClient,
        NewTopic,
    )

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(_WAIT_S)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        print(*READERS[sys.argv[2]](json.loads(sys.argv[3])))
    else:
        main(*(int(given) for given in [*sys.argv[1:], "2000000", "4"][:2]))
