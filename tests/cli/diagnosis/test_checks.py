"""Each check, on facts made for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ottla.cli.diagnosis.checks import ALL, AVAILABILITY, Finding, Severity, examine, group_findings
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
    ReplicaOnDisk,
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
    [finding] = examine(found, ALL)
    return finding


def test_a_cluster_that_is_well_has_no_findings() -> None:
    assert examine(facts(), ALL) == []


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
            "disk or a corrupt log",
        ),
        (
            facts(Partition(0, 0, 0, (0, 1, 2), (0, 1), (2,))),
            Severity.WARN,
            "2 of 3 replicas",
            "broker 2",
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
            facts(
                Partition(0, 0, 0, (0, 1), (0, 1), ()),
                cluster=ClusterInfo("c", 0, (BROKERS[0], BrokerInfo(1, "localhost", 1, None))),
            ),
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


def many(*leaders: int) -> Facts:
    partitions = tuple(
        Partition(index, leader, 0, (leader, (leader + 1) % 3), (0, 1, 2), ())
        for index, leader in enumerate(leaders)
    )
    return Facts(ClusterInfo("c", 0, BROKERS), [Topic("t", None, False, partitions)])


def stored(*gibibytes: int) -> Facts:
    return facts(
        disks={
            id: (
                LogDir(
                    "/d",
                    None,
                    1 << 50,
                    1 << 49,
                    {TopicPartition("t", 0): ReplicaOnDisk(size << 30, 0, False)},
                ),
            )
            for id, size in enumerate(gibibytes)
        }
    )


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (many(*[0] * 10, *[1] * 3, *[2] * 2), "leads 10 of 15 partitions, where 5 would"),
        (stored(9, 3, 3), "stores 9.0 GiB of 15.0, where 5.0 would"),
    ],
)
def test_a_broker_with_far_more_than_its_share_is_named(found: Facts, what: str) -> None:
    finding = one(found)
    assert finding.subject == "broker 0"
    assert what in finding.what
    assert "ottla reassign plan" in finding.do


@pytest.mark.parametrize("found", [many(0, 0, 0, 1, 2), many(0, 1, 2, 0, 1, 2), stored(6, 5, 5)])
def test_small_differences_are_no_news(found: Facts) -> None:
    assert examine(found, ALL) == []


@pytest.mark.parametrize(
    ("partition", "do"),
    [
        (Partition(0, None, 0, (0, 3), (3,), (3,)), "start broker 3: all its records are there"),
        (Partition(0, None, 0, (3, 4), (), (3, 4)), "start brokers 3, 4: its replicas are there"),
    ],
)
def test_the_brokers_that_can_lead_a_partition_again_are_named(
    partition: Partition, do: str
) -> None:
    [worst, *_] = examine(facts(partition), AVAILABILITY)
    assert worst.do == do


def test_a_broker_that_is_gone_is_named_with_what_it_holds() -> None:
    found = examine(facts(Partition(0, 0, 0, (0, 1, 7), (0, 1), (7,))), AVAILABILITY)
    assert [finding.subject for finding in found] == ["broker 7", "t-0"]
    assert "replicas of 1 partitions" in found[0].what


def test_what_is_the_same_for_many_is_one_line_for_people() -> None:
    partitions = tuple(Partition(index, 0, 0, (0, 1, 2), (0, 1), (2,)) for index in range(9))
    sick = Facts(ClusterInfo("c", 0, BROKERS), [Topic("t", None, False, partitions)])
    found = examine(sick, AVAILABILITY)
    assert len(found) == 9
    [line] = group_findings(found)
    assert line.subject == "t-0, t-1, t-2 and 6 more"
    assert group_findings(found[:5]) == found[:5]


def test_too_few_copies_for_acks_all_are_said_once_and_before_what_may_go_wrong() -> None:
    short = facts(
        Partition(0, 0, 0, (0, 1, 7), (0,), ()),
        topic_configs={"t": setting("min.insync.replicas", "2")},
    )
    found = examine(short, AVAILABILITY)
    assert [(finding.severity, finding.subject) for finding in found] == [
        (Severity.BAD, "t-0"),
        (Severity.WARN, "broker 7"),
    ]


def test_more_copies_wanted_in_sync_than_there_are_is_bad() -> None:
    wrong = facts(topic_configs={"t": setting("min.insync.replicas", "4")})
    assert any("can never succeed" in finding.what for finding in examine(wrong, ALL))


def internal(copies: int, brokers: int = 3) -> Facts:
    offsets = Partition(0, 0, 0, tuple(range(copies)), tuple(range(copies)), ())
    return Facts(
        ClusterInfo("c", 0, BROKERS[:brokers]),
        [Topic("__consumer_offsets", None, True, (offsets,))],
        topic_configs={"__consumer_offsets": setting("min.insync.replicas", str(min(copies, 2)))},
        broker_configs={
            one.id: setting("offsets.topic.replication.factor", "3") for one in BROKERS[:brokers]
        },
    )


@pytest.mark.parametrize("copies", [1, 2])
def test_an_internal_topic_made_while_brokers_were_down_is_named_with_what_gives_it_more_replicas(
    copies: int,
) -> None:
    [first, *others] = examine(internal(copies), ALL)
    assert first.severity is Severity.WARN
    assert "created while fewer brokers were up" in first.what
    assert "ottla reassign plan __consumer_offsets -r 3" in first.do
    assert all("-r 3" in other.do for other in others)
    assert examine(internal(copies), AVAILABILITY) == [first]


@pytest.mark.parametrize(("least", "copies", "named"), [(1, 3, "2"), (1, 1, None), (2, 3, None)])
def test_a_transaction_log_that_kept_the_minimum_of_its_first_replicas_is_named(
    least: int, copies: int, named: str | None
) -> None:
    name = "__transaction_state"
    partition = Partition(0, 0, 0, tuple(range(copies)), tuple(range(copies)), ())
    grown = Facts(
        ClusterInfo("c", 0, BROKERS),
        [Topic(name, None, True, (partition,))],
        topic_configs={name: setting("min.insync.replicas", str(least))},
        broker_configs={one.id: setting("transaction.state.log.min.isr", "2") for one in BROKERS},
    )
    commands = [f"ottla configs set topic min.insync.replicas={named} --name {name}"]
    assert [one.do for one in examine(grown, AVAILABILITY)] == (commands if named else [])


def test_an_internal_topic_with_as_many_replicas_as_brokers_is_no_finding() -> None:
    assert examine(internal(2, brokers=2), AVAILABILITY) == []
    assert examine(internal(3), ALL) == []


def test_fewer_replicas_may_be_in_sync_only_where_no_broker_is_left_for_another() -> None:
    two = Partition(0, 0, 0, (0, 1), (0, 1), ())
    both = {"t": setting("min.insync.replicas", "2")}
    assert "ottla reassign plan t -r 3" in one(facts(two, topic_configs=both)).do
    full = ClusterInfo("c", 0, BROKERS[:2])
    assert "min.insync.replicas=1" in one(facts(two, topic_configs=both, cluster=full)).do
