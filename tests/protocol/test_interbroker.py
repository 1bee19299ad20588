"""The messages between brokers are laid out as Kafka 3.x laid them out."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.protocol import interbroker, wire
from ottla.protocol.schema import MessageKind, fields_of, message
from tests.protocol.samples import BETWEEN_BROKERS, filled


@pytest.mark.spec("WIRE-05", "WIRE-47")
def test_the_three_requests_of_a_controller_share_their_fences() -> None:
    for key in (interbroker.LEADER_AND_ISR, interbroker.STOP_REPLICA, interbroker.UPDATE_METADATA):
        newest = message(key, interbroker.VERSIONS[key][-1], MessageKind.REQUEST)
        by_name = {field.name: field for field in fields_of(newest)}
        assert {"controller_id", "controller_epoch", "broker_epoch"} <= set(by_name)
        assert by_name["broker_epoch"].default == -1


@pytest.mark.spec("WIRE-48")
def test_leader_and_isr_has_its_fields_in_order() -> None:
    fields = {
        "controller_id": 1,
        "controller_epoch": 2,
        "broker_epoch": 3,
        "topic_states": [
            {
                "topic_name": "t",
                "topic_id": UUID(int=5),
                "partition_states": [
                    {
                        "partition_index": 6,
                        "controller_epoch": 2,
                        "leader": 1,
                        "leader_epoch": 7,
                        "isr": [1],
                        "partition_epoch": 8,
                        "replicas": [1, 2],
                        "is_new": True,
                    }
                ],
            }
        ],
        "live_leaders": [{"broker_id": 1, "host_name": "h", "port": 9092}],
    }
    frame = wire.encode_request(interbroker.LEADER_AND_ISR, 7, 9, "c", fields)
    assert frame[4:].hex(" ") == (
        "00 04 00 07 00 00 00 09 00 01 63 00 "  # header
        "00 00 00 01 00 00 00 00 02 00 00 00 00 00 00 00 03 00 "  # fences, type
        "02 02 74 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 05 "  # one topic
        "02 00 00 00 06 00 00 00 02 00 00 00 01 00 00 00 07 "  # one partition
        "02 00 00 00 01 00 00 00 08 03 00 00 00 01 00 00 00 02 01 01 01 00 00 00 "
        "02 00 00 00 01 02 68 00 00 23 84 00 00"  # one leader, no tagged fields
    )


@pytest.mark.spec("WIRE-48")
def test_leader_and_isr_listed_partitions_without_topics_at_first() -> None:
    entity = message(interbroker.LEADER_AND_ISR, 0, MessageKind.REQUEST)
    assert [field.name for field in fields_of(entity)] == [
        "controller_id",
        "controller_epoch",
        "ungrouped_partition_states",
        "live_leaders",
    ]


@pytest.mark.spec("WIRE-49")
def test_stop_replica_says_which_copies_go_and_whether_they_are_deleted() -> None:
    for version, flag in ((0, "delete_partitions"), (2, "delete_partitions")):
        entity = message(interbroker.STOP_REPLICA, version, MessageKind.REQUEST)
        assert flag in {field.name for field in fields_of(entity)}
    fields = {
        "controller_id": 1,
        "controller_epoch": 2,
        "broker_epoch": 3,
        "topic_states": [
            {
                "topic_name": "t",
                "partition_states": [
                    {"partition_index": 4, "leader_epoch": 5, "delete_partition": True}
                ],
            }
        ],
    }
    frame = wire.encode_request(interbroker.STOP_REPLICA, 3, 9, None, fields)
    assert frame[4:].hex(" ") == (
        "00 05 00 03 00 00 00 09 ff ff 00 00 00 00 01 00 00 00 02 00 00 00 00 00 00 00 03 "
        "02 02 74 02 00 00 00 04 00 00 00 05 01 00 00 00"
    )


@pytest.mark.spec("WIRE-50")
def test_update_metadata_carries_partitions_and_brokers() -> None:
    entity = message(interbroker.UPDATE_METADATA, 8, MessageKind.REQUEST)
    frame = memoryview(
        wire.encode_request(interbroker.UPDATE_METADATA, 8, 1, None, filled(entity, count=1))
    )[4:]
    request = wire.decode(wire.parse_call(frame), frame)
    partition = request.topic_states[0].partition_states[0]
    assert (partition.zk_version, partition.offline_replicas) == (7, (7,))
    assert request.live_brokers[0].endpoints[0].listener == "tøpic"
    assert request.live_brokers[0].rack == "tøpic"
    assert request.type == 7


def test_the_oldest_controlled_shutdown_has_no_client_id() -> None:
    frame = wire.encode_request(interbroker.CONTROLLED_SHUTDOWN, 0, 9, "ignored", {"broker_id": 3})
    assert frame.hex(" ") == "00 00 00 0c 00 07 00 00 00 00 00 09 00 00 00 03"
    call = wire.parse_call(memoryview(frame)[4:])
    assert call.client_id is None
    assert wire.decode(call, memoryview(frame)[4:]).broker_id == 3
    assert wire.decode(call, memoryview(frame)[4:]).broker_epoch == -1


def test_the_versions_are_those_of_the_last_kafka_that_had_them() -> None:
    assert {key: (r[0], r[-1]) for key, r in interbroker.VERSIONS.items()} == BETWEEN_BROKERS
