"""librdkafka under load, through confluent-kafka, in a process of its own.

Owns: a producer or a consumer for as long as one measurement takes.
Never: does more per record in Python than it must: records go in by the thousand and come out by
the ten thousand, and nobody looks at them.

    python -m benchmarks.rdkafka '{"do": "produce", …}'
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from benchmarks.raw import Figures, percentiles_ms

_AT_ONCE: Final = 1000  # records handed over in one call
_WAIT_S: Final = 60.0


def produce(load: Mapping[str, Any]) -> Figures:
    """Sends `bytes` of records round the partitions; done when all are acknowledged."""
    producer = Producer(
        {
            **_broker(load),
            "acks": load["acks"],
            "enable.idempotence": load["acks"] == -1,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 1 << 20,
        }
    )
    topic, partitions, size = load["topic"], load["partitions"], load["size"]
    count = load["bytes"] // size // _AT_ONCE * _AT_ONCE
    records = [{"value": bytes(size)} for _ in range(_AT_ONCE)]
    producer.list_topics(topic, timeout=_WAIT_S)
    start = time.perf_counter()
    for number in range(count // _AT_ONCE):
        _hand_over(producer, topic, number % partitions, records)
    assert producer.flush(_WAIT_S) == 0, "not all records were acknowledged"
    return {"seconds": time.perf_counter() - start, "records": count, "bytes": count * size}


def consume(load: Mapping[str, Any]) -> Figures:
    """Reads `records` from the partitions, which must hold them; the clock starts at the first."""
    consumer = _consumer(load)
    consumer.assign([TopicPartition(load["topic"], p, 0) for p in range(load["partitions"])])
    first = consumer.consume(1, _WAIT_S)
    assert first, "no records came"
    start = time.perf_counter()
    seen = 0
    while seen < load["records"] - 1:
        messages = consumer.consume(min(10_000, load["records"] - 1 - seen), _WAIT_S)
        assert messages, f"only {seen} records came"
        seen += len(messages)
    seconds = time.perf_counter() - start
    consumer.close()
    return {"seconds": seconds, "records": seen, "bytes": seen * load["size"]}


def end_to_end(load: Mapping[str, Any]) -> Figures:
    """From `produce()` to the consumer's hand, at a fixed rate, for `seconds`."""
    consumer = _consumer(load)
    consumer.assign([TopicPartition(load["topic"], p, 0) for p in range(load["partitions"])])
    producer = Producer({**_broker(load), "acks": load["acks"], "linger.ms": 0})
    warm = int(load["rate"])  # the first second is connections, metadata and fetch sessions
    total = int(load["rate"] * load["seconds"]) + warm
    sender = threading.Thread(target=_send_steadily, args=(producer, load, total))
    sender.start()
    taken: list[float] = []
    while len(taken) < total:
        message = consumer.poll(_WAIT_S)
        assert message is not None and message.error() is None, "records stopped coming"
        taken.append((time.perf_counter_ns() - _stamp(message)) / 1e9)
    sender.join()
    consumer.close()
    return percentiles_ms(taken[warm:])


def _hand_over(producer: Producer, topic: str, partition: int, records: list[Any]) -> None:
    """All of them; what the full queue refuses goes again once it has moved."""
    pending = records
    while pending:
        taken = producer.produce_batch(topic, pending, partition=partition)
        pending = pending[taken:]
        producer.poll(0.01 if pending else 0)


def _send_steadily(producer: Producer, load: Mapping[str, Any], total: int) -> None:
    padding = bytes(load["size"] - 8)
    start = time.perf_counter()
    for number in range(total):
        due = start + number / load["rate"]
        if (early := due - time.perf_counter()) > 0:
            time.sleep(early)
        stamp = time.perf_counter_ns().to_bytes(8, "big")
        producer.produce(load["topic"], stamp + padding, partition=number % load["partitions"])
        producer.poll(0)
    producer.flush(_WAIT_S)


def _stamp(message: Message) -> int:
    value = message.value()
    assert isinstance(value, bytes)
    return int.from_bytes(value[:8], "big")


def _broker(load: Mapping[str, Any]) -> dict[str, Any]:
    """How the broker is reached: in plaintext, or by TLS if the load names an authority."""
    settings = {"bootstrap.servers": load["bootstrap"]}
    if load.get("authority"):
        settings |= {"security.protocol": "SSL", "ssl.ca.location": load["authority"]}
    return settings


def _consumer(load: Mapping[str, Any]) -> Consumer:
    settings: dict[str, Any] = {
        **_broker(load),
        "group.id": "never joined",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "queued.min.messages": 1_000_000,
        "queued.max.messages.kbytes": 512 << 10,
    }
    if load.get("fetch bytes"):
        settings["max.partition.fetch.bytes"] = load["fetch bytes"]
    return Consumer(settings)


DO: Final[Mapping[str, Callable[[Mapping[str, Any]], Figures]]] = {
    "produce": produce,
    "consume": consume,
    "end to end": end_to_end,
}


if __name__ == "__main__":
    job = json.loads(sys.argv[1])
    print(json.dumps(DO[job["do"]](job)))
