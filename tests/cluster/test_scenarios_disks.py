"""Disks of three brokers in trouble.

The numbers are those of the table of scenarios in docs/reliability.md.
"""

from __future__ import annotations

import re
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.administration import delete_topic, metric
from tests.cluster.file_systems import BlockDisk, as_root, fill, tmpfs
from tests.cluster.load import IMPATIENT, produce, values, wait_for_progress
from tests.cluster.process import BrokerProcess, wait_for
from tests.cluster.shared_cluster import SharedCluster
from tests.cluster.three_brokers import IDS, ThreeBrokers
from tests.store.zookeeper_server import Ensemble
from tools.nodes import free_ports

NAMES = [f"n-{number}" for number in range(200)]
UNCLEAN = "kafka_controller_controllerstats_unclean_leader_elections_total"


# Power


@as_root
@pytest.mark.slow
def test_scenario_07_flushed_records_survive_when_all_brokers_lose_power_and_a_loss_is_reported(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    flushed, lazy = "flushed", "lazy"
    with ExitStack() as stack:
        disks = {
            id: stack.enter_context(BlockDisk(tmp_path / f"disk-{id}", 128 << 20)) for id in IDS
        }
        cluster = ThreeBrokers(ensemble, tmp_path)
        for id in IDS:
            cluster.brokers[id].dirs = [disks[id].path / "data"]
        stack.enter_context(cluster)
        cluster.create_topic(flushed, flush_before_ack="all")
        cluster.create_topic(lazy, 1)
        with cluster.load(flushed, settings=IMPATIENT) as load:
            for _ in range(3):
                wait_for_progress(load)
                produce(cluster.bootstrap, lazy, NAMES)
                wait_for(lambda: are_checkpointed(cluster, lazy), what="checkpointed watermarks")
                load.fault("all lose power")
                for id in IDS:
                    cluster.kill(id)
                for id in IDS:
                    disks[id].cut_power()
                for id in IDS:
                    cluster.brokers[id].launch()
                cluster.wait_until_ready(*IDS)
                cluster.wait_until_all_in_sync()
        assert load.failures == []
        cluster.assert_nothing_lost(load)
        # What was acknowledged from page caches alone is lost, and every broker says so.
        assert len(values(cluster.bootstrap, lazy)) < 3 * len(NAMES)
        for broker in cluster.brokers.values():
            assert re.search(
                rf"{lazy}-0: the log ends at offset \d+, below its checkpointed high watermark",
                broker.said_ever,
            )


def are_checkpointed(cluster: ThreeBrokers, topic: str) -> bool:
    """Whether every broker has written down that the last records are committed."""
    ends = {checkpointed(broker, topic) for broker in cluster.brokers.values()}
    return len(ends) == 1 and ends != {0} and None not in ends


def checkpointed(broker: BrokerProcess, topic: str) -> int | None:
    path = broker.dirs[0] / "replication-offset-checkpoint"
    found = re.search(rf"^{topic} 0 (\d+)$", path.read_text() if path.exists() else "", re.M)
    return None if found is None else int(found[1])


# Damage


def flip_a_bit(broker: BrokerProcess, topic: str) -> None:
    log = broker.partition_dir(topic) / f"{0:020d}.log"
    with log.open("r+b") as file:
        file.seek(log.stat().st_size // 3)
        [byte] = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte ^ 0x40]))


def call_flushed(broker: BrokerProcess, topic: str, end: int) -> None:
    """Move the recovery point of a broker that is down to the end of the log."""
    path = broker.dirs[0] / "recovery-point-offset-checkpoint"
    version, _, *lines = path.read_text().splitlines() if path.exists() else ("0", "0")
    lines = [line for line in lines if not line.startswith(f"{topic} ")] + [f"{topic} 0 {end}"]
    path.write_text("\n".join([version, str(len(lines)), *lines]) + "\n")


@pytest.mark.spec("REP-55")
def test_scenario_08_a_damaged_log_is_copied_anew_from_the_other_replicas(
    shared: SharedCluster,
) -> None:
    topic = "scenario-08"
    with shared.healthy() as cluster:
        cluster.create_topic(topic, 1)
        produce(cluster.bootstrap, topic, NAMES)
        leader = cluster.leader(topic)
        flipped, cut = (id for id in IDS if id != leader)
        for id in (flipped, cut):
            cluster.kill(id)
        flip_a_bit(cluster.brokers[flipped], topic)
        call_flushed(cluster.brokers[flipped], topic, len(NAMES))
        log = cluster.brokers[cut].partition_dir(topic) / f"{0:020d}.log"
        with log.open("r+b") as file:
            file.truncate(log.stat().st_size - 1000)
        for id in (flipped, cut):
            cluster.brokers[id].launch()
        cluster.wait_until_ready(flipped, cut)
        cluster.wait_until_all_in_sync()
        assert f"the corrupt log of {topic}-0 was renamed" in cluster.brokers[flipped].said
        assert f"{topic}-0: truncated to offset" in cluster.brokers[cut].said
        assert values(cluster.bootstrap, topic) == NAMES
        cluster.assert_replicas_equal()
        cluster.assert_no_tracebacks()


@pytest.mark.slow
@pytest.mark.spec("REP-55")
def test_scenario_08_a_leader_with_a_damaged_log_resigns_and_spreads_nothing(
    shared: SharedCluster,
) -> None:
    topic = "scenario-08-leader"
    with shared.healthy() as cluster:
        cluster.create_topic(topic, 1)
        produce(cluster.bootstrap, topic, NAMES)
        leader = cluster.leader(topic)
        empty = next(id for id in IDS if id != leader)
        cluster.kill(empty)
        wait_for(lambda: empty not in cluster.state(topic).isr, 20, "it to leave")
        shutil.rmtree(cluster.brokers[empty].partition_dir(topic))
        flip_a_bit(cluster.brokers[leader], topic)  # nobody reads there, but who begins anew
        cluster.start(empty)
        assert cluster.wait_for_leader(topic, other_than=leader) not in (leader, empty)
        cluster.wait_until_all_in_sync()
        assert f"the corrupt log of {topic}-0 was renamed" in cluster.brokers[leader].said
        assert values(cluster.bootstrap, topic) == NAMES
        cluster.assert_replicas_equal()
        cluster.assert_no_tracebacks()


@pytest.mark.slow
@pytest.mark.spec("REP-55")
def test_scenario_08_the_last_in_sync_replica_keeps_its_damaged_log_and_stays_offline(
    shared: SharedCluster,
) -> None:
    """No other replica has every record: an operator decides, and nothing is thrown away."""
    topic = "scenario-08-last"
    with shared.healthy() as cluster:
        cluster.create_topic(topic, [[1, 2, 3]], min_insync_replicas="1")
        produce(cluster.bootstrap, topic, NAMES)
        for follower in (2, 3):
            cluster.kill(follower)
        wait_for(lambda: cluster.state(topic).isr == (1,), 20, "two to leave")
        produce(cluster.bootstrap, topic, ["on one broker"])
        last = cluster.brokers[1]
        cluster.kill(1)
        flip_a_bit(last, topic)
        call_flushed(last, topic, len(NAMES) + 1)
        for id in IDS:
            cluster.brokers[id].launch()
        cluster.wait_until_ready(*IDS)
        wait_for(lambda: cluster.leader(topic) == -1, 20, "the partition to go offline")
        cluster.assert_no_tracebacks()
        assert cluster.state(topic).isr == (1,)
        kept = [path.name for path in last.partition_dir(topic).iterdir()]
        assert f"{0:020d}.log.quarantined" in kept
        assert not list(last.dirs[0].glob(f"{topic}-0.*-stray"))
        delete_topic(cluster, topic)


# Lost disks


@pytest.mark.spec("REP-71")
def test_scenario_09_a_broker_with_a_wiped_disk_is_not_elected_and_refills(
    shared: SharedCluster,
) -> None:
    topic = "scenario-09"
    with shared.healthy() as cluster:
        cluster.create_topic(topic)
        with cluster.load(topic) as load:
            wait_for_progress(load)
            wiped = cluster.leader(topic)
            load.fault(f"kill -9 of broker {wiped}, and its disk is wiped")
            cluster.kill(wiped)
            [data] = cluster.brokers[wiped].dirs
            shutil.rmtree(data)
            before = cluster.node(f"/brokers/log_dirs/{wiped}")
            cluster.start(wiped)  # at once: its old session may still be there
            cluster.wait_until_all_in_sync()
            assert cluster.node(f"/brokers/log_dirs/{wiped}") != before
            wait_for_progress(load)
        cluster.assert_nothing_lost(load)
        wait_for(lambda: "it leaves every ISR" in cluster.brokers[wiped].said, 5, "the warning")
        cluster.assert_replicas_equal()


@pytest.mark.slow
@pytest.mark.spec("REP-71")
def test_a_broker_is_replaced_by_another_machine_with_its_id(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    """With empty directories and another address, as docs/operations.md has it."""
    topic = "replaced"
    with ThreeBrokers(ensemble, tmp_path) as cluster:
        cluster.create_topic(topic)
        with cluster.load(topic, settings=IMPATIENT) as load:
            wait_for_progress(load)
            lost = cluster.leader(topic)
            load.fault(f"broker {lost} is lost for good")
            cluster.kill(lost)
            broker = cluster.brokers[lost]
            broker.dirs = [tmp_path / "new-machine"]
            broker.port = free_ports(1, broker.host)[0]
            broker.listeners = [f"PLAINTEXT://{broker.address}"]
            cluster.start(lost)
            cluster.wait_until_all_in_sync()
            cluster.kill(next(id for id in IDS if id != lost))  # it counts: writes go on with it
            wait_for_progress(load)
            for id in IDS:
                if cluster.brokers[id].process.poll() is not None:
                    cluster.start(id)
        assert load.failures == []
        cluster.assert_nothing_lost(load)


@pytest.mark.slow
@pytest.mark.spec("CTL-66", "REP-72")
def test_scenario_10_an_unclean_leader_is_elected_only_where_allowed_and_the_loss_is_reported(
    shared: SharedCluster,
) -> None:
    safe, risky = "scenario-10-safe", "scenario-10-risky"
    with shared.healthy() as cluster:
        replicas = [[1, 2, 3]]
        cluster.create_topic(safe, replicas, min_insync_replicas="1")
        cluster.create_topic(
            risky, replicas, min_insync_replicas="1", unclean_leader_election_enable="true"
        )
        both = [safe, risky]
        for topic in both:
            produce(cluster.bootstrap, topic, ["everywhere"])
        for follower in (2, 3):
            cluster.kill(follower)
        wait_for(lambda: all(cluster.state(t).isr == (1,) for t in both), 20, "two to leave")
        for topic in both:
            produce(cluster.bootstrap, topic, ["on one broker"])
        wait_for(lambda: checkpointed(cluster.brokers[1], risky) == 2, what="its high watermark")
        cluster.kill(1)
        for follower in (2, 3):
            cluster.start(follower)
        assert cluster.wait_for_leader(risky, other_than=1) in (2, 3)
        assert cluster.leader(safe) == -1
        controller = cluster.brokers[cluster.wait_for_controller(other_than=1)]
        wait_for(lambda: metric(controller, UNCLEAN) == 1, 10, "the metric")
        assert f"unclean leader election: partition {risky}-0" in controller.said
        assert f"unclean leader election: partition {safe}-0" not in controller.said
        produce(cluster.bootstrap, risky, ["later"])
        cluster.start(1)
        cluster.wait_until_all_in_sync()
        assert values(cluster.bootstrap, safe) == ["everywhere", "on one broker"]
        assert values(cluster.bootstrap, risky) == ["everywhere", "later"]
        lost = f"truncating {risky}-0 from 2 to 1, below its high watermark 2"
        assert lost in cluster.brokers[1].said
        cluster.assert_replicas_equal()


@as_root
@pytest.mark.slow
@pytest.mark.spec("REP-74", "CTL-62")
def test_scenario_27_partitions_of_a_failed_directory_fail_over_and_the_others_stay(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    topic = "scenario-27"
    with BlockDisk(tmp_path / "disk") as disk:
        cluster = ThreeBrokers(ensemble, tmp_path)
        broker = cluster.brokers[1]
        broker.dirs = [tmp_path / "sound", disk.path / "data"]
        with cluster:
            cluster.create_topic(topic, [[1, 2, 3]] * 4)
            lost = [n for n in range(4) if (broker.dirs[1] / f"{topic}-{n}").is_dir()]
            assert len(lost) == 2
            with cluster.load(topic, 4, settings=IMPATIENT) as load:
                wait_for_progress(load)
                load.fault("a directory fails")
                disk.fail()
                for number in lost:
                    cluster.wait_for_leader(topic, number, other_than=1)
                wait_for(
                    lambda: all(1 not in cluster.state(topic, n).isr for n in lost), 20, "it to go"
                )
                wait_for_progress(load)
                kept = [n for n in range(4) if n not in lost]
                assert [cluster.leader(topic, n) for n in kept] == [1, 1]
                assert broker.process.poll() is None
                # A new disk: the broker starts with it, and its replicas are copied again.
                assert broker.terminate() == 0
                disk.replace()
                cluster.start(1)
                cluster.wait_until_all_in_sync()
                wait_for_progress(load)
            assert load.failures == []
            cluster.assert_nothing_lost(load)


@as_root
@pytest.mark.slow
def test_scenario_28_a_broker_whose_disk_is_full_fails_over_and_comes_back_with_more_space(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    topic = "scenario-28"
    with tmpfs(tmp_path / "disk", "48m") as disk:
        cluster = ThreeBrokers(ensemble, tmp_path)
        broker = cluster.brokers[1]
        broker.dirs = [disk / "data"]
        with cluster:
            cluster.create_topic(topic, [[1, 2, 3], [2, 3, 1]])
            with cluster.load(topic, 2, settings=IMPATIENT) as load:
                wait_for_progress(load)
                load.fault("disk full")
                fill(disk)
                assert broker.ends() == 1
                assert "every log directory failed" in broker.said
                cluster.wait_for_leader(topic, other_than=1)
                wait_for_progress(load)
                (disk / "filler").unlink()
                cluster.start(1)
                cluster.wait_until_all_in_sync()
                wait_for_progress(load)
            assert load.failures == []
            cluster.assert_nothing_lost(load)
