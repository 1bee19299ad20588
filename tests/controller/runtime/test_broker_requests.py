"""The three requests as bytes."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.controller.events import LeaderAndIsrReplied, StopReplicaReplied
from ottla.controller.machine import on_event
from ottla.controller.runtime.broker_requests import FULL, Request, requests
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol import wire
from ottla.protocol.interbroker import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, VERSIONS
from tests.controller.transcript import COMMANDS, Actor, topic_id

T0 = TopicPartition("t", 0)


def sent(command: str, *before: str) -> list[Request]:
    actor = Actor()
    for earlier in before:
        actor.run(earlier)
    word, *rest = command.split()
    step = on_event(actor.state, COMMANDS[word](actor, rest))
    return list(requests(step.state, step.sends))


def decoded(request: Request) -> Any:
    view = memoryview(frame(request))[4:]
    return wire.decode(wire.parse_call(view), view)


def frame(request: Request) -> bytes:
    newest = VERSIONS[request.key][-1]
    return wire.encode_request(request.key, newest, 7, "controller", request.fields)


def replied(request: Request, answer: wire.Fields) -> Any:
    """The answer as it arrives after encoding and decoding."""
    call = wire.parse_call(memoryview(frame(request))[4:])
    reply = memoryview(wire.reply(call, answer))[4:]
    return wire.decode_reply(call.key, call.version, reply)


@pytest.mark.spec("CTL-24", "CTL-36", "CTL-37", "CTL-18")
def test_a_start_sends_live_brokers_then_leaders_then_metadata() -> None:
    live, led, metadata = sent("elected 4 1@20:a t-0=1/1/1")
    assert [live.key, led.key, metadata.key] == [UPDATE_METADATA, LEADER_AND_ISR, UPDATE_METADATA]
    (broker,) = decoded(live).live_brokers
    assert (broker.id, broker.rack) == (1, "a")
    assert [(e.host, e.port, e.listener) for e in broker.endpoints] == [
        ("host1", 9092, "PLAINTEXT")
    ]
    assert decoded(live).topic_states == ()
    leaders = decoded(led)
    assert (leaders.controller_id, leaders.controller_epoch, leaders.broker_epoch) == (1, 4, 20)
    assert leaders.type == FULL
    (topic,) = leaders.topic_states
    assert topic.topic_id == topic_id("t")
    (state,) = topic.partition_states
    assert (state.leader, state.leader_epoch, state.isr, state.partition_epoch) == (1, 5, (1,), 10)
    assert [(one.broker_id, one.port) for one in leaders.live_leaders] == [(1, 9092)]


@pytest.mark.spec("CTL-52", "MDC-10")
def test_a_topic_being_deleted_is_told_with_leader_minus_two_and_stopped_with_delete() -> None:
    metadata, stopped = sent("delete t", "elected 4 1 t-0=1/1/1")
    (topic,) = decoded(metadata).topic_states
    assert topic.partition_states[0].leader == -2
    (topic,) = decoded(stopped).topic_states
    (state,) = topic.partition_states
    assert (state.leader_epoch, state.delete_partition) == (-2, True)


@pytest.mark.spec("CTL-53")
def test_replies_become_events() -> None:
    _, led, _ = sent("elected 4 1@20 t-0=1/1/1")
    answer = {
        "error_code": ErrorCode.none,
        "topics": [
            {
                "topic_id": topic_id("t"),
                "partition_errors": [
                    {"partition_index": 0, "error_code": ErrorCode.kafka_storage_error}
                ],
            }
        ],
    }
    assert led.event(replied(led, answer)) == LeaderAndIsrReplied(
        led.broker.id, led.broker.epoch, {T0: ErrorCode.kafka_storage_error}
    )


@pytest.mark.spec("CTL-53")
def test_a_refused_stop_replica_counts_for_every_replica_it_named() -> None:
    _, stopped = sent("delete t", "elected 4 1 t-0=1/1/1 t-1=1/1/1")
    assert stopped.key == STOP_REPLICA
    answer = {"error_code": ErrorCode.unknown_server_error, "partition_errors": []}
    event = stopped.event(replied(stopped, answer))
    assert isinstance(event, StopReplicaReplied)
    assert set(event.codes.values()) == {ErrorCode.unknown_server_error}
    assert len(event.codes) == 2


def test_a_reply_to_update_metadata_means_nothing_more() -> None:
    live, *_ = sent("elected 4 1")
    assert live.event(replied(live, {"error_code": ErrorCode.none})) is None
