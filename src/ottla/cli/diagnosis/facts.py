"""What the checks look at, gathered over the wire.

Owns: the questions. Never: judges an answer. What a broker does not answer is left out, and a
remark says so: a cluster that is half down is when somebody asks.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.cli.transactions.hanging import (
    DecidedTransaction,
    OpenTransaction,
    find,
    find_decided,
)
from ottla.client.admin import (
    ClusterInfo,
    ConfigEntry,
    LogDir,
    Outcomes,
    Resource,
    Topic,
    Transaction,
)
from ottla.client.admin.sync import Admin
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition

FAMILY: Final = "kafka_server_socketservermetrics_client_versions"
TIMEOUT_S: Final = 5.0


class Client(NamedTuple):
    """Client software as one broker sees it: how many connections, which versions of which API."""

    software: str
    version: str
    connections: int
    speaks: tuple[tuple[str, str], ...]


def scrape_clients(address: str) -> list[Client]:
    """The clients of the broker whose metrics are at `host:port`; OSError where there are none."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=TIMEOUT_S) as page:
        return clients(page.read().decode())


def clients(page: str) -> list[Client]:
    """The clients on a page of Prometheus text."""
    from prometheus_client.parser import text_string_to_metric_families

    rows = (
        (sample.labels, int(sample.value))
        for family in text_string_to_metric_families(page)
        if family.name == FAMILY
        for sample in family.samples
    )
    return _group_clients(rows)


def _group_clients(rows: Iterable[tuple[dict[str, str], int]]) -> list[Client]:
    groups: dict[tuple[str, str], tuple[int, set[tuple[str, str]]]] = {}
    for labels, count in rows:
        key = (labels["client_software_name"], labels["client_software_version"])
        most, speaks = groups.get(key, (0, set()))
        speaks.add((labels["request"], labels["version"]))
        # Every connection has asked at least one API, and most ask for versions first.
        groups[key] = (max(most, count), speaks)
    return [
        Client(name, version, count, tuple(sorted(speaks)))
        for (name, version), (count, speaks) in sorted(groups.items())
    ]


METRICS_PORT: Final = "metrics.port"


@dataclass
class Facts:
    """A cluster as it was asked about."""

    cluster: ClusterInfo
    topics: list[Topic] = field(default_factory=list)
    topic_configs: Mapping[str, Mapping[str, ConfigEntry]] = field(default_factory=dict)
    broker_configs: Mapping[int, Mapping[str, ConfigEntry]] = field(default_factory=dict)
    disks: Mapping[int, tuple[LogDir, ...]] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    hanging: list[OpenTransaction] = field(default_factory=list)
    decided: list[DecidedTransaction] = field(default_factory=list)
    clients: dict[int, list[Client]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def availability(admin: Admin) -> Facts:
    """As much as it takes to say whether everything can be read and written."""
    facts = Facts(admin.describe_cluster())
    names = admin.list_topics(internal=True)
    facts.topics = list(admin.describe_topics(names).succeeded.values())
    configs = admin.describe_configs([Resource.topic(name) for name in names])
    facts.topic_configs = {one.name: found for one, found in configs.succeeded.items()}
    brokers = admin.describe_configs([Resource.broker(one.id) for one in facts.cluster.brokers])
    facts.broker_configs = {int(one.name): found for one, found in brokers.succeeded.items()}
    disks = admin.describe_log_dirs()
    facts.disks = disks.succeeded
    facts.remarks += _failure_texts(disks, "did not say what is on its disks")
    return facts


def everything(admin: Admin, metrics: Mapping[int, str]) -> Facts:
    """All that can be asked. `metrics` are addresses of brokers' metrics, where they are known."""
    facts = availability(admin)
    try:
        listed = admin.list_transactions()
        facts.transactions = list(
            admin.describe_transactions([one.id for one in listed]).succeeded.values()
        )
        facts.hanging = find(admin, _led_partitions(facts.topics))
        facts.decided = find_decided(admin, _led_partitions(facts.topics))
    except (KafkaError, OSError) as error:
        facts.remarks.append(f"transactions could not be listed: {error}")
    for broker in facts.cluster.brokers:
        address = metrics.get(broker.id) or _metrics_of(facts, broker.id, broker.host)
        if address is None:
            facts.remarks.append(
                f"broker {broker.id} serves no metrics, so its clients are not known: start it "
                "with --metrics-port, or give --metrics"
            )
            continue
        try:
            facts.clients[broker.id] = scrape_clients(address)
        except (OSError, ValueError) as error:
            facts.remarks.append(f"the metrics of broker {broker.id} at {address}: {error}")
    return facts


def _metrics_of(facts: Facts, broker: int, host: str) -> str | None:
    """Where a broker says its metrics are; a port of 0 says only that there are some."""
    entry = facts.broker_configs.get(broker, {}).get(METRICS_PORT)
    if entry is None or not entry.value or entry.value == "0":
        return None
    return f"{host}:{entry.value}"


def _led_partitions(topics: list[Topic]) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, one.index)
        for topic in topics
        for one in topic.partitions
        if one.leader is not None
    ]


def _failure_texts(outcomes: Outcomes[int, tuple[LogDir, ...]], what: str) -> list[str]:
    return [f"broker {id} {what}: {error}" for id, error in outcomes.failed.items()]
