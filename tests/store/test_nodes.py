"""Kafka's JSON: what it writes we read, what we write it reads."""

from __future__ import annotations

import json
from typing import Protocol
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.clock import WallMs
from ottla.model.ids import (
    NO_TOPIC_ID,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    ProducerId,
    TopicPartition,
)
from ottla.store import nodes

TOPIC_ID = UUID("5f2c1a52-8b3e-4b0f-9d5a-0c1e2f3a4b5c")
B0, B1 = BrokerId(0), BrokerId(1)


class Coded(Protocol):
    def encode(self) -> bytes: ...

    @classmethod
    def decode(cls, data: bytes) -> object: ...


BROKER = nodes.BrokerNode(
    (nodes.EndpointNode("PLAINTEXT", "here", 9092), nodes.EndpointNode("IN", "::1", 9093)),
    WallMs(1529210278988),
    "east",
)
EXAMPLES: list[tuple[Coded, object]] = [
    (
        nodes.ControllerNode(B0, WallMs(1529210278988)),
        {"version": 1, "brokerid": 0, "timestamp": "1529210278988"},
    ),
    (
        BROKER,
        {
            "version": 5,
            "features": {},
            "host": "here",
            "port": 9092,
            "jmx_port": -1,
            "timestamp": "1529210278988",
            "endpoints": ["PLAINTEXT://here:9092", "IN://[::1]:9093"],
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT", "IN": "PLAINTEXT"},
            "rack": "east",
        },
    ),
    (
        nodes.TopicNode(TOPIC_ID, {0: (B0, B1), 1: (B1,)}, adding={0: (B1,)}),
        {
            "version": 3,
            "topic_id": "XywaUos-Sw-dWgweLzpLXA",
            "partitions": {"0": [0, 1], "1": [1]},
            "adding_replicas": {"0": [1]},
            "removing_replicas": {},
        },
    ),
    (
        nodes.StateNode(B0, LeaderEpoch(2), (B0, B1), ControllerEpoch(26)),
        {"controller_epoch": 26, "leader": 0, "version": 1, "leader_epoch": 2, "isr": [0, 1]},
    ),
    (
        nodes.PartitionsNode((TopicPartition("orders", 3),)),
        {"version": 1, "partitions": [{"topic": "orders", "partition": 3}]},
    ),
    (
        nodes.ReassignmentNode({TopicPartition("orders", 3): (B1, B0)}),
        {"version": 1, "partitions": [{"topic": "orders", "partition": 3, "replicas": [1, 0]}]},
    ),
    (
        nodes.LogDirsNode({TOPIC_ID: "/disk/one"}),
        {"version": 1, "directories": {nodes.id_text(TOPIC_ID): "/disk/one"}},
    ),
    (nodes.LogDirEventNode(B1), {"version": 1, "broker": 1, "event": 1}),
    (
        nodes.ConfigNode({"retention.ms": "1"}),
        {"version": 1, "config": {"retention.ms": "1"}},
    ),
    (nodes.ConfigChangeNode("topics/orders"), {"version": 2, "entity_path": "topics/orders"}),
    (nodes.ClusterIdNode("abc"), {"version": "1", "id": "abc"}),
    (
        nodes.ProducerIdBlockNode(B0, ProducerId(1000), ProducerId(1999)),
        {"version": 1, "broker": 0, "block_start": "1000", "block_end": "1999"},
    ),
]


@pytest.mark.spec(
    "CTL-02", "CTL-04", "CTL-05", "CTL-06", "CTL-09", "CTL-10", "CTL-11", "CTL-12", "CTL-13",
    "TXN-05",
)  # fmt: skip
@pytest.mark.parametrize(("node", "fields"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_a_node_is_written_as_kafka_writes_it_and_read_back(node: Coded, fields: object) -> None:
    assert json.loads(node.encode()) == fields
    assert type(node).decode(node.encode()) == node


@pytest.mark.spec("CTL-03")
def test_the_controller_epoch_is_plain_digits() -> None:
    node = nodes.ControllerEpochNode(ControllerEpoch(12))
    assert node.encode() == b"12"
    assert nodes.ControllerEpochNode.decode(b"12") == node


@pytest.mark.spec("CTL-06")
def test_a_topic_of_an_older_kafka_has_no_id() -> None:
    node = nodes.TopicNode.decode(b'{"version":1,"partitions":{"10":[1],"2":[0]}}')
    assert node == nodes.TopicNode(NO_TOPIC_ID, {2: (B0,), 10: (B1,)})
    assert list(node.partitions) == [2, 10]


def test_fields_of_a_newer_kafka_are_passed_over() -> None:
    data = nodes.StateNode(B0, LeaderEpoch(0), (B0,), ControllerEpoch(1)).encode()
    newer = json.dumps({**json.loads(data), "leader_recovery_state": 0, "version": 9}).encode()
    assert nodes.StateNode.decode(newer) == nodes.StateNode.decode(data)


@pytest.mark.parametrize("garbage", [b"", b"{", b"[]", b"{}", b"null", b"\xff\xfe"])
@pytest.mark.parametrize("node", [node for node, _ in EXAMPLES], ids=lambda n: type(n).__name__)
def test_garbage_is_named_and_not_believed(node: Coded, garbage: bytes) -> None:
    with pytest.raises(nodes.BadNode):
        type(node).decode(garbage)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (nodes.ControllerEpochNode, b"twelve"),
        (nodes.PartitionsNode, b'{"partitions":[{"topic":"a"}]}'),
        (nodes.BrokerNode, b'{"endpoints":["nonsense"],"timestamp":"1"}'),
        (nodes.TopicNode, b'{"partitions":{},"topic_id":"short"}'),
    ],
)
def test_a_bad_field_is_named_and_not_believed(kind: type[Coded], data: bytes) -> None:
    with pytest.raises(nodes.BadNode):
        kind.decode(data)


@given(st.uuids())
def test_ids_keep_kafkas_spelling(id_: UUID) -> None:
    text = nodes.id_text(id_)
    assert len(text) == 22
    assert nodes.id_of(text) == id_
