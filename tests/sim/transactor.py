"""A transactional producer of some partitions, in many lives, and what it may conclude.

Owns who it is now (producer id, epoch, sequences) and the transaction that is open. Speaks
transactions v1 or v2. A life ends when it is refused for good, or abandons a transaction; the next
life of the same id then fences it, and the old one tries to commit in the middle of the new one's.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord
from ottla.testing.history import Ended, Outcome, ProducerInit, Send
from tests.sim.book import Book
from tests.sim.client import INIT_PRODUCER_ID, PRODUCE, RETRIABLE, Client

FIND_COORDINATOR: Final = 10
ADD_PARTITIONS: Final = 24
END_TXN: Final = 26
TIMEOUT_MS: Final = 60_000
TRIES: Final = 200
OK, UNKNOWN = Outcome.OK, Outcome.UNKNOWN

AGAIN: Final = RETRIABLE | {
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
    ErrorCode.concurrent_transactions,
    ErrorCode.duplicate_sequence_number,
}
OVER: Final = frozenset(
    {
        ErrorCode.producer_fenced,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.invalid_producer_id_mapping,
        ErrorCode.invalid_txn_state,
        ErrorCode.transaction_abortable,
        ErrorCode.out_of_order_sequence_number,
    }
)
"""What ends a life: somebody newer is there, or its transaction took too long by a clock that
was set wrong."""


@dataclass(frozen=True, slots=True)
class Dealings:
    """How one transactional producer works."""

    version: int = 2
    transactions: int = 8
    records_max: int = 3
    aborts: float = 0.25
    abandons: float = 0.15


class Gone(Exception):
    """This life is over."""


@dataclass(slots=True)
class Life:
    process: str
    producer_id: int
    epoch: int
    transaction: str = ""
    sequences: dict[TopicPartition, int] = field(default_factory=dict)


class Written(NamedTuple):
    code: ErrorCode
    offset: int


class Transactor:
    def __init__(
        self, client: Client, partitions: list[TopicPartition], book: Book, dealings: Dealings
    ) -> None:
        self._client = client
        self._partitions = partitions
        self._book = book
        self._dealings = dealings
        self._dice = client.dice
        self._lives = 0
        self._zombie: Life | None = None
        self._count = 0

    async def run(self) -> None:
        life = await self.begin()
        for _ in range(self._dealings.transactions):
            try:
                if not await self._transaction(life):
                    self._zombie, life = life, await self.begin()
            except Gone:
                life = await self.begin()
        await self.begin()  # which aborts what may be open

    # One life

    async def begin(self) -> Life:
        self._lives += 1
        process, began = f"{self._client.name}.{self._lives}", self._book.now_ns
        keys = {"key_type": 1, "coordinator_keys": [self._client.name]}
        fields = {
            "transactional_id": self._client.name,
            "transaction_timeout": TIMEOUT_MS,
            "producer_id": -1,
            "producer_epoch": -1,
        }
        while True:
            await self._client.ask_until_answered(FIND_COORDINATOR, 4, keys)
            reply = await self._client.ask_until_answered(INIT_PRODUCER_ID, 5, fields)
            if reply.error_code is ErrorCode.none:
                self._book.write(
                    ProducerInit(
                        process, self._client.name, began, self._book.now_ns, OK, TIMEOUT_MS
                    )
                )
                return Life(process, reply.producer_id, reply.producer_epoch)
            self._accept(reply.error_code, AGAIN)
            await self._client.back_off()

    async def _transaction(self, life: Life) -> bool:
        """One transaction; False when it was abandoned."""
        dealings, dice = self._dealings, self._dice
        self._count += 1
        life.transaction = f"{life.process}.{self._count}"
        chosen = dice.sample(self._partitions, dice.randint(1, len(self._partitions)))
        if dealings.version == 1:
            await self.add(life, chosen)
        for tp in chosen:
            await self.write(life, tp, dice.randint(1, dealings.records_max))
        await self._haunt()
        if dice.random() < dealings.abandons:
            return False
        await self.end(life, commit=dice.random() >= dealings.aborts)
        return True

    async def _haunt(self) -> None:
        """A life that was given up tries to commit, now that its successor has something open."""
        zombie, self._zombie = self._zombie, None
        if zombie is not None:
            with suppress(Gone):
                await self.end(zombie, commit=True)

    async def add(self, life: Life, partitions: list[TopicPartition]) -> None:
        fields = {
            "v3_and_below_transactional_id": self._client.name,
            "v3_and_below_producer_id": life.producer_id,
            "v3_and_below_producer_epoch": life.epoch,
            "v3_and_below_topics": [{"name": t, "partitions": [p]} for t, p in partitions],
        }
        while True:
            reply = await self._client.ask_until_answered(ADD_PARTITIONS, 3, fields)
            codes = {
                ErrorCode(part.partition_error_code)
                for topic in reply.results_by_topic_v3_and_below
                for part in topic.results_by_partition
            }
            if codes == {ErrorCode.none}:
                return
            for code in sorted(codes - {ErrorCode.none, ErrorCode.operation_not_attempted}):
                self._judge(code)
            await self._client.back_off()

    async def write(self, life: Life, tp: TopicPartition, count: int) -> None:
        names = [f"{life.transaction}.{tp.partition}.{number}" for number in range(count)]
        began, sequence = self._book.now_ns, life.sequences.get(tp, 0)
        batch = build(
            [NewRecord(None, name.encode(), (), self._client.clock.wall_ms()) for name in names],
            producer_id=life.producer_id,
            producer_epoch=life.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        outcome, offset = UNKNOWN, -1
        try:
            offset = await self._until_written(tp, batch)
            outcome = OK
        finally:
            now = self._book.now_ns
            for at, name in enumerate(names):
                stands = offset + at if offset >= 0 else -1
                self._book.write(
                    Send(
                        life.process, str(tp), name, began, now, outcome, stands,
                        transaction=life.transaction,
                    )
                )  # fmt: skip
        life.sequences[tp] = sequence + count

    async def _until_written(self, tp: TopicPartition, batch: bytes) -> int:
        part = {"index": tp.partition, "records": batch}
        fields = {
            "transactional_id": self._client.name,
            "acks": -1,
            "timeout": 2_000,
            "topic_data": [{"name": tp.topic, "partition_data": [part]}],
        }
        version = 11 if self._dealings.version == 1 else 12
        for _ in range(TRIES):
            try:
                reply = await self._client.ask(PRODUCE, version, fields, 2_000)
            except OSError:
                await self._client.back_off()
                continue
            [[said]] = [topic.partition_responses for topic in reply.responses]
            code = ErrorCode(said.error_code)
            if code is ErrorCode.none:
                return int(said.base_offset)
            self._judge(code)
            await self._client.back_off()
        raise Gone("no reply from the broker")

    async def end(self, life: Life, *, commit: bool) -> None:
        began, outcome = self._book.now_ns, UNKNOWN
        try:
            reply = await self._until_ended(life, commit)
            outcome = OK
        finally:
            now = self._book.now_ns
            self._book.write(Ended(life.process, life.transaction, commit, began, now, outcome))
        if self._dealings.version == 2:
            if (reply.producer_id, reply.producer_epoch) != (life.producer_id, life.epoch):
                life.sequences.clear()
            life.producer_id, life.epoch = reply.producer_id, reply.producer_epoch

    async def _until_ended(self, life: Life, commit: bool) -> Any:
        fields: Mapping[str, Any] = {
            "transactional_id": self._client.name,
            "producer_id": life.producer_id,
            "producer_epoch": life.epoch,
            "committed": commit,
        }
        version = 3 if self._dealings.version == 1 else 5
        for _ in range(TRIES):
            reply = await self._client.ask_until_answered(END_TXN, version, fields)
            if reply.error_code is ErrorCode.none:
                return reply
            self._judge(ErrorCode(reply.error_code))
            await self._client.back_off()
        raise Gone("the transaction did not complete")

    def _judge(self, code: ErrorCode) -> None:
        if code in OVER:
            raise Gone(code.name)
        self._accept(code, AGAIN)

    def _accept(self, code: ErrorCode, known: frozenset[ErrorCode]) -> None:
        if code not in known:
            self._book.complain("refusal", self._client.name, f"{code!r}")
