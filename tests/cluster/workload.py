"""Everything that clients do to three brokers at once, and the verdict on all of it.

Owns: the topics, the clients of `load`, `transacting` and `grouped`, and their common history.
Never: touches a broker's process.

- `load`       two idempotent producers and a reader; two groups, one of each protocol, read it too
- `compacted`  a producer with few keys; the cleaner is at work on tiny segments
- `written`    transactional producers that abort, abandon, and are fenced by their successors
- `source`     copied to `sink` by a group, exactly once, its offsets within the transactions
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from random import Random
from types import TracebackType
from typing import Final, Self

from ottla.testing.history import Event, Fault, OffsetRead, Outcome, Pipe, Poll, Send, check
from tests.cluster.administration import metric
from tests.cluster.grouped import members, read_by
from tests.cluster.load import IMPATIENT
from tests.cluster.process import wait_for
from tests.cluster.three_brokers import ThreeBrokers
from tests.cluster.transacting import Copier, Ground, Topic, Writer
from tests.cluster.transaction_readers import (
    Reader,
    Watcher,
    look_at_logs,
    look_at_offsets,
    offset_reader,
    read_finally,
)

LOAD: Final = Topic("load", 3)
COMPACTED: Final = Topic("compacted", 2)
WRITTEN: Final = Topic("written", 3)
SOURCE: Final = Topic("source", 2)
SINK: Final = Topic("sink", 2)
TRANSACTIONAL: Final = (WRITTEN, SOURCE, SINK)
GROUPS: Final = ("classic-readers", "consumer-readers")
READ_BY: Final[Mapping[str, Topic]] = {**dict.fromkeys(GROUPS, LOAD), str(SOURCE): SOURCE}
"""By group: what it reads."""
COMPACTION: Final = {
    "cleanup_policy": "compact",
    "internal_segment_bytes": "20000",
    "min_cleanable_dirty_ratio": "0.01",
    "min_compaction_lag_ms": "0",
}
BROKER_SETTINGS: Final = {"log.cleaner.backoff.ms": "300"}
ROUNDS: Final = "kafka_log_logcleaner_rounds_total"
HANGS_S: Final = 20.0
"""A failover lies within: a call of librdkafka that takes longer is one that never returns."""
REST_S: Final = 120.0


class Workload:
    """The clients run while in the block; `verify` comes after it."""

    def __init__(self, cluster: ThreeBrokers, seed: int) -> None:
        dice = Random(seed)
        self._cluster = cluster
        self._ground = Ground(cluster.bootstrap, HANGS_S, self._leader_of)
        if cluster.security is not None:
            self._ground.line = cluster.security.line
        self._loads = {
            LOAD: cluster.load(LOAD, LOAD.partitions, settings=IMPATIENT, pause_s=0.01),
            COMPACTED: cluster.load(
                COMPACTED, COMPACTED.partitions, producers=1, pause_s=0.01, keys=10,
                settings={**IMPATIENT, "batch.size": 8_000},  # it must fit into a segment
            ),
            SOURCE: cluster.load(
                SOURCE, SOURCE.partitions, producers=1, settings=IMPATIENT, pause_s=0.03
            ),
        }  # fmt: skip
        protocol = dice.choice(["classic", "consumer"])
        self._writers = [
            Writer(self._ground, WRITTEN, f"w{n}", Random(dice.random())) for n in range(2)
        ]
        self._copiers = [
            Copier(self._ground, SOURCE, SINK, f"c{n}", Random(dice.random()), protocol=protocol)
            for n in range(2)
        ]
        self._members = members(self._ground, LOAD, GROUPS, dice)
        self._others: list[threading.Thread] = [
            Reader(self._ground, TRANSACTIONAL, committed=True),
            Reader(self._ground, TRANSACTIONAL, committed=False),
            Watcher(self._ground, TRANSACTIONAL, READ_BY),
        ]

    def __enter__(self) -> Self:
        for topic in (LOAD, *TRANSACTIONAL):
            self._cluster.create_topic(topic, topic.partitions)
        self._cluster.create_topic(COMPACTED, COMPACTED.partitions, **COMPACTION)
        for thread in self._threads:
            thread.start()
        for load in self._loads.values():
            load.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            for load in self._loads.values():
                load.__exit__(kind, error, trace)
            if kind is None:
                self._let_all_be_read()
        finally:
            self._stop()

    @property
    def _threads(self) -> list[threading.Thread]:
        return [*self._writers, *self._copiers, *self._members, *self._others]

    def fault(self, name: str) -> None:
        self._ground.events.append(Fault(name, time.monotonic_ns()))

    def wait_for_progress(self) -> None:
        """Everybody's work goes on: records are acknowledged, transactions end."""
        sent = {topic: load.acknowledged for topic, load in self._loads.items()}
        ended = self._ground.ended()
        wait_for(
            lambda: (
                all(self._loads[topic].acknowledged > count + 10 for topic, count in sent.items())
                and self._ground.ended() > ended + 3
            ),
            REST_S,
            "records to be acknowledged, and transactions to end",
        )

    def _leader_of(self, topic: str, partition: int) -> tuple[str, int]:
        leader, epoch, _ = self._cluster.state(topic, partition)
        if leader < 0:
            raise OSError(f"{topic}-{partition} has no leader")
        return self._cluster.brokers[leader].address, epoch

    # The end

    def _let_all_be_read(self) -> None:
        """Until every group has committed the end of its topic."""
        for group, topic in READ_BY.items():
            reader = offset_reader(self._ground, group)
            ends = [reader.get_watermark_offsets(one, 30)[1] for one in topic.all()]
            wait_for(
                lambda reader=reader, topic=topic, ends=ends: (  # type: ignore[misc]
                    [one.offset for one in reader.committed(topic.all(), 30)] == ends
                ),
                REST_S,
                f"{group} to read up to {ends}",
            )
            reader.close()

    def _stop(self) -> None:
        for copier in self._copiers:
            copier.finish.set()
        self._ground.stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(REST_S)

    def verify(self) -> list[Event]:
        """After the block: heal all, read everything, judge, and compare the replicas."""
        cluster, ground = self._cluster, self._ground
        cluster.heal()
        cluster.wait_until_all_in_sync()
        alive = [thread.name for thread in self._threads if thread.is_alive()]
        assert not alive, f"did not end: {alive}"
        failures = [failure for load in self._loads.values() for failure in load.failures]
        failures += ground.failures
        assert not failures, failures[:10]
        for group, topic in READ_BY.items():
            reader = offset_reader(ground, group)
            look_at_offsets(ground, reader, group, topic)
            reader.close()
        wait_for(lambda: look_at_logs(ground, TRANSACTIONAL), 60, "open transactions to end")
        read_finally(ground, TRANSACTIONAL)
        history = [*ground.events, Pipe(SOURCE, SINK)]
        for topic, load in self._loads.items():
            finished = load.events if topic is SOURCE else load.finish()
            history += [event for event in finished if _counts(event, topic)]
        violations = check(history)
        assert not violations, violations[:10]
        acknowledged = _acknowledged(history, LOAD)
        for group in GROUPS:
            assert acknowledged <= read_by(history, group), f"{group} missed records"
        for id, broker in cluster.brokers.items():
            assert metric(broker, ROUNDS) > 0, f"the cleaner of broker {id} never ran"
        cluster.assert_replicas_equal(compacted=[COMPACTED])
        cluster.assert_no_tracebacks()
        return history

    def describe(self, history: list[Event]) -> str:
        """What the run was made of."""
        sends = sum(isinstance(e, Send) and e.outcome is Outcome.OK for e in history)
        records = sum(len(e.records) for e in history if isinstance(e, Poll))
        looks = sum(isinstance(e, OffsetRead) for e in history)
        faults = sum(isinstance(e, Fault) for e in history)
        return (
            f"{faults} faults, {sends} records acknowledged, {records} read, "
            f"{self._ground.ended(commit=True)} transactions committed and "
            f"{self._ground.ended(commit=False)} aborted, {looks} looks at offsets"
        )


def _counts(event: Event, topic: Topic) -> bool:
    """The reader of a load and those of `transacting` may bear the same name elsewhere."""
    return not isinstance(event, Poll | Send) or event.partition.rpartition("-")[0] == topic


def _acknowledged(history: list[Event], topic: Topic) -> set[str]:
    return {
        event.value
        for event in history
        if isinstance(event, Send)
        and event.outcome is Outcome.OK
        and event.partition.rpartition("-")[0] == topic
    }
