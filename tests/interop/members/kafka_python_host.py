"""Members of groups through kafka-python."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError

from tests.interop.kafka_python_settings import JOIN_POLL_MS, METADATA_MAX_AGE_MS, subscribe
from tests.interop.members.member_host import HEARTBEAT_MS, Member, host

STRATEGIES: Final[dict[str, Any]] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    def __init__(self, member: Member, assignor: Any) -> None:
        self._member = member
        self._assignor = assignor

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._member.lost(one.partition for one in revoked)

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        """Told when a commit or a heartbeat came too late for its generation.

        kafka-python 3.0 drops what it had, and yet says that it owns it when it joins again: its
        cooperative leader then waits for it to give away what it has not got, and for ever, for
        who gives nothing away asks for no further round. Other members are left with nothing.
        """
        self._member.lost(one.partition for one in lost)
        self._assignor.member_assignment = None

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._member.gained(one.partition for one in assigned)


class KafkaPythonMember(Member):
    def run(self) -> None:
        spec = self.spec
        assignor = STRATEGIES[spec.strategy]()
        consumer = KafkaConsumer(
            bootstrap_servers=spec.bootstrap,
            group_id=spec.group,
            partition_assignment_strategy=[assignor],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=spec.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            fetch_max_wait_ms=50,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )
        subscribe(consumer, spec.topic, Listener(self, assignor))
        while not self.stopping.is_set():
            before = consumer.group_metadata().generation_id
            found = consumer.poll(JOIN_POLL_MS)
            self.within(before, consumer.group_metadata().generation_id)
            self._work(consumer, found)
        consumer.close(autocommit=False)

    def _work(self, consumer: Any, found: dict[Any, list[Any]]) -> None:
        for at, records in found.items():
            offsets = [record.offset for record in records]
            self.saw(at.partition, offsets, [record.value for record in records])
        if not found:
            return
        after = {at.partition: records[-1].offset + 1 for at, records in found.items()}
        began = time.monotonic_ns()
        try:
            consumer.commit()
        except KafkaError:  # a rebalance: whoever owns them next reads them again
            self.committed(after, began, ok=False)
        else:
            self.within(self.generation, consumer.group_metadata().generation_id)
            self.committed(after, began, ok=True)


if __name__ == "__main__":
    host(KafkaPythonMember)
