"""What one event has to say, by broker."""

from __future__ import annotations

import pytest

from ottla.controller.effects import LeaderAndIsr, StopReplica, UpdateMetadata
from ottla.controller.request_batch import RequestBatch
from ottla.controller.state import ControllerState
from ottla.model.ids import DELETED_EPOCH, BrokerId, TopicPartition
from tests.controller.transcript import Actor

ONE, TWO, NINE = BrokerId(1), BrokerId(2), BrokerId(9)
T0 = TopicPartition("t", 0)


def cluster() -> ControllerState:
    actor = Actor()
    actor.run("elected 1 1 2 t-0=1,2/1/1,2")
    return actor.state


@pytest.mark.spec("CTL-41")
def test_brokers_that_hear_the_same_share_one_rendering() -> None:
    batch = RequestBatch()
    batch.metadata([ONE, TWO], [T0])
    (send,) = batch.sends(cluster())
    assert isinstance(send, UpdateMetadata)
    assert send.brokers == (ONE, TWO)


@pytest.mark.spec("CTL-18", "CTL-41")
def test_who_lives_comes_before_who_leads_and_stops_come_last() -> None:
    batch = RequestBatch()
    batch.stop(ONE, T0, delete=False)
    batch.metadata([ONE], [T0])
    batch.leader_and_isr([ONE], T0)
    batch.send_live_brokers_first([ONE])
    kinds = [type(send) for send in batch.sends(cluster())]
    assert kinds == [UpdateMetadata, LeaderAndIsr, UpdateMetadata, StopReplica]


def test_a_broker_that_is_gone_is_told_nothing() -> None:
    batch = RequestBatch()
    batch.send_live_brokers_first([NINE])
    batch.leader_and_isr([NINE], T0)
    batch.metadata([NINE], [T0])
    batch.stop(NINE, T0, delete=True)
    assert list(batch.sends(cluster())) == []


def test_once_new_or_to_be_deleted_it_stays_so() -> None:
    batch = RequestBatch()
    batch.leader_and_isr([ONE], T0, is_new=True)
    batch.leader_and_isr([ONE], T0)
    batch.stop(TWO, T0, delete=True)
    batch.stop(TWO, T0, delete=False)
    led, stopped = batch.sends(cluster())
    assert isinstance(led, LeaderAndIsr) and led.partitions[0].is_new
    assert isinstance(stopped, StopReplica) and stopped.replicas[0].delete


@pytest.mark.spec("CTL-52")
def test_a_replica_of_a_topic_being_deleted_is_stopped_whatever_its_epoch() -> None:
    actor = Actor()
    actor.run("elected 1 1 2 t-0=1,2/1/1,2")
    actor.run("delete t")
    batch = RequestBatch()
    batch.stop(ONE, T0, delete=True)
    (send,) = batch.sends(actor.state)
    assert isinstance(send, StopReplica)
    assert send.replicas[0].leader_epoch == DELETED_EPOCH
