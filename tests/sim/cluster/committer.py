"""Commits offsets of a group that has no members, each higher than the one before.

What it was told is committed must be there in the end: a coordinator that was replaced and did not
know it must not have said so. Offsets read in between prove nothing: such a coordinator may still
answer from its memory, as Kafka's does.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.testing.history import Commit, OffsetRead, Outcome
from tests.sim.book import Book
from tests.sim.client import RETRIABLE
from tests.sim.cluster.routing import OFFSET_COMMIT, OFFSET_FETCH, RoutedClient

RETRIED: Final = RETRIABLE | {
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
}


class Committer:
    def __init__(self, client: RoutedClient, book: Book, tp: TopicPartition, commits: int) -> None:
        self._client = client
        self._book = book
        self._tp = tp
        self._commits = commits

    async def run(self) -> None:
        for offset in range(1, self._commits + 1):
            began_ns, outcome = self._book.now_ns, Outcome.UNKNOWN
            while outcome is not Outcome.OK:
                try:
                    code = await self._commit(offset)
                except OSError:
                    code = ErrorCode.network_exception
                if code is ErrorCode.none:
                    outcome = Outcome.OK
                elif code not in RETRIED:
                    self._book.complain("refusal", str(self._tp), f"commit: {code!r}")
                    return
                else:
                    await self._client.back_off()
            name = self._client.name
            now_ns = self._book.now_ns
            self._book.write(Commit(name, name, str(self._tp), offset, began_ns, now_ns, outcome))
            await asyncio.sleep(self._client.dice.random() * 0.3)

    async def _commit(self, offset: int) -> ErrorCode:
        partition = {
            "partition_index": self._tp.partition,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        fields: dict[str, Any] = {
            "group_id": self._client.name,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "group_instance_id": None,
            "topics": [{"name": self._tp.topic, "partitions": [partition]}],
        }
        reply = await self._client.ask(OFFSET_COMMIT, 8, fields)
        [[part]] = [topic.partitions for topic in reply.topics]
        return ErrorCode(part.error_code)

    async def read_for_the_last_time(self) -> None:
        began_ns = self._book.now_ns
        topics = [{"name": self._tp.topic, "partition_indexes": [self._tp.partition]}]
        group = {"group_id": self._client.name, "member_id": None, "member_epoch": -1}
        fields = {"groups": [{**group, "topics": topics}], "require_stable": True}
        while True:
            reply = await self._client.ask_until_answered(OFFSET_FETCH, 8, fields)
            [found] = reply.groups
            codes = [found.error_code, *(p.error_code for t in found.topics for p in t.partitions)]
            if all(code == ErrorCode.none for code in codes):
                break
            await self._client.back_off()
        [[part]] = [topic.partitions for topic in found.topics]
        name, now_ns = self._client.name, self._book.now_ns
        self._book.write(
            OffsetRead(name, name, str(self._tp), part.committed_offset, began_ns, now_ns)
        )
