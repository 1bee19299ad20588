"""A broker whose metadata live on a real ZooKeeper."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient

from ottla.cli.kafka.main import run
from ottla.model.errors import ErrorCode
from ottla.testing.history import check
from tests.api.acl_requests import OPEN, described, rule
from tests.api.acl_requests import created as made
from tests.cluster.load import Load, create_topic, produce, values, wait_for_progress
from tests.cluster.process import BrokerProcess, Ended, wait_for
from tests.raw_requests import Line
from tests.store.zookeeper_server import Server, zookeeper_server

SESSION_MS = "2000"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


def broker_on(server: Server, folder: Path, path: str, **settings: str) -> BrokerProcess:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return BrokerProcess(
        folder,
        {
            "zookeeper.connect": f"{server.address}{path}",
            "zookeeper.session.timeout.ms": SESSION_MS,
            "zookeeper.connection.timeout.ms": "30000",
            **named,
        },
    )


def node(server: Server, path: str) -> dict[str, object]:
    """The line of the shell's output that is the node's content."""
    shown = server.shell("get", path)
    [found] = [line for line in shown.splitlines() if line.startswith("{")]
    content: dict[str, object] = json.loads(found)
    return content


def created(address: str, topic: str) -> bool:
    try:
        create_topic(address, topic)
    except KafkaException as refused:  # one that was refused may have been carried out later
        return str(refused.args[0].name()) == "TOPIC_ALREADY_EXISTS"
    return True


@pytest.mark.spec("TOOL-15")
def test_zookeepers_shell_shows_who_leads_a_partition_and_who_is_in_sync(
    server: Server, tmp_path: Path
) -> None:
    with broker_on(server, tmp_path, "", broker_id="5") as broker:
        create_topic(broker.address, "seen", 2)
        state = node(server, "/brokers/topics/seen/partitions/1/state")
        assert (state["leader"], state["isr"], state["leader_epoch"]) == (5, [5], 0)
        assert node(server, "/brokers/topics/seen")["partitions"] == {"0": [5], "1": [5]}
        assert node(server, "/controller")["brokerid"] == 5
        assert broker.terminate() == 0
    assert "[]" in server.shell("ls", "/brokers/ids")


@pytest.mark.spec("SEC-04")
def test_access_rules_are_where_kafka_keeps_them_and_hold_when_zookeeper_comes_back(
    server: Server, tmp_path: Path
) -> None:
    broker = broker_on(server, tmp_path, "/ruled", broker_id="1")
    broker.settings |= OPEN
    with broker, Line(broker.address) as line:
        assert made(line, rule()) == [ErrorCode.none]
        stored = {"principal": "User:ANONYMOUS", "host": "*"}
        stored |= {"permissionType": "Allow", "operation": "Read"}
        assert node(server, "/ruled/kafka-acl/Topic/orders")["acls"] == [stored]
        server.kill()
        server.start_again()
        wait_for(lambda: made(line, rule(resource_name="more")) == [ErrorCode.none], 60, "a rule")
        assert described(line) == [("more", 3), ("orders", 3)]


@pytest.mark.spec("TOOL-20", "CFG-004")
def test_brokers_are_set_up_by_connect_string_id_and_the_address_clients_reach(
    server: Server, tmp_path: Path
) -> None:
    with broker_on(server, tmp_path / "one", "/first", broker_id="1") as one:
        with pytest.raises(Ended, match=r"broker\.id=1: a broker with this id is already running"):
            broker_on(server, tmp_path / "twin", "/first", broker_id="1").start()
        advertised = broker_on(server, tmp_path / "three", "/second/cluster", broker_id="1")
        advertised.settings["advertised.listeners"] = f"PLAINTEXT://localhost:{advertised.port}"
        with advertised:
            create_topic(one.address, "of-one")
            seen = AdminClient({"bootstrap.servers": advertised.address}).list_topics(timeout=30)
            assert "of-one" not in seen.topics
            assert [str(at) for at in seen.brokers.values()] == [f"localhost:{advertised.port}/1"]
            registered = node(server, "/second/cluster/brokers/ids/1")
            assert registered["endpoints"] == [f"PLAINTEXT://localhost:{advertised.port}"]


@pytest.mark.spec("TOOL-04", "TOOL-06")
def test_kafkas_commands_find_the_broker_by_its_zookeeper(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--zookeeper", f"{server.address}/by/commands", "--topic", "found"]
    with broker_on(server, tmp_path, "/by/commands", broker_id="3"):
        made = ["--partitions", "2", "--replication-factor", "1"]
        assert run("kafka-topics.sh", ["--create", *where, *made]) == 0
        assert run("kafka-topics.sh", ["--describe", *where]) == 0
    assert "Topic: found\tPartition: 1\tLeader: 3" in capsys.readouterr().out


def test_what_a_broker_knew_outlives_it_however_it_ends(server: Server, tmp_path: Path) -> None:
    with broker_on(server, tmp_path, "/lives") as broker:
        create_topic(broker.address, "kept", 3, retention_ms="123456")
        produce(broker.address, "kept", [f"n-{number}" for number in range(50)])
        broker.kill()  # its node in ZooKeeper outlives it for a moment, and is waited out
        broker.start()
        assert len(values(broker.address, "kept", 3)) == 50
        assert broker.terminate() == 0
        broker.start()
        assert len(values(broker.address, "kept", 3)) == 50


def test_without_zookeeper_records_come_and_go_and_topics_wait_for_it(
    server: Server, tmp_path: Path
) -> None:
    with broker_on(server, tmp_path, "/silence") as broker:
        create_topic(broker.address, "busy", 2)
        with Load(broker.address, "busy", 2) as load:
            wait_for_progress(load)
            server.kill()
            load.fault("no ZooKeeper")
            wait_for_progress(load, 200)
            admin = AdminClient({"bootstrap.servers": broker.address})
            asked = admin.create_topics([NewTopic("meanwhile", 1, 1)], operation_timeout=1.0)
            with pytest.raises(KafkaException, match=r"NOT_CONTROLLER|TIMED_OUT"):
                asked["meanwhile"].result(30)
            server.start_again()
            load.fault("ZooKeeper again")
            wait_for(lambda: created(broker.address, "after"), 60, "a topic")
            wait_for_progress(load)
        assert load.failures == []
        assert check(load.finish()) == []
        assert "Traceback" not in broker.said


@pytest.mark.timeout(180)
def test_nothing_acknowledged_is_lost_when_broker_and_zookeeper_are_killed_by_turns(
    server: Server, tmp_path: Path
) -> None:
    with broker_on(server, tmp_path, "/turns") as broker:
        create_topic(broker.address, "busy", 2)
        with Load(broker.address, "busy", 2) as load:
            for _ in range(3):
                wait_for_progress(load)
                load.fault("kill -9")
                broker.kill()
                broker.launch()
                server.kill()  # while the broker looks for its metadata, or has just found them
                server.start_again()
                wait_for(broker.ready_or_ended, 60, "the broker")
                if broker.process.poll() is not None:  # it was told so, and stopped
                    assert "metadata store unavailable" in broker.said or "no reply" in broker.said
                    broker.start()
        assert load.failures == []
        assert check(load.finish()) == []


def test_an_ended_session_is_followed_by_another(server: Server, tmp_path: Path) -> None:
    with broker_on(server, tmp_path, "/expiry", broker_id="9") as broker:
        create_topic(broker.address, "before")
        watcher = KazooClient(hosts=server.address)
        watcher.start()
        first = watcher.get("/expiry/brokers/ids/9")[1]
        watcher.delete("/expiry/controller")  # somebody meddles: the office is taken again
        wait_for(lambda: watcher.exists("/expiry/controller") is not None, 30)
        broker.signal(signal.SIGSTOP)  # silent for longer than a session lasts
        wait_for(lambda: watcher.exists("/expiry/brokers/ids/9") is None, 30)
        broker.signal(signal.SIGCONT)
        wait_for(lambda: watcher.exists("/expiry/brokers/ids/9") is not None, 30)
        assert watcher.get("/expiry/brokers/ids/9")[1].czxid > first.czxid
        watcher.stop()
        watcher.close()
        wait_for(lambda: created(broker.address, "after"), 30, "the office to be taken")
        produce(broker.address, "after", ["a"])
        produce(broker.address, "before", ["b"])
        assert values(broker.address, "after", 1) == ["a"]
        assert values(broker.address, "before", 1) == ["b"]


def test_an_ensemble_that_is_not_there_is_named_before_anything_starts(tmp_path: Path) -> None:
    nobody = BrokerProcess(
        tmp_path,
        {"zookeeper.connect": "127.0.0.1:1/x", "zookeeper.connection.timeout.ms": "300"},
    )
    with pytest.raises(Ended, match=r"store unavailable: ZooKeeper at 127\.0\.0\.1:1/x") as ended:
        nobody.start()
    assert "Traceback" not in str(ended.value)


def test_a_connect_string_that_is_none_is_refused(tmp_path: Path) -> None:
    broken = BrokerProcess(tmp_path, {"zookeeper.connect": "zk1:2181:2181"})
    with pytest.raises(Ended, match=r"zookeeper\.connect.*expected host:port"):
        broken.start()
