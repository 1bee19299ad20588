"""What must become true once every fault was repaired.

Owns the waits, each with a limit, and the complaints about what has not become true. What holds for
records and transactions is for the history's checker to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.sim.admin import AT_REST, LIST_TRANSACTIONS
from tests.sim.client import METADATA
from tests.sim.cluster.cluster import SimCluster
from tests.sim.cluster.verdict import log_of, strays
from tests.sim.consumer import EARLIEST, Consumer, read_everything

EVERY_TOPIC: Final = {
    "topics": None,
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
}
OPEN: Final = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
WHOLE_LIMIT_S: Final = 60.0
"""For all replicas to be in sync."""
END_LIMIT_S: Final = 40.0
READ_LIMIT_S: Final = 30.0
"""For one partition to be read to its end."""


class FinalChecks:
    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self._admin = cluster.admin

    async def run(self) -> None:
        await self.until_whole()
        await self._until_none("metadata", END_LIMIT_S, self._other_metadata)
        await self._until_none("open", END_LIMIT_S, self._open_transactions)
        await self._until_none("stray", END_LIMIT_S, self._strays)

    async def until_whole(self) -> None:
        await self._until_none("in sync", WHOLE_LIMIT_S, self._out_of_sync)

    async def read(self, reader: Consumer, tp: TopicPartition) -> None:
        """With every replica in sync, all that the leader has is committed soon."""
        end = self._log_end(tp)
        try:
            async with asyncio.timeout(READ_LIMIT_S):
                while True:
                    await read_everything(reader)
                    end = self._log_end(tp)
                    if reader.positions[tp].high_watermark >= end:
                        return
                    await asyncio.sleep(0.1)
                    await reader.poll()  # the high watermark may have moved
        except TimeoutError:
            position = reader.positions[tp]
            where = f"{position.offset}, high watermark {position.high_watermark}, log end {end}"
            self._complain("held up", f"{tp}: reading stops at {where}")

    async def start(self, reader: Consumer, tp: TopicPartition) -> int:
        """The first offset that is served; leaders still move, to the preferred replicas."""
        async with asyncio.timeout(READ_LIMIT_S):
            while True:
                try:
                    return await reader.bound(tp, EARLIEST)
                except OSError:
                    await asyncio.sleep(0.1)

    def _log_end(self, tp: TopicPartition) -> int:
        leader = self._cluster.view.states()[tp].leader
        return log_of(self._cluster.nodes[leader], tp).end if leader >= 0 else -1

    async def _until_none(
        self, invariant: str, limit_s: float, find: Callable[[], Awaitable[list[str]]]
    ) -> None:
        """Wait until nothing is found any more."""
        found: list[str] = []
        try:
            async with asyncio.timeout(limit_s):
                while found := await find():  # noqa: ASYNC110 - virtual time
                    await asyncio.sleep(0.1)
        except TimeoutError:
            self._complain(invariant, f"after {limit_s:.0f} s: {found[:5]}")

    def _complain(self, invariant: str, detail: str) -> None:
        self._cluster.book.complain(invariant, "", detail)

    async def _out_of_sync(self) -> list[str]:
        return self._cluster.view.out_of_sync(len(self._cluster.nodes))

    async def _strays(self) -> list[str]:
        return strays(self._cluster.nodes, self._cluster.view)

    async def _other_metadata(self) -> list[str]:
        """Where a broker names other brokers, leaders or in-sync sets than the store."""
        view, found = self._cluster.view, []
        states, registered = view.states(), view.registered()
        for broker in self._cluster.nodes:
            try:
                reply = await self._admin.ask_broker(broker, METADATA, 12, EVERY_TOPIC)
            except OSError:
                found.append(f"broker {broker}: no reply")
                continue
            live = sorted(node.node_id for node in reply.brokers)
            if live != registered:
                found.append(f"live brokers on broker {broker}: {live}, not {registered}")
            named = _leaderships(reply)
            for tp in sorted({*states, *named}):
                state = states.get(tp)
                wanted = state and (state.leader, state.leader_epoch, sorted(state.isr))
                if named.get(tp) != wanted:
                    found.append(f"{tp} on broker {broker}: {named.get(tp)}, not {wanted}")
        return found

    async def _open_transactions(self) -> list[str]:
        """Every transaction was decided, or its producer replaced: it must end soon."""
        found = []
        for broker in self._cluster.nodes:
            try:
                reply = await self._admin.ask_broker(broker, LIST_TRANSACTIONS, 1, OPEN)
            except OSError:
                found.append(f"broker {broker}: no reply")
                continue
            if reply.error_code != ErrorCode.none:
                found.append(f"broker {broker}: {ErrorCode(reply.error_code).name}")
            for row in reply.transaction_states:
                if row.transaction_state not in AT_REST:
                    found.append(f"{row.transactional_id}: {row.transaction_state}")
        return found


def _leaderships(reply: Any) -> dict[TopicPartition, tuple[int, int, list[int]]]:
    return {
        TopicPartition(topic.name, partition.partition_index): (
            partition.leader_id,
            partition.leader_epoch,
            sorted(partition.isr_nodes),
        )
        for topic in reply.topics
        for partition in topic.partitions
    }
