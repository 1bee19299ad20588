from __future__ import annotations

from pathlib import Path

import pytest

import ottla
from ottla import KafkaError, TopicPartition
from ottla.client.admin import Replica
from ottla.testing import Broker


def test_directories_tell_what_lies_in_them(
    admin: ottla.Admin, admin_broker: Broker, topic: str
) -> None:
    partition = TopicPartition(topic, 0)
    [directory] = admin.describe_log_dirs([0]).one()
    assert Path(directory.path) == admin_broker.data_dir
    assert directory.failure is None
    assert directory.total_bytes >= directory.usable_bytes > 0
    assert not directory.replicas[partition].is_future
    [few] = admin.describe_log_dirs(partitions=[partition]).one()
    assert list(few.replicas) == [partition]


def test_a_replica_tells_where_it_is(admin: ottla.Admin, admin_broker: Broker, topic: str) -> None:
    here = Replica(TopicPartition(topic, 1), 0)
    nowhere = Replica(TopicPartition("nowhere", 0), 0)
    found = admin.describe_replica_log_dirs([here, nowhere]).all()
    assert found[here].current == str(admin_broker.data_dir)
    assert found[here].future is None
    assert found[nowhere].current is None


def test_a_move_to_a_directory_that_is_none_is_refused(admin: ottla.Admin, topic: str) -> None:
    replica = Replica(TopicPartition(topic, 0), 0)
    assert isinstance(admin.alter_replica_log_dirs({replica: "/nowhere"})[replica], KafkaError)
    away = Replica(TopicPartition(topic, 0), 7)
    with pytest.raises(KafkaError, match="no broker 7"):
        admin.alter_replica_log_dirs({away: "/nowhere"}).all()
