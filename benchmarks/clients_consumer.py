"""Promise: iterating records is on a par with confluent-kafka, `poll_arrow` ten times as fast.

One broker, one topic of 100-byte records, and one process for each way of reading it, one after the
other; the clock of each starts when its first records are there. Every reader looks at nothing but
the number of records, as confluent-kafka's own benchmark does.

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
from typing import Any, Final

from benchmarks import rdkafka
from tools import nodes

SIZE: Final = 100
BEST_OF: Final = 3
TOPIC: Final = "hundred-bytes"
_WAIT_S: Final = 60.0


def confluent(load: Mapping[str, Any]) -> float:
    return float(rdkafka.consume(load)["seconds"])


def kafka_python(load: Mapping[str, Any]) -> float:
    from kafka import KafkaConsumer
    from kafka.structs import TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=load["bootstrap"], auto_offset_reset="earliest", group_id=None
    )
    consumer.assign([TopicPartition(TOPIC, at) for at in range(load["partitions"])])
    next(consumer)
    start = time.perf_counter()
    for seen, _ in enumerate(consumer, 2):
        if seen == load["records"]:
            break
    return time.perf_counter() - start


def iterate(load: Mapping[str, Any]) -> float:
    """`for record in consumer`."""
    with _ottla(load) as consumer:
        records = iter(consumer)
        next(records)
        start = time.perf_counter()
        for seen, _ in enumerate(records, 2):
            if seen == load["records"]:
                break
        return time.perf_counter() - start


def poll(load: Mapping[str, Any]) -> float:
    """`consumer.poll()`, whose lists nobody goes through."""
    with _ottla(load, max_poll_records=10_000) as consumer:
        seen = len(consumer.poll(_WAIT_S, max_records=1))
        start = time.perf_counter()
        while seen < load["records"]:
            seen += len(consumer.poll(_WAIT_S))
        return time.perf_counter() - start


def poll_arrow(load: Mapping[str, Any]) -> float:
    """`consumer.poll_arrow()`."""
    with _ottla(load) as consumer:
        seen = len(consumer.poll(_WAIT_S, max_records=1))
        consumer.seek_to_beginning()
        consumer.poll_arrow(_WAIT_S)  # the kernels are loaded
        consumer.seek_to_beginning()
        seen = 0
        start = time.perf_counter()
        while seen < load["records"]:
            seen += consumer.poll_arrow(_WAIT_S).num_rows
        return time.perf_counter() - start


def _ottla(load: Mapping[str, Any], **options: Any) -> Any:
    import ottla

    consumer = ottla.Consumer(
        bootstrap_servers=load["bootstrap"], auto_offset_reset="earliest", **options
    )
    consumer.assign([ottla.TopicPartition(TOPIC, at) for at in range(load["partitions"])])
    return consumer


READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], float]]] = {
    "confluent-kafka consume()": confluent,
    "kafka-python iteration": kafka_python,
    "ottla iteration": iterate,
    "ottla poll()": poll,
    "ottla poll_arrow()": poll_arrow,
}


def measure(name: str, load: Mapping[str, Any]) -> float:
    """Records a second of one reader, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.clients_consumer", "--read", name]
    done = subprocess.run(
        [*command, json.dumps(load)], check=True, capture_output=True, text=True, timeout=600
    )
    return float(load["records"]) / float(done.stdout)


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
        rates: dict[str, float] = {}
        for name in READERS:
            runs = 1 if name.startswith("kafka-python") else BEST_OF
            rates[name] = max(measure(name, load) for _ in range(runs))
            ratio = rates[name] / rates["confluent-kafka consume()"]
            print(f"{name:28} {rates[name]:>12,.0f} records/s  {ratio:6.2f}", flush=True)


def _create(bootstrap: str, partitions: int) -> None:
    from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
        AdminClient,
        NewTopic,
    )

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(_WAIT_S)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        print(READERS[sys.argv[2]](json.loads(sys.argv[3])))
    else:
        main(*(int(given) for given in [*sys.argv[1:], "2000000", "4"][:2]))
