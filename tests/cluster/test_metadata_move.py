"""A single broker whose metadata move to ZooKeeper, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from ottla.cli import main
from tests.cluster.load import create_topic, produce, values
from tests.cluster.process import BrokerProcess, Ended
from tests.store.zookeeper_server import Server, zookeeper_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


def test_a_single_broker_moves_to_zookeeper_and_back_and_serves_the_same_records(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"zookeeper://{server.address}/moved/here"
    server.wait_until_it_serves()
    with BrokerProcess(tmp_path, {"broker.id": "3"}) as broker:
        [data] = broker.dirs
        create_topic(broker.address, "kept", 3, retention_ms="123456")
        produce(broker.address, "kept", [f"n-{number}" for number in range(50)])
        there = ["metadata", "move", "--data-dir", str(data), "--to", place]
        assert main.run(there) == 2
        assert "in use by another process" in capsys.readouterr().err
        assert broker.terminate() == 0
        assert main.run(there) == 0
        said = capsys.readouterr().out
        assert f"Add zookeeper.connect={server.address}/moved/here to server.properties" in said
        with pytest.raises(Ended, match="has no metadata of that cluster"):
            broker.start()
        broker.settings["zookeeper.connect"] = f"{server.address}/moved/here"
        broker.settings["zookeeper.session.timeout.ms"] = "2000"
        broker.start()
        assert len(values(broker.address, "kept", 3)) == 50
        produce(broker.address, "kept", ["more"])
        back = ["metadata", "move", "--data-dir", str(data), "--from", place, "--to", "embedded"]
        assert broker.terminate() == 0
        assert main.run(back) == 0
        del broker.settings["zookeeper.connect"]
        broker.start()
        assert len(values(broker.address, "kept", 3)) == 51
        assert broker.terminate() == 0
    client = KazooClient(hosts=server.address)
    client.start()
    assert client.get_children("/moved/here") == []
    client.stop()
    client.close()


def test_a_target_that_is_not_empty_is_refused(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = KazooClient(hosts=server.address)
    client.start(60)
    client.ensure_path("/full/of/nodes")
    client.stop()
    client.close()
    with BrokerProcess(tmp_path) as broker:
        [data] = broker.dirs
        assert broker.terminate() == 0
    place = f"zookeeper://{server.address}/full"
    assert main.run(["metadata", "move", "--data-dir", str(data), "--to", place]) == 2
    assert "/full is not empty" in capsys.readouterr().err
    with BrokerProcess(tmp_path):
        pass  # nothing was changed


@pytest.mark.parametrize("to", ["zk1:2181", "zookeeper://", "embedded"])
def test_a_place_that_is_none_is_named(
    to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["metadata", "move", "--data-dir", str(tmp_path), "--to", to]) == 2
    assert "expected zookeeper://HOST:PORT" in capsys.readouterr().err


def test_a_cluster_whose_zookeeper_lost_its_data_starts_from_an_export(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.wait_until_it_serves()
    settings = {"broker.id": "1", "zookeeper.session.timeout.ms": "2000"}
    backup = tmp_path / "backup.jsonl"
    with BrokerProcess(
        tmp_path, {**settings, "zookeeper.connect": f"{server.address}/before"}
    ) as broker:
        create_topic(broker.address, "kept", 3, retention_ms="123456")
        produce(broker.address, "kept", [f"n-{number}" for number in range(50)])
        source = f"zookeeper://{server.address}/before"
        assert main.run(["metadata", "export", str(backup), "--from", source]) == 0
        assert backup.stat().st_mode & 0o777 == 0o600, "it holds password verifiers"
        assert main.run(["metadata", "export", str(backup), "--from", source]) == 2
        assert "never overwrites a file" in capsys.readouterr().err
        create_topic(broker.address, "later", 1)
        produce(broker.address, "later", ["unknown to the export"])
        assert broker.terminate() == 0
        target = f"zookeeper://{server.address}/after"
        assert main.run(["metadata", "import", str(backup), "--to", target]) == 0
        assert main.run(["metadata", "import", str(backup), "--to", target]) == 2
        assert "is not empty" in capsys.readouterr().err
        broker.settings["zookeeper.connect"] = f"{server.address}/after"
        broker.start()
        assert len(values(broker.address, "kept", 3)) == 50
        [data] = broker.dirs
        assert any(path.name.startswith("later-0") for path in data.iterdir()), "kept on disk"


def test_a_file_that_is_no_export_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("hello\n")
    assert main.run(["metadata", "import", str(file), "--to", "zookeeper://localhost:1/x"]) == 2
    assert "not a file of ottla metadata export" in capsys.readouterr().err
