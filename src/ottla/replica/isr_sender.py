"""Proposed in-sync sets, sent to the active controller by AlterPartition.

Owns the proposals that wait and the one request in flight, which takes all of them up to a bound.
Never decides who is in sync (`leader` does), and never takes a proposal for granted: until the
controller has said that it was not taken, the high watermark counts the proposed set as well.

A request that may not have arrived is sent again until it is answered; the controller recognises a
set that is already in force. A proposal ends with the leadership it was made under.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from enum import Enum
from typing import Final, NamedTuple, Protocol

from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerEpoch, BrokerId, TopicId, TopicPartition
from ottla.protocol.schema import KioMessage
from ottla.protocol.wire import Fields
from ottla.replica.leader import UNKNOWN_EPOCH, Leadership
from ottla.replica.partition import HostedPartition

log = logging.getLogger(__name__)

ALTER_PARTITION: Final = 56
TIMEOUT_MS: Final = 30_000
MAX_PARTITIONS: Final = 1_000
"""In one request."""
RETRY_MS: Final = 50
MAX_RETRY_MS: Final = 1_000


class Outcome(Enum):
    """What an error code of AlterPartition says about a proposal."""

    TAKEN = "taken"
    REFUSED = "refused"
    """It was not taken, and no controller will take it."""
    UNKNOWN = "unknown"
    """The state is another now: the controller's LeaderAndIsr has it, or will have."""
    RETRY = "retry"


_OUTCOMES: Final = {
    ErrorCode.none: Outcome.TAKEN,
    ErrorCode.ineligible_replica: Outcome.REFUSED,
    ErrorCode.operation_not_attempted: Outcome.REFUSED,
    ErrorCode.unknown_topic_or_partition: Outcome.UNKNOWN,
    ErrorCode.unknown_topic_id: Outcome.UNKNOWN,
    ErrorCode.fenced_leader_epoch: Outcome.UNKNOWN,
    ErrorCode.invalid_update_version: Outcome.UNKNOWN,
    ErrorCode.invalid_request: Outcome.UNKNOWN,
    ErrorCode.new_leader_elected: Outcome.UNKNOWN,
}


def outcome_of(code: ErrorCode) -> Outcome:
    return _OUTCOMES.get(code, Outcome.RETRY)


class Controller(Protocol):
    """All that a leader needs of the controller."""

    async def ask(self, key: int, fields: Fields, timeout_ms: int) -> KioMessage: ...


class Proposal(NamedTuple):
    """An in-sync set that a leader asks for, under the leadership that it rests on."""

    partition: HostedPartition
    leadership: Leadership
    isr: frozenset[BrokerId]
    topic_id: TopicId

    @property
    def is_current(self) -> bool:
        return self.partition.leadership is self.leadership


class IsrSender:
    def __init__(
        self,
        controller: Controller,
        broker_id: BrokerId,
        broker_epoch: Callable[[], BrokerEpoch],
        spawn: Callable[[Coroutine[object, None, None]], object],
        on_reply: Callable[[Proposal, Outcome, KioMessage], None],
    ) -> None:
        self._controller = controller
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._on_reply = on_reply
        self._spawn = spawn
        self._waiting: dict[TopicPartition, Proposal] = {}
        self._is_sending = False
        self._is_closed = False
        self._task: asyncio.Task[None] | None = None

    def submit(self, proposal: Proposal) -> None:
        """Send this soon; a partition has one proposal at a time."""
        self._waiting[proposal.partition.key] = proposal
        if not self._is_sending and not self._is_closed:
            self._is_sending = True
            self._spawn(self._send_all())

    def close(self) -> None:
        """The broker stops: a controller that cannot be reached must not hold it up."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()

    async def _send_all(self) -> None:
        self._task = asyncio.current_task()
        failures = 0
        while proposals := self._take():
            again = await self._send(proposals)
            for proposal in again:
                self._waiting.setdefault(proposal.partition.key, proposal)
            failures = failures + 1 if again else 0
            if again:
                await asyncio.sleep(min(MAX_RETRY_MS, RETRY_MS << min(failures, 10)) / 1e3)
        self._is_sending = False

    def _take(self) -> list[Proposal]:
        """The next to send; those of an earlier leadership are dropped."""
        self._waiting = {key: each for key, each in self._waiting.items() if each.is_current}
        return [self._waiting.pop(key) for key in list(self._waiting)[:MAX_PARTITIONS]]

    async def _send(self, proposals: list[Proposal]) -> list[Proposal]:
        """One request; the proposals that must be sent again."""
        fields = request_fields(self._broker_id, self._broker_epoch(), proposals)
        try:
            reply = await self._controller.ask(ALTER_PARTITION, fields, TIMEOUT_MS)
        except (KafkaError, OSError) as error:  # NOT_CONTROLLER, or it cannot be reached
            log.info("cannot send %d ISR changes to the controller: %s", len(proposals), error)
            return proposals
        if reply.error_code is not ErrorCode.none:
            log.warning(
                "the controller refused %d ISR changes: %s; retrying",
                len(proposals),
                reply.error_code.name,
            )
            return proposals
        answers = {
            (topic.topic_id, partition.partition_index): partition
            for topic in reply.topics
            for partition in topic.partitions
        }
        return [
            proposal
            for proposal in proposals
            if self._must_repeat(
                proposal, answers.get((proposal.topic_id, proposal.partition.key.partition))
            )
        ]

    def _must_repeat(self, proposal: Proposal, answer: KioMessage | None) -> bool:
        if not proposal.is_current:
            return False
        outcome = Outcome.RETRY if answer is None else outcome_of(answer.error_code)
        if outcome is Outcome.RETRY:
            return True
        self._on_reply(proposal, outcome, answer)
        return False


def request_fields(
    broker_id: BrokerId, broker_epoch: BrokerEpoch, proposals: Iterable[Proposal]
) -> Fields:
    """The fields of AlterPartition, for version 2 and for version 3 with broker epochs."""
    topics: dict[TopicId, list[Fields]] = {}
    for proposal in proposals:
        leadership, isr = proposal.leadership, sorted(proposal.isr)
        partition = {
            "partition_index": proposal.partition.key.partition,
            "leader_epoch": leadership.epoch,
            "new_isr": isr,
            "new_isr_with_epochs": [
                {
                    "broker_id": member,
                    "broker_epoch": broker_epoch
                    if member == broker_id
                    else _epoch_of(leadership, member),
                }
                for member in isr
            ],
            "leader_recovery_state": 0,
            "partition_epoch": leadership.version,
        }
        topics.setdefault(proposal.topic_id, []).append(partition)
    return {
        "broker_id": broker_id,
        "broker_epoch": broker_epoch,
        "topics": [
            {"topic_id": topic_id, "partitions": partitions}
            for topic_id, partitions in topics.items()
        ],
    }


def _epoch_of(leadership: Leadership, member: BrokerId) -> BrokerEpoch:
    follower = leadership.followers.get(member)
    return UNKNOWN_EPOCH if follower is None else follower.broker_epoch
