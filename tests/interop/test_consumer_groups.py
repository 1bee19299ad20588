"""Groups whose partitions the broker shares out, with the clients that speak that protocol.

The promise is the same for all: every record goes to one member, however members come, go and
crash under load; what was committed is there; tools see it as it is.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AdminClient,
    ConsumerGroupDescription,
    NewPartitions,
)

from ottla.testing import Broker
from tests.interop.grouped import (
    SETTINGS,
    WAIT_S,
    ConfluentMember,
    JavaMembers,
    Member,
    Numbers,
    Refused,
    close_in_turn,
    drain,
    java_members,
    new_topic,
    settle,
    until,
)
from tools import kafka_cache

PARTITIONS: Final = 8


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as broker:
        yield broker


@pytest.fixture(scope="module")
def java(broker: Broker) -> Iterator[JavaMembers]:
    try:
        with java_members(broker.bootstrap_servers) as members:
            yield members
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))


def confluent(broker: Broker, topic: str, **settings: object) -> ConfluentMember:
    bootstrap, group = broker.bootstrap_servers, f"group-{topic}"
    return ConfluentMember(bootstrap, group, topic, **{"group_protocol": "consumer", **settings})


def come_and_go(
    broker: Broker, topic: str, opened: Callable[[], Member], sizes: tuple[int, ...]
) -> None:
    """Let the group be of these sizes, one after the other, while records are written."""
    numbers = Numbers(broker.bootstrap_servers, topic, PARTITIONS)
    members: list[Member] = []
    got: list[int] = []
    for size in sizes:
        while len(members) < size:
            members.append(opened())
        while len(members) > size:
            settle(members, PARTITIONS, got)
            _retire(members.pop(0), got)
        numbers.write(200)
        settle(members, PARTITIONS, got)
        numbers.write(200)
        drain(members, got)
    until(lambda: len(got) >= numbers.written, lambda: drain(members, got), "the records")
    close_in_turn(members, PARTITIONS, got)
    assert sorted(got) == list(range(numbers.written)), "each record once"


@pytest.mark.spec("GRP-01", "GRP-46", "GRP-47")
def test_each_record_goes_to_one_member_as_members_come_and_go(broker: Broker) -> None:
    topic = new_topic(broker.bootstrap_servers, PARTITIONS)
    come_and_go(broker, topic, lambda: confluent(broker, topic), (1, 2, 4, 8, 5, 1))


@pytest.mark.spec("GRP-01", "GRP-46")
def test_kafkas_own_consumers_share_fairly(broker: Broker, java: JavaMembers) -> None:
    topic = new_topic(broker.bootstrap_servers, PARTITIONS)
    numbers = Numbers(broker.bootstrap_servers, topic, PARTITIONS)
    numbers.write(400)
    got: list[int] = []
    protocol = {"group_protocol": "consumer", "group_remote_assignor": "range"}
    members = [java.open(f"group-{topic}", topic, **protocol) for _ in range(3)]
    settle(members, PARTITIONS, got)
    assert [
        sorted(member.assigned_partitions())
        for member in sorted(members, key=lambda m: min(m.assigned_partitions()))
    ] == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7],
    ]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})

    def committed() -> dict[int, int]:
        [offsets] = admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(f"group-{topic}")]
        ).values()
        return {part.partition: part.offset for part in offsets.result(WAIT_S).topic_partitions}

    def read_and_commit() -> None:
        drain(members, got)
        for member in members:
            member.commit()

    # Who was the first to come may have read for the others: they read, and commit, once more.
    everything = dict.fromkeys(range(PARTITIONS), 400 // PARTITIONS)
    until(lambda: committed() == everything, read_and_commit, "everything committed")
    assert set(got) == set(range(400))
    for member in members:
        member.close()
    assert committed() == everything


DOOMED: Final = (
    "import sys; from confluent_kafka import Consumer\n"
    "c = Consumer({'bootstrap.servers': sys.argv[1], 'group.id': sys.argv[2],"
    " 'group.protocol': 'consumer', 'enable.auto.commit': False})\n"
    "c.subscribe([sys.argv[3]])\n"
    "while True: c.poll(0.1); c.assignment() and print('joined', flush=True)"
)


@pytest.mark.spec("GRP-44")
def test_the_work_of_members_that_are_killed_is_taken_over(broker: Broker) -> None:
    """Three stay, two are killed at work, and five come in their place."""
    topic = new_topic(broker.bootstrap_servers, PARTITIONS)
    numbers = Numbers(broker.bootstrap_servers, topic, PARTITIONS)
    members: list[Member] = [confluent(broker, topic) for _ in range(3)]
    got: list[int] = []
    settle(members, PARTITIONS, got)
    where = (broker.bootstrap_servers, f"group-{topic}", topic)
    with ExitStack() as stack:
        doomed = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-c", DOOMED, *where], stdout=subprocess.PIPE)
            )
            for _ in range(2)
        ]
        until(
            lambda: len(_with_a_share(broker, topic)) == 5,
            lambda: drain(members, got),
            "the others to join",
        )
        for other in doomed:
            assert other.stdout is not None
            assert other.stdout.readline() == b"joined\n"
        numbers.write(400)
        drain(members, got)
        for other in doomed:
            other.send_signal(signal.SIGKILL)
    settle(members, PARTITIONS, got)
    members += [confluent(broker, topic) for _ in range(5)]
    numbers.write(400)
    settle(members, PARTITIONS, got)
    until(lambda: len(got) >= 800, lambda: drain(members, got), "the records")
    close_in_turn(members, PARTITIONS, got)
    assert sorted(got) == list(range(800))


@pytest.mark.spec("GRP-59", "GRP-75")
def test_members_and_offsets_survive_a_restart_of_the_broker(tmp_path: Path) -> None:
    with Broker(SETTINGS, data_dir=tmp_path) as first:
        port = first.bootstrap_servers.rpartition(":")[2]
        topic = new_topic(first.bootstrap_servers, PARTITIONS)
        numbers = Numbers(first.bootstrap_servers, topic, PARTITIONS)
        numbers.write(400)
        member, got = confluent(first, topic), list[int]()
        until(lambda: len(got) == 400, lambda: drain([member], got), "the records")
        member.commit()
    listening = {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    with Broker(SETTINGS | listening, data_dir=tmp_path) as second:
        numbers.write(400)
        until(lambda: len(got) >= 800, lambda: drain([member], got), "the rest")
        assert sorted(got) == list(range(800))
        described = _described(second, topic)
        assert [len(one.assignment.topic_partitions) for one in described.members] == [PARTITIONS]
        member.close()


@pytest.mark.spec("GRP-66", "GRP-47")
def test_offsets_are_committed_in_a_transaction_by_a_member_in_its_epoch(broker: Broker) -> None:
    topic = new_topic(broker.bootstrap_servers, 2)
    member, got = confluent(broker, topic), list[int]()
    settle([member], 2, got)
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"txn-{topic}"}
    )
    producer.init_transactions(WAIT_S)
    offsets = [TopicPartition(topic, 0, 7)]

    def pipe(who: object) -> None:
        producer.begin_transaction()
        producer.produce(topic, b"1", partition=1)
        producer.send_offsets_to_transaction(offsets, who, WAIT_S)
        producer.commit_transaction(WAIT_S)

    stale = member.consumer.consumer_group_metadata()
    pipe(stale)
    assert member.consumer.committed(offsets, WAIT_S)[0].offset == 7
    other = confluent(broker, topic)
    settle([member, other], 2, got)
    offsets = [TopicPartition(topic, 0, 9)]
    with pytest.raises(KafkaException) as refused:
        pipe(stale)
    assert refused.value.args[0].txn_requires_abort()
    producer.abort_transaction(WAIT_S)
    pipe(member.consumer.consumer_group_metadata())
    assert member.consumer.committed(offsets, WAIT_S)[0].offset == 9
    close_in_turn([member, other], 2, got)


@pytest.mark.spec("GRP-48")
def test_a_static_member_that_restarts_disturbs_nobody(broker: Broker) -> None:
    topic = new_topic(broker.bootstrap_servers, PARTITIONS)
    got: list[int] = []
    steady = confluent(broker, topic, group_instance_id="steady")
    coming = confluent(broker, topic, group_instance_id="coming")
    settle([steady, coming], PARTITIONS, got)
    before, kept = coming.assigned_partitions(), steady.assigned_partitions()
    coming.close()
    back = confluent(broker, topic, group_instance_id="coming")
    until(lambda: bool(back.assigned_partitions()), lambda: drain([steady, back], got), "its share")
    assert (back.assigned_partitions(), steady.assigned_partitions()) == (before, kept)
    steady.close()
    back.close()


def test_partitions_that_are_added_are_shared_out(broker: Broker) -> None:
    topic = new_topic(broker.bootstrap_servers, 2)
    got: list[int] = []
    members = [confluent(broker, topic) for _ in range(2)]
    settle(members, 2, got)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, 6)])[topic].result(WAIT_S)
    close_in_turn(members, 6, got)


def test_kafkas_consumer_subscribes_by_a_pattern_the_broker_resolves(
    broker: Broker, java: JavaMembers
) -> None:
    bootstrap = broker.bootstrap_servers
    first = new_topic(bootstrap, 1, "pattern-a1")
    member = java.open("by-pattern", "/pattern-a[0-9]", group_protocol="consumer")
    until(lambda: member.parts() == [f"{first}-0"], member.poll, "the first topic")
    later = new_topic(bootstrap, 2, "pattern-a2")
    new_topic(bootstrap, 1, "pattern-a2-not")
    wanted = {f"{first}-0", f"{later}-0", f"{later}-1"}
    until(lambda: set(member.parts()) == wanted, member.poll, "the topic created later")
    member.close()
    bad = java.open("bad-pattern", "/pattern-(", group_protocol="consumer")
    with pytest.raises(Refused, match="InvalidRegularExpression"):
        until(lambda: False, bad.poll, "the refusal")


@pytest.mark.parametrize("kind", ["java", "confluent"])
def test_a_group_moves_to_the_new_protocol_and_back_while_it_reads(
    broker: Broker, java: JavaMembers, kind: str
) -> None:
    topic = new_topic(broker.bootstrap_servers, PARTITIONS)
    numbers = Numbers(broker.bootstrap_servers, topic, PARTITIONS)
    got: list[int] = []

    def member(protocol: str) -> Member:
        if kind == "java":
            beats = {} if protocol == "consumer" else {"heartbeat_interval_ms": "200"}
            return java.open(f"group-{topic}", topic, group_protocol=protocol, **beats)
        strategy = {"partition_assignment_strategy": "cooperative-sticky"}
        classic = {} if protocol == "consumer" else {**strategy, "heartbeat_interval_ms": 200}
        return confluent(broker, topic, group_protocol=protocol, **classic)

    def replace(members: list[Member], protocol: str, upgrades: bool) -> list[Member]:
        """One after the other, the group at work."""
        members = list(members)
        for at in range(len(members)):
            members.append(member(protocol))
            numbers.write(80)
            settle(members, PARTITIONS, got)
            _retire(members.pop(0), got)
            settle(members, PARTITIONS, got)
            is_last = at == len(members) - 1
            shown = _type(broker, f"group-{topic}")
            assert shown == ("consumer" if upgrades or not is_last else "classic")
        return members

    members: list[Member] = [member("classic") for _ in range(2)]
    numbers.write(80)
    settle(members, PARTITIONS, got)
    assert _type(broker, f"group-{topic}") == "classic"
    members = replace(members, "consumer", upgrades=True)
    members = replace(members, "classic", upgrades=False)
    until(lambda: len(set(got)) >= numbers.written, lambda: drain(members, got), "the records")
    close_in_turn(members, PARTITIONS, got)
    assert set(got) == set(range(numbers.written)), "nothing is lost on the way"


def _retire(member: Member, got: list[int]) -> None:
    got.extend(member.poll())
    member.commit()
    member.close()


# Tools


def test_confluents_admin_describes_such_a_group(broker: Broker) -> None:
    topic = new_topic(broker.bootstrap_servers, PARTITIONS)
    member, got = confluent(broker, topic, client_id="shown"), list[int]()
    settle([member], PARTITIONS, got)
    described = _described(broker, topic)
    assert (described.state.name, described.type.name) == ("STABLE", "CONSUMER")
    [shown] = described.members
    assert (shown.client_id, len(shown.assignment.topic_partitions)) == ("shown", PARTITIONS)
    member.close()


@pytest.mark.spec("GRP-14", "GRP-60")
def test_kafka_consumer_groups_prints_members_state_and_lag(broker: Broker) -> None:
    topic = new_topic(broker.bootstrap_servers, 2)
    Numbers(broker.bootstrap_servers, topic, 2).write(20)
    member, got = confluent(broker, topic, client_id="shown"), list[int]()
    settle([member], 2, got)
    member.consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    group = f"group-{topic}"
    offsets = _tool(broker, group, "--describe").stdout
    [line] = [line for line in offsets.splitlines() if line.split()[1:3] == [topic, "0"]]
    assert line.split()[3:6] == ["3", "10", "7"]
    assert "shown" in line
    members = _tool(broker, group, "--describe", "--members", "--verbose").stdout
    assert f"{topic}:0,1" in members
    state = _tool(broker, group, "--describe", "--state", "--verbose").stdout
    assert "uniform" in state and "Stable" in state
    refused = _tool(broker, group, "--reset-offsets", "--topic", topic, "--to-latest", "--execute")
    assert "inactive" in refused.stdout + refused.stderr
    listed = _tool(broker, "", "--list", "--type").stdout
    assert [group, "Consumer"] in [line.split() for line in listed.splitlines()]
    member.close()
    reset = _tool(broker, group, "--reset-offsets", "--topic", topic, "--to-latest", "--execute")
    rows = [line.split() for line in reset.stdout.splitlines() if topic in line]
    assert sorted(row[2:] for row in rows) == [["0", "10"], ["1", "10"]]


@pytest.mark.spec("GRP-49", "GRP-50")
def test_kafkas_own_dump_reads_every_record_such_a_group_persists(tmp_path: Path) -> None:
    with Broker(SETTINGS, data_dir=tmp_path) as broker:
        bootstrap = broker.bootstrap_servers
        topic = new_topic(bootstrap, PARTITIONS)
        group = f"group-{topic}"
        beats = {"heartbeat_interval_ms": 200}
        classic = ConfluentMember(bootstrap, group, topic, group_protocol="classic", **beats)
        got: list[int] = []
        settle([classic], PARTITIONS, got)
        member = confluent(broker, "^" + topic, group_id=group)
        close_in_turn([member, classic], PARTITIONS, got)
    folders = [path.parent for path in tmp_path.glob("__consumer_offsets-*/*.log") if _has(path)]
    [log] = [path for folder in folders for path in folder.glob("*.log")]
    try:
        printed = kafka_cache.run_tool(
            "kafka-dump-log", "--files", str(log), "--offsets-decoder", "--print-data-log"
        )
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    kinds = {
        json.loads(line.partition(" key: ")[2].partition(" payload: ")[0])["type"]
        for line in printed.stdout.splitlines()
        if " key: {" in line
    }
    assert kinds >= {"2", "3", "4", "5", "6", "7", "8", "16"}, printed.stdout + printed.stderr
    assert "classicMemberMetadata" in printed.stdout


def _has(path: Path) -> bool:
    return path.stat().st_size > 0


def _described(broker: Broker, topic: str) -> ConsumerGroupDescription:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    group = f"group-{topic}"
    found: ConsumerGroupDescription = admin.describe_consumer_groups([group])[group].result(WAIT_S)
    return found


def _with_a_share(broker: Broker, topic: str) -> list[str]:
    members = _described(broker, topic).members
    return [one.member_id for one in members if one.assignment.topic_partitions]


def _type(broker: Broker, group: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    listed = admin.list_consumer_groups().result(WAIT_S).valid
    [kind] = [one.type.name.lower() for one in listed if one.group_id == group]
    return str(kind)


def _tool(broker: Broker, group: str, *args: str) -> subprocess.CompletedProcess[str]:
    named = ("--group", group) if group else ()
    try:
        return kafka_cache.run_tool(
            "kafka-consumer-groups", *args, *named,
            "--bootstrap-server", broker.bootstrap_servers, timeout_s=120,
        )  # fmt: skip
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
