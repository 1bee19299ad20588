"""Members of groups through aiokafka, each on an event loop of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from tests.interop.members.member_host import HEARTBEAT_MS, POLL_S, Member, host

STRATEGIES: Final[dict[str, Any]] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    def __init__(self, member: Member) -> None:
        self._member = member
        self.has_left = False

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._member.lost(one.partition for one in revoked)

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        if not self.has_left:  # else it is stopping, and tells nobody that it gave them up
            self._member.gained(one.partition for one in assigned)


class AiokafkaMember(Member):
    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        spec = self.spec
        consumer = AIOKafkaConsumer(
            bootstrap_servers=spec.bootstrap,
            group_id=spec.group,
            partition_assignment_strategy=[STRATEGIES[spec.strategy]],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=spec.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            fetch_max_wait_ms=50,
        )
        listener = Listener(self)
        consumer.subscribe([spec.topic], listener=listener)
        await consumer.start()
        while not self.stopping.is_set():
            before = consumer._coordinator.generation  # it has no public name
            found = await consumer.getmany(timeout_ms=int(POLL_S * 1_000))
            self.within(before, consumer._coordinator.generation)
            await self._work(consumer, found)
        listener.has_left = True
        self.lost(one.partition for one in consumer.assignment())  # stopping it tells nobody
        await consumer.stop()

    async def _work(self, consumer: Any, found: dict[Any, list[Any]]) -> None:
        for at, records in found.items():
            offsets = [record.offset for record in records]
            self.saw(at.partition, offsets, [record.value for record in records])
        if not found:
            return
        after = {at.partition: records[-1].offset + 1 for at, records in found.items()}
        began = time.monotonic_ns()
        try:
            await consumer.commit({at: records[-1].offset + 1 for at, records in found.items()})
        except KafkaError:  # a rebalance: whoever owns them next reads them again
            self.committed(after, began, ok=False)
        else:
            self.within(self.generation, consumer._coordinator.generation)
            self.committed(after, began, ok=True)


if __name__ == "__main__":
    host(AiokafkaMember)
