"""Partitions of three brokers that are moved, deleted and created again.

The numbers are those of the table of scenarios in docs/reliability.md.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.model.errors import ErrorCode
from tests.cluster.administration import (
    delete_topic,
    is_reassigning,
    reassign,
    replicas_of,
    set_throttle,
    topic_id,
    wait_until_whole,
)
from tests.cluster.load import IMPATIENT, create_topic, produce, values, wait_for_progress
from tests.cluster.process import wait_for
from tests.cluster.shared_cluster import SharedCluster
from tests.cluster.three_brokers import IDS, ThreeBrokers
from tests.raw_requests import FETCH, Line, fetch_fields


@pytest.mark.spec("REP-73")
def test_scenario_21_a_reassignment_under_load_moves_or_is_cancelled_without_loss(
    shared: SharedCluster,
) -> None:
    topic = "scenario-21"
    with shared.healthy() as cluster:
        create_topic(cluster.bootstrap, topic, 1, replicas=2, min_insync_replicas="1")
        with cluster.load(topic, 1, settings=IMPATIENT) as load:
            wait_for_progress(load)
            before = replicas_of(cluster, topic)
            [spare] = set(IDS) - set(before)
            moved = [before[1], spare]
            assert reassign(cluster, topic, moved) is ErrorCode.none
            wait_for(lambda: replicas_of(cluster, topic) == moved, 30, "the replicas to move")
            wait_for_progress(load)
            cluster.wait_until_all_in_sync()
            load.fault("target of a reassignment dead")
            dead = before[0]
            cluster.kill(dead)
            wait_for(lambda: dead not in cluster.registered, 20, "the session to expire")
            assert reassign(cluster, topic, [moved[0], dead]) in (
                ErrorCode.none,
                ErrorCode.invalid_replica_assignment,
            )
            wait_for_progress(load)
            assert set(moved) <= set(cluster.state(topic).isr)
            assert reassign(cluster, topic, None) in (
                ErrorCode.none,
                ErrorCode.no_reassignment_in_progress,
            )
            wait_for(lambda: replicas_of(cluster, topic) == moved, 20, "the cancellation")
            cluster.start(dead)
            wait_for_progress(load)
            cancel_a_move_that_copies(cluster, "copied-21", moved, dead)
            wait_for_progress(load)
        assert load.failures == []
        wait_until_whole(cluster)
        wait_for(lambda: not is_reassigning(cluster), 20, "no move to be left")
        cluster.assert_nothing_lost(load)


def cancel_a_move_that_copies(
    cluster: ThreeBrokers, topic: str, replicas: list[int], target: int
) -> None:
    """The copy that was begun is deleted, and the replicas stay in sync all the time."""
    copy = cluster.brokers[target].dirs[0] / f"{topic}-0"
    create_topic(cluster.bootstrap, topic, [replicas], leader_replication_throttled_replicas="*")
    names = [f"n-{number}" for number in range(50)]
    produce(cluster.bootstrap, topic, names, size=20_000)
    set_throttle(cluster, "20000", sides=("leader",))
    assert reassign(cluster, topic, [replicas[0], target]) is ErrorCode.none
    wait_for(copy.is_dir, 20, "the copy to begin")
    assert is_reassigning(cluster)
    assert set(replicas) <= set(cluster.state(topic).isr)
    assert reassign(cluster, topic, None) is ErrorCode.none
    wait_for(lambda: not is_reassigning(cluster), 20, "the cancellation")
    assert replicas_of(cluster, topic) == replicas
    assert set(cluster.state(topic).isr) == set(replicas)
    wait_for(lambda: not copy.exists(), 30, "the copy to be deleted")
    set_throttle(cluster, None, sides=("leader",))
    assert values(cluster.bootstrap, topic) == names


@pytest.mark.slow
@pytest.mark.spec("CTL-57", "REP-73")
def test_scenario_22_a_topic_deleted_while_it_moves_and_created_again_is_another_topic(
    shared: SharedCluster,
) -> None:
    topic = "scenario-22"
    with shared.healthy() as cluster:
        create_topic(
            cluster.bootstrap,
            topic,
            [[1, 2]],
            leader_replication_throttled_replicas="*",
            follower_replication_throttled_replicas="*",
        )
        produce(cluster.bootstrap, topic, [f"old-{n}" for n in range(100)], size=20_000)
        before = topic_id(cluster, topic)
        set_throttle(cluster, "20000")
        assert reassign(cluster, topic, [2, 3]) is ErrorCode.none
        wait_for(lambda: (cluster.brokers[3].dirs[0] / f"{topic}-0").is_dir(), 20, "the copy")
        assert is_reassigning(cluster)
        delete_topic(cluster, topic)
        set_throttle(cluster, None)
        create_topic(cluster.bootstrap, topic, [[3, 1]])
        after = topic_id(cluster, topic)
        assert after != before
        assert not is_reassigning(cluster)
        for id in IDS:
            assert fetch_by_id(cluster, id, before) is ErrorCode.unknown_topic_id
        produce(cluster.bootstrap, topic, ["new"])
        assert values(cluster.bootstrap, topic) == ["new"]
        wait_until_whole(cluster)
        cluster.assert_replicas_equal()
        cluster.assert_no_tracebacks()


def fetch_by_id(cluster: ThreeBrokers, broker: int, topic: UUID) -> ErrorCode:
    """What another broker's fetch of the topic with that id gets."""
    fields = fetch_fields("", partition=0)
    fields["topics"][0]["topic_id"] = topic
    with Line(cluster.brokers[broker].address) as line:
        reply = line.ask(FETCH, 13, **fields)
    [part] = reply.responses[0].partitions
    return ErrorCode(part.error_code)


@pytest.mark.spec("REP-73")
def test_the_stray_log_of_a_broker_that_missed_a_deletion_is_set_aside(
    shared: SharedCluster,
) -> None:
    topic = "stray"
    with shared.healthy() as cluster:
        create_topic(cluster.bootstrap, topic, 1, replicas=2, min_insync_replicas="1")
        produce(cluster.bootstrap, topic, ["of the earlier topic"])
        staying, away = replicas_of(cluster, topic)
        [spare] = set(IDS) - {staying, away}
        cluster.kill(away)
        wait_for(lambda: away not in cluster.registered, 20, "the session to expire")
        assert reassign(cluster, topic, [staying, spare]) is ErrorCode.none
        wait_for(lambda: replicas_of(cluster, topic) == [staying, spare], 30, "the move")
        delete_topic(cluster, topic)
        cluster.start(away)
        cluster.create_topic(topic, 1)
        produce(cluster.bootstrap, topic, ["of the later topic"])
        assert values(cluster.bootstrap, topic) == ["of the later topic"]
        [data] = cluster.brokers[away].dirs
        assert len(list(data.glob(f"{topic}-0.*-stray"))) == 1
        cluster.assert_replicas_equal()
        cluster.assert_no_tracebacks()
