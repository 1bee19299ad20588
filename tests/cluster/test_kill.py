"""A broker that is killed, stopped or frozen while clients work."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from random import Random

import pytest

from ottla.testing.history import check
from tests.cluster.load import Load, create_topic, produce, values, wait_for_progress
from tests.cluster.process import BrokerProcess

TOPIC = "load"
PARTITIONS = 3


def kill_in_cycles(folder: Path, cycles: int, seed: int) -> None:
    dice = Random(seed)
    with BrokerProcess(folder) as broker:
        create_topic(broker.address, TOPIC, PARTITIONS)
        with Load(broker.address, TOPIC, PARTITIONS) as load:
            for _ in range(cycles):
                wait_for_progress(load)
                time.sleep(dice.uniform(0, 0.3))
                load.fault("kill -9")
                broker.kill()
                broker.start()
        history = load.finish()
        assert broker.terminate() == 0
    assert load.failures == []
    assert check(history) == []
    assert "Traceback" not in broker.said_ever


@pytest.mark.spec("LOG-33", "LOG-39", "TXN-08")
@pytest.mark.timeout(120)
def test_nothing_acknowledged_is_lost_doubled_or_torn_when_the_broker_is_killed(
    tmp_path: Path,
) -> None:
    kill_in_cycles(tmp_path, cycles=5, seed=1)


@pytest.mark.slow
@pytest.mark.spec("LOG-33", "LOG-39", "TXN-08")
def test_fifty_kills_in_a_row_lose_nothing(tmp_path: Path) -> None:
    kill_in_cycles(tmp_path, cycles=50, seed=2)


def kill_in_recovery(folder: Path, kills: int, seed: int) -> None:
    """Die again and again between the launch and the ready line, at any moment of it."""
    dice = Random(seed)
    names = [f"n-{number}" for number in range(2000)]
    with BrokerProcess(folder) as broker:
        create_topic(broker.address, TOPIC)
        produce(broker.address, TOPIC, names, size=1000)
        broker.kill()
        usual_s = broker.start()
        for _ in range(kills):
            broker.kill()
            broker.launch()
            time.sleep(dice.uniform(0.3 * usual_s, usual_s))
        broker.kill()
        broker.start()
        assert values(broker.address, TOPIC) == names
        assert "Traceback" not in broker.said_ever


@pytest.mark.spec("LOG-39")
def test_a_kill_during_recovery_is_recovered_from_like_any_other(tmp_path: Path) -> None:
    kill_in_recovery(tmp_path, kills=4, seed=1)


@pytest.mark.slow
@pytest.mark.spec("LOG-39")
def test_forty_kills_during_recovery_change_nothing(tmp_path: Path) -> None:
    kill_in_recovery(tmp_path, kills=40, seed=2)


@pytest.mark.spec("LOG-07")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_under_load_is_clean_and_in_time(tmp_path: Path, number: int) -> None:
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, TOPIC, PARTITIONS)
        with Load(broker.address, TOPIC, PARTITIONS) as load:
            wait_for_progress(load)
            began = time.monotonic()
            broker.signal(number)
            assert broker.ends() == 0
            assert time.monotonic() - began < 60
            assert (broker.dirs[0] / ".kafka_cleanshutdown").exists()
            written = {path: path.stat().st_mtime_ns for path in indexes(broker)}
            broker.start()
            # A recovery would have written every index of the last segments anew.
            assert {path: path.stat().st_mtime_ns for path in written} == written
            wait_for_progress(load)
        assert load.failures == []
        assert check(load.finish()) == []
        assert broker.warnings() == []


def indexes(broker: BrokerProcess) -> list[Path]:
    return [path for one in broker.dirs for path in one.glob("*/*.index")]


def test_a_frozen_broker_goes_on_where_it_was(tmp_path: Path) -> None:
    """Clients time out and retry meanwhile; what they repeat is not stored twice."""
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, TOPIC, PARTITIONS)
        impatient = {"socket.timeout.ms": 1000, "request.timeout.ms": 1000}
        with Load(broker.address, TOPIC, PARTITIONS, settings=impatient) as load:
            for _ in range(2):
                wait_for_progress(load)
                load.fault("SIGSTOP")
                broker.signal(signal.SIGSTOP)
                time.sleep(2.5)
                broker.signal(signal.SIGCONT)
            wait_for_progress(load)
        assert load.failures == []
        assert check(load.finish()) == []
        assert broker.process.poll() is None
        assert "Traceback" not in broker.said
