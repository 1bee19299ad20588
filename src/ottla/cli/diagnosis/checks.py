"""Facts to findings: what is wrong, how bad it is, what to do.

Pure. A check is a generator over the facts; `AVAILABILITY` are those that say whether everything
can be read and written, `ALL` adds what is misconfigured or will go wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from ottla.cli.diagnosis.facts import Facts
from ottla.client.admin import Partition, Topic
from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE

NEARLY_FULL: Final = 0.1
NAMED_MAX: Final = 5
SKEW: Final = 1.5
"""A broker with so many times its fair share is worth a note,"""
LEADERS_MIN: Final = 5
"""if that is so many leaders more,"""
GIB: Final = 1 << 30
STORED_MIN: Final = GIB
"""or so many bytes."""
MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"
INTERNAL_COPIES: Final = {
    CONSUMER_OFFSETS: "offsets.topic.replication.factor",
    TRANSACTION_STATE: "transaction.state.log.replication.factor",
}
"""Internal topics, and the setting that says how many replicas they should have."""


class Severity(Enum):
    """How bad it is: something does not work, something may go wrong, something to know."""

    BAD = "bad"
    WARN = "warn"
    NOTE = "note"


class Finding(NamedTuple):
    severity: Severity
    subject: str
    what: str
    do: str


Check: TypeAlias = Callable[[Facts], Iterator[Finding]]


def examine(facts: Facts, checks: Iterable[Check]) -> list[Finding]:
    """Every finding, the worst first."""
    order = list(Severity)
    findings = [finding for check in checks for finding in check(facts)]
    return sorted(findings, key=lambda finding: (order.index(finding.severity), finding.subject))


def group_findings(findings: Iterable[Finding]) -> list[Finding]:
    """For people: what is the same for many partitions in one line, which names a few of them."""
    same: dict[Finding, list[str]] = {}
    for finding in findings:
        same.setdefault(finding._replace(subject=""), []).append(finding.subject)
    found = []
    for finding, subjects in same.items():
        if len(subjects) <= NAMED_MAX:
            found += [finding._replace(subject=subject) for subject in subjects]
        else:
            named = ", ".join(subjects[:3])
            found.append(finding._replace(subject=f"{named} and {len(subjects) - 3} more"))
    return found


def no_controller(facts: Facts) -> Iterator[Finding]:
    if facts.cluster.controller is None:
        yield Finding(
            Severity.BAD,
            "cluster",
            "no broker is the controller: nothing can be created or elected",
            "look in the brokers' logs for why no controller was elected",
        )


def missing_brokers(facts: Facts) -> Iterator[Finding]:
    """Brokers that are assigned replicas but are not in the cluster."""
    live = {broker.id for broker in facts.cluster.brokers}
    missing = Counter(
        broker for _, partition in _partitions(facts) for broker in {*partition.replicas} - live
    )
    for broker, count in sorted(missing.items()):
        yield Finding(
            Severity.WARN,
            f"broker {broker}",
            f"is not running, or cannot reach ZooKeeper; it has replicas of {count} partitions",
            "start it; if it is lost, start another with its broker.id and an empty directory",
        )


def without_leader(facts: Facts) -> Iterator[Finding]:
    live = {broker.id for broker in facts.cluster.brokers}
    for name, partition in _partitions(facts):
        if partition.leader is None:
            yield Finding(
                Severity.BAD,
                name,
                "has no leader: it can be neither read nor written",
                _how_to_lead(partition, live),
            )


def _how_to_lead(partition: Partition, live: set[int]) -> str:
    """Only a replica that is in sync has every record; where all of those are lost, no other may
    lead unless an operator says so."""
    down = set(partition.isr) - live
    if down:
        return f"start {_broker_names(down)}: all its records are there"
    if not live & set(partition.replicas):
        return f"start {_broker_names(partition.replicas)}: its replicas are there"
    return (
        f"look in the log of {_broker_names(partition.isr or partition.replicas)} for a failed "
        "disk or a corrupt log; if it cannot be repaired, kafka-leader-election --election-type "
        "unclean makes available what other replicas have"
    )


def below_min_isr(facts: Facts) -> Iterator[Finding]:
    for topic in facts.topics:
        least = _number(facts, topic, MIN_ISR)
        for partition in topic.partitions:
            if partition.leader is not None and least is not None and len(partition.isr) < least:
                yield Finding(
                    Severity.BAD,
                    f"{topic.name}-{partition.index}",
                    f"has {len(partition.isr)} replicas in sync, fewer than {MIN_ISR}={least}: "
                    "acks=all is refused",
                    "bring back the replicas on "
                    f"{_broker_names(set(partition.replicas) - set(partition.isr))}",
                )


def under_replicated(facts: Facts) -> Iterator[Finding]:
    refused = {finding.subject for finding in below_min_isr(facts)}  # that says it already
    for name, partition in _partitions(facts):
        if partition.leader is not None and partition.under_replicated and name not in refused:
            behind = set(partition.replicas) - set(partition.isr)
            running = "is it up, is its" if len(behind) == 1 else "are they up, is their"
            yield Finding(
                Severity.WARN,
                name,
                f"{len(partition.isr)} of {len(partition.replicas)} replicas are in sync",
                f"look at {_broker_names(behind)}: {running} disk or network slow?",
            )


def disks(facts: Facts) -> Iterator[Finding]:
    for broker, directories in facts.disks.items():
        for directory in directories:
            subject = f"broker {broker}: {directory.path}"
            if directory.failure is not None:
                yield Finding(
                    Severity.BAD, subject, f"is offline: {directory.failure}", "replace the disk"
                )
            elif 0 <= directory.usable_bytes < directory.total_bytes * NEARLY_FULL:
                yield Finding(
                    Severity.WARN,
                    subject,
                    f"{directory.usable_bytes * 100 // directory.total_bytes} % of the disk free",
                    "shorten retention.ms, delete topics, or give it a larger disk",
                )


def internal_copies(facts: Facts) -> Iterator[Finding]:
    """Internal topics that were created while fewer brokers were alive than their setting asks for.

    They keep as few replicas for good, unless somebody adds more.
    """
    for topic in facts.topics:
        setting, copies = INTERNAL_COPIES.get(topic.name), topic.replication_factor
        configured = _of_brokers(facts, setting) if setting is not None else None
        if configured is None or not copies:
            continue
        possible = min(configured, len(facts.cluster.brokers))
        if copies < possible:
            replicas = "1 replica" if copies == 1 else f"{copies} replicas"
            yield Finding(
                Severity.WARN,
                topic.name,
                f"has {replicas}, though {setting}={configured}: it was created while fewer "
                "brokers were up",
                _how_to_copy(topic, possible),
            )


def low_internal_min_isr(facts: Facts) -> Iterator[Finding]:
    """The topic keeps the minimum that suited the replicas with which it was created."""
    wanted = _of_brokers(facts, "transaction.state.log.min.isr")
    for topic in facts.topics:
        least = _number(facts, topic, MIN_ISR)
        if topic.name != TRANSACTION_STATE or wanted is None or least is None:
            continue
        possible = min(wanted, topic.replication_factor)
        if least < possible:
            yield Finding(
                Severity.WARN,
                topic.name,
                f"{MIN_ISR}={least}, though transaction.state.log.min.isr={wanted}: it was created "
                "with fewer replicas",
                f"ottla configs set topic {MIN_ISR}={possible} --name {topic.name}",
            )


def impossible_min_isr(facts: Facts) -> Iterator[Finding]:
    for topic in facts.topics:
        least = _number(facts, topic, MIN_ISR)
        copies = topic.replication_factor
        if least is None or not copies:
            continue
        if least > copies:
            yield Finding(
                Severity.BAD,
                topic.name,
                f"{MIN_ISR}={least} with {copies} copies: acks=all can never succeed",
                f"ottla configs set topic {MIN_ISR}={copies} --name {topic.name}",
            )
        elif least == copies > 1:
            has_room = copies < len(facts.cluster.brokers)
            yield Finding(
                Severity.WARN,
                topic.name,
                f"{MIN_ISR}={least} with {copies} replicas: losing one broker stops acks=all",
                _how_to_copy(topic, copies + 1)
                if has_room
                else f"ottla configs set topic {MIN_ISR}={copies - 1} --name {topic.name}",
            )


def single_copies(facts: Facts) -> Iterator[Finding]:
    said = {finding.subject for finding in internal_copies(facts)}
    if len(facts.cluster.brokers) > 1:
        for topic in facts.topics:
            if topic.replication_factor == 1 and topic.name not in said:
                yield Finding(
                    Severity.WARN,
                    topic.name,
                    "has one replica though there are more brokers: its broker's loss is data loss",
                    _how_to_copy(topic, min(3, len(facts.cluster.brokers))),
                )


def unclean_elections(facts: Facts) -> Iterator[Finding]:
    for topic in facts.topics:
        entry = facts.topic_configs.get(topic.name, {}).get(UNCLEAN)
        if entry is not None and entry.value == "true":
            yield Finding(
                Severity.WARN,
                topic.name,
                f"{UNCLEAN}=true: acknowledged records may be lost when brokers fail",
                f"ottla configs delete topic {UNCLEAN} --name {topic.name}",
            )


def brokers_disagree(facts: Facts) -> Iterator[Finding]:
    """Settings that should be the same everywhere, and are not."""
    for name in ("message.max.bytes", "log.retention.ms", MIN_ISR, "auto.create.topics.enable"):
        values = {
            id: entries[name].value
            for id, entries in facts.broker_configs.items()
            if name in entries
        }
        if len(set(values.values())) > 1:
            listing = ", ".join(f"broker {id}: {value}" for id, value in sorted(values.items()))
            yield Finding(
                Severity.WARN,
                name,
                f"differs between brokers ({listing})",
                f"ottla configs set brokers {name}=... for all",
            )


def unreachable_addresses(facts: Facts) -> Iterator[Finding]:
    local = [
        broker
        for broker in facts.cluster.brokers
        if broker.host in ("localhost", "127.0.0.1", "::1")
    ]
    for broker in local if len(facts.cluster.brokers) > 1 else ():
        yield Finding(
            Severity.WARN,
            f"broker {broker.id}",
            f"advertises {broker.address}: clients on other machines cannot reach it",
            "set advertised.listeners to a name that they can resolve",
        )


def prepared_transactions(facts: Facts) -> Iterator[Finding]:
    for transaction in facts.transactions:
        if transaction.two_phase and transaction.started_ms is not None:
            yield Finding(
                Severity.WARN,
                transaction.id,
                f"is open for a two-phase commit and never times out; it holds back readers of "
                f"committed records in {len(transaction.partitions)} partitions",
                "let its owner decide it, or if there is none any more: "
                f"ottla transactions abort {transaction.id} (of a Spark query: --query ID)",
            )


def hanging_transactions(facts: Facts) -> Iterator[Finding]:
    for partition, producer in facts.hanging:
        where = f"{partition.topic}:{partition.partition}"
        yield Finding(
            Severity.WARN,
            str(partition),
            f"a transaction of producer {producer.producer_id} is open that no coordinator knows",
            f"when it is older than any timeout: ottla transactions abort --partition {where} "
            f"--start-offset {producer.transaction_start}",
        )


def decided_transactions(facts: Facts) -> Iterator[Finding]:
    for decided in facts.decided:
        stuck = decided.transaction
        yield Finding(
            Severity.WARN,
            stuck.id,
            f"is decided ({stuck.state}) and does not end: {len(decided.missing)} of its "
            f"{len(stuck.partitions)} partitions lack its marker, its id cannot begin another "
            "transaction, and readers of committed records and offsets are held back",
            decided.what_to_do,
        )


def leaders_elsewhere(facts: Facts) -> Iterator[Finding]:
    elsewhere = [
        name
        for name, partition in _partitions(facts)
        if partition.leader is not None
        and partition.replicas
        and partition.leader != partition.replicas[0]
    ]
    if elsewhere:
        yield Finding(
            Severity.NOTE,
            "leaders",
            f"{len(elsewhere)} partitions are not led by their preferred broker",
            "they go back by themselves with auto.leader.rebalance.enable=true",
        )


def skewed_leaders(facts: Facts) -> Iterator[Finding]:
    """A broker that leads far more than its share does the work of others."""
    counts = {broker.id: 0 for broker in facts.cluster.brokers}
    for _, partition in _partitions(facts):
        if partition.leader in counts:
            counts[partition.leader] += 1
    fair = sum(counts.values()) / max(1, len(counts))
    busiest = max(counts, key=lambda broker: counts[broker], default=-1)
    if len(counts) > 1 and counts[busiest] >= max(SKEW * fair, fair + LEADERS_MIN):
        yield Finding(
            Severity.NOTE,
            f"broker {busiest}",
            f"leads {counts[busiest]} of {sum(counts.values())} partitions, "
            f"where {fair:.0f} would be its share",
            "if leaders are not where they are preferred: kafka-leader-election --election-type "
            "preferred --all-topic-partitions; else move replicas with ottla reassign plan",
        )


def skewed_disks(facts: Facts) -> Iterator[Finding]:
    """A broker that stores far more than its share fills its disks before the others."""
    stored = {
        broker: sum(
            replica.size_bytes for directory in found for replica in directory.replicas.values()
        )
        for broker, found in facts.disks.items()
    }
    fair = sum(stored.values()) / max(1, len(stored))
    fullest = max(stored, key=lambda broker: stored[broker], default=-1)
    if len(stored) > 1 and stored[fullest] >= max(SKEW * fair, fair + STORED_MIN):
        yield Finding(
            Severity.NOTE,
            f"broker {fullest}",
            f"stores {stored[fullest] / GIB:.1f} GiB of {sum(stored.values()) / GIB:.1f}, "
            f"where {fair / GIB:.1f} would be its share",
            "move replicas of large topics with ottla reassign plan",
        )


def silent_clients(facts: Facts) -> Iterator[Finding]:
    for broker, clients in facts.clients.items():
        for client in clients:
            if client.software == "unknown":
                yield Finding(
                    Severity.NOTE,
                    f"broker {broker}",
                    f"{client.connections} connections of clients that do not send their name: "
                    "they are older than 2019",
                    "update them",
                )


def remarks(facts: Facts) -> Iterator[Finding]:
    for text in facts.remarks:
        yield Finding(Severity.NOTE, "doctor", text, "")


AVAILABILITY: Final[tuple[Check, ...]] = (
    no_controller,
    missing_brokers,
    without_leader,
    below_min_isr,
    under_replicated,
    internal_copies,
    low_internal_min_isr,
    disks,
)
ALL: Final[tuple[Check, ...]] = (
    *AVAILABILITY,
    impossible_min_isr,
    single_copies,
    unclean_elections,
    brokers_disagree,
    unreachable_addresses,
    prepared_transactions,
    hanging_transactions,
    decided_transactions,
    leaders_elsewhere,
    skewed_leaders,
    skewed_disks,
    silent_clients,
    remarks,
)


def _partitions(facts: Facts) -> Iterator[tuple[str, Partition]]:
    for topic in facts.topics:
        for partition in topic.partitions:
            yield f"{topic.name}-{partition.index}", partition


def _how_to_copy(topic: Topic, copies: int) -> str:
    return (
        f"ottla reassign plan {topic.name} -r {copies} > plan.json, "
        "then ottla reassign execute plan.json --wait 600"
    )


def _of_brokers(facts: Facts, setting: str) -> int | None:
    """The largest value that a broker has."""
    found = [
        entries[setting].value for entries in facts.broker_configs.values() if setting in entries
    ]
    return max((int(value) for value in found if value is not None), default=None)


def _number(facts: Facts, topic: Topic, name: str) -> int | None:
    entry = facts.topic_configs.get(topic.name, {}).get(name)
    return None if entry is None or entry.value is None else int(entry.value)


def _broker_names(brokers: Collection[int]) -> str:
    ids = ", ".join(map(str, sorted(brokers)))
    return f"broker {ids}" if len(brokers) == 1 else f"brokers {ids}"
