"""What becomes of a proposed in-sync set, by the controller's answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerEpoch
from ottla.model.metrics import Registry
from ottla.protocol import wire
from ottla.protocol.wire import Fields
from ottla.replica.isr_loop import IsrLoop
from ottla.replica.isr_sender import ALTER_PARTITION, Outcome, outcome_of
from tests.fakes.data_side import ME, OTHER, TOPIC_ID, DataSide, data_side

TWO = (ME, OTHER)
BOTH, ALONE = frozenset(TWO), frozenset({ME})


class Scripted:
    """A controller that answers as told: a code, or a failure."""

    def __init__(self, *answers: ErrorCode | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[Fields] = []

    async def ask(self, key: int, fields: Fields, _: int) -> Any:
        assert key == ALTER_PARTITION
        for version in (2, 3):
            wire.encode_request(key, version, 1, "leader", fields)
        self.asked.append(fields)
        answer = self.answers.pop(0) if self.answers else ErrorCode.none
        if isinstance(answer, Exception):
            raise answer
        [topic] = fields["topics"]
        [partition] = topic["partitions"]
        told = SimpleNamespace(
            partition_index=partition["partition_index"],
            error_code=answer,
            leader_epoch=partition["leader_epoch"],
            isr=partition["new_isr"],
            partition_epoch=partition["partition_epoch"] + 1,
        )
        topics = [SimpleNamespace(topic_id=topic["topic_id"], partitions=[told])]
        return SimpleNamespace(error_code=ErrorCode.none, topics=topics)


def loop_with(side: DataSide, controller: Scripted) -> IsrLoop:
    data = side.data
    return IsrLoop(
        side.hosted,
        controller,
        lambda: side.services.transitions.broker_epoch,
        data._flushes,
        Registry(),
        spawn=side._tasks.create_task,
    )


@pytest.mark.spec("REP-35")
async def test_a_proposal_names_the_state_and_the_broker_epochs_it_rests_on() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=TWO, isr=(ME,), epoch=3)
        partition.record_follower_fetch(OTHER, 0, 0, broker_epoch=BrokerEpoch(55))
        controller = Scripted()
        loop_with(side, controller).propose(partition, BOTH)
        await side.settle()
        [fields] = controller.asked
        [topic] = fields["topics"]
        [proposed] = topic["partitions"]
        assert (fields["broker_id"], topic["topic_id"]) == (ME, TOPIC_ID)
        assert (proposed["leader_epoch"], proposed["partition_epoch"]) == (3, 0)
        epochs = [(m["broker_id"], m["broker_epoch"]) for m in proposed["new_isr_with_epochs"]]
        assert epochs == [(ME, -1), (OTHER, 55)]
        assert partition.require_leadership().isr == BOTH


@pytest.mark.parametrize(
    "failure",
    [
        KafkaError(ErrorCode.not_controller),
        ConnectionError("gone"),
        TimeoutError(),
        ErrorCode.not_controller,
        ErrorCode.request_timed_out,
    ],
)
async def test_what_may_not_have_arrived_is_sent_again(failure: ErrorCode | Exception) -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=TWO)
        controller = Scripted(failure, failure)
        loop_with(side, controller).propose(partition, ALONE)
        await side.settle()
        assert partition.require_leadership().proposed == ALONE
        await side.until(side.clock.mono_ms() + 5_000)
        assert len(controller.asked) == 3
        assert partition.require_leadership().isr == ALONE


@pytest.mark.spec("REP-19", "REP-20")
async def test_a_refused_follower_no_longer_counts_and_is_proposed_again_later() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=TWO, isr=(ME,))
        controller = Scripted(ErrorCode.ineligible_replica)
        loop_with(side, controller).propose(partition, BOTH)
        await side.settle()
        assert partition.require_leadership().proposed is None
        assert partition.record_follower_fetch(OTHER, 0, 0) is None, "not at once"
        await side.until(side.clock.mono_ms() + 1_500)
        assert partition.record_follower_fetch(OTHER, 0, 0) == BOTH


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.invalid_update_version,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_topic_id,
        ErrorCode.new_leader_elected,
    ],
)
async def test_any_other_answer_leaves_the_proposal_in_doubt(code: ErrorCode) -> None:
    async with data_side() as side:
        assert outcome_of(code) is Outcome.UNKNOWN
        partition = await side.lead(replicas=TWO, isr=(ME,))
        controller = Scripted(code)
        loop_with(side, controller).propose(partition, BOTH)
        await side.until(side.clock.mono_ms() + 5_000)
        assert len(controller.asked) == 1
        assert partition.require_leadership().proposed == BOTH


async def test_a_proposal_ends_with_its_leadership() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=TWO)
        controller = Scripted(ConnectionError("gone"))
        loop_with(side, controller).propose(partition, ALONE)
        await side.settle()
        await side.lead(epoch=1, replicas=TWO)
        await side.until(side.clock.mono_ms() + 5_000)
        assert len(controller.asked) == 1
        assert partition.require_leadership().isr == BOTH


async def test_a_broker_that_stops_does_not_wait_for_a_controller_that_is_gone() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=TWO)
        controller = Scripted(*[ConnectionError("gone")] * 100)
        loop = loop_with(side, controller)
        running = side._tasks.create_task(loop.run())
        loop.propose(partition, ALONE)
        await side.until(side.clock.mono_ms() + 2_000)
        running.cancel()
        await side.settle()
        asked = len(controller.asked)
        await side.until(side.clock.mono_ms() + 20_000)
        loop.propose(partition, ALONE)
        await side.until(side.clock.mono_ms() + 20_000)
        assert len(controller.asked) == asked
