"""Files written for Kafka load here, and say what has no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.properties import load, parse
from ottla.config.retired import NOT_OFFERED, REPLACED, translate

KRAFT = """
process.roles=broker,controller
node.id=7
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_the_settings_of_a_kraft_broker_load() -> None:
    texts, warnings = translate(parse(KRAFT), BrokerConfig.SETTINGS)
    config = BrokerConfig.parse(texts)
    assert config.broker_id == 7
    assert config.listeners == ("PLAINTEXT://:9092",)
    assert config.advertised_listeners == ("PLAINTEXT://localhost:9092",)
    assert config.data_dirs == ("/tmp/kraft-combined-logs",)
    assert [line.split()[0] for line in warnings] == [
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "node.id",
        "process.roles",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
    ]


SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECURE = rf"""
listeners=INTERNAL://:9091,EXTERNAL://:9092
advertised.listeners=INTERNAL://broker1:9091,EXTERNAL://broker1.example.com:9092
listener.security.protocol.map=INTERNAL:SASL_SSL,EXTERNAL:SASL_SSL
inter.broker.listener.name=INTERNAL
sasl.enabled.mechanisms=SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
sasl.mechanism.controller.protocol=GSSAPI
sasl.client.callback.handler.class=
sasl.login.class=
sasl.login.refresh.window.factor=0.8
sasl.login.retry.backoff.ms=100
sasl.kerberos.kinit.cmd=/usr/bin/kinit
sasl.kerberos.principal.to.local.rules=DEFAULT
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms=100
listener.name.internal.scram-sha-512.sasl.jaas.config={SCRAM} required \
  username="broker" \
  password="broker-secret";
listener.name.external.scram-sha-512.sasl.jaas.config={SCRAM} required;
listener.name.external.scram-sha-512.sasl.server.callback.handler.class=
listener.name.external.ssl.client.auth=requested
listener.name.external.ssl.principal.mapping.rules=RULE:^CN=(.*?),.*$/$1/L,DEFAULT
listener.name.external.connections.max.reauth.ms=3600000
listener.name.external.max.connections=500
listener.name.external.principal.builder.class=
listener.name.external.num.network.threads=2
ssl.protocol=TLSv1.2
ssl.provider=
ssl.enabled.protocols=TLSv1.2,TLSv1.1,TLSv1
ssl.cipher.suites=TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
ssl.keystore.type=PKCS12
ssl.keystore.location=/etc/kafka/broker.p12
ssl.keystore.password=store-secret
ssl.key.password=store-secret
ssl.truststore.type=JKS
ssl.truststore.location=/etc/kafka/trust.jks
ssl.truststore.password=store-secret
ssl.keymanager.algorithm=PKIX
ssl.trustmanager.algorithm=PKIX
ssl.secure.random.implementation=SHA1PRNG
ssl.endpoint.identification.algorithm=
ssl.allow.dn.changes=false
ssl.engine.factory.class=
security.providers=
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:broker;User:CN=admin,OU=Ops,O=Example
early.start.listeners=INTERNAL
delegation.token.master.key=token-secret
delegation.token.expiry.check.interval.ms=3600000
password.encoder.secret=encoder-secret
password.encoder.keyfactory.algorithm=PBKDF2WithHmacSHA512
group.consumer.assignors=org.apache.kafka.coordinator.group.assignor.RangeAssignor
zookeeper.connect=zk1:2182/kafka
zookeeper.ssl.client.enable=true
zookeeper.ssl.enabled.protocols=TLSv1.2,TLSv1.1
zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty
confluent.license.topic.replication.factor=1
"""


@pytest.mark.spec("SEC-01", "SEC-05")
def test_the_settings_of_a_secure_zookeeper_broker_load(tmp_path: Path) -> None:
    """What has no effect is warned of, each by its full name, and no value is shown."""
    file = tmp_path / "server.properties"
    file.write_text(SECURE)
    loaded = load(file)
    assert loaded.config.assignor_names == ("range",)
    assert loaded.config.ssl_enabled_protocols == ("TLSv1.2", "TLSv1.1", "TLSv1")
    assert sorted(line.split()[0].rstrip(":") for line in loaded.warnings) == [
        "confluent.license.topic.replication.factor",
        "early.start.listeners",
        "listener.name.external.num.network.threads",
        "listener.name.external.principal.builder.class",
        "sasl.client.callback.handler.class",
        "sasl.login.class",
        "sasl.login.refresh.window.factor",
        "sasl.login.retry.backoff.ms",
        "sasl.mechanism.controller.protocol",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "security.providers",
        "ssl.allow.dn.changes",
        "ssl.enabled.protocols",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.secure.random.implementation",
        "zookeeper.clientCnxnSocket",
        "zookeeper.set.acl=false",
        "zookeeper.ssl.enabled.protocols",
    ]
    [versions] = [line for line in loaded.warnings if line.startswith("ssl.enabled.protocols")]
    assert "TLSv1.1, TLSv1 have no effect: unsafe" in versions
    unknown = [line for line in loaded.warnings if "unknown setting" in line]
    assert [line.split()[0] for line in unknown] == ["confluent.license.topic.replication.factor"]
    assert "secret;" not in "".join(loaded.warnings)
    assert "-secret" not in "".join(loaded.warnings)


@pytest.mark.spec("CFG-005", "CFG-036", "CFG-060", "CFG-071")
@pytest.mark.parametrize("name", list(REPLACED))
def test_an_obsolete_name_is_accepted_with_one_line_that_says_what_to_do(name: str) -> None:
    loaded = load(sets=[f"{name}=1"])
    assert loaded.warnings == [f"{name} is obsolete: {REPLACED[name]}"]


@pytest.mark.parametrize("name", list(NOT_OFFERED))
def test_a_setting_we_do_not_offer_is_accepted_with_its_reason(name: str) -> None:
    key = f"{name}something" if name.endswith(".") else name
    loaded = load(sets=[f"{key}=1"])
    assert loaded.warnings == [f"{key} has no effect: {NOT_OFFERED[name]}"]
    assert key not in loaded.texts


def test_no_setting_of_ours_is_called_retired() -> None:
    ours = set(BrokerConfig.SETTINGS)
    assert not ours & (set(REPLACED) | set(NOT_OFFERED))
    prefixes = tuple(name for name in NOT_OFFERED if name.endswith("."))
    assert [name for name in ours if name.startswith(prefixes)] == []


@pytest.mark.spec("CFG-005")
def test_the_old_host_and_port_still_say_where_to_listen() -> None:
    config = load(sets=["host.name=box", "port=9999"]).config
    assert config.listeners == ("PLAINTEXT://box:9999",)
    config = load(sets=["port=9999", "listeners=PLAINTEXT://:1"]).config
    assert config.listeners == ("PLAINTEXT://:1",)
    config = load(sets=["advertised.host.name=outside", "advertised.port=1234"]).config
    assert config.advertised_listeners == ("PLAINTEXT://outside:1234",)


def test_a_name_like_nothing_we_know_gets_no_guess() -> None:
    [line] = load(sets=["my.very.own.thing=1"]).warnings
    assert line == "my.very.own.thing has no effect: unknown setting"
