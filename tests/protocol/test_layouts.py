"""The fields of the messages stand in the order in which the protocol has them on the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from ottla.protocol.schema import Entity, MessageKind, fields_of, message

spec = pytest.mark.spec
REQUEST, RESPONSE = MessageKind.REQUEST, MessageKind.RESPONSE

# What is between brackets is the struct that an array holds; a question mark says "or null".
LAYOUTS: Final = [
    (spec("WIRE-10"), 0, 3, REQUEST,
     "transactional_id:string? acks:int16 timeout:timedelta_i32 "
     "topic_data[name:string partition_data[index:int32 records:records?]]"),
    (spec("WIRE-12"), 0, 5, RESPONSE,
     "responses[name:string partition_responses[index:int32 error_code:error_code "
     "base_offset:int64 log_append_time:datetime_i64? log_start_offset:int64]] "
     "throttle_time:timedelta_i32"),
    (spec("WIRE-15"), 1, 7, REQUEST,
     "replica_id:int32 max_wait:timedelta_i32 min_bytes:int32 max_bytes:int32 "
     "isolation_level:int8 session_id:int32 session_epoch:int32 "
     "topics[topic:string partitions[partition:int32 fetch_offset:int64 log_start_offset:int64 "
     "partition_max_bytes:int32]] forgotten_topics_data[topic:string partitions:int32[]]"),
    (spec("WIRE-16"), 1, 9, REQUEST,
     "replica_id:int32 max_wait:timedelta_i32 min_bytes:int32 max_bytes:int32 "
     "isolation_level:int8 session_id:int32 session_epoch:int32 "
     "topics[topic:string partitions[partition:int32 current_leader_epoch:int32 "
     "fetch_offset:int64 log_start_offset:int64 partition_max_bytes:int32]] "
     "forgotten_topics_data[topic:string partitions:int32[]]"),
    (spec("WIRE-18"), 1, 7, RESPONSE,
     "throttle_time:timedelta_i32 error_code:error_code session_id:int32 "
     "responses[topic:string partitions[partition_index:int32 error_code:error_code "
     "high_watermark:int64 last_stable_offset:int64 log_start_offset:int64 "
     "aborted_transactions?[producer_id:int64 first_offset:int64] records:records?]]"),
    (spec("WIRE-19"), 1, 11, RESPONSE,
     "throttle_time:timedelta_i32 error_code:error_code session_id:int32 "
     "responses[topic:string partitions[partition_index:int32 error_code:error_code "
     "high_watermark:int64 last_stable_offset:int64 log_start_offset:int64 "
     "aborted_transactions?[producer_id:int64 first_offset:int64] "
     "preferred_read_replica:int32 records:records?]]"),
    (spec("WIRE-29"), 3, 5, RESPONSE,
     "throttle_time:timedelta_i32 brokers[node_id:int32 host:string port:int32 rack:string?] "
     "cluster_id:string? controller_id:int32 topics[error_code:error_code name:string "
     "is_internal:bool partitions[error_code:error_code partition_index:int32 leader_id:int32 "
     "replica_nodes:int32[] isr_nodes:int32[] offline_replicas:int32[]]]"),
    (spec("WIRE-30"), 10, 1, REQUEST, "key:string key_type:int8"),
    (spec("WIRE-30"), 10, 1, RESPONSE,
     "throttle_time:timedelta_i32 error_code:error_code error_message:string? node_id:int32 "
     "host:string port:int32"),
    (spec("WIRE-31"), 11, 5, REQUEST,
     "group_id:string session_timeout:timedelta_i32 rebalance_timeout:timedelta_i32 "
     "member_id:string group_instance_id:string? protocol_type:string "
     "protocols[name:string metadata:bytes]"),
    (spec("WIRE-33"), 11, 0, RESPONSE,
     "error_code:error_code generation_id:int32 protocol_name:string leader:string "
     "member_id:string members[member_id:string metadata:bytes]"),
    (spec("WIRE-34"), 14, 0, REQUEST,
     "group_id:string generation_id:int32 member_id:string "
     "assignments[member_id:string assignment:bytes]"),
    (spec("WIRE-34"), 14, 0, RESPONSE, "error_code:error_code assignment:bytes"),
    (spec("WIRE-34"), 14, 5, REQUEST,
     "group_id:string generation_id:int32 member_id:string group_instance_id:string? "
     "protocol_type:string? protocol_name:string? "
     "assignments[member_id:string assignment:bytes]"),
    (spec("WIRE-34"), 14, 5, RESPONSE,
     "throttle_time:timedelta_i32 error_code:error_code protocol_type:string? "
     "protocol_name:string? assignment:bytes"),
    (spec("WIRE-36"), 12, 0, REQUEST, "group_id:string generation_id:int32 member_id:string"),
    (spec("WIRE-36"), 12, 0, RESPONSE, "error_code:error_code"),
    (spec("WIRE-37"), 13, 0, REQUEST, "group_id:string member_id:string"),
    (spec("WIRE-38"), 8, 2, REQUEST,
     "group_id:string generation_id_or_member_epoch:int32 member_id:string "
     "retention_time:timedelta_i64 topics[name:string partitions[partition_index:int32 "
     "committed_offset:int64 committed_metadata:string?]]"),
    (spec("WIRE-39"), 9, 2, REQUEST,
     "group_id:string topics?[name:string partition_indexes:int32[]]"),
    (spec("WIRE-40"), 2, 1, REQUEST,
     "replica_id:int32 topics[name:string partitions[partition_index:int32 timestamp:int64]]"),
    (spec("WIRE-41"), 22, 0, REQUEST,
     "transactional_id:string? transaction_timeout:timedelta_i32"),
    (spec("WIRE-41"), 22, 0, RESPONSE,
     "throttle_time:timedelta_i32 error_code:error_code producer_id:int64 producer_epoch:int16"),
    (spec("WIRE-42"), 24, 0, REQUEST,
     "v3_and_below_transactional_id:string v3_and_below_producer_id:int64 "
     "v3_and_below_producer_epoch:int16 v3_and_below_topics[name:string partitions:int32[]]"),
    (spec("WIRE-43"), 25, 0, REQUEST,
     "transactional_id:string producer_id:int64 producer_epoch:int16 group_id:string"),
    (spec("WIRE-44"), 28, 0, REQUEST,
     "transactional_id:string group_id:string producer_id:int64 producer_epoch:int16 "
     "topics[name:string partitions[partition_index:int32 committed_offset:int64 "
     "committed_metadata:string?]]"),
    (spec("WIRE-45"), 26, 0, REQUEST,
     "transactional_id:string producer_id:int64 producer_epoch:int16 committed:bool"),
    (spec("WIRE-46"), 27, 1, REQUEST,
     "markers[producer_id:int64 producer_epoch:int16 transaction_result:bool "
     "topics[name:string partition_indexes:int32[]] coordinator_epoch:int32]"),
    (spec("WIRE-51"), 23, 2, REQUEST,
     "topics[topic:string partitions[partition:int32 current_leader_epoch:int32 "
     "leader_epoch:int32]]"),
]  # fmt: skip


def described(entity: Entity) -> Iterator[str]:
    for field in fields_of(entity):
        null = "?" if field.nullable else ""
        if field.struct is not None:
            yield f"{field.name}{null}[{' '.join(described(field.struct))}]"
        elif field.is_array:
            yield f"{field.name}:{field.wire_type}[]{null}"
        else:
            yield f"{field.name}:{field.wire_type}{null}"


@pytest.mark.spec("WIRE-17")
@pytest.mark.parametrize(
    ("key", "version", "kind", "layout"),
    [pytest.param(*case, marks=mark) for mark, *case in LAYOUTS],
)
def test_a_message_has_these_fields_in_this_order(
    key: int, version: int, kind: MessageKind, layout: str
) -> None:
    assert " ".join(described(message(key, version, kind))) == layout
