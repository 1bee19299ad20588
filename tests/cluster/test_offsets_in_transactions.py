"""Transactions that commit offsets, on a broker with many groups that is killed under them."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from random import Random

import pytest

from tests.cluster.load import create_topic
from tests.cluster.offset_senders import (
    SINK,
    SINK_PARTITIONS,
    SOURCE,
    Sender,
    fill_groups,
    open_transactions,
    stable_offset,
)
from tests.cluster.process import BrokerProcess, wait_for
from tests.interop.producer_rig import read


def kill_among_groups(
    folder: Path, *, groups: int, senders: int, kills: int, within_s: float
) -> list[float]:
    """How long after each restart it took until no transaction was open, in seconds."""
    took, dice = [], Random(kills)
    with BrokerProcess(folder) as broker:
        create_topic(broker.address, SOURCE.topic)
        create_topic(broker.address, SINK, SINK_PARTITIONS)
        fill_groups(broker.address, groups)
        ended = 0
        for _ in range(kills):
            stop = threading.Event()
            threads = [Sender(broker.address, number, stop) for number in range(senders)]
            for thread in threads:
                thread.start()
            wait_for(lambda: all(one.ended > 3 for one in threads), 120.0, "transactions")  # noqa: B023
            time.sleep(dice.uniform(0, 0.2))
            stop.set()  # each ends what it has begun, and begins nothing more
            broker.kill()
            broker.start()
            began = time.monotonic()
            while found := open_transactions(broker.address):
                assert time.monotonic() - began < within_s, f"{found} after {within_s} s"
                time.sleep(0.05)
            took.append(time.monotonic() - began)
            for thread in threads:
                thread.join(120)
                assert not thread.is_alive(), f"{thread.name}: {thread.failures[-3:]}"
            assert open_transactions(broker.address) == {}
            ended += sum(thread.ended for thread in threads)
        check_agreement(broker.address, senders, ended)
        assert broker.terminate() == 0
    assert "Traceback" not in broker.said_ever
    return took


def check_agreement(address: str, senders: int, ended: int) -> None:
    """What readers of committed records see, and the groups' offsets, say the same."""
    numbers: dict[int, list[int]] = {number: [] for number in range(senders)}
    for record in sorted(read(address, SINK), key=lambda one: one.offset):
        name, _, number = (record.value or b"").partition(b":")
        numbers[int(name)].append(int(number))
    for sender, found in numbers.items():
        assert found == list(range(stable_offset(address, f"sender-{sender}"))), sender
    assert sum(map(len, numbers.values())) >= ended


@pytest.mark.spec("TXN-35", "TXN-36", "TXN-38", "TXN-41")
@pytest.mark.timeout(400)
def test_no_decided_transaction_stays_open_when_the_broker_is_killed_among_many_groups(
    tmp_path: Path,
) -> None:
    kill_among_groups(tmp_path, groups=3_000, senders=8, kills=3, within_s=60.0)


@pytest.mark.slow
@pytest.mark.spec("TXN-35", "TXN-36", "TXN-38", "TXN-41")
def test_thirty_kills_among_thirty_thousand_groups_leave_no_transaction_open(
    tmp_path: Path,
) -> None:
    took = kill_among_groups(tmp_path, groups=30_000, senders=16, kills=30, within_s=15.0)
    print(f"seconds until no transaction was open: {[round(each, 1) for each in took]}")
