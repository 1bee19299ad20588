"""In-sync sets, proposed and committed: the one place where a leader changes them.

Owns the periodic look for followers that fell behind, and what follows from the controller's
answers. Never decides who is in sync (`leader.py` does) and never assumes that a proposal was
taken: until the controller has said that it was not, the high watermark counts both sets. A leader
that finds the state changed waits for the controller's LeaderAndIsr.

Lagging followers are looked for every half of `replica.lag.time.max.ms`, so that a stuck one
leaves within one and a half times the limit. Joining is checked on each of its fetches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

from ottla.model.ids import NO_TOPIC_ID, BrokerEpoch, BrokerId
from ottla.model.metrics import Registry
from ottla.protocol.schema import KioMessage
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.isr_sender import Controller, IsrSender, Outcome, Proposal
from ottla.replica.partition import HostedPartition

log = logging.getLogger(__name__)


class IsrLoop:
    def __init__(
        self,
        hosted: HostedPartitions,
        controller: Controller,
        broker_epoch: Callable[[], BrokerEpoch],
        flushes: FlushLoop,
        registry: Registry,
        *,
        spawn: Callable[[Coroutine[object, None, None]], object],
    ) -> None:
        self._hosted = hosted
        self._flushes = flushes
        broker_id = hosted.environment.broker_id
        self._sender = IsrSender(controller, broker_id, broker_epoch, spawn, self._on_reply)
        self._shrinks = registry.counter(
            "kafka_server_replicamanager_isr_shrinks_total", "Replicas removed from an ISR."
        )
        self._expands = registry.counter(
            "kafka_server_replicamanager_isr_expands_total", "Replicas added to an ISR."
        )
        self._failures = registry.counter(
            "kafka_server_replicamanager_failed_isr_updates_total",
            "ISR changes that the controller did not take.",
        )

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(self._hosted.environment.lag_max_ms / 2_000)
                self.shrink()
        finally:
            self._sender.close()

    def shrink(self) -> None:
        """Propose, for each partition led here, a set without those that fell behind."""
        environment = self._hosted.environment
        now_ms = environment.clock.mono_ms()
        for partition in self._hosted:
            leadership = partition.leadership
            if leadership is None or not leadership.followers:
                continue
            isr = leadership.isr_without_lagging(
                leader_end=partition.log.end_offset,
                now_ms=now_ms,
                lag_max_ms=environment.lag_max_ms,
            )
            if isr is not None:
                self.propose(partition, isr)

    def propose(self, partition: HostedPartition, isr: frozenset[BrokerId]) -> None:
        leadership = partition.require_leadership()
        leadership.proposed = isr
        topic_id = partition.log.topic_id or NO_TOPIC_ID
        self._sender.submit(Proposal(partition, leadership, isr, topic_id))

    def _on_reply(self, proposal: Proposal, outcome: Outcome, answer: KioMessage) -> None:
        """The controller's answer to a proposal of the present leadership."""
        partition, leadership = proposal.partition, proposal.leadership
        if outcome is Outcome.TAKEN and answer.leader_epoch == leadership.epoch:
            self._commit(partition, frozenset(map(BrokerId, answer.isr)), answer.partition_epoch)
            return
        self._failures.value += 1
        if outcome is Outcome.REFUSED:
            leadership.on_refused(self._hosted.environment.clock.mono_ms())
            log.warning(
                "ISR change of %s to %s rejected: %s",
                partition.key,
                sorted(proposal.isr),
                answer.error_code.name,
            )
            self._hosted.advance(partition)
            return
        log.warning(
            "ISR change of %s rejected: %s; its state has changed; "
            "waiting for LeaderAndIsr from the controller",
            partition.key,
            answer.error_code.name,
        )

    def _commit(self, partition: HostedPartition, isr: frozenset[BrokerId], version: int) -> None:
        before = partition.require_leadership().isr
        partition.set_isr(isr, version)
        if partition.waits_for_flush:
            self._flushes.request(partition)
        self._shrinks.value += len(before - isr)
        self._expands.value += len(isr - before)
        log.info("ISR of %s changed from %s to %s", partition.key, sorted(before), sorted(isr))
        self._hosted.advance(partition)
