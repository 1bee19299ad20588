"""Leaders of three brokers that die, are cut off, or are stopped, under load.

The numbers are those of the table of scenarios in docs/reliability.md.
"""

from __future__ import annotations

import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.records.batch import walk
from tests.cluster.administration import set_throttle, topic_id
from tests.cluster.load import IMPATIENT, Load, produce, values, wait_for_progress
from tests.cluster.process import wait_for
from tests.cluster.shared_cluster import SharedCluster
from tests.cluster.three_brokers import IDS, SESSION_MS, ThreeBrokers
from tests.raw_requests import PRODUCE, Line, batch, produce_fields
from tests.store.zookeeper_server import Ensemble

TOPIC = "load"
BESIDE = "beside"
FAILOVER_S = 4.0
"""1.5 s on a machine that does nothing else; here the tests share it with others."""
ALTER_PARTITION = 56
FENCED = {ErrorCode.stale_broker_epoch, ErrorCode.fenced_leader_epoch}
UNACKNOWLEDGED = {
    ErrorCode.request_timed_out,
    ErrorCode.not_enough_replicas,
    ErrorCode.not_enough_replicas_after_append,
}


def wait_for_acknowledgement(load: Load, partition: int, since_ns: int) -> float:
    """How many seconds after `since_ns` a record of the partition was acknowledged."""
    wait_for(
        lambda: bool(load.acknowledgements(partition, since_ns)),
        30,
        f"an acknowledgement of partition {partition}",
    )
    return (load.acknowledgements(partition, since_ns)[0] - since_ns) / 1e9


def produce_directly(
    cluster: ThreeBrokers,
    broker: int,
    topic: str = BESIDE,
    *,
    value: str = "direct",
    acks: int = -1,
) -> ErrorCode:
    """What one broker answers to a record for the topic beside that of the load."""
    fields = produce_fields(topic, batch(value))
    with Line(cluster.brokers[broker].address) as line:
        reply = line.ask(PRODUCE, 9, **{**fields, "timeout": 500, "acks": acks})
    [[part]] = [topic.partition_responses for topic in reply.responses]
    return ErrorCode(part.error_code)


@pytest.mark.spec("REP-23", "CTL-46")
def test_scenario_01_kill_of_a_leader_loses_nothing_and_writes_go_on(shared: SharedCluster) -> None:
    topic = "scenario-01"
    with shared.healthy() as cluster:
        cluster.create_topic(topic)
        with cluster.load(topic, settings=IMPATIENT) as load:
            wait_for_progress(load)
            leader = cluster.leader(topic)
            load.fault("kill -9")
            cluster.kill(leader)
            wait_for(lambda: leader not in cluster.registered, 10, "the session to expire")
            gone_ns = time.monotonic_ns()
            failover_s = wait_for_acknowledgement(load, 0, gone_ns)
            print(f"first acknowledgement {failover_s:.3f} s after the node was gone")
            assert failover_s < FAILOVER_S
            cluster.start(leader)
            wait_for_progress(load)
        assert load.failures == []
        cluster.assert_nothing_lost(load)


@pytest.mark.spec("REP-21")
def test_scenario_02_a_leader_cut_off_from_followers_acknowledges_nothing_and_stays(
    shared: SharedCluster,
) -> None:
    topic = "scenario-02"
    with shared.healthy() as cluster:
        cluster.create_topic(topic)
        cluster.create_topic(BESIDE, 1)
        with cluster.load(topic, settings=IMPATIENT) as load:
            wait_for_progress(load)
            leader, epoch, _ = cluster.state(BESIDE)
            load.fault("leader cut off from the brokers")
            cluster.isolate_from_brokers(leader)
            deadline = time.monotonic() + 2 * SESSION_MS / 1e3
            while time.monotonic() < deadline:
                assert produce_directly(cluster, leader) in UNACKNOWLEDGED
                assert cluster.state(BESIDE)[:2] == (leader, epoch)
            cluster.heal()
            cluster.wait_until_all_in_sync()
            wait_for_progress(load)
        assert load.failures == []
        cluster.assert_nothing_lost(load)


@pytest.mark.spec("REP-39")
def test_scenario_03_a_leader_cut_off_from_zookeeper_is_replaced_and_truncates(
    shared: SharedCluster,
) -> None:
    topic, beside = "scenario-03", "beside-03"
    with shared.healthy() as cluster:
        cluster.create_topic(topic)
        leader = cluster.leader(topic)
        cluster.create_topic(beside, [[leader, *(id for id in IDS if id != leader)]])
        produce(cluster.bootstrap, beside, ["before"])
        before = cluster.state(beside).leader_epoch, cluster.broker_epoch(leader)
        with cluster.load(topic, settings=IMPATIENT) as load:
            wait_for_progress(load)
            assert cluster.leader(topic) == cluster.leader(beside) == leader
            load.fault("leader cut off from ZooKeeper")
            cluster.isolate_from_zookeeper(leader)
            wait_for_progress(load)  # it goes on until another is elected
            new = cluster.wait_for_leader(topic, other_than=leader)
            elected_ns = time.monotonic_ns()
            assert new != leader
            wait_for_acknowledgement(load, 0, elected_ns)
            cluster.wait_for_leader(beside, other_than=leader)
            # It may lead for all it knows, so it writes; but it may neither acknowledge, after the
            # timeout, nor shrink the set. Out of contact it does not say REQUEST_TIMED_OUT, after
            # which clients would not look for its successor.
            alone = produce_directly(cluster, leader, beside, value="alone", acks=1)
            assert alone is ErrorCode.none, "as in Kafka"
            assert produce_directly(cluster, leader, beside) is ErrorCode.not_leader_or_follower
            assert propose_itself_alone(cluster, leader, beside, *before) in FENCED
            assert leader not in (cluster.leader(beside), cluster.controller)
            # A client that knows no broker but the one cut off would not learn of the others.
            produce(cluster.brokers[cluster.leader(beside)].address, beside, ["after"])
            cluster.heal()
            cluster.wait_until_all_in_sync()
            wait_for_progress(load)
        assert values(cluster.bootstrap, beside) == ["before", "after"], "it truncates"
        assert load.failures == []
        cluster.assert_nothing_lost(load)


def propose_itself_alone(
    cluster: ThreeBrokers, leader: int, topic: str, leader_epoch: int, broker_epoch: int
) -> ErrorCode:
    """What the controller answers to an AlterPartition of this leader, with these epochs."""
    partition = {
        "partition_index": 0,
        "leader_epoch": leader_epoch,
        "new_isr_with_epochs": [{"broker_id": leader, "broker_epoch": broker_epoch}],
        "leader_recovery_state": 0,
        "partition_epoch": 0,
    }
    topics = [{"topic_id": topic_id(cluster, topic), "partitions": [partition]}]
    with Line(cluster.brokers[cluster.wait_for_controller()].address) as line:
        reply = line.ask(
            ALTER_PARTITION, 3, broker_id=leader, broker_epoch=broker_epoch, topics=topics
        )
    if reply.error_code != ErrorCode.none:
        return ErrorCode(reply.error_code)
    return ErrorCode(reply.topics[0].partitions[0].error_code)


@pytest.mark.slow
def test_scenario_04_two_failovers_within_a_second_leave_equal_logs(shared: SharedCluster) -> None:
    topic = "scenario-04"
    with shared.healthy() as cluster:
        last = cluster.wait_for_controller()  # which moves the leaders
        first, second = (id for id in IDS if id != last)
        cluster.create_topic(topic, [[first, second, last]] * 3)
        with cluster.load(topic, settings=IMPATIENT) as load:
            wait_for_progress(load)
            epoch = cluster.state(topic).leader_epoch
            load.fault("kill -9, then SIGTERM of the next leader")
            cluster.kill(first)
            assert cluster.wait_for_leader(topic, other_than=first) == second
            began = time.monotonic()
            cluster.brokers[second].signal(signal.SIGTERM)
            assert cluster.wait_for_leader(topic, other_than=second) == last
            between_s = time.monotonic() - began
            print(f"two leaders elected within {between_s:.3f} s")
            assert between_s < FAILOVER_S  # 1 s on a machine that does nothing else
            assert cluster.brokers[second].ends() == 0
            assert cluster.state(topic).leader_epoch >= epoch + 2
            cluster.brokers[first].launch()
            cluster.brokers[second].launch()
            cluster.wait_until_ready(first, second)
            cluster.wait_until_all_in_sync()
            wait_for_progress(load)
        assert load.failures == []
        cluster.assert_nothing_lost(load)


@pytest.mark.spec("REP-39", "REP-69")
def test_scenario_05_a_follower_with_a_stale_high_watermark_keeps_committed_records(
    shared: SharedCluster,
) -> None:
    names = [f"n-{number}" for number in range(200)]
    topic = "scenario-05"
    with shared.healthy() as cluster:
        cluster.create_topic(topic, 1)
        produce(cluster.bootstrap, topic, names)
        leader, _, _ = cluster.state(topic)
        stale, third = (id for id in IDS if id != leader)
        cluster.kill(stale)
        checkpoint = cluster.brokers[stale].dirs[0] / "replication-offset-checkpoint"
        checkpoint.write_text("0\n0\n")
        cluster.start(stale)
        cluster.wait_until_all_in_sync()
        cluster.kill(third)
        wait_for(lambda: third not in cluster.state(topic).isr, 20, "the third to leave")
        cluster.kill(leader)
        assert cluster.wait_for_leader(topic, other_than=leader) == stale
        cluster.start(third)
        cluster.start(leader)
        cluster.wait_until_all_in_sync()
        assert values(cluster.bootstrap, topic) == names
        cluster.assert_replicas_equal()
        cluster.assert_no_tracebacks()


@pytest.mark.slow
def test_scenario_06_a_sole_in_sync_leader_that_dies_keeps_its_partition_offline_until_it_returns(
    shared: SharedCluster,
) -> None:
    topic = "scenario-06"
    with shared.healthy() as cluster:
        cluster.create_topic(topic, 1, min_insync_replicas="1")
        leader = cluster.leader(topic)
        followers = [id for id in IDS if id != leader]
        for follower in followers:
            cluster.kill(follower)
        wait_for(lambda: cluster.state(topic).isr == (leader,), 20, "followers to leave")
        produce(cluster.bootstrap, topic, ["alone"])
        cluster.kill(leader)
        for follower in followers:
            cluster.start(follower)
        time.sleep(2 * SESSION_MS / 1e3)
        assert cluster.leader(topic) in (-1, leader)
        cluster.start(leader)
        cluster.wait_until_all_in_sync()
        assert values(cluster.bootstrap, topic) == ["alone"]
        cluster.assert_replicas_equal()


@pytest.mark.spec("CTL-76")
def test_scenario_17_a_controlled_shutdown_fails_no_produce(shared: SharedCluster) -> None:
    topic = "scenario-17"
    with shared.healthy() as cluster:
        cluster.create_topic(topic)
        with cluster.load(topic, settings=IMPATIENT) as load:
            wait_for_progress(load)
            leader = cluster.leader(topic)
            began_ns = time.monotonic_ns()
            load.fault("SIGTERM")
            assert cluster.brokers[leader].terminate() == 0
            wait_for_progress(load)
            times = load.acknowledgements(0, began_ns - 200_000_000)
            cluster.start(leader)
            cluster.wait_until_all_in_sync()
        assert load.failures == []
        pause_s = max(later - earlier for earlier, later in pairwise(times)) / 1e9
        print(f"longest pause between acknowledgements: {pause_s:.3f} s")
        assert pause_s < FAILOVER_S  # 0.2 s on a machine that does nothing else
        cluster.assert_nothing_lost(load)


@pytest.mark.spec("CTL-76")
def test_scenario_18_no_error_reaches_the_application_in_a_rolling_restart(
    shared: SharedCluster,
) -> None:
    topic = "scenario-18"
    with shared.healthy() as cluster:
        cluster.create_topic(topic)
        with cluster.load(topic) as load:
            wait_for_progress(load)
            cluster.roll(lambda: wait_for_progress(load))
        assert load.failures == []
        cluster.assert_nothing_lost(load)


@pytest.mark.slow
def test_scenario_19_a_stopped_follower_leaves_the_in_sync_set_and_comes_back(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    settings = {"zookeeper.session.timeout.ms": "4000"}
    with ThreeBrokers(ensemble, tmp_path, settings) as cluster:
        cluster.create_topic(TOPIC, 1)
        leader = cluster.leader(TOPIC)
        slow = next(id for id in IDS if id not in (leader, cluster.controller))
        # A replica of it that is not in sync is as slow as if it had a slow disk.
        order = [[leader, *(id for id in IDS if id != leader)]]
        cluster.create_topic(BESIDE, order, leader_replication_throttled_replicas="*")
        set_throttle(cluster, "1000000", sides=("leader",))
        with cluster.load(TOPIC, 1, settings=IMPATIENT) as load:
            wait_for_progress(load)
            began = time.monotonic()
            cluster.pause(slow)
            wait_for(lambda: slow not in cluster.state(TOPIC).isr, 20, "it to leave")
            assert time.monotonic() - began < 1.5 * 1.5 + 1.0
            wait_for_progress(load)
            wait_for(lambda: slow not in cluster.state(BESIDE).isr, 20, "it to leave")
            produce(cluster.bootstrap, BESIDE, [f"n-{n}" for n in range(200)], size=20_000)
            began, caught_up_s = time.monotonic(), 0.0
            cluster.resume(slow)
            while slow not in cluster.state(BESIDE).isr:
                assert time.monotonic() - began < 60, f"{slow} does not rejoin"
                if log_end(cluster, slow, BESIDE) < 200:
                    caught_up_s = time.monotonic() - began
            assert log_end(cluster, slow, BESIDE) == 200, "it rejoined below the high watermark"
            assert caught_up_s > 1, "it was not slow at all"
            wait_for_progress(load)
            set_throttle(cluster, None, sides=("leader",))
            cluster.wait_until_all_in_sync()
        assert load.failures == []
        cluster.assert_nothing_lost(load)


def log_end(cluster: ThreeBrokers, broker: int, topic: str) -> int:
    """The offset after the last whole batch in a broker's log, read from its files."""
    folder = cluster.brokers[broker].partition_dir(topic)
    last = max(folder.glob("*.log"))
    ends = [header.last_offset + 1 for _, header in walk(memoryview(last.read_bytes()))]
    return ends[-1] if ends else int(last.stem)


@pytest.mark.slow
def test_scenario_20_a_link_that_passes_in_one_direction_only_acknowledges_nothing_twice(
    shared: SharedCluster,
) -> None:
    topic = "scenario-20"
    with shared.healthy() as cluster:
        cluster.create_topic(topic)
        with cluster.load(topic, settings=IMPATIENT) as load:
            for towards_follower in (True, False, True):
                wait_for_progress(load)
                leader = cluster.leader(topic)
                # The leader must reach the controller, or the in-sync set cannot lose anybody.
                follower = next(id for id in IDS if id not in (leader, cluster.controller))
                source, deaf = (leader, follower) if towards_follower else (follower, leader)
                load.fault(f"{deaf} does not hear {source}")
                epoch = cluster.state(topic).leader_epoch
                cluster.cut(source, deaf)
                wait_for(lambda: follower not in cluster.state(topic).isr, 20, "it to leave")  # noqa: B023
                wait_for_progress(load)
                assert cluster.state(topic)[:2] == (leader, epoch), "nobody else leads"
                cluster.heal()
                cluster.wait_until_all_in_sync()
        assert load.failures == []
        cluster.assert_nothing_lost(load)
