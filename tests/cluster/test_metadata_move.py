"""A single broker whose metadata move to ZooKeeper, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from kazoo.client import KazooClient

import ottla
from ottla.cli import main
from ottla.client.admin.scram_users import ScramUpsertion
from ottla.model.errors import AuthenticationFailed
from ottla.security.quotas.entities import DEFAULT, QuotaEntity
from tests.cluster.load import create_topic, produce, values
from tests.cluster.process import BrokerProcess, Ended
from tests.store.zookeeper_server import Server, zookeeper_server
from tools.nodes import free_ports


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
        assert (data / "ottla-store.sqlite").stat().st_mode & 0o777 == 0o600
        del broker.settings["zookeeper.connect"]
        broker.start()
        assert len(values(broker.address, "kept", 3)) == 51
        assert broker.terminate() == 0
    client = KazooClient(hosts=server.address)
    client.start()
    assert client.get_children("/moved/here") == []
    client.stop()
    client.close()


class Access:
    """What a broker with logins knows of its users: set once, then looked at in each place."""

    SETTINGS: Final = {
        "broker.id": "3",
        "zookeeper.session.timeout.ms": "2000",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "delegation.token.secret.key": "the key of all tokens",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    RULE = ottla.AclRule.allow("User:alice", "read", "topic", "kept")
    QUOTAS: Final = {
        QuotaEntity(user="alice"): {"producer_byte_rate": 1_048_576.0},
        QuotaEntity(user=DEFAULT, client_id="batch"): {"consumer_byte_rate": 2_097_152.0},
        QuotaEntity(ip="10.1.2.3"): {"connection_creation_rate": 5.0},
    }

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._sasl = f"127.0.0.1:{free_ports(1)[0]}"
        broker.listeners.append(f"SASL_PLAINTEXT://{self._sasl}")

    def set_up(self) -> None:
        with ottla.Admin(bootstrap_servers=self._broker.address) as admin:
            admin.alter_user_scram_credentials(
                [ScramUpsertion("alice", "alice's secret", "SCRAM-SHA-256")]
            ).all()
            admin.create_acls([self.RULE]).all()
            admin.alter_client_quotas(dict(self.QUOTAS)).all()
        with self._admin("alice", "alice's secret") as admin:
            self._token = admin.create_delegation_token(renewers=["User:bob"])

    def check(self) -> None:
        """Everything is known and in force, and can be changed."""
        with ottla.Admin(bootstrap_servers=self._broker.address) as admin:
            assert admin.describe_user_scram_credentials().all() == {
                "alice": {"SCRAM-SHA-256": 8_192}
            }
            assert list(admin.describe_acls()) == [self.RULE]
            assert admin.describe_client_quotas() == self.QUOTAS
        with self._admin("alice", "alice's secret") as admin:
            assert admin.list_topics() == ["kept"]
            [token] = admin.describe_delegation_tokens()
            assert token._replace(expires_ms=0) == self._token._replace(expires_ms=0)
            assert admin.renew_delegation_token(token.hmac) >= self._token.expires_ms
            other = admin.create_delegation_token()
            admin.expire_delegation_token(other.hmac)
        with self._admin(token.id, token.hmac, 'tokenauth="true"') as admin:
            assert admin.list_topics() == ["kept"]
        with (
            pytest.raises(AuthenticationFailed),
            self._admin("alice", "another secret") as admin,
        ):
            admin.list_topics()

    def _admin(self, user: str, password: str, options: str = "") -> ottla.Admin:
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        return ottla.Admin(
            config={
                "bootstrap.servers": self._sasl,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.jaas.config": (
                    f'{module} required username="{user}" password="{password}" {options};'
                ),
            }
        )


@pytest.mark.spec("SEC-05", "SEC-06", "SEC-07")
def test_users_acls_quotas_and_tokens_move_to_zookeeper_and_back(
    server: Server, tmp_path: Path
) -> None:
    place = f"zookeeper://{server.address}/with-users"
    server.wait_until_it_serves()
    broker = BrokerProcess(tmp_path, Access.SETTINGS)
    access = Access(broker)
    with broker:
        [data] = broker.dirs
        create_topic(broker.address, "kept", 1)
        create_topic(broker.address, "hidden", 1)
        access.set_up()
        access.check()
        assert broker.terminate() == 0
        assert main.run(["metadata", "move", "--data-dir", str(data), "--to", place]) == 0
        broker.settings["zookeeper.connect"] = f"{server.address}/with-users"
        broker.start()
        access.check()
        assert broker.terminate() == 0
        back = ["metadata", "move", "--data-dir", str(data), "--from", place, "--to", "embedded"]
        assert main.run(back) == 0
        del broker.settings["zookeeper.connect"]
        broker.start()
        access.check()
        assert broker.terminate() == 0


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
