"""What the APIs beside Produce refuse, each with the code a client acts on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from ottla.api import APIS
from ottla.model.errors import ErrorCode
from ottla.protocol.schema import MessageKind, fields_of, message
from tests.bad_input.conftest import MakeTopic
from tests.raw_requests import (
    CREATE_TOPICS,
    DELETE_TOPICS,
    FETCH,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    METADATA,
    Line,
    batch,
    fetch_fields,
    fetched,
    produced,
)

Lines = Callable[[], list[str]]
CREATE_PARTITIONS: Final = 37
DELETE_RECORDS: Final = 21
INCREMENTAL_ALTER_CONFIGS: Final = 44
OFFSET_FOR_LEADER_EPOCH: Final = 23


@pytest.fixture(scope="module")
def topic(make_topic: MakeTopic) -> str:
    return make_topic()


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize(("name", "by_id"), [(None, False), (None, True), ("t", True)])
def test_topic_ids_are_not_for_versions_that_only_have_room_for_them(
    line: Line, topic: str, version: int, name: str | None, by_id: bool
) -> None:
    asked = [{"topic_id": topic_id(line, topic) if by_id else None, "name": name}]
    reply = line.ask(
        METADATA,
        version,
        topics=asked,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    assert [one.error_code for one in reply.topics] == [ErrorCode.invalid_request]


# Fetch


def fetch(line: Line, **fields: Any) -> Any:
    return line.ask(FETCH, 12, **fields)


@pytest.mark.spec("WIRE-25", "WIRE-26")
def test_a_fetch_session_is_known_by_id_and_epoch(line: Line, topic: str) -> None:
    fields = fetch_fields(topic)
    for epoch, code in (
        (1, ErrorCode.fetch_session_id_not_found),
        (77, ErrorCode.fetch_session_id_not_found),
    ):
        asked = {**fields, "session_id": 12_345, "session_epoch": epoch}
        assert fetch(line, **asked).error_code is code
    made = fetch(line, **{**fields, "session_epoch": 0})
    assert made.error_code is ErrorCode.none
    assert made.session_id > 0
    wrong = {**fields, "session_id": made.session_id, "session_epoch": 5}
    assert fetch(line, **wrong).error_code is ErrorCode.invalid_fetch_session_epoch
    right = {**fields, "session_id": made.session_id, "session_epoch": 1}
    assert fetch(line, **right).error_code is ErrorCode.none


@pytest.mark.parametrize(
    ("offset", "partition", "code"),
    [
        (-1, {}, ErrorCode.offset_out_of_range),
        (10**6, {}, ErrorCode.offset_out_of_range),
        (2**63 - 1, {}, ErrorCode.offset_out_of_range),
        (0, {"partition": 99}, ErrorCode.unknown_topic_or_partition),
        (0, {"partition": -1}, ErrorCode.unknown_topic_or_partition),
        (0, {"current_leader_epoch": 1000}, ErrorCode.unknown_leader_epoch),
        (0, {"partition_max_bytes": -1}, ErrorCode.none),
    ],
)
def test_a_fetch_of_what_is_not_there_says_so(
    line: Line, topic: str, offset: int, partition: dict[str, int], code: ErrorCode
) -> None:
    assert fetched(line, topic, offset, **partition).error_code is code


@pytest.mark.parametrize("replica", [0, 7])
@pytest.mark.parametrize("version", [4, 12, 15, 18])
def test_a_client_that_claims_to_be_a_replica_is_refused(
    line: Line, brokers: str, topic: str, version: int, replica: int
) -> None:
    claimed = {**fetch_fields(topic), "replica_id": replica}
    claimed["replica_state"] = {"replica_id": replica, "replica_epoch": -1}
    for one in claimed["topics"]:
        one["topic_id"] = topic_id(line, topic)
    with Line(brokers) as inside:  # a broker without ZooKeeper is alone: nobody is a replica
        for asked in (line, inside):
            reply = asked.ask(FETCH, version, **claimed)
            refused = reply.responses[0].partitions[0]
            assert refused.error_code is ErrorCode.topic_authorization_failed


def topic_id(line: Line, topic: str) -> Any:
    reply = line.ask(
        METADATA,
        12,
        topics=[{"topic_id": None, "name": topic}],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    return reply.topics[0].topic_id


def test_leader_epochs_of_the_past_and_the_future_are_told_apart(
    line: Line, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    assert produced(line, topic, batch("v")).error_code is ErrorCode.none
    for epoch, code in ((5, ErrorCode.unknown_leader_epoch), (0, ErrorCode.none)):
        assert fetched(line, topic, current_leader_epoch=epoch).error_code is code
        asked = {"partition": 0, "current_leader_epoch": epoch, "leader_epoch": 0}
        topics = [{"topic": topic, "partitions": [asked]}]
        reply = line.ask(OFFSET_FOR_LEADER_EPOCH, 4, replica_id=-1, topics=topics)
        assert reply.topics[0].partitions[0].error_code is code


@pytest.mark.parametrize("timestamp", [-7, -99, -(2**63)])
def test_a_question_about_time_that_nobody_knows_is_refused(
    line: Line, topic: str, timestamp: int
) -> None:
    asked = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
    topics = [{"name": topic, "partitions": [asked]}]
    reply = line.ask(LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=topics)
    assert reply.topics[0].partitions[0].error_code is ErrorCode.unsupported_version


@pytest.mark.parametrize("offset", [-2, 10**6])
def test_records_beyond_the_end_cannot_be_deleted(line: Line, topic: str, offset: int) -> None:
    partitions = [{"partition_index": 0, "offset": offset}]
    topics = [{"name": topic, "partitions": partitions}]
    reply = line.ask(DELETE_RECORDS, 2, topics=topics, timeout=1000)
    assert reply.topics[0].partitions[0].error_code is ErrorCode.offset_out_of_range


# Topics


def new_topic(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": factor,
        "assignments": [],
        "configs": [],
        **more,
    }


def assigned(*replicas: list[int]) -> dict[str, Any]:
    listed = [{"partition_index": at, "broker_ids": ids} for at, ids in enumerate(replicas)]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": listed}


def configured(name: str, value: str | None) -> dict[str, Any]:
    return {"configs": [{"name": name, "value": value}]}


INVALID_NAME: Final = ErrorCode.invalid_topic_exception
REFUSED_TOPICS: Final[dict[str, tuple[dict[str, Any], ErrorCode]]] = {
    "no name": (new_topic(""), INVALID_NAME),
    "one dot": (new_topic("."), INVALID_NAME),
    "two dots": (new_topic(".."), INVALID_NAME),
    "a path": (new_topic("a/b"), INVALID_NAME),
    "a way out": (new_topic("../../etc/passwd"), INVALID_NAME),
    "a NUL": (new_topic("a\0b"), INVALID_NAME),
    "a newline": (new_topic("a\nb"), INVALID_NAME),
    "250 characters": (new_topic("x" * 250), INVALID_NAME),
    "not ASCII": (new_topic("tópic"), INVALID_NAME),
    "no partitions": (new_topic("t0", 0), ErrorCode.invalid_partitions),
    "negative partitions": (new_topic("t1", -5), ErrorCode.invalid_partitions),
    "a million partitions": (new_topic("t2", 1_000_000), ErrorCode.policy_violation),
    "a billion partitions": (new_topic("t3", 2**31 - 1), ErrorCode.policy_violation),
    "more replicas than brokers": (new_topic("t4", 1, 3), ErrorCode.invalid_replication_factor),
    "no replicas": (new_topic("t5", 1, 0), ErrorCode.invalid_replication_factor),
    "a replica twice": (
        new_topic("t6", **assigned([0, 0])),
        ErrorCode.invalid_replica_assignment,
    ),
    "a replica nowhere": (
        new_topic("t7", **assigned([9])),
        ErrorCode.invalid_replica_assignment,
    ),
    "an empty assignment": (
        new_topic("t8", **assigned([])),
        ErrorCode.invalid_replica_assignment,
    ),
    "an unknown setting": (
        new_topic("t9", **configured("retention.mss", "1")),
        ErrorCode.invalid_config,
    ),
    "a setting that is no number": (
        new_topic("t10", **configured("retention.ms", "soon")),
        ErrorCode.invalid_config,
    ),
    "a negative size": (
        new_topic("t11", **configured("segment.bytes", "-1")),
        ErrorCode.invalid_config,
    ),
    "a number too large": (
        new_topic("t12", **configured("segment.bytes", str(2**40))),
        ErrorCode.invalid_config,
    ),
    "a null setting": (
        new_topic("t13", **configured("retention.ms", None)),
        ErrorCode.invalid_config,
    ),
}


@pytest.mark.parametrize("only_try", [True, False])
@pytest.mark.parametrize("wrong", REFUSED_TOPICS)
def test_a_topic_that_cannot_be_is_refused(line: Line, wrong: str, only_try: bool) -> None:
    asked, code = REFUSED_TOPICS[wrong]
    reply = line.ask(CREATE_TOPICS, 7, topics=[asked], timeout=5000, validate_only=only_try)
    assert reply.topics[0].error_code is code
    assert reply.topics[0].error_message


def test_one_topic_asked_for_twice_is_refused_both_times(line: Line) -> None:
    asked = [new_topic("twice"), new_topic("twice"), new_topic("fine")]
    reply = line.ask(CREATE_TOPICS, 7, topics=asked, timeout=5000, validate_only=False)
    codes = {(one.name, one.error_code) for one in reply.topics}
    assert codes == {("twice", ErrorCode.invalid_request), ("fine", ErrorCode.none)}


def test_a_topic_that_is_there_is_not_made_again(line: Line, topic: str) -> None:
    asked = [new_topic(topic)]
    reply = line.ask(CREATE_TOPICS, 7, topics=asked, timeout=5000, validate_only=False)
    assert reply.topics[0].error_code is ErrorCode.topic_already_exists


def test_a_topic_that_is_not_there_is_not_deleted(line: Line) -> None:
    asked = [{"name": "nobody", "topic_id": None}]
    reply = line.ask(DELETE_TOPICS, 6, topics=asked, timeout=5000)
    assert reply.responses[0].error_code is ErrorCode.unknown_topic_or_partition


@pytest.mark.parametrize(
    ("count", "code"),
    [
        (0, ErrorCode.invalid_partitions),
        (-1, ErrorCode.invalid_partitions),
        (1, ErrorCode.invalid_partitions),
        (1_000_000, ErrorCode.policy_violation),
    ],
)
def test_partitions_are_only_added(
    line: Line, make_topic: MakeTopic, count: int, code: ErrorCode
) -> None:
    asked = [{"name": make_topic(2), "count": count, "assignments": None}]
    reply = line.ask(CREATE_PARTITIONS, 3, topics=asked, timeout=5000, validate_only=False)
    assert reply.results[0].error_code is code


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("retention.ms", "soon", ErrorCode.invalid_config),
        ("cleanup.policy", "shred", ErrorCode.invalid_config),
        ("nonsense", "1", ErrorCode.invalid_config),
        ("min.insync.replicas", "0", ErrorCode.invalid_config),
    ],
)
def test_a_bad_setting_changes_nothing(
    line: Line, topic: str, name: str, value: str, code: ErrorCode
) -> None:
    configs = [{"name": name, "config_operation": 0, "value": value}]
    resources = [{"resource_type": 2, "resource_name": topic, "configs": configs}]
    reply = line.ask(INCREMENTAL_ALTER_CONFIGS, 1, resources=resources, validate_only=False)
    assert reply.responses[0].error_code is code


def test_an_empty_transactional_id_is_refused(line: Line) -> None:
    reply = line.ask(
        INIT_PRODUCER_ID,
        4,
        transactional_id="",
        transaction_timeout=1000,
        producer_id=-1,
        producer_epoch=-1,
    )
    assert reply.error_code is ErrorCode.invalid_request


# What brokers say to each other

BETWEEN_BROKERS: Final = [api for api in APIS if api.between_brokers]


@pytest.mark.parametrize("api", BETWEEN_BROKERS, ids=lambda api: api.name)
def test_what_only_a_broker_may_ask_is_refused_to_clients(line: Line, api: Any) -> None:
    """31, whatever the message says; CLUSTER_AUTHORIZATION_FAILED."""
    version = api.versions[-1]
    entity = message(api.key, version, MessageKind.REQUEST)
    fields = {field.name: field.neutral() for field in fields_of(entity)}
    reply = line.ask(api.key, version, **fields)
    assert reply.error_code is ErrorCode.cluster_authorization_failed
