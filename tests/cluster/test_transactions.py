"""Transactions on a broker that is killed while they run."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.model.errors import ErrorCode as E
from ottla.testing.history import Event, Fault, Pipe, Send, check
from tests.bad_input.producers import begun, end, ended, init, opened
from tests.cluster.load import Load, create_topic
from tests.cluster.process import BrokerProcess, wait_for
from tests.cluster.transacting import Copier, Ground, Topic, Writer
from tests.cluster.transaction_readers import (
    Reader,
    Watcher,
    look_at_logs,
    look_at_offsets,
    read_finally,
)
from tests.fakes.committed_reader import committed_values
from tests.raw_requests import FETCH, Line, fetch_fields

WRITTEN = Topic("written", 3)
SOURCE = Topic("source", 2)
SINK = Topic("sink", 2)
TOPICS = (WRITTEN, SOURCE, SINK)
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


def kill_in_cycles(folder: Path, cycles: int, seed: int) -> list[Event]:
    dice = Random(seed)
    with BrokerProcess(folder, SETTINGS) as broker:
        for topic in TOPICS:
            create_topic(broker.address, topic, topic.partitions)
        ground = Ground(broker.address)
        writers = [Writer(ground, WRITTEN, f"w{n}", Random(dice.random())) for n in range(3)]
        copiers = [Copier(ground, SOURCE, SINK, f"c{n}", Random(dice.random())) for n in range(2)]
        others: list[threading.Thread] = [
            Reader(ground, TOPICS, committed=True),
            Reader(ground, TOPICS, committed=False),
            Watcher(ground, TOPICS, {SOURCE: SOURCE}),
        ]
        for thread in (*writers, *copiers, *others):
            thread.start()
        with Load(broker.address, SOURCE, SOURCE.partitions, producers=1, pause_s=0.01) as load:
            for _ in range(cycles):
                progress(ground)
                time.sleep(dice.uniform(0, 0.3))
                ground.events.append(Fault("kill -9", time.monotonic_ns()))
                broker.kill()
                broker.start()
            progress(ground)
        ground.events += [event for event in load.events if isinstance(event, Send)]
        wind_up(ground, writers, copiers, others)
        assert broker.terminate() == 0
    assert ground.failures == load.failures == []
    assert "Traceback" not in broker.said_ever
    return [*ground.events, Pipe(SOURCE, SINK)]


def progress(ground: Ground) -> None:
    """Everybody who ends transactions has ended some more, either way."""
    commits, aborts = ground.ended(commit=True), ground.ended(commit=False)
    wait_for(
        lambda: ground.ended(commit=True) > commits + 20 and ground.ended(commit=False) > aborts,
        60.0,
        "transactions to end",
    )


def wind_up(
    ground: Ground, writers: list[Writer], copiers: list[Copier], others: list[threading.Thread]
) -> None:
    """Let each end what it began, look at all there is, and look at it once more."""
    looking = Consumer(ground.settings(group_id=SOURCE, isolation_level="read_committed"))
    ends = [looking.get_watermark_offsets(one, 30)[1] for one in SOURCE.all()]
    wait_for(lambda: committed(looking) == ends, 120.0, f"the copiers to reach {ends}")
    for copier in copiers:
        copier.finish.set()
    ground.stop.set()
    for thread in (*writers, *copiers, *others):
        thread.join(120)
        assert not thread.is_alive(), thread.name
    look_at_offsets(ground, looking, SOURCE, SOURCE)
    looking.close()
    wait_for(lambda: look_at_logs(ground, TOPICS), 60.0, "open transactions to end")
    read_finally(ground, TOPICS)
    assert sum(writer.fenced for writer in writers) > 0, "no zombie was ever fenced"


def committed(looking: Consumer) -> list[int]:
    found: list[TopicPartition] = looking.committed(SOURCE.all(), 30)
    return [one.offset for one in found]


@pytest.mark.spec("TXN-17", "TXN-18", "TXN-41", "TXN-46", "TXN-47", "GRP-59", "GRP-66", "GRP-75")
@pytest.mark.timeout(300)
def test_transactions_are_whole_and_pipelines_exact_through_kills(tmp_path: Path) -> None:
    assert check(kill_in_cycles(tmp_path, cycles=4, seed=1)) == []


def state(line: Line, id: str) -> str:
    said = line.ask(DESCRIBE_TRANSACTIONS, 0, transactional_ids=[id])
    return str(said.transaction_states[0].transaction_state)


DESCRIBE_TRANSACTIONS = 65
TWO_PHASE = {"enable2_pc": True, "keep_prepared_txn": False}


@pytest.mark.spec("TXN-29", "TXN-42")
@pytest.mark.parametrize("commit", [True, False])
def test_a_prepared_transaction_waits_through_kills_for_whoever_decides(
    tmp_path: Path, commit: bool
) -> None:
    """Two phases: no timeout ends it, and its producer's next life is told what is open."""
    settings = {
        "transaction.max.timeout.ms": "1000",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    }
    with BrokerProcess(tmp_path, settings) as broker:
        create_topic(broker.address, "prepared")
        with Line(broker.address) as line:
            before = begun(line, 2, "two-phase", **TWO_PHASE)
            opened(line, before, "prepared", "waits")
            other = begun(line, 2, "ordinary", transaction_timeout=1_000)
            opened(line, other, "prepared", "is aborted")
        for _ in range(2):
            broker.kill()
            broker.start()
        with Line(broker.address) as line:
            wait_for(lambda: state(line, "ordinary") == "CompleteAbort", what="its timeout")
            assert state(line, "two-phase") == "Ongoing"
            keeping = {**TWO_PHASE, "keep_prepared_txn": True}
            said = init(line, "two-phase", **keeping)
            assert (said.ongoing_txn_producer_id, said.ongoing_txn_producer_epoch) == before[1:3]
            after = before._replace(producer_id=said.producer_id, epoch=said.producer_epoch)
            assert end(line, before).error_code is E.producer_fenced
            ended(line, after, commit=commit)
        ground = Ground(broker.address)
        topics = [Topic("prepared", 1)]
        with Line(broker.address) as line:
            wait_for(lambda: look_at_logs(ground, topics), what="the markers")
            fields = {**fetch_fields("prepared"), "isolation_level": 1}
            [part] = line.ask(FETCH, 12, **fields).responses[0].partitions
        assert committed_values(part) == ([b"waits"] if commit else [])
    assert "Traceback" not in broker.said_ever


@pytest.mark.slow
@pytest.mark.spec("TXN-17", "TXN-18", "TXN-41", "TXN-46", "TXN-47", "GRP-59", "GRP-66", "GRP-75")
def test_thirty_kills_in_a_row_tear_no_transaction(tmp_path: Path) -> None:
    assert check(kill_in_cycles(tmp_path, cycles=30, seed=2)) == []
