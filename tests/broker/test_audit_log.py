"""Who changed what is in the audit log, without the values."""

from __future__ import annotations

import logging

import pytest

import ottla
from ottla import AclRule
from ottla.client.admin import Resource
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
