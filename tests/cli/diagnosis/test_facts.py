from __future__ import annotations

import ottla
from ottla.cli.diagnosis.facts import availability, everything
from ottla.testing import Broker
from tools.nodes import free_ports


def test_everything_that_can_be_asked_is_gathered(
    admin: ottla.Admin, cli_broker: Broker, topic: str, group: str
) -> None:
    admin.fence_producers(["known"]).all()
    found = everything(admin, {0: f"127.0.0.1:{cli_broker.metrics_port}"})
    assert topic in {one.name for one in found.topics}
    assert "min.insync.replicas" in found.topic_configs[topic]
    assert found.broker_configs[0]["broker.id"].value == "0"
    assert found.disks[0][0].path == str(cli_broker.data_dir)
    assert "known" in {one.id for one in found.transactions}
    [us] = [one for one in found.clients[0] if one.software == "ottla"]
    assert ("Metadata", "13") in us.speaks
    assert found.remarks == []


def test_what_is_not_answered_is_a_remark(admin: ottla.Admin) -> None:
    assert availability(admin).remarks == []
    [port] = free_ports(1)
    [refused] = everything(admin, {0: f"127.0.0.1:{port}"}).remarks
    assert "the metrics of broker 0" in refused
    [silent] = everything(admin, {}).remarks
    assert "--metrics-port" in silent
