"""Who changed what is in the audit log, without the values."""

from __future__ import annotations

import logging
from typing import Final

import pytest

import ottla
from ottla import AclRule
from ottla.api import APIS
from ottla.api.audit_log import ADMINISTRATIVE
from ottla.client.admin import Resource
from ottla.client.admin.scram_users import ScramDeletion, ScramUpsertion
from ottla.security.quotas.entities import QuotaEntity
from ottla.testing import Broker

pytestmark = pytest.mark.spec("SEC-04")

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def test_each_administrative_request_is_a_line_with_names_and_no_values(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "ottla.security.audit")
    with (
        Broker(SETTINGS) as broker,
        ottla.Admin(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        admin.create_topic("orders")
        admin.list_topics()
        admin.create_acls([AclRule.allow("User:alice", "read", "topic", "orders")]).all()
        changes = {"retention.ms": "123456789"}
        admin.incremental_alter_configs({Resource.topic("orders"): changes}).all()
        secret = {"listener.name.x.ssl.keystore.password": "planted"}
        admin.incremental_alter_configs({Resource.broker(0): secret}).all()
        admin.delete_topic("orders")
        with pytest.raises(ottla.KafkaError):
            admin.delete_topic("never")
    lines = [record.getMessage() for record in caplog.records]
    changed = "changed: principal=User:ANONYMOUS host=127.0.0.1 api="
    assert lines == [
        f"{changed}CreateTopics resources=['orders'] failed=0",
        f"{changed}CreateAcls resources=['User:alice on orders'] failed=0",
        f"{changed}IncrementalAlterConfigs resources=['topic orders(retention.ms)'] failed=0",
        f"{changed}IncrementalAlterConfigs "
        "resources=['broker 0(listener.name.x.ssl.keystore.password)'] failed=0",
        f"{changed}DeleteTopics resources=['orders'] failed=0",
        f"{changed}DeleteTopics resources=['never'] failed=1",
    ]


PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECRET: Final = "planted-secret"
LOGINS: Final = {
    **SETTINGS,
    "super.users": "User:ANONYMOUS;User:alice",
    "listeners": "PLAINTEXT://127.0.0.1:0,CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": f'{PLAIN} user_alice="{SECRET}";',
    "connection.failed.authentication.delay.ms": "0",
    "delegation.token.secret.key": SECRET,
}


def login(password: str = SECRET) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": password,
    }


def test_changes_of_users_tokens_and_quotas_are_lines_without_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "ottla.security.audit")
    with Broker(LOGINS) as broker:
        clients = broker.bootstrap_servers.split(",")[1]
        with ottla.Admin(bootstrap_servers=clients, config=login()) as admin:
            new = ScramUpsertion("bob", SECRET, "SCRAM-SHA-256", 4_096)
            admin.alter_user_scram_credentials([new]).all()
            admin.alter_user_scram_credentials([ScramDeletion("bob", "SCRAM-SHA-256")]).all()
            token = admin.create_delegation_token(renewers=["User:bob"])
            admin.renew_delegation_token(token.hmac)
            admin.expire_delegation_token(token.hmac)
            quota = {"producer_byte_rate": 123_456_789.0}
            admin.alter_client_quotas({QuotaEntity("bob", "app"): quota}).all()
        with (
            pytest.raises(ottla.KafkaError),
            ottla.Admin(bootstrap_servers=clients, config=login(f"not-{SECRET}")) as admin,
        ):
            admin.list_topics()
    audited = [one for one in caplog.records if one.name == "ottla.security.audit"]
    lines = [record.getMessage() for record in audited]
    who = "principal=User:alice host=127.0.0.1"
    assert lines == [
        f"credentials changed: {who} user='bob'",
        f"credentials changed: {who} user='bob'",
        *(
            f"delegation token {change}: {who} token={token.id} owner=User:alice"
            for change in ("created", "renewed", "expired")
        ),
        f"changed: {who} api=AlterClientQuotas "
        "resources=['user=bob,client-id=app(producer_byte_rate)'] failed=0",
        "login failed: user='alice' host=127.0.0.1 listener=CLIENTS mechanism=PLAIN "
        "reason=wrong password",
    ]
    for secret in (SECRET, token.hmac, "123456789"):
        assert secret not in caplog.text


READING: Final = frozenset(
    {
        "Fetch", "ListOffsets", "Metadata", "OffsetFetch", "FindCoordinator", "ApiVersions",
        "OffsetForLeaderEpoch", "DescribeGroups", "ListGroups", "DescribeAcls", "DescribeConfigs",
        "DescribeLogDirs", "DescribeDelegationToken", "ListPartitionReassignments",
        "DescribeClientQuotas", "DescribeUserScramCredentials", "DescribeCluster",
        "DescribeProducers", "DescribeTransactions", "ListTransactions", "ConsumerGroupDescribe",
        "ListConfigResources", "DescribeTopicPartitions",
    }
)  # fmt: skip
OF_CLIENTS_AT_WORK: Final = frozenset(
    {
        "Produce", "OffsetCommit", "JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup",
        "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit",
        "WriteTxnMarkers", "ConsumerGroupHeartbeat",
    }
)  # fmt: skip
"""Too many for a line each: what they may do is in the ACLs, and denials are logged."""
WITH_LINES_OF_THEIR_OWN: Final = frozenset(
    {
        "AlterUserScramCredentials", "CreateDelegationToken", "RenewDelegationToken",
        "ExpireDelegationToken", "SaslHandshake", "SaslAuthenticate",
    }
)  # fmt: skip


def test_every_api_that_changes_something_is_audited_or_a_known_exception() -> None:
    audited = {api.name for api in APIS if api.key in ADMINISTRATIVE}
    between_brokers = {api.name for api in APIS if api.between_brokers}
    groups = (audited, between_brokers, READING, OF_CLIENTS_AT_WORK, WITH_LINES_OF_THEIR_OWN)
    listed = sorted(name for group in groups for name in group)
    assert listed == sorted(api.name for api in APIS), "each API is in one of these lists"
    assert len(audited) == len(ADMINISTRATIVE), "each is an API that is served"
