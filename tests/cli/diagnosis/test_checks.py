"""Each check, on facts made for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ottla.cli.diagnosis.checks import ALL, AVAILABILITY, Finding, Severity, examined
from ottla.cli.diagnosis.facts import Client, Facts
from ottla.cli.transactions.hanging import DecidedTransaction, OpenTransaction
from ottla.client.admin import (
    ActiveProducer,
    BrokerInfo,
    ClusterInfo,
    ConfigEntry,
    ConfigSource,
    LogDir,
    Partition,
    Topic,
    Transaction,
)
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition

BROKERS = tuple(BrokerInfo(id, f"host{id}", 9092, None) for id in range(3))
WELL = Partition(0, 0, 0, (0, 1, 2), (0, 1, 2), ())


def setting(name: str, value: str) -> Mapping[str, ConfigEntry]:
    entry = ConfigEntry(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG, False, False)
    return {name: entry}


def facts(partition: Partition = WELL, **more: Any) -> Facts:
    cluster = more.pop("cluster", ClusterInfo("c", 0, BROKERS))
    return Facts(cluster, [Topic("t", None, False, (partition,))], **more)


def one(found: Facts) -> Finding:
    [finding] = examined(found, ALL)
    return finding


def test_a_cluster_that_is_well_has_no_findings() -> None:
    assert examined(facts(), ALL) == []


PREPARED = Transaction("q-s-0", "Ongoing", 7, 0, 2**31 - 1, 1, (TopicPartition("t", 0),), 0)
HANGING = OpenTransaction(TopicPartition("t", 0), ActiveProducer(7, 0, 0, 0, 0, 3))
BOTH = (TopicPartition("t", 0), TopicPartition("t", 1))
DECIDED = DecidedTransaction(
    Transaction("x", "PrepareCommit", 7, 0, 60_000, 1, BOTH, 0), (HANGING,)
)


@pytest.mark.parametrize(
    ("found", "severity", "what", "do"),
    [
        (facts(cluster=ClusterInfo("c", None, BROKERS)), Severity.BAD, "no broker", "logs"),
        (
            facts(Partition(0, None, 0, (0, 1), (), (0, 1))),
            Severity.BAD,
            "has no leader",
            "start the brokers that hold it: 0, 1",
        ),
        (
            facts(Partition(0, 0, 0, (0, 1, 2), (0, 1), (2,))),
            Severity.WARN,
            "2 of 3 replicas",
            "brokers 2",
        ),
        (
            facts(disks={0: (LogDir("/d", KafkaError(ErrorCode.kafka_storage_error), 1, 1, {}),)}),
            Severity.BAD,
            "is offline",
            "replace",
        ),
        (facts(disks={0: (LogDir("/d", None, 100, 5, {}),)}), Severity.WARN, "5 %", "retention"),
        (
            facts(topic_configs={"t": setting("min.insync.replicas", "3")}),
            Severity.WARN,
            "losing one broker",
            "min.insync.replicas=2 --name t",
        ),
        (
            facts(Partition(0, 0, 0, (0,), (0,), ())),
            Severity.WARN,
            "one replica",
            "reassign",
        ),
        (
            facts(topic_configs={"t": setting("unclean.leader.election.enable", "true")}),
            Severity.WARN,
            "may be lost",
            "configs delete topic unclean",
        ),
        (
            facts(
                broker_configs={
                    0: setting("message.max.bytes", "1"),
                    1: setting("message.max.bytes", "2"),
                }
            ),
            Severity.WARN,
            "differs between brokers (broker 0: 1, broker 1: 2)",
            "configs set brokers",
        ),
        (
            facts(cluster=ClusterInfo("c", 0, (BROKERS[0], BrokerInfo(1, "localhost", 1, None)))),
            Severity.WARN,
            "cannot reach it",
            "advertised.listeners",
        ),
        (facts(transactions=[PREPARED]), Severity.WARN, "never times out", "--query ID"),
        (
            facts(hanging=[HANGING]),
            Severity.WARN,
            "no coordinator knows",
            "--partition t:0 --start-offset 3",
        ),
        (
            facts(decided=[DECIDED]),
            Severity.WARN,
            "PrepareCommit) and does not end: 1 of its 2 partitions",
            "make t-0 writable again",
        ),
        (
            facts(Partition(0, 1, 0, (0, 1, 2), (0, 1, 2), ())),
            Severity.NOTE,
            "1 partitions are not led",
            "auto.leader.rebalance",
        ),
        (
            facts(clients={0: [Client("unknown", "unknown", 4, ())]}),
            Severity.NOTE,
            "4 connections",
            "update",
        ),
        (facts(remarks=["told"]), Severity.NOTE, "told", ""),
    ],
)
def test_each_thing_that_is_wrong_is_found_with_what_to_do(
    found: Facts, severity: Severity, what: str, do: str
) -> None:
    finding = one(found)
    assert finding.severity is severity
    assert what in finding.what
    assert do in finding.do


def test_too_few_copies_for_acks_all_come_before_what_may_go_wrong() -> None:
    short = facts(
        Partition(0, 0, 0, (0, 1, 2), (0,), ()),
        topic_configs={"t": setting("min.insync.replicas", "2")},
    )
    assert [finding.severity for finding in examined(short, AVAILABILITY)] == [
        Severity.BAD,
        Severity.WARN,
    ]


def test_more_copies_wanted_in_sync_than_there_are_is_bad() -> None:
    wrong = facts(topic_configs={"t": setting("min.insync.replicas", "4")})
    assert any("can never succeed" in finding.what for finding in examined(wrong, ALL))
