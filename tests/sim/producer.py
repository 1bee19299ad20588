"""An idempotent producer of one partition, and what it may conclude from the answers it gets.

Owns its producer id, its sequence numbers and up to five batches in flight. Works as Java's does:
once a batch has failed nothing new is sent; those in flight are sent again with the same sequence,
one at a time, each when the one before it is settled. A batch that is given up is unknown, and the
producer goes on under a new id, because nobody can say which sequence comes next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import NewRecord
from ottla.testing.history import Outcome, Send
from tests.sim.book import Book
from tests.sim.client import INIT_PRODUCER_ID, PRODUCE, RETRIABLE, Client

IN_FLIGHT_MAX: Final = 5
NO_ANSWER: Final = ErrorCode.network_exception
SETTLED: Final = frozenset({ErrorCode.none, ErrorCode.duplicate_sequence_number})
ID_HEADER: Final = "id"
"""Who a record is that has no value to say it: a tombstone."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How one producer works."""

    acks: int = -1
    version: int = 9
    codec: Codec = Codec.NONE
    batches: int = 20
    records_max: int = 5
    value_max_bytes: int = 200
    pause_s: float = 0.05
    keys: int = 0
    """Keys drawn from; 0: none."""
    patience_s: float = 60.0
    """How long a batch is tried before it is given up."""
    request_timeout_ms: int = 2_000


class Given(NamedTuple):
    """One record that was handed to the producer."""

    name: str
    key: str
    tombstone: bool
    invoked_ns: int


@dataclass(slots=True, eq=False)
class Sent:
    """One batch on its way."""

    given: Sequence[Given]
    batch: bytes
    give_up_ns: int
    answer: asyncio.Task[ErrorCode]
    sequence: int
    offset: int = -1


class Producer:
    def __init__(self, client: Client, partition: TopicPartition, book: Book, habits: Habits):
        self._client = client
        self._partition = partition
        self._book = book
        self._habits = habits
        self._dice = client.dice
        self.finish = False
        """Send nothing new any more."""
        self._count = 0
        self._producer_id = -1
        self._sequence = 0

    async def run(self) -> None:
        await self._begin()
        left = self._habits.batches
        window: deque[Sent] = deque()
        async with asyncio.TaskGroup() as tasks:
            while (left and not self.finish) or window:
                while (
                    left
                    and not self.finish
                    and len(window) < IN_FLIGHT_MAX
                    and not any(map(_failed, window))
                ):
                    left -= 1
                    window.append(self._send(tasks))
                    await asyncio.sleep(self._dice.random() ** 2 * self._habits.pause_s)
                if await window[0].answer is ErrorCode.none:
                    self._close(window.popleft(), Outcome.OK)
                else:
                    await self._mend(window)

    async def _begin(self) -> None:
        """A new producer id, whose sequences start at nothing."""
        fields = {"transactional_id": None, "transaction_timeout": 60_000}
        while True:
            reply = await self._client.ask_until_answered(INIT_PRODUCER_ID, 4, fields)
            if reply.error_code is ErrorCode.none:
                self._producer_id = reply.producer_id
                self._sequence = 0
                return
            self._accept(reply.error_code)
            await self._client.back_off()

    def _send(self, tasks: asyncio.TaskGroup) -> Sent:
        habits, dice, now_ns = self._habits, self._dice, self._book.now_ns
        given, records = [], []
        for _ in range(dice.randint(1, habits.records_max)):
            one, record = self._record()
            given.append(one)
            records.append(record)
        batch = build(
            records,
            codec=habits.codec,
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        give_up_ns = now_ns + round(habits.patience_s * 1e9)
        sent = Sent(given, batch, give_up_ns, None, self._sequence)  # type: ignore[arg-type]
        self._sequence += len(records)
        sent.answer = tasks.create_task(self._ask(sent))
        return sent

    def _record(self) -> tuple[Given, NewRecord]:
        habits, dice = self._habits, self._dice
        self._count += 1
        name = f"{self._client.name}-{self._count}"
        key = f"k{dice.randrange(habits.keys)}" if habits.keys else ""
        tombstone = bool(key) and dice.random() < 0.15
        filler = dice.randbytes(dice.randrange(habits.value_max_bytes)).hex()
        record = NewRecord(
            key.encode() if key else None,
            None if tombstone else f"{name} {filler}".encode(),
            ((ID_HEADER, name.encode()),) if tombstone else (),
            self._client.clock.wall_ms(),
        )
        return Given(name, key, tombstone, self._book.now_ns), record

    async def _ask(self, sent: Sent) -> ErrorCode:
        topic, index = self._partition
        fields = {
            "transactional_id": None,
            "acks": self._habits.acks,
            "timeout": self._habits.request_timeout_ms,
            "topic_data": [
                {"name": topic, "partition_data": [{"index": index, "records": sent.batch}]}
            ],
        }
        try:
            reply = await self._client.ask(
                PRODUCE, self._habits.version, fields, self._habits.request_timeout_ms
            )
        except OSError:
            return NO_ANSWER
        [[part]] = [topic.partition_responses for topic in reply.responses]
        sent.offset = part.base_offset
        return ErrorCode(part.error_code)

    async def _mend(self, window: deque[Sent]) -> None:
        """The first in the window failed: hear of the others, then send again, one by one."""
        await asyncio.wait([sent.answer for sent in window])
        codes = [sent.answer.result() for sent in window]
        for at in range(1, len(codes)):
            if codes[at] is ErrorCode.out_of_order_sequence_number:  # for want of those before it
                codes[at] = NO_ANSWER
        while window:
            code, sent = codes[0], window[0]
            if code in SETTLED:
                self._close(window.popleft(), Outcome.OK)
                codes.pop(0)
                continue
            overtaken = _was_overtaken(window, code)
            if code is ErrorCode.out_of_order_sequence_number and (
                overtaken or self._may_be_stale(sent)
            ):
                code = NO_ANSWER
            self._accept(code)
            if overtaken or code not in RETRIABLE or self._book.now_ns > sent.give_up_ns:
                self._give_up(window)
                await self._begin()
                return
            await self._client.back_off()
            codes[0] = await self._ask(sent)

    def _may_be_stale(self, sent: Sent) -> bool:
        """A leader that does not know yet that it was replaced lacks what the new one has."""
        return self._client.several_brokers and self._book.now_ns <= sent.give_up_ns

    def _give_up(self, window: deque[Sent]) -> None:
        for sent in window:
            answered = sent.answer.result() is ErrorCode.none
            self._close(sent, Outcome.OK if answered else Outcome.UNKNOWN)
        window.clear()

    def _close(self, sent: Sent, outcome: Outcome) -> None:
        known = outcome is Outcome.OK and sent.offset >= 0
        for at, one in enumerate(sent.given):
            offset = sent.offset + at if known else -1
            self._book.write(
                Send(
                    self._client.name,
                    str(self._partition),
                    one.name,
                    one.invoked_ns,
                    self._book.now_ns,
                    outcome,
                    offset,
                    one.key,
                    one.tombstone,
                )
            )

    def _accept(self, code: ErrorCode) -> None:
        """Any other refusal says that the broker forgot or mixed up what this producer did."""
        if code not in RETRIABLE:
            self._book.complain("refusal", str(self._partition), f"{self._client.name}: {code!r}")


def _was_overtaken(window: Sequence[Sent], code: ErrorCode) -> bool:
    """The first batch of a producer id was lost with its connection, a later one was taken.

    A broker that does not know a producer lets it begin with any sequence, as Kafka does.
    """
    is_first = window[0].sequence == 0 and len(window) > 1
    return is_first and code is ErrorCode.out_of_order_sequence_number


def _failed(sent: Sent) -> bool:
    return sent.answer.done() and sent.answer.result() is not ErrorCode.none
