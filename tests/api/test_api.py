"""The list of APIs: tied to the folder, to the order of keys, and to the versions we promise."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import ottla.api
from ottla.api import APIS, BY_KEY
from ottla.api.api import Api, error_code
from ottla.model.errors import ErrorCode

RANGES = {
    "Produce": (0, 3, 13),
    "Fetch": (1, 4, 18),
    "ListOffsets": (2, 1, 11),
    "Metadata": (3, 0, 13),
    "LeaderAndIsr": (4, 5, 7),
    "StopReplica": (5, 3, 4),
    "UpdateMetadata": (6, 7, 8),
    "ControlledShutdown": (7, 0, 3),
    "OffsetCommit": (8, 2, 10),
    "OffsetFetch": (9, 1, 10),
    "FindCoordinator": (10, 0, 6),
    "JoinGroup": (11, 0, 9),
    "Heartbeat": (12, 0, 4),
    "LeaveGroup": (13, 0, 5),
    "SyncGroup": (14, 0, 5),
    "DescribeGroups": (15, 0, 6),
    "ListGroups": (16, 0, 5),
    "SaslHandshake": (17, 0, 1),
    "SaslAuthenticate": (36, 0, 2),
    "DescribeClientQuotas": (48, 0, 1),
    "AlterClientQuotas": (49, 0, 1),
    "DescribeUserScramCredentials": (50, 0, 0),
    "AlterUserScramCredentials": (51, 0, 0),
    "ApiVersions": (18, 0, 4),
    "CreateTopics": (19, 2, 7),
    "DeleteTopics": (20, 1, 6),
    "DeleteRecords": (21, 0, 2),
    "InitProducerId": (22, 0, 6),
    "OffsetForLeaderEpoch": (23, 2, 4),
    "AddPartitionsToTxn": (24, 0, 5),
    "AddOffsetsToTxn": (25, 0, 4),
    "EndTxn": (26, 0, 5),
    "WriteTxnMarkers": (27, 1, 2),
    "TxnOffsetCommit": (28, 0, 5),
    "DescribeAcls": (29, 1, 3),
    "CreateAcls": (30, 1, 3),
    "DeleteAcls": (31, 1, 3),
    "DescribeConfigs": (32, 1, 4),
    "AlterConfigs": (33, 0, 2),
    "AlterReplicaLogDirs": (34, 1, 2),
    "DescribeLogDirs": (35, 1, 5),
    "CreatePartitions": (37, 0, 3),
    "CreateDelegationToken": (38, 1, 3),
    "RenewDelegationToken": (39, 1, 2),
    "ExpireDelegationToken": (40, 1, 2),
    "DescribeDelegationToken": (41, 1, 3),
    "DeleteGroups": (42, 0, 2),
    "ElectLeaders": (43, 0, 2),
    "IncrementalAlterConfigs": (44, 0, 1),
    "AlterPartitionReassignments": (45, 0, 1),
    "ListPartitionReassignments": (46, 0, 0),
    "OffsetDelete": (47, 0, 0),
    "AlterPartition": (56, 2, 3),
    "Envelope": (58, 0, 0),
    "DescribeCluster": (60, 0, 2),
    "DescribeProducers": (61, 0, 0),
    "DescribeTransactions": (65, 0, 0),
    "ListTransactions": (66, 0, 2),
    "ConsumerGroupHeartbeat": (68, 0, 1),
    "ConsumerGroupDescribe": (69, 0, 1),
    "ListConfigResources": (74, 0, 1),
    "DescribeTopicPartitions": (75, 0, 0),
}
"""Key, oldest and newest version: those of one real release, so that clients guess right."""


@pytest.mark.spec("NET-29")
def test_the_versions_served_are_those_we_promise() -> None:
    served = {a.name: (a.key, a.versions.start, a.versions.stop - 1) for a in APIS}
    assert served == RANGES


def test_apis_are_listed_in_the_order_of_their_keys_and_once() -> None:
    keys = [api.key for api in APIS]
    assert keys == sorted(set(keys))
    assert list(BY_KEY) == keys
    assert len({api.name for api in APIS}) == len(APIS)


@pytest.mark.spec("WIRE-06")
def test_every_file_that_declares_an_api_is_listed() -> None:
    folder = Path(str(ottla.api.__file__)).parent
    names = [
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in folder.rglob("*.py")
        if path.stem != "__init__"
    ]
    modules = [import_module(f"ottla.api.{name}") for name in sorted(names)]
    declared = {module.API for module in modules if isinstance(getattr(module, "API", None), Api)}
    assert declared == set(APIS)


def test_an_api_answers_by_itself_or_says_how_it_is_refused() -> None:
    for api in APIS:
        assert (api.raw is None) == (api.handler is not None and api.refuse is not None)
    with pytest.raises(AssertionError):
        Api(0, "Neither", range(1))


def test_only_produce_is_offered_in_versions_it_refuses() -> None:
    assert {api.name: api.oldest_advertised for api in APIS if api.advertised_from is not None} == {
        "Produce": 0
    }


@pytest.mark.spec("NET-31")
def test_what_brokers_say_to_each_other_is_marked() -> None:
    assert [api.key for api in APIS if api.between_brokers] == [4, 5, 6, 7, 56, 58]


def test_the_plain_refusal_carries_code_and_text() -> None:
    fields = error_code(None, ErrorCode.not_controller, "ask another")
    assert fields == {"error_code": ErrorCode.not_controller, "error_message": "ask another"}
