"""A topic that comes and goes, again and again, while everything else happens.

Owns one name. Each time it is made it is another topic: nothing that was written to an earlier one
may be found in it.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord
from tests.sim import admin
from tests.sim.book import Book
from tests.sim.client import PRODUCE, RETRIABLE, Client
from tests.sim.consumer import Consumer, Tastes, read_everything


class Churn:
    def __init__(
        self, client: Client, book: Book, name: str, rounds: int, *, replicas: int = 1
    ) -> None:
        self._client = client
        self._book = book
        self._name = name
        self._rounds = rounds
        self._replicas = replicas

    async def run(self) -> None:
        dice = self._client.dice
        deleted: list[UUID] = []
        for number in range(self._rounds):
            count, configs = dice.randint(1, 3), {"segment.ms": "1000"}
            topic = admin.NewTopic(self._name, count, configs, self._replicas)
            topic_id = await admin.create(self._client, topic, deleted)
            await self._write(f"life-{number}")
            if dice.random() < 0.5:
                await admin.add_partitions(self._client, topic, topic.partitions + 2)
            if dice.random() < 0.5:
                changed = {"index.interval.bytes": str(dice.randint(1, 4096))}
                await admin.alter(self._client, self._name, changed)
            await asyncio.sleep(dice.random())
            await self._read(f"life-{number}")
            await admin.delete(self._client, topic_id)
            deleted.append(topic_id)
            await asyncio.sleep(dice.random() * 0.3)

    async def _write(self, value: str) -> None:
        """At least once: whoever asks again may write it again."""
        while True:
            batch = build([NewRecord(None, value.encode(), timestamp=self._client.clock.wall_ms())])
            parts = [{"index": 0, "records": batch}]
            fields = {
                "transactional_id": None,
                "acks": 1 if self._replicas == 1 else -1,
                "timeout": 1_000,
                "topic_data": [{"name": self._name, "partition_data": parts}],
            }
            reply = await self._client.ask_until_answered(PRODUCE, 9, fields)
            [[part]] = [topic.partition_responses for topic in reply.responses]
            if part.error_code == ErrorCode.none:
                return
            if part.error_code not in RETRIABLE:
                self._complain(f"{ErrorCode(part.error_code)!r}")
            await self._client.back_off()

    async def _read(self, value: str) -> None:
        book = Book.apart(self._book)
        reader = Consumer(self._client, [TopicPartition(self._name, 0)], book, Tastes())
        await read_everything(reader)
        strangers = sorted(set(book.values()) - {value})
        if strangers:
            self._complain(f"{strangers} of an earlier life in {value}")

    def _complain(self, detail: str) -> None:
        self._book.complain("churn", self._name, detail)
