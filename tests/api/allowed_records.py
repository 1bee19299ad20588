"""What each API about records and logs asks the authorizer for."""

from __future__ import annotations

from typing import Final

from ottla.api import (
    alter_replica_log_dirs,
    api_versions,
    delete_records,
    describe_log_dirs,
    describe_producers,
    fetch,
    list_offsets,
    offset_for_leader_epoch,
    produce,
)
from ottla.model.errors import ErrorCode as E
from ottla.security.acl import Operation as O
from tests.api.allowed import CLUSTER_NO, TOPIC_NO, TXN_NO, Case, cluster, code, first, topic, txn
from tests.raw_requests import batch, fetch_fields, produce_fields

INTERNAL: Final = "INTERNAL"
ONE: Final = {"partition_index": 0}
EPOCH: Final = {
    "replica_id": -1,
    "topics": [
        {
            "topic": "t",
            "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}],
        }
    ],
}


CASES: Final = (
    Case(
        produce.API,
        produce_fields("t", batch("x")),
        lambda said: said.responses[0].partition_responses[0].error_code,
        TOPIC_NO,
        ((topic(O.WRITE), E.none),),
        version=9,
    ),
    Case(
        produce.API,
        {**produce_fields("t", batch("x")), "transactional_id": "tx"},
        lambda said: said.responses[0].partition_responses[0].error_code,
        TXN_NO,
        ((txn(O.WRITE), TOPIC_NO), (topic(O.WRITE), E.none)),
        "with a transactional id",
        version=9,
    ),
    Case(
        fetch.API,
        fetch_fields("t"),
        lambda said: said.responses[0].partitions[0].error_code,
        TOPIC_NO,
        ((topic(O.READ), E.none),),
        version=12,
    ),
    Case(
        fetch.API,
        {**fetch_fields("t"), "replica_id": 1},
        lambda said: said.responses[0].partitions[0].error_code,
        TOPIC_NO,
        ((topic(O.READ), TOPIC_NO), (cluster(O.CLUSTER_ACTION), E.not_leader_or_follower)),
        "as a follower",
        version=12,
        listener=INTERNAL,
    ),
    Case(
        list_offsets.API,
        {
            "replica_id": -1,
            "isolation_level": 0,
            "topics": [
                {
                    "name": "t",
                    "partitions": [{**ONE, "current_leader_epoch": -1, "timestamp": -1}],
                }
            ],
            "timeout": 0,
        },
        first,
        TOPIC_NO,
        ((topic(O.DESCRIBE), E.none),),
    ),
    Case(
        delete_records.API,
        {"topics": [{"name": "t", "partitions": [{**ONE, "offset": 0}]}], "timeout": 1_000},
        first,
        TOPIC_NO,
        ((topic(O.WRITE), TOPIC_NO), (topic(O.DELETE), E.none)),
    ),
    Case(
        offset_for_leader_epoch.API,
        EPOCH,
        first,
        TOPIC_NO,
        ((topic(O.DESCRIBE), E.none),),
    ),
    Case(
        offset_for_leader_epoch.API,
        EPOCH,
        first,
        TOPIC_NO,
        ((cluster(O.CLUSTER_ACTION), E.none),),
        "as a follower",
    ),
    Case(
        alter_replica_log_dirs.API,
        {"dirs": [{"path": "/nowhere", "topics": [{"name": "t", "partitions": [0]}]}]},
        lambda said: said.results[0].partitions[0].error_code,
        CLUSTER_NO,
        ((cluster(O.ALTER), E.log_dir_not_found),),
    ),
    Case(
        describe_log_dirs.API,
        {"topics": None},
        lambda said: (said.error_code, len(said.results)),
        (CLUSTER_NO, 0),
        ((cluster(O.DESCRIBE), (E.none, 1)),),
    ),
    Case(
        describe_producers.API,
        {"topics": [{"name": "t", "partition_indexes": [0]}]},
        first,
        TOPIC_NO,
        ((topic(O.DESCRIBE), TOPIC_NO), (topic(O.READ), E.none)),
    ),
    Case(
        api_versions.API,
        {"client_software_name": "a", "client_software_version": "1"},
        code,
        E.none,
    ),
)
