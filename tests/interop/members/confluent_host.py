"""Members of groups through confluent-kafka. It does not say which generation it is in."""

from __future__ import annotations

import time
from collections import defaultdict

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tests.interop.members.member_host import HEARTBEAT_MS, POLL_S, Member, host


class ConfluentMember(Member):
    def run(self) -> None:
        spec = self.spec
        consumer = Consumer(
            {
                "bootstrap.servers": spec.bootstrap,
                "group.id": spec.group,
                "partition.assignment.strategy": spec.strategy,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": spec.session_ms,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "fetch.wait.max.ms": 50,
                "log_level": 0,
            }
        )
        consumer.subscribe(
            [spec.topic],
            on_assign=lambda _, parts: self.gained(part.partition for part in parts),
            on_revoke=lambda _, parts: self.lost(part.partition for part in parts),
            on_lost=lambda _, parts: self.lost(part.partition for part in parts),
        )
        while not self.stopping.is_set():
            self._work(consumer, [one for one in consumer.consume(500, POLL_S) if not one.error()])
        consumer.close()

    def _work(self, consumer: Consumer, messages: list[Message]) -> None:
        found: dict[int, list[Message]] = defaultdict(list)
        for message in messages:
            found[message.partition() or 0].append(message)
        for partition, some in found.items():
            offsets = [message.offset() or 0 for message in some]
            self.saw(partition, offsets, [message.value() or b"" for message in some])
        if not found:
            return
        after = {partition: (some[-1].offset() or 0) + 1 for partition, some in found.items()}
        began = time.monotonic_ns()
        try:
            wanted = [TopicPartition(self.spec.topic, at, offset) for at, offset in after.items()]
            consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException:  # a rebalance: whoever owns them next reads them again
            self.committed(after, began, ok=False)
        else:
            self.committed(after, began, ok=True)


if __name__ == "__main__":
    host(ConfluentMember)
