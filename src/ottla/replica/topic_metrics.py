"""Bytes, messages and requests by topic and in total: Kafka's BrokerTopicMetrics.

Owns the counters. A topic's are made when it is first hosted and forgotten with it, so that a
thousand topics that come and go leave nothing behind; the totals stay.
"""

from __future__ import annotations

from typing import Final

from ottla.model.metrics import Counter, Registry

GROUP: Final = "kafka_server_brokertopicmetrics"
_ALL: Final = {
    "messages_in": "Records appended for producers.",
    "bytes_in": "Bytes appended for producers.",
    "bytes_out": "Bytes sent to consumers.",
    "bytes_rejected": "Bytes of rejected batches.",
    "replication_bytes_in": "Bytes appended from leaders.",
    "replication_bytes_out": "Bytes sent to followers.",
    "total_produce_requests": "Partitions in produce requests.",
    "total_fetch_requests": "Partitions in fetch requests.",
    "failed_produce_requests": "Partitions in produce requests that failed.",
    "failed_fetch_requests": "Partitions in fetch requests that failed.",
}


class TopicMetrics:
    """One topic's counters, or the totals."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "messages_in",
        "replication_bytes_in",
        "replication_bytes_out",
        "total_fetch_requests",
        "total_produce_requests",
    )

    def __init__(self, registry: Registry, topic: str | None) -> None:
        for name, doc in _ALL.items():
            if topic is None:  # a name of its own: a sum over topics must not count it again
                counter = registry.counter(f"{GROUP}_all_topics_{name}_total", f"{doc} All topics.")
            else:
                counter = registry.counter(f"{GROUP}_{name}_total", doc, topic=topic)
            setattr(self, name, counter)

    bytes_in: Counter
    bytes_out: Counter
    bytes_rejected: Counter
    failed_fetch_requests: Counter
    failed_produce_requests: Counter
    messages_in: Counter
    replication_bytes_in: Counter
    replication_bytes_out: Counter
    total_fetch_requests: Counter
    total_produce_requests: Counter

    def sent(self, to_follower: bool) -> Counter:
        return self.replication_bytes_out if to_follower else self.bytes_out


class BrokerTopicMetrics:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._topics: dict[str, TopicMetrics] = {}
        self.all = TopicMetrics(registry, None)

    def of(self, topic: str) -> TopicMetrics:
        metrics = self._topics.get(topic)
        if metrics is None:
            metrics = self._topics[topic] = TopicMetrics(self._registry, topic)
        return metrics

    def count_append(self, topic: TopicMetrics, size: int, records: int, requests: int = 1) -> None:
        """A batch has been appended; `requests` is 0 if its request has been counted. Hot."""
        for metrics in (topic, self.all):
            metrics.total_produce_requests.value += requests
            metrics.bytes_in.value += size
            metrics.messages_in.value += records

    def forget(self, topic: str) -> None:
        """The topic is gone from this broker."""
        if self._topics.pop(topic, None) is not None:
            self._registry.forget(topic=topic)
