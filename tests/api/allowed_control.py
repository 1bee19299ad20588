"""What each API about topics, settings and the cluster asks the authorizer for."""

from __future__ import annotations

from typing import Any, Final

from ottla.api import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    create_partitions,
    create_topics,
    delete_topics,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_topic_partitions,
    describe_user_scram_credentials,
    elect_leaders,
    find_coordinator,
    incremental_alter_configs,
    list_config_resources,
    list_partition_reassignments,
    metadata,
)
from ottla.api.config_resources import ConfigKind
from ottla.api.interbroker import (
    alter_partition,
    controlled_shutdown,
    envelope,
    leader_and_isr,
    stop_replica,
    update_metadata,
)
from ottla.api.operations import NOT_ASKED
from ottla.model.errors import ErrorCode as E
from ottla.model.ids import NO_TOPIC_ID
from ottla.security.acl import Operation as O
from tests.api.allowed import (
    CLUSTER_NO,
    GROUP_NO,
    TOPIC_NO,
    TXN_NO,
    Case,
    Guarded,
    cluster,
    code,
    group,
    topic,
    txn,
)

NEW: Final = {
    "topics": [
        {
            "name": "new",
            "num_partitions": 1,
            "replication_factor": 1,
            "assignments": [],
            "configs": [],
        }
    ],
    "timeout": 5_000,
    "validate_only": False,
}
FENCE: Final = {"controller_id": 1, "controller_epoch": 9, "broker_epoch": -1}


def metadata_fields(*names: str | None, **more: Any) -> dict[str, Any]:
    """For a Metadata request."""
    topics = [{"name": name, "topic_id": more.pop("topic_id", NO_TOPIC_ID)} for name in names]
    return {
        "topics": topics or None,
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
        **more,
    }


def by_id(broker: Guarded) -> dict[str, Any]:
    return metadata_fields(None, topic_id=broker.services.metadata.image.topics["t"].id)


def topics(said: Any) -> object:
    return {one.name: one.error_code for one in said.topics}


def described(kind: ConfigKind, name: str) -> dict[str, Any]:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    return {
        "resources": [resource],
        "include_synonyms": False,
        "include_documentation": False,
    }


def altered(kind: ConfigKind, name: str) -> dict[str, Any]:
    """For both APIs that alter; nothing is."""
    resource = {"resource_type": kind, "resource_name": name, "configs": []}
    return {"resources": [resource], "validate_only": True}


def result(said: Any) -> object:
    return said.results[0].error_code


def response(said: Any) -> object:
    return said.responses[0].error_code


CASES: Final = (
    Case(
        metadata.API,
        metadata_fields("t"),
        topics,
        {"t": TOPIC_NO},
        ((topic(O.DESCRIBE), {"t": E.none}),),
    ),
    Case(
        metadata.API,
        metadata_fields("nowhere"),
        topics,
        {"nowhere": TOPIC_NO},
        ((topic(O.DESCRIBE, "nowhere"), {"nowhere": E.unknown_topic_or_partition}),),
        "of a topic that is not there",
    ),
    Case(
        metadata.API,
        by_id,
        topics,
        {None: TOPIC_NO},
        ((topic(O.DESCRIBE), {"t": E.none}),),
        "by id",
    ),
    Case(
        metadata.API,
        metadata_fields(),
        topics,
        {},
        ((topic(O.DESCRIBE), {"t": E.none}),),
        "of all topics",
    ),
    Case(
        metadata.API,
        metadata_fields("new", allow_auto_topic_creation=True),
        topics,
        {"new": TOPIC_NO},
        ((topic(O.DESCRIBE, "new"), {"new": TOPIC_NO}), (topic(O.CREATE, "new"), {"new": E.none})),
        "that makes a topic",
    ),
    Case(
        metadata.API,
        metadata_fields("new", allow_auto_topic_creation=True),
        topics,
        {"new": TOPIC_NO},
        ((cluster(O.CREATE), {"new": TOPIC_NO}), (topic(O.DESCRIBE, "new"), {"new": E.none})),
        "that makes a topic by who may make any",
    ),
    Case(
        find_coordinator.API,
        {"key_type": 0, "coordinator_keys": ["g"]},
        lambda said: said.coordinators[0].error_code,
        GROUP_NO,
        ((group(O.DESCRIBE), E.none),),
    ),
    Case(
        find_coordinator.API,
        {"key_type": 1, "key": "tx"},
        code,
        TXN_NO,
        ((txn(O.DESCRIBE), E.none),),
        "of transactions",
        version=3,
    ),
    Case(
        create_topics.API,
        NEW,
        lambda said: (said.topics[0].error_code, bool(said.topics[0].configs)),
        (TOPIC_NO, False),
        ((topic(O.CREATE, "new"), (E.none, False)),),
    ),
    Case(
        create_topics.API,
        NEW,
        lambda said: (said.topics[0].error_code, bool(said.topics[0].configs)),
        (TOPIC_NO, False),
        (
            (topic(O.DESCRIBE_CONFIGS, "new"), (TOPIC_NO, False)),
            (cluster(O.CREATE), (E.none, True)),
        ),
        "by who may make any",
    ),
    Case(
        delete_topics.API,
        {"topics": [{"name": "t", "topic_id": NO_TOPIC_ID}], "timeout": 5_000},
        response,
        TOPIC_NO,
        ((topic(O.DESCRIBE), TOPIC_NO), (topic(O.DELETE), E.none)),
    ),
    Case(
        create_partitions.API,
        {
            "topics": [{"name": "t", "count": 3, "assignments": None}],
            "timeout": 5_000,
            "validate_only": False,
        },
        result,
        TOPIC_NO,
        ((topic(O.CREATE), TOPIC_NO), (topic(O.ALTER), E.none)),
    ),
    Case(
        describe_configs.API,
        described(ConfigKind.TOPIC, "t"),
        result,
        TOPIC_NO,
        ((topic(O.DESCRIBE), TOPIC_NO), (topic(O.DESCRIBE_CONFIGS), E.none)),
    ),
    Case(
        describe_configs.API,
        described(ConfigKind.BROKER, "1"),
        result,
        CLUSTER_NO,
        ((cluster(O.DESCRIBE_CONFIGS), E.none),),
        "of a broker",
    ),
    Case(
        describe_configs.API,
        described(ConfigKind.BROKER_LOGGER, "1"),
        result,
        CLUSTER_NO,
        ((cluster(O.DESCRIBE_CONFIGS), E.none),),
        "of loggers",
    ),
    Case(
        describe_configs.API,
        described(ConfigKind.GROUP, "g"),
        result,
        GROUP_NO,
        ((group(O.DESCRIBE_CONFIGS), E.none),),
        "of a group",
    ),
    Case(
        alter_configs.API,
        altered(ConfigKind.TOPIC, "t"),
        response,
        TOPIC_NO,
        ((topic(O.ALTER), TOPIC_NO), (topic(O.ALTER_CONFIGS), E.none)),
    ),
    Case(
        alter_configs.API,
        altered(ConfigKind.BROKER, "1"),
        response,
        CLUSTER_NO,
        ((cluster(O.ALTER), CLUSTER_NO), (cluster(O.ALTER_CONFIGS), E.none)),
        "of a broker",
    ),
    Case(
        incremental_alter_configs.API,
        altered(ConfigKind.TOPIC, "t"),
        response,
        TOPIC_NO,
        ((topic(O.ALTER), TOPIC_NO), (topic(O.ALTER_CONFIGS), E.none)),
    ),
    *(
        Case(
            api,
            altered(ConfigKind.GROUP, "g"),
            response,
            GROUP_NO,
            ((group(O.READ), GROUP_NO), (group(O.ALTER_CONFIGS), E.none)),
            "of a group",
        )
        for api in (alter_configs.API, incremental_alter_configs.API)
    ),
    Case(
        incremental_alter_configs.API,
        altered(ConfigKind.BROKER_LOGGER, "1"),
        response,
        CLUSTER_NO,
        ((cluster(O.ALTER), CLUSTER_NO), (cluster(O.ALTER_CONFIGS), E.none)),
        "of loggers",
    ),
    Case(
        elect_leaders.API,
        {
            "election_type": 0,
            "topic_partitions": [{"topic": "t", "partitions": [0]}],
            "timeout": 5_000,
        },
        code,
        CLUSTER_NO,
        ((cluster(O.ALTER), E.none),),
    ),
    Case(
        alter_partition_reassignments.API,
        {
            "timeout": 5_000,
            "topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": None}]}],
        },
        code,
        CLUSTER_NO,
        ((cluster(O.ALTER), E.none),),
    ),
    Case(
        list_partition_reassignments.API,
        {"timeout": 5_000, "topics": None},
        code,
        CLUSTER_NO,
        ((cluster(O.DESCRIBE), E.none),),
    ),
    Case(
        describe_cluster.API,
        {"include_cluster_authorized_operations": True, "include_fenced_brokers": False},
        lambda said: (said.error_code, said.cluster_authorized_operations),
        (E.none, 0),
        (
            (cluster(O.CREATE), (E.none, 0)),
            (cluster(O.DESCRIBE), (E.none, 1 << O.DESCRIBE | 1 << O.CREATE)),
        ),
    ),
    Case(
        describe_client_quotas.API,
        {"components": [], "strict": False},
        code,
        CLUSTER_NO,
        ((cluster(O.DESCRIBE), CLUSTER_NO), (cluster(O.DESCRIBE_CONFIGS), E.none)),
    ),
    Case(
        alter_client_quotas.API,
        {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "u"}],
                    "ops": [{"key": "request_percentage", "value": 1.0, "remove": False}],
                }
            ],
            "validate_only": True,
        },
        lambda said: said.entries[0].error_code,
        CLUSTER_NO,
        ((cluster(O.ALTER), CLUSTER_NO), (cluster(O.ALTER_CONFIGS), E.none)),
    ),
    Case(
        describe_user_scram_credentials.API,
        {"users": None},
        code,
        CLUSTER_NO,
        ((cluster(O.DESCRIBE), E.none),),
    ),
    Case(
        alter_user_scram_credentials.API,
        {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []},
        result,
        CLUSTER_NO,
        ((cluster(O.ALTER), E.resource_not_found),),
    ),
    Case(
        list_config_resources.API,
        {"resource_types": []},
        lambda said: (said.error_code, bool(said.config_resources)),
        (CLUSTER_NO, False),
        ((cluster(O.DESCRIBE), (CLUSTER_NO, False)), (cluster(O.DESCRIBE_CONFIGS), (E.none, True))),
    ),
    Case(
        describe_topic_partitions.API,
        {"topics": [{"name": "t"}], "response_partition_limit": 10, "cursor": None},
        lambda said: [(t.error_code, t.topic_authorized_operations) for t in said.topics],
        [(TOPIC_NO, NOT_ASKED)],
        ((topic(O.DESCRIBE), [(E.none, 1 << O.DESCRIBE)]),),
    ),
    Case(
        describe_topic_partitions.API,
        {"topics": [], "response_partition_limit": 10, "cursor": None},
        topics,
        {},
        ((topic(O.DESCRIBE), {"t": E.none}),),
        "of all topics",
    ),
    Case(
        leader_and_isr.API,
        {**FENCE, "topic_states": [], "live_leaders": []},
        code,
        CLUSTER_NO,
        to_brokers=E.none,
    ),
    Case(stop_replica.API, {**FENCE, "topic_states": []}, code, CLUSTER_NO, to_brokers=E.none),
    Case(
        update_metadata.API,
        {**FENCE, "topic_states": [], "live_brokers": []},
        code,
        CLUSTER_NO,
        to_brokers=E.none,
    ),
    Case(
        alter_partition.API,
        {"broker_id": 1, "broker_epoch": -1, "topics": []},
        code,
        CLUSTER_NO,
        to_brokers=E.stale_broker_epoch,
    ),
    Case(
        envelope.API,
        {"request_data": b"", "request_principal": None, "client_host_address": b""},
        code,
        CLUSTER_NO,
        to_brokers=E.invalid_request,
    ),
    Case(
        controlled_shutdown.API,
        {"broker_id": 1, "broker_epoch": 0},
        code,
        CLUSTER_NO,
        to_brokers=E.stale_broker_epoch,
    ),
)
