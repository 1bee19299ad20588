"""Our producer while its broker is killed and comes back: nothing lost, doubled or out of order."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from random import Random

import pytest

import ottla
from ottla.client.producer.delivery import Delivery
from tests.cluster.load import create_topic
from tests.cluster.process import BrokerProcess, wait_for
from tests.interop.producer_rig import read

TOPIC = "load"
PARTITIONS = 3


class Writer:
    """Sends numbered records, as fast as it can, until told to stop."""

    def __init__(self, producer: ottla.Producer) -> None:
        self._producer = producer
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.sent: list[list[Delivery]] = [[] for _ in range(PARTITIONS)]
        self.acknowledged = 0

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *about: object) -> None:
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        number = 0
        while not self._stop.is_set():
            partition = number % PARTITIONS
            value = b"%d" % (number // PARTITIONS)
            delivery = self._producer.send(TOPIC, value, partition=partition)
            delivery.add_done_callback(self._count)
            self.sent[partition].append(delivery)
            number += 1
            if number % 50 == 0:
                time.sleep(0.001)  # a load, not a race with the disk

    def _count(self, delivery: Delivery) -> None:
        self.acknowledged += delivery.exception(0) is None


def kill_under_load(folder: Path, cycles: int, seed: int) -> None:
    dice = Random(seed)
    with BrokerProcess(folder) as broker:
        create_topic(broker.address, TOPIC, PARTITIONS)
        with ottla.Producer(
            bootstrap_servers=broker.address, batch_size=2_000, linger_ms=1
        ) as producer:
            with Writer(producer) as writer:
                for _ in range(cycles):
                    seen = writer.acknowledged
                    wait_for(lambda: writer.acknowledged > seen + 300, what="acknowledgements")  # noqa: B023
                    time.sleep(dice.uniform(0, 0.2))
                    broker.kill()
                    broker.start()
            producer.flush(60)
        retried = producer.metrics()["record-retry-total"]
        found = read(broker.address, TOPIC)
    assert retried > 0, "the kills met no batch on its way"
    for partition, deliveries in enumerate(writer.sent):
        mine = [each for each in found if each.partition == partition]
        assert [each.value for each in mine] == [b"%d" % n for n in range(len(deliveries))]
        assert [each.result(0).offset for each in deliveries] == [each.offset for each in mine]


@pytest.mark.spec("TXN-06", "TXN-08", "TXN-11", "PRD-50", "PRD-51")
@pytest.mark.timeout(120)
def test_nothing_is_lost_doubled_or_out_of_order_when_the_broker_is_killed_under_load(
    tmp_path: Path,
) -> None:
    kill_under_load(tmp_path, cycles=3, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_thirty_kills_in_a_row_lose_and_double_nothing(tmp_path: Path) -> None:
    kill_under_load(tmp_path, cycles=30, seed=2)


@pytest.mark.spec("TXN-17", "TXN-37")
@pytest.mark.timeout(120)
def test_transactions_go_on_where_they_were_when_the_broker_is_killed(tmp_path: Path) -> None:
    """Each transaction is one number in every partition: readers see all of it or nothing."""
    dice = Random(3)
    kept: list[int] = []
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, TOPIC, PARTITIONS)
        with ottla.Producer(bootstrap_servers=broker.address, transactional_id="t") as producer:
            producer.init_transactions()
            killer = threading.Thread(target=_kill_and_restart, args=(broker, dice, 2))
            killer.start()
            number = 0
            while killer.is_alive() or number < 100:
                if _transact(producer, number):
                    kept.append(number)
                number += 1
            killer.join()
        found = read(broker.address, TOPIC)
    for partition in range(PARTITIONS):
        seen = [int(each.value or b"") for each in found if each.partition == partition]
        assert seen == kept


def _transact(producer: ottla.Producer, number: int) -> bool:
    """Whether it was committed; every seventh is meant to be aborted."""
    producer.begin()
    try:
        for partition in range(PARTITIONS):
            producer.send(TOPIC, b"%d" % number, partition=partition)
        if number % 7 == 0:
            producer.flush()
            raise ottla.AbortNeeded(ottla.ErrorCode.transaction_abortable, "as planned")
        producer.commit()
    except ottla.AbortNeeded:
        producer.abort()
        return False
    return True


def _kill_and_restart(broker: BrokerProcess, dice: Random, times: int) -> None:
    for _ in range(times):
        time.sleep(dice.uniform(0.3, 0.8))
        broker.kill()
        broker.start()
