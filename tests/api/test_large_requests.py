"""A request of many items is handled in slices: the event loop has its turns in between.

Counted in turns of the loop, not in time: so many as each step of the handler must give. What a
slice takes in milliseconds is what `benchmarks/stalls.py --largest` shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from ottla.api.add_partitions_to_txn import API as ADD_PARTITIONS
from ottla.api.alter_replica_log_dirs import API as MOVE
from ottla.api.api import Fields
from ottla.api.consumer_group_heartbeat import API as HEARTBEAT
from ottla.api.delete_groups import API as DELETE_GROUPS
from ottla.api.delete_topics import API as DELETE_TOPICS
from ottla.api.describe_log_dirs import API as DESCRIBE_DIRS
from ottla.api.describe_topic_partitions import API as DESCRIBE_TOPICS
from ottla.api.elect_leaders import API as ELECT
from ottla.api.leave_group import API as LEAVE
from ottla.api.list_groups import API as LIST_GROUPS
from ottla.api.list_partition_reassignments import API as LIST_MOVES
from ottla.api.list_transactions import API as LIST_TXNS
from ottla.api.metadata import API as METADATA
from ottla.api.offset_commit import API as OFFSET_COMMIT
from ottla.api.offset_fetch import API as OFFSET_FETCH
from ottla.api.services import Services
from ottla.api.txn_offset_commit import API as TXN_OFFSET_COMMIT
from ottla.api.write_txn_markers import API as MARKERS
from ottla.controller.controller import ELECTIONS_AT_ONCE
from ottla.controller.events import NewTopic
from ottla.delay.slices import PLAIN, SLICE
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID, TopicPartition
from ottla.protocol import wire
from tests.api.large_requests import handled
from tests.api.transaction_requests import ID, transacting
from tests.fakes.api_side import api_side
from tests.fakes.control_plane import Node, control_plane, settle
from tests.fakes.data_side import TP

MANY: Final = 20_000
NUMBERS: Final = [*range(MANY)]
STEPS_OF_SLICE: Final = MANY // SLICE - 1
"""Turns between the slices of one step that is taken for each item."""
STEPS_OF_PLAIN: Final = MANY // PLAIN - 1


def services_of(node: Node) -> Services:
    frame = memoryview(wire.encode_request(LIST_MOVES.key, 0, 1, "test", {"topics": None}))[4:]
    return node.context(wire.parse_call(frame)).services


def first(topics: object, name: str) -> list[Mapping[str, Any]]:
    """The results in the first of these topics."""
    [topic, *_] = cast(list[Fields], topics)
    return cast(list[Mapping[str, Any]], topic[name])


async def test_list_partition_reassignments() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        await one.controller.create_topics([NewTopic("t", assignment={0: (one.id,)})], 5_000)
        await one.controller.reassign_partitions({TopicPartition("t", 0): (two.id,)}, 5_000)
        requested = [
            {"name": "u", "partition_indexes": NUMBERS},
            {"name": "t", "partition_indexes": [1]},
            {"name": "t", "partition_indexes": [0]},
        ]
        reply, turns = await handled(LIST_MOVES, services_of(one), topics=requested, timeout=5_000)
        assert [moving["partition_index"] for moving in first(reply["topics"], "partitions")] == [0]
        assert turns >= STEPS_OF_PLAIN


async def test_elect_leaders() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        requested = [{"topic": "t", "partitions": NUMBERS}]
        before = one.loop.state
        reply, turns = await handled(
            ELECT, services_of(one), election_type=0, topic_partitions=requested, timeout=5_000
        )
        results = first(reply["replica_election_results"], "partition_result")
        assert [result["partition_id"] for result in results] == NUMBERS
        assert results[0]["error_code"] is ErrorCode.election_not_needed
        assert {r["error_code"] for r in results[1:]} == {ErrorCode.unknown_topic_or_partition}
        assert one.loop.state.topics == before.topics
        assert turns >= 2 * STEPS_OF_SLICE + MANY // ELECTIONS_AT_ONCE


async def test_elections_that_the_timeout_leaves_out_have_timed_out() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        requested = [{"topic": "t", "partitions": NUMBERS}]
        reply, _ = await handled(
            ELECT, services_of(one), election_type=0, topic_partitions=requested, timeout=0
        )
        results = first(reply["replica_election_results"], "partition_result")
        assert [result["partition_id"] for result in results] == NUMBERS
        assert results[-1]["error_code"] is ErrorCode.request_timed_out


async def test_describe_log_dirs() -> None:
    async with api_side() as side:
        await side.data.lead()
        requested = [{"topic": TP.topic, "partitions": NUMBERS}]
        reply, turns = await handled(DESCRIBE_DIRS, side.services, topics=requested)
        [directory] = cast(list[Fields], reply["results"])
        assert [one["partition_index"] for one in first(directory["topics"], "partitions")] == [0]
        assert STEPS_OF_PLAIN <= turns < STEPS_OF_SLICE, "numbers are cheap"


async def test_alter_replica_log_dirs() -> None:
    async with api_side() as side:
        await side.data.lead()
        dirs = [{"path": "/nowhere", "topics": [{"name": TP.topic, "partitions": NUMBERS}]}]
        reply, turns = await handled(MOVE, side.services, dirs=dirs)
        results = first(reply["results"], "partitions")
        assert [result["partition_index"] for result in results] == NUMBERS
        assert {result["error_code"] for result in results} == {ErrorCode.log_dir_not_found}
        assert turns >= 2 * STEPS_OF_SLICE


async def test_list_groups() -> None:
    async with transacting() as broker:
        names = [f"State{number}" for number in NUMBERS]
        reply, turns = await handled(LIST_GROUPS, broker.services, states_filter=names)
        assert reply["groups"] == []
        assert turns >= STEPS_OF_PLAIN
        _, turns = await handled(LIST_GROUPS, broker.services, types_filter=names, states_filter=[])
        assert turns >= STEPS_OF_PLAIN


async def test_list_transactions() -> None:
    async with transacting() as broker:
        me = await broker.begun()
        unknown = [f"State{number}" for number in NUMBERS]
        reply, turns = await handled(
            LIST_TXNS,
            broker.services,
            state_filters=[*unknown, "Empty"],
            duration_filter=-1,
            producer_id_filters=[me.id, *range(1_000_000, 1_000_000 + MANY)],
        )
        [listed] = cast(list[Fields], reply["transaction_states"])
        assert listed["transactional_id"] == ID
        assert reply["unknown_state_filters"] == unknown
        assert turns >= 3 * STEPS_OF_PLAIN


async def test_describe_topic_partitions() -> None:
    async with api_side() as side:
        await side.data.lead()
        names = sorted(f"u{number}" for number in NUMBERS)
        topics = [{"name": name} for name in [TP.topic, *reversed(names), names[0]]]
        reply, turns = await handled(
            DESCRIBE_TOPICS, side.services, topics=topics, response_partition_limit=1, cursor=None
        )
        described = cast(list[Fields], reply["topics"])
        assert [topic["name"] for topic in described] == [TP.topic, *names]
        assert turns >= STEPS_OF_PLAIN + 3 * STEPS_OF_SLICE


async def test_metadata_of_topics_that_are_not_there() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        names = ["t", *(f"u{number}" for number in NUMBERS)]
        topics = [{"topic_id": None, "name": name} for name in [*names, *names[:10]]]
        reply, turns = await handled(
            METADATA,
            services_of(one),
            topics=topics,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        assert len(cast(list[Fields], reply["topics"])) == len(names)
        assert turns >= 2 * STEPS_OF_SLICE


async def test_delete_topics_that_are_not_there() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        names = [*(f"u{number}" for number in NUMBERS), "t", "u0"]
        reply, turns = await handled(
            DELETE_TOPICS, services_of(one), 5, topic_names=names, timeout=50_000
        )
        responses = cast(list[Fields], reply["responses"])
        assert [response["name"] for response in responses] == names[:-1]
        assert responses[0]["error_code"] is ErrorCode.invalid_request, "it is named twice"
        codes = {response["error_code"] for response in responses[1:-1]}
        assert codes == {ErrorCode.unknown_topic_or_partition}
        assert responses[-1]["error_code"] is ErrorCode.none
        assert turns >= 6 * STEPS_OF_SLICE


async def test_add_partitions_to_txn() -> None:
    async with transacting() as broker:
        me = await broker.begun()
        fields: dict[str, Any] = {
            "v3_and_below_transactional_id": ID,
            "v3_and_below_producer_id": me.id,
            "v3_and_below_producer_epoch": me.epoch,
        }

        async def added(numbers: list[int]) -> tuple[list[ErrorCode], int]:
            topics = [{"name": TP.topic, "partitions": numbers}]
            reply, turns = await handled(
                ADD_PARTITIONS, broker.services, 3, v3_and_below_topics=topics, **fields
            )
            results = first(reply["results_by_topic_v3_and_below"], "results_by_partition")
            return [result["partition_error_code"] for result in results], turns

        codes, turns = await added(NUMBERS)
        assert codes[0] is ErrorCode.operation_not_attempted, "all or none"
        assert set(codes[1:]) == {ErrorCode.unknown_topic_or_partition}
        assert turns >= 4 * STEPS_OF_SLICE
        codes, turns = await added([0] * MANY)
        assert codes == [ErrorCode.none], "one partition, however often it is named"
        assert turns >= STEPS_OF_SLICE


async def test_partitions_of_a_transaction_are_verified_for_brokers() -> None:
    async with transacting() as broker:
        me = await broker.begun()
        await broker.add(me)
        transaction = {
            "transactional_id": ID,
            "producer_id": me.id,
            "producer_epoch": me.epoch,
            "verify_only": True,
            "topics": [{"name": TP.topic, "partitions": NUMBERS}],
        }
        reply, turns = await handled(
            ADD_PARTITIONS, broker.services, is_broker=True, transactions=[transaction]
        )
        [result] = cast(list[Fields], reply["results_by_transaction"])
        results = first(result["topic_results"], "results_by_partition")
        assert [one["partition_index"] for one in results] == NUMBERS
        assert results[0]["partition_error_code"] is ErrorCode.none
        codes = {one["partition_error_code"] for one in results[1:]}
        assert codes == {ErrorCode.transaction_abortable}
        assert turns >= 3 * STEPS_OF_SLICE


async def test_write_txn_markers() -> None:
    async with transacting() as broker:
        me = await broker.begun()
        marker = {
            "producer_id": me.id,
            "producer_epoch": me.epoch,
            "transaction_result": False,
            "topics": [
                {"name": TP.topic, "partition_indexes": [0, 1]},
                *({"name": "u", "partition_indexes": [number]} for number in NUMBERS),
            ],
            "coordinator_epoch": 0,
        }
        reply, turns = await handled(MARKERS, broker.services, markers=[marker])
        [result] = cast(list[Fields], reply["markers"])
        results = first(result["topics"], "partitions")
        codes = [one["error_code"] for one in results]
        assert codes == [ErrorCode.none, ErrorCode.unknown_topic_or_partition]
        assert len(cast(list[Fields], result["topics"])) == 1 + MANY
        assert turns >= 5 * STEPS_OF_SLICE


MEMBER: Final[dict[str, Any]] = {
    "group_id": "g",
    "member_id": "me",
    "member_epoch": 0,
    "rebalance_timeout": 60_000,
    "subscribed_topic_names": [TP.topic],
    "topic_partitions": [],
}


async def test_a_heartbeat_with_many_partitions() -> None:
    async with transacting() as broker:
        await handled(HEARTBEAT, broker.services, **MEMBER)
        owned = [{"topic_id": NO_TOPIC_ID, "partitions": NUMBERS}]
        reply, turns = await handled(
            HEARTBEAT,
            broker.services,
            **{**MEMBER, "member_epoch": 1, "topic_partitions": owned},
        )
        assert (reply["error_code"], reply["member_epoch"]) == (ErrorCode.none, 1)
        assert turns >= STEPS_OF_SLICE


async def test_offset_fetch() -> None:
    numbers = [*NUMBERS, *NUMBERS[:10]]
    async with transacting() as broker:
        topics = [
            {"name": TP.topic, "partition_indexes": numbers},
            {"name": "u", "partition_indexes": [0]},
        ]
        group = {"group_id": "g", "member_id": None, "topics": topics}
        reply, turns = await handled(
            OFFSET_FETCH, broker.services, 9, groups=[group], require_stable=True
        )
        results = first(cast(list[Fields], reply["groups"])[0]["topics"], "partitions")
        assert [result["partition_index"] for result in results] == NUMBERS
        assert {result["committed_offset"] for result in results} == {-1}
        assert turns >= 3 * STEPS_OF_SLICE


async def test_delete_groups() -> None:
    async with transacting() as broker:
        names = [f"g{number}" for number in NUMBERS]
        reply, turns = await handled(
            DELETE_GROUPS, broker.services, groups_names=[*names, *names[:10]]
        )
        results = cast(list[Fields], reply["results"])
        assert [result["group_id"] for result in results] == names
        assert {result["error_code"] for result in results} == {ErrorCode.group_id_not_found}
        assert turns >= 2 * STEPS_OF_SLICE


def commits(numbers: list[int]) -> list[dict[str, Any]]:
    fields = {"committed_offset": 1, "committed_metadata": "m"}
    return [{"partition_index": number, **fields} for number in numbers]


async def test_offset_commit() -> None:
    async with transacting() as broker:
        topics = [{"name": TP.topic, "partitions": commits(NUMBERS)}]
        reply, turns = await handled(
            OFFSET_COMMIT, broker.services, 9, group_id="g", member_id="", topics=topics
        )
        results = first(reply["topics"], "partitions")
        assert [result["partition_index"] for result in results] == NUMBERS
        assert results[0]["error_code"] is ErrorCode.none
        codes = {result["error_code"] for result in results[1:]}
        assert codes == {ErrorCode.unknown_topic_or_partition}
        assert turns >= 2 * STEPS_OF_SLICE


async def test_txn_offset_commit() -> None:
    async with transacting() as broker:
        me = await broker.begun()
        reply, turns = await handled(
            TXN_OFFSET_COMMIT,
            broker.services,
            transactional_id=ID,
            group_id="g",
            producer_id=me.id,
            producer_epoch=me.epoch,
            topics=[{"name": TP.topic, "partitions": commits(NUMBERS)}],
        )
        results = first(reply["topics"], "partitions")
        assert [result["partition_index"] for result in results] == NUMBERS
        assert results[0]["error_code"] is ErrorCode.none
        codes = {result["error_code"] for result in results[1:]}
        assert codes == {ErrorCode.unknown_topic_or_partition}
        assert turns >= 3 * STEPS_OF_SLICE


async def test_leave_group() -> None:
    async with transacting() as broker:
        members = [{"member_id": f"m{number}"} for number in NUMBERS]
        reply, turns = await handled(LEAVE, broker.services, group_id="g", members=members)
        results = cast(list[Mapping[str, Any]], reply["members"])
        assert [result["member_id"] for result in results] == [m["member_id"] for m in members]
        assert {result["error_code"] for result in results} == {ErrorCode.unknown_member_id}
        assert turns >= 3 * STEPS_OF_SLICE
