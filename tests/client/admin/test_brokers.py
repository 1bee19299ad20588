from __future__ import annotations

import pytest

import ottla
from ottla import KafkaError
from ottla.testing import Broker


def test_the_cluster_tells_its_brokers_and_its_controller(
    admin: ottla.Admin, admin_broker: Broker
) -> None:
    cluster = admin.describe_cluster()
    assert len(cluster.id) == 22
    assert cluster.controller == 0
    [broker] = cluster.brokers
    assert broker.address == admin_broker.bootstrap_servers


def test_features_and_versions_are_told(admin: ottla.Admin) -> None:
    assert admin.describe_features()["transaction.version"].finalized == 2
    assert admin.describe_api_versions()[18] == admin.describe_api_versions(0)[18]
    with pytest.raises(KafkaError, match="no broker 9"):
        admin.describe_api_versions(9)
