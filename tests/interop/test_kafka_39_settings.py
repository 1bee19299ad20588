"""A secure Apache Kafka 3.9 on ZooKeeper, then Ottla in its place with its server.properties."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import ottla
from ottla import AclRule, ErrorCode, KafkaError
from ottla.client.admin import Resource
from ottla.model.errors import AuthenticationFailed
from ottla.security.tls.authority import Issued, issue
from tests.cluster.process import wait_for
from tests.fakes.certificates import HOSTS, certificates
from tests.store.zookeeper_server import zookeeper_server
from tools import kafka_cache, nodes

pytestmark = [pytest.mark.spec("SEC-01", "SEC-05"), pytest.mark.timeout(300)]

SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
STORE_PASSWORD: Final = "store-secret"
NEWER_PASSWORD: Final = "newer-secret"
START_S: Final = 120
WAIT_S: Final = 30.0
# For the same names: Kafka accepts no others in the place of a certificate.
NEWER: Final = issue(certificates().authority, "broker", time.time(), hosts=HOSTS)
SERIAL: Final = f"{NEWER.certificate.serial_number:X}"


class Installation(NamedTuple):
    """What its operator has: a folder with server.properties, and ZooKeeper."""

    folder: Path
    port: int
    properties: Path

    def client(self, user: str, password: str | None = None) -> dict[str, str]:
        login = f'username="{user}" password="{password or user + "-secret"}"'
        return {
            "bootstrap.servers": f"localhost:{self.port}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f"{SCRAM} required {login};",
            "ssl.truststore.location": str(self.folder / "trust.jks"),
            "ssl.truststore.password": STORE_PASSWORD,
        }

    def certificate(self) -> str:
        """What the listener shows, or nothing while it does not listen."""
        context = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
        try:
            with (
                socket.create_connection(("localhost", self.port), 2) as plain,
                context.wrap_socket(plain, server_hostname="localhost") as connection,
            ):
                return str(connection.getpeercert())
        except OSError:
            return ""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("kafka-3.9")
    (folder / "zookeeper").mkdir()
    with zookeeper_server(folder / "zookeeper") as zookeeper:
        zookeeper.wait_until_it_serves()
        [port] = nodes.free_ports(1)
        made = Installation(folder, port, folder / "server.properties")
        write_stores(folder)
        made.properties.write_text(server_properties(made, zookeeper.address))
        yield made


def server_properties(made: Installation, zookeeper: str) -> str:
    return f"""
broker.id=0
listeners=SASL_SSL://localhost:{made.port}
advertised.listeners=SASL_SSL://localhost:{made.port}
security.inter.broker.protocol=SASL_SSL
sasl.enabled.mechanisms=SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={SCRAM} required \\
  username="admin" \\
  password="admin-secret";
ssl.keystore.location={made.folder}/broker.jks
ssl.keystore.password={STORE_PASSWORD}
ssl.key.password={STORE_PASSWORD}
ssl.truststore.location={made.folder}/trust.jks
ssl.truststore.password={STORE_PASSWORD}
ssl.client.auth=none
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:admin;User:CN=broker
allow.everyone.if.no.acl.found=false
password.encoder.secret=an encoder's secret
log.dirs={made.folder}/data
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
zookeeper.connect={zookeeper}
zookeeper.connection.timeout.ms=18000
inter.broker.protocol.version=3.9
"""


def write_stores(folder: Path) -> None:
    """JKS files as an operator makes them with keytool."""
    made = certificates()
    (folder / "ca.pem").write_bytes(made.authority.certificate_pem())
    keytool(
        "-importcert", "-noprompt", "-alias", "ca", "-file", str(folder / "ca.pem"),
        "-keystore", str(folder / "trust.jks"), "-storepass", STORE_PASSWORD,
        "-storetype", "JKS",
    )  # fmt: skip
    key_store(folder, "broker", made.broker, STORE_PASSWORD)
    key_store(folder, "newer", NEWER, NEWER_PASSWORD)


def key_store(folder: Path, name: str, issued: Issued, password: str) -> None:
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    authority = certificates().authority.certificate
    encryption = BestAvailableEncryption(password.encode())
    data = pkcs12.serialize_key_and_certificates(
        b"broker", issued.key, issued.certificate, [authority], encryption
    )
    (folder / f"{name}.p12").write_bytes(data)
    keytool(
        "-importkeystore", "-noprompt", "-srckeystore", str(folder / f"{name}.p12"),
        "-srcstoretype", "PKCS12", "-srcstorepass", password,
        "-destkeystore", str(folder / f"{name}.jks"), "-deststoretype", "JKS",
        "-deststorepass", password,
    )  # fmt: skip


def keytool(*words: str) -> None:
    try:
        program = kafka_cache.program("keytool")
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def running(made: Installation, command: list[str], output: Path) -> Iterator[Path]:
    """A broker of either kind, until its listener answers."""
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    try:
        wait_for(lambda: process.poll() is not None or made.certificate() != "", START_S, "broker")
        assert process.poll() is None, output.read_text()[-4_000:]
        yield output
    finally:
        process.terminate()
        process.wait(60)


def kafka_39(made: Installation) -> list[str]:
    path = kafka_cache.classpath("server-3.9")
    return kafka_cache.java(path, "kafka.Kafka", str(made.properties), options=("-Xmx512m",))


def test_a_secure_kafka_39_is_replaced_with_its_own_settings_users_and_acls(
    installation: Installation,
) -> None:
    made = installation
    add_users(made)
    with running(made, kafka_39(made), made.folder / "kafka.txt"):
        wait_for(lambda: has_brokers(made), START_S, "a broker that is registered")
        with ottla.Admin(config=made.client("admin")) as admin:
            admin.create_topic("orders")
            admin.create_acls(
                [
                    AclRule.allow("User:alice", "all", "topic", "ord", pattern="prefixed"),
                    AclRule.allow("User:alice", "read", "group", "readers"),
                    AclRule.deny("User:alice", "delete", "topic", "orders"),
                ]
            ).all()
            dynamic = "listener.name.sasl_ssl.ssl.key"
            changes = {
                f"{dynamic}store.location": str(made.folder / "newer.jks"),
                f"{dynamic}store.password": NEWER_PASSWORD,
                f"{dynamic}.password": NEWER_PASSWORD,
            }
            admin.incremental_alter_configs({Resource.broker(0): changes}).all()
        with ottla.Producer(config=made.client("alice")) as producer:
            producer.send("orders", b"written to Kafka").result(WAIT_S)
        assert SERIAL in made.certificate()
    command = [sys.executable, "-m", "ottla", "serve", str(made.properties)]
    with running(made, command, made.folder / "ottla.txt") as output:
        wait_for(lambda: " ready on " in output.read_text(), START_S, "the end of its start")
        assert SERIAL in made.certificate(), "its store has a password that Kafka encrypted"
        check_access(made)
        with ottla.Producer(config=made.client("alice")) as producer:
            producer.send("orders", b"written to Ottla").result(WAIT_S)
        more = {"group.id": "readers", "auto.offset.reset": "earliest"}
        with ottla.Consumer(config={**made.client("alice"), **more}) as consumer:
            consumer.subscribe(["orders"])
            values: list[bytes | None] = []
            while len(values) < 2:
                values += [record.value for record in consumer.poll(WAIT_S)]
        assert values == [b"written to Kafka", b"written to Ottla"]
    for secret in (STORE_PASSWORD, NEWER_PASSWORD, "admin-secret", "encoder's"):
        assert secret not in output.read_text()


def has_brokers(made: Installation) -> bool:
    """It listens before it is registered."""
    try:
        with ottla.Admin(config=made.client("admin")) as admin:
            return bool(admin.wait_for(lambda each: each.brokers()))
    except OSError:
        return False


def add_users(made: Installation) -> None:
    """As Kafka's guide says: the first ones go straight into ZooKeeper, before a broker runs."""
    connect = next(
        line.partition("=")[2]
        for line in made.properties.read_text().splitlines()
        if line.startswith("zookeeper.connect=")
    )
    for user in ("admin", "alice"):
        added = kafka_cache.run_tool(
            "kafka-configs", "--zookeeper", connect, "--alter",
            "--add-config", f"SCRAM-SHA-512=[password={user}-secret]",
            "--entity-type", "users", "--entity-name", user, kind="server-3.9",
        )  # fmt: skip
        assert added.returncode == 0, added.stdout + added.stderr


def check_access(made: Installation) -> None:
    """Users and ACLs are those that Kafka wrote."""
    with ottla.Admin(config=made.client("admin")) as admin:
        assert "orders" in admin.list_topics()
        admin.create_topic("hidden")
    with ottla.Admin(config=made.client("alice")) as alice:
        assert list(alice.list_topics()) == ["orders"]
        with pytest.raises(KafkaError) as refused:
            alice.delete_topic("orders")
        assert refused.value.code is ErrorCode.topic_authorization_failed
    with (
        ottla.Admin(config=made.client("alice", "wrong")) as wrong,
        pytest.raises(AuthenticationFailed, match="login by SCRAM-SHA-512 failed"),
    ):
        wrong.list_topics()
