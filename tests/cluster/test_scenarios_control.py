"""Controllers, sessions, reassignments and coordinators of three brokers in trouble.

The numbers are those of the table of scenarios in docs/reliability.md.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from ottla.model.errors import ErrorCode
from tests.asking import Line
from tests.cluster.load import SOON, create_topic, produce, values, wait_for_progress
from tests.cluster.process import wait_for
from tests.cluster.three_brokers import IDS, SESSION_MS, ThreeBrokers, name_of
from tests.store.zookeeper_server import Ensemble

TOPIC = "load"
TRANSACTION_STATE = "__transaction_state"
ALTER_REASSIGNMENTS = 45
FIND_COORDINATOR = 10
IMPATIENT = {
    "request.timeout.ms": 1000,
    "socket.timeout.ms": 2000,
    "retry.backoff.max.ms": 200,  # the brokers are judged, not a client's back-off of a second
}


@pytest.mark.spec("CTL-01", "CTL-20", "CTL-24")
def test_scenario_11_a_controller_paused_past_its_session_is_replaced_for_good(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    with ThreeBrokers(ensemble, tmp_path) as cluster:
        cluster.create_topic(TOPIC)
        with cluster.load(TOPIC, settings=IMPATIENT) as load:
            wait_for_progress(load)
            old, epoch = cluster.wait_for_controller(), cluster.controller_epoch
            load.fault("SIGSTOP")
            cluster.pause(old)
            new = cluster.wait_for_controller(other_than=old)
            wait_for(lambda: cluster.leader(TOPIC) != old, 20, "partitions to move")
            load.fault("SIGCONT")
            cluster.resume(old)
            wait_for(lambda: old in cluster.registered, 20, "it to register again")
            cluster.wait_until_all_in_sync()
            assert cluster.controller == new
            assert cluster.controller_epoch == epoch + 1
            cluster.create_topic("after")
            wait_for_progress(load)
        assert load.failures == []
        cluster.assert_nothing_lost(load)


@pytest.mark.slow
def test_scenario_13_the_data_path_goes_on_while_zookeeper_has_no_quorum(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    with ThreeBrokers(ensemble, tmp_path) as cluster:
        cluster.create_topic(TOPIC)
        with cluster.load(TOPIC, settings=IMPATIENT) as load:
            wait_for_progress(load)
            load.fault("ZooKeeper without quorum")
            for server in ensemble.servers[:2]:
                server.kill()
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                wait_for_progress(load)
                time.sleep(1)
            ensemble.restore()
            cluster.wait_until_all_in_sync()
            wait_for_progress(load)
        assert load.failures == []
        cluster.assert_nothing_lost(load)


@pytest.mark.spec("CTL-23")
def test_scenario_14_a_broker_registers_again_although_its_old_node_is_still_there(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    with ThreeBrokers(ensemble, tmp_path) as cluster:
        cluster.create_topic(TOPIC)
        bounced = next(id for id in IDS if id != cluster.controller)
        cluster.kill(bounced)
        assert bounced in cluster.registered  # the node of its earlier life
        cluster.start(bounced)
        cluster.wait_until_all_in_sync()
        expired = cluster.controller
        process = cluster.brokers[expired].process
        cluster.isolate_from_zookeeper(expired)
        wait_for(lambda: expired not in cluster.registered, 20, "its session to expire")
        cluster.heal()
        cluster.wait_until_all_in_sync()
        assert cluster.brokers[expired].process is process
        assert process.poll() is None
        produce(cluster.bootstrap, TOPIC, ["a"])
        cluster.assert_no_tracebacks()


@pytest.mark.slow
def test_scenario_15_a_broker_that_bounces_faster_than_watches_is_treated_as_gone(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    with ThreeBrokers(ensemble, tmp_path) as cluster:
        cluster.create_topic(TOPIC)
        with cluster.load(TOPIC, settings=IMPATIENT) as load:
            for id in IDS:
                wait_for_progress(load)
                epoch = max(cluster.state(TOPIC, number).leader_epoch for number in range(3))
                cluster.kill(id)
                cluster.start(id)
                cluster.wait_until_all_in_sync()
                assert max(cluster.state(TOPIC, n).leader_epoch for n in range(3)) > epoch
        assert load.failures == []
        cluster.assert_nothing_lost(load)


# Reassignment


def reassign(cluster: ThreeBrokers, topic: str, replicas: list[int] | None) -> ErrorCode:
    """Ask for other replicas of the first partition, until a controller answers; None cancels."""
    codes: list[ErrorCode] = []

    def has_answered() -> bool:
        codes.append(_reassign(cluster, topic, replicas))
        return codes[-1] is not ErrorCode.not_controller

    wait_for(has_answered, 30, "the controller")
    return codes[-1]


def _reassign(cluster: ThreeBrokers, topic: str, replicas: list[int] | None) -> ErrorCode:
    partition = {"partition_index": 0, "replicas": replicas}
    fields = {"timeout": 10_000, "topics": [{"name": topic, "partitions": [partition]}]}
    try:
        with Line(cluster.brokers[cluster.wait_for_controller()].address) as line:
            reply = line.ask(ALTER_REASSIGNMENTS, 0, **fields)
    except OSError:
        return ErrorCode.not_controller
    if reply.error_code != ErrorCode.none:
        return ErrorCode(reply.error_code)
    [[part]] = [response.partitions for response in reply.responses]
    return ErrorCode(part.error_code)


def replicas_of(cluster: ThreeBrokers, topic: str) -> list[int]:
    return next(
        found for name, number, found in cluster.partitions() if (name, number) == (topic, 0)
    )


@pytest.mark.spec("REP-73")
def test_scenario_21_a_reassignment_under_load_moves_or_is_cancelled_without_loss(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    with ThreeBrokers(ensemble, tmp_path, {"min.insync.replicas": "1"}) as cluster:
        create_topic(cluster.bootstrap, TOPIC, 1, replicas=2)
        with cluster.load(TOPIC, 1, settings=IMPATIENT) as load:
            wait_for_progress(load)
            before = replicas_of(cluster, TOPIC)
            [spare] = set(IDS) - set(before)
            moved = [before[1], spare]
            assert reassign(cluster, TOPIC, moved) is ErrorCode.none
            wait_for(lambda: replicas_of(cluster, TOPIC) == moved, 30, "the replicas to move")
            wait_for_progress(load)
            cluster.wait_until_all_in_sync()
            load.fault("target of a reassignment dead")
            dead = before[0]
            cluster.kill(dead)
            wait_for(lambda: dead not in cluster.registered, 20, "the session to expire")
            assert reassign(cluster, TOPIC, [moved[0], dead]) in (
                ErrorCode.none,
                ErrorCode.invalid_replica_assignment,
            )
            wait_for_progress(load)
            assert set(moved) <= set(cluster.state(TOPIC).isr)
            assert reassign(cluster, TOPIC, None) in (
                ErrorCode.none,
                ErrorCode.no_reassignment_in_progress,
            )
            wait_for(lambda: replicas_of(cluster, TOPIC) == moved, 20, "the cancellation")
            cluster.start(dead)
            wait_for_progress(load)
        assert load.failures == []
        cluster.assert_nothing_lost(load)


@pytest.mark.spec("REP-73")
def test_the_stray_log_of_a_broker_that_missed_a_deletion_is_set_aside(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    with ThreeBrokers(ensemble, tmp_path, {"min.insync.replicas": "1"}) as cluster:
        create_topic(cluster.bootstrap, TOPIC, 1, replicas=2)
        produce(cluster.bootstrap, TOPIC, ["of the earlier topic"])
        staying, away = replicas_of(cluster, TOPIC)
        [spare] = set(IDS) - {staying, away}
        cluster.kill(away)
        wait_for(lambda: away not in cluster.registered, 20, "the session to expire")
        assert reassign(cluster, TOPIC, [staying, spare]) is ErrorCode.none
        wait_for(lambda: replicas_of(cluster, TOPIC) == [staying, spare], 30, "the move")
        delete_topic(cluster, TOPIC)
        cluster.start(away)
        cluster.create_topic(TOPIC, 1)
        produce(cluster.bootstrap, TOPIC, ["of the later topic"])
        assert values(cluster.bootstrap, TOPIC) == ["of the later topic"]
        [data] = cluster.brokers[away].dirs
        assert len(list(data.glob(f"{TOPIC}-0.*-stray"))) == 1
        cluster.assert_replicas_equal()
        cluster.assert_no_tracebacks()


def delete_topic(cluster: ThreeBrokers, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **SOON})
    [deleted] = admin.delete_topics([topic]).values()
    deleted.result(30)
    wait_for(lambda: topic not in cluster.children("/brokers/topics"), 30, "the deletion")


# Transactions


def coordinator_of(cluster: ThreeBrokers, transactional_id: str) -> int:
    with Line(cluster.brokers[1].address) as line:
        reply = line.ask(FIND_COORDINATOR, 4, key_type=1, coordinator_keys=[transactional_id])
    [found] = reply.coordinators
    return int(found.node_id) if found.error_code == ErrorCode.none else -1


def transactional_id_of(cluster: ThreeBrokers, leader: int) -> str:
    """An id whose coordinator is not the leader of the data."""

    def found() -> list[str]:
        names = [f"id-{number}" for number in range(20)]
        return [name for name in names if coordinator_of(cluster, name) not in (-1, leader)]

    wait_for(lambda: bool(found()), 30, "a coordinator")
    return found()[0]


def committed(cluster: ThreeBrokers, topic: str, count: int) -> list[str]:
    """The values that a reader of committed data gets, `count` of them at least."""
    settings: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "nobody",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        **SOON,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    found: list[str] = []
    deadline = time.monotonic() + 30
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} committed records"
        found += [
            (message.value() or b"").decode()
            for message in consumer.consume(100, 0.2)
            if message.error() is None
        ]
    consumer.close()
    return found


@pytest.mark.spec("TXN-36")
def test_scenario_24_a_decided_transaction_is_finished_once_by_the_next_coordinator(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    with ThreeBrokers(ensemble, tmp_path) as cluster:
        cluster.create_topic(TOPIC)
        # The controller must hear the coordinator, or the in-sync set cannot lose the leader.
        partition = next(n for n in range(3) if cluster.leader(TOPIC, n) != cluster.controller)
        leader = cluster.leader(TOPIC, partition)
        id = transactional_id_of(cluster, leader)
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "transactional.id": id,
                "transaction.timeout.ms": 60_000,
                **SOON,
                "socket.timeout.ms": 20_000,  # until the leader has left the in-sync set
            }
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        names = [f"n-{number}" for number in range(10)]
        for name in names:
            producer.produce(TOPIC, name.encode(), partition=partition)
        assert producer.flush(30) == 0
        coordinator = coordinator_of(cluster, id)
        assert coordinator != leader
        # The decision is replicated to the third broker; markers do not reach the leader.
        cluster.proxies.isolate(name_of(coordinator), name_of(leader))
        producer.commit_transaction(30)
        cluster.kill(coordinator)
        cluster.heal()
        assert committed(cluster, TOPIC, len(names)) == names
        cluster.start(coordinator)
        cluster.wait_until_all_in_sync()
        producer.begin_transaction()
        producer.produce(TOPIC, b"next", partition=partition)
        producer.commit_transaction(30)
        assert committed(cluster, TOPIC, len(names) + 1) == [*names, "next"]
        cluster.assert_replicas_equal()
        cluster.assert_no_tracebacks()


@pytest.mark.slow
def test_brokers_start_in_any_order_and_after_all_were_killed(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    with ThreeBrokers(ensemble, tmp_path) as cluster:
        cluster.create_topic(TOPIC, 1)
        produce(cluster.bootstrap, TOPIC, ["a", "b"])
        for order in ((3, 1, 2), (2, 3, 1)):
            for id in IDS:
                cluster.kill(id)
            for id in order:
                cluster.start(id)
            cluster.wait_until_all_in_sync()
            assert values(cluster.bootstrap, TOPIC) == ["a", "b"]
        cluster.assert_replicas_equal()


@pytest.mark.slow
def test_two_faults_at_once_lose_nothing(ensemble: Ensemble, tmp_path: Path) -> None:
    with ThreeBrokers(ensemble, tmp_path) as cluster:
        cluster.create_topic(TOPIC)
        with cluster.load(TOPIC, settings=IMPATIENT) as load:
            wait_for_progress(load)
            leader = cluster.leader(TOPIC)
            paused = next(id for id in IDS if id != leader)
            load.fault("kill -9 and SIGSTOP")
            cluster.brokers[paused].signal(signal.SIGSTOP)
            cluster.kill(leader)
            time.sleep(2 * SESSION_MS / 1e3)
            cluster.resume(paused)
            cluster.start(leader)
            cluster.wait_until_all_in_sync()
            wait_for_progress(load)
        assert load.failures == []
        cluster.assert_nothing_lost(load)
