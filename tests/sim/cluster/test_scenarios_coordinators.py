"""Scenarios of groups and transactions on virtual time.

The numbers are those of the table of scenarios in docs/reliability.md; see
`test_scenarios_replication`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from ottla.protocol.records.batch import walk
from ottla.testing.history import Ended, Outcome, Poll
from tests.fakes.async_tests import played_by
from tests.sim.cluster.committer import Committer
from tests.sim.cluster.stage import T0, Stage, play
from tests.sim.cluster.verdict import log_of
from tests.sim.consumer import Consumer, Tastes
from tests.sim.relay import Relaying
from tests.sim.transactor import END_TXN, Life, Transactor

OFFSETS = TopicPartition(CONSUMER_OFFSETS, 0)
TRANSACTIONS = TopicPartition(TRANSACTION_STATE, 0)


@pytest.mark.spec("GRP-59")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_scenario_23_offsets_never_go_back_while_group_coordinators_move(protocol: str) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        relaying = Relaying(groups=1, workers=2, records=60, protocol=protocol, pause_s=0.4)
        pipelines = await stage.pipelines(relaying)
        committer = Committer(stage.cluster.client("committer"), stage.book, T0, commits=60)

        async def move() -> None:
            await stage.until(lambda: OFFSETS in stage.cluster.view.states())
            for _ in range(3):
                await asyncio.sleep(2.0)
                coordinator = stage.leader(OFFSETS)
                stage.node(coordinator).kill()
                await stage.until(lambda: stage.leader(OFFSETS) not in (coordinator, -1))  # noqa: B023
                await stage.start(coordinator)
                await stage.until(lambda: len(stage.isr(OFFSETS)) == 3)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(pipelines.run())
            tasks.create_task(committer.run())
            tasks.create_task(move())
        await pipelines.look_again()
        await committer.read_for_the_last_time()
        assert stage.epoch(OFFSETS) >= 3

    play(scenario)


async def transaction(stage: Stage, producer: Transactor, life: Life, name: str) -> None:
    """Begin one, with a record."""
    life.transaction = name
    if stage.transactor_version == 1:
        await producer.add(life, [T0])
    await producer.write(life, T0, 1)


async def read_committed(stage: Stage, *expected: str) -> None:
    """Until a reader of committed data has seen transactions of these names, and no other."""
    reader = Consumer(stage.cluster.client("reader"), [T0], stage.book, Tastes(committed=True))

    def names() -> list[str]:
        return [
            value.removesuffix(".0.0")
            for event in stage.book.events
            if isinstance(event, Poll) and event.process == "reader"
            for _, value in event.records
        ]

    async with asyncio.timeout(20.0):
        while len(names()) < len(expected):
            await reader.poll()
    assert names() == list(expected)


@pytest.mark.spec("TXN-36")
@played_by(play)
async def test_scenario_24_a_decided_transaction_is_finished_once_by_the_next_coordinator(
    stage: Stage,
) -> None:
    producer = stage.transactor(version=2)
    life = await producer.begin()
    coordinator = stage.leader(TRANSACTIONS)
    # The controller must hear the coordinator, or the in-sync set cannot lose the leader.
    taken = {coordinator, stage.cluster.view.controller()}
    leader = max({1, 2, 3} - taken)
    await stage.transacted_topic((leader, *sorted({1, 2, 3} - {leader})))
    await transaction(stage, producer, life, "decided")
    stage.cut((coordinator, leader), one_way=True)
    await producer.end(life, commit=True)  # without the leader, which has no marker
    assert not markers(stage, leader)
    stage.node(coordinator).kill()
    await stage.until(lambda: stage.leader(TRANSACTIONS) not in (coordinator, -1))
    stage.heal()  # what the dead coordinator had sent arrives now
    await read_committed(stage, "decided")
    assert len(markers(stage, leader)) == 1
    await stage.start(coordinator)
    await transaction(stage, producer, life, "next")
    await producer.end(life, commit=True)


def markers(stage: Stage, broker: int) -> list[int]:
    """The offsets of the transaction markers in a replica."""
    content = log_of(stage.node(broker), T0).content
    return [header.base_offset for _, header in walk(memoryview(content)) if header.is_control]


@pytest.mark.spec("TXN-17")
@pytest.mark.parametrize("version", [1, 2])
def test_scenario_25_only_the_first_version_takes_a_late_end_for_that_of_the_next_transaction(
    version: int,
) -> None:
    """The coordinator moves in between, so the next one knows of it only what is in the log."""

    async def scenario(stage: Stage) -> None:
        await stage.transacted_topic((1, 2, 3))
        producer = stage.transactor(version=version)
        life = await producer.begin()
        await transaction(stage, producer, life, "first")
        late = replace(life)
        await producer.end(life, commit=True)
        await transaction(stage, producer, life, "second")
        coordinator = stage.leader(TRANSACTIONS)
        stage.node(coordinator).kill()
        await stage.until(lambda: stage.leader(TRANSACTIONS) not in (coordinator, -1))
        began_ns = stage.book.now_ns
        code = await end_late(stage, late)
        if version == 1:  # as documented: F1 in docs/reliability.md
            assert code is ErrorCode.none
            now_ns = stage.book.now_ns
            stage.book.write(Ended(life.process, "second", False, began_ns, now_ns, Outcome.OK))
            await read_committed(stage, "first")
        else:
            assert code in (ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch)
            await producer.end(life, commit=True)
            await read_committed(stage, "first", "second")

    play(scenario)


async def end_late(stage: Stage, late: Life) -> ErrorCode:
    """An abort that was sent for the first transaction."""
    fields = {
        "transactional_id": "x",
        "producer_id": late.producer_id,
        "producer_epoch": late.epoch,
        "committed": False,
    }
    client = stage.cluster.client("network")
    while True:
        version = 3 if stage.transactor_version == 1 else 5
        reply = await client.ask_until_answered(END_TXN, version, fields)
        code = ErrorCode(reply.error_code)
        if code not in (ErrorCode.not_coordinator, ErrorCode.coordinator_load_in_progress):
            return code
        await client.back_off()
