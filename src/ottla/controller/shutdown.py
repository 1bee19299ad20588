"""A broker that asks to stop hands its leaders over first.

Owns the order: mark it, move its leaders, take its followers out of the ISRs, tell what is left.
Pure.
"""

from __future__ import annotations

from dataclasses import replace

from ottla.controller import partitions, replicas
from ottla.controller.draft import Draft
from ottla.controller.effects import Step
from ottla.controller.events import ShutdownRequested
from ottla.controller.replicas import Replica
from ottla.controller.state import ControllerState, ReplicaState
from ottla.model.errors import ErrorCode, KafkaError


def on_shutdown_requested(state: ControllerState, event: ShutdownRequested) -> Step:
    """The answer is the set of partitions it still leads though others hold copies."""
    draft = Draft(state)
    broker = state.brokers.get(event.broker)
    if broker is None or event.epoch < broker.epoch:
        code = ErrorCode.broker_not_available if broker is None else ErrorCode.stale_broker_epoch
        draft.reply(event.ask, KafkaError(code))
        return draft.step()
    draft.state = replace(state, shutting_down=state.shutting_down | {event.broker})
    shared = [
        tp
        for tp, partition in state.partitions()
        if event.broker in partition.replicas
        and len(partition.replicas) > 1
        and partition.leadership is not None
        and tp.topic not in state.deletions
    ]
    led = [tp for tp in shared if draft.partition(tp).leader == event.broker]
    followed = [
        Replica(tp, event.broker) for tp in shared if draft.partition(tp).leader != event.broker
    ]
    failures = partitions.bring_online(draft, led, partitions.leaving)
    replicas.move(draft, followed, ReplicaState.OFFLINE)
    draft.reply(event.ask, frozenset(failures))
    return draft.step()
