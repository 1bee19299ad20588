"""TLS and SASL beside the cells of `security`: messages of our clients, tokens without a signature.

One broker in this process, with a listener for TLS alone and one for every SASL mechanism.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import ottla
from ottla.client.admin.scram_users import ScramUpsertion
from ottla.model.clock import WallMs
from ottla.model.errors import AuthenticationFailed
from ottla.security.sasl.tokens import unsecured_token
from ottla.testing import Broker
from tests.fakes.certificates import certificates, pem, trust
from tools import kafka_cache

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
WITH_PASSWORD: Final = MECHANISMS[:3]
WAIT_S: Final = 20.0


class Secure(NamedTuple):
    sasl: str
    tls: str
    folder: Path

    @property
    def authority(self) -> str:
        return str(self.folder / "ca.pem")

    def ours(self, mechanism: str, password: str = "secret") -> dict[str, str]:
        common = {
            "bootstrap.servers": self.sasl,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            **trust(certificates().authority),
        }
        if mechanism == "OAUTHBEARER":
            return {**common, "sasl.oauthbearer.token": token()}
        return {**common, "sasl.username": "alice", "sasl.password": password}


def token() -> str:
    return unsecured_token("alice", WallMs(int(time.time() * 1000)))


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    folder = tmp_path_factory.mktemp("secure")
    made = certificates()
    (folder / "ca.pem").write_bytes(made.authority.certificate_pem())
    (folder / "other.pem").write_bytes(made.other_authority.certificate_pem())
    (folder / "alice.pem").write_bytes(made.alice.key_pem() + made.alice.certificate_pem())
    settings = {
        **pem(made.broker),
        **trust(made.authority),
        "listeners": "SASL_SSL://localhost:0,SSL://localhost:0",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{PLAIN_MODULE} required user_alice="secret" user_admin="admin-secret";'
        ),
        "sasl.oauthbearer.unsecured.enable": "true",
        "ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice;User:admin;User:CN=alice",
    }
    with Broker(settings) as broker:
        sasl, tls = broker.bootstrap_servers.split(",")
        given = Secure(sasl, tls, folder)
        config = {**given.ours("PLAIN"), "sasl.username": "admin", "sasl.password": "admin-secret"}
        with ottla.Admin(config=config) as admin:
            credentials = [ScramUpsertion("alice", "secret", name) for name in WITH_PASSWORD[1:]]
            admin.alter_user_scram_credentials(credentials).all()
        yield given


# ours


@pytest.mark.spec("SEC-01", "SEC-05")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_our_clients_log_in_produce_and_consume_in_a_group(secure: Secure, mechanism: str) -> None:
    config, topic = secure.ours(mechanism), f"ours-{mechanism.lower()}"
    with ottla.Producer(config=config) as producer:
        producer.send(topic, b"a value" * 100_000).result(WAIT_S)
    more = {"group.id": f"g-{topic}", "auto.offset.reset": "earliest"}
    with ottla.Consumer(config={**config, **more}) as consumer:
        consumer.subscribe([topic])
        [record] = consumer.poll(WAIT_S)
        assert record.value == b"a value" * 100_000


Change = Callable[[dict[str, str]], dict[str, str]]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda c: {**c, "sasl.password": "wrong"}, "login by PLAIN failed"),
        (lambda c: {**c, "sasl.username": "nobody"}, "login by PLAIN failed"),
        (lambda c: {**c, **trust(certificates().other_authority)}, "unknown authority"),
        (
            lambda c: {**c, "sasl.mechanism": "SCRAM-SHA-256", "sasl.password": "x"},
            "login by SCRAM",
        ),
    ],
)
def test_our_clients_say_what_is_wrong_at_once_and_show_no_secret(
    secure: Secure, change: Change, text: str
) -> None:
    config = change(secure.ours("PLAIN", "planted-secret" if "login" in text else "secret"))
    with ottla.Admin(config=config) as admin:
        with pytest.raises((AuthenticationFailed, OSError), match=text) as refused:
            admin.list_topics()
        assert "planted-secret" not in str(refused.value)


def test_our_client_names_a_host_that_the_certificate_lacks_at_once(tmp_path: Path) -> None:
    settings = {
        **pem(certificates().broker),
        "listeners": "SSL://127.0.0.2:0",
        "security.inter.broker.protocol": "SSL",
    }
    with Broker(settings) as broker:
        config = {**Secure(broker.bootstrap_servers, "", tmp_path).ours("PLAIN")}
        with (
            ottla.Admin(config={**config, "security.protocol": "SSL"}) as admin,
            pytest.raises(AuthenticationFailed, match="host name mismatch"),
        ):
            admin.list_topics()


def test_our_client_names_a_mechanism_that_is_not_enabled(tmp_path: Path) -> None:
    made = certificates()
    settings = {
        **pem(made.broker),
        "listeners": "SASL_SSL://localhost:0",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    with Broker(settings) as broker:
        config = Secure(broker.bootstrap_servers, "", tmp_path).ours("PLAIN")
        with (
            ottla.Admin(config=config) as admin,
            pytest.raises(AuthenticationFailed, match="it offers SCRAM-SHA-512"),
        ):
            admin.list_topics()


# Java


def java_file(secure: Secure, mechanism: str, password: str = "secret") -> Path:
    module = {"PLAIN": PLAIN_MODULE, "OAUTHBEARER": BEARER_MODULE}.get(mechanism, SCRAM_MODULE)
    options = (
        'unsecuredLoginStringClaim_sub="alice"'
        if mechanism == "OAUTHBEARER"
        else f'username="alice" password="{password}"'
    )
    file = secure.folder / f"{mechanism}-{password}.properties"
    file.write_text(
        "security.protocol=SASL_SSL\n"
        f"sasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={module} required {options};\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={secure.authority}\n"
    )
    return file


def test_kafkas_java_tools_log_in_with_a_token_without_a_signature(secure: Secure) -> None:
    file, topic = str(java_file(secure, "OAUTHBEARER")), "java-unsecured"
    where = ("--bootstrap-server", secure.sasl, "--topic", topic)
    sent = kafka_cache.run_tool(
        "kafka-console-producer", *where, "--command-config", file, stdin="a value\n"
    )
    assert sent.returncode == 0, sent.stderr
    more = ("--from-beginning", "--max-messages", "1", "--timeout-ms", "20000")
    read = kafka_cache.run_tool("kafka-console-consumer", *where, *more, "--command-config", file)
    assert read.stdout == "a value\n", read.stderr


def test_kafkas_java_tools_get_kafkas_exception_for_a_wrong_password(secure: Secure) -> None:
    file = str(java_file(secure, "SCRAM-SHA-512", "wrong"))
    asked = kafka_cache.run_tool(
        "kafka-topics", "--bootstrap-server", secure.sasl, "--command-config", file, "--list"
    )
    assert asked.returncode != 0
    assert "SaslAuthenticationException" in asked.stdout + asked.stderr
