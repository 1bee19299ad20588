from __future__ import annotations

import pytest

from ottla.config.zookeeper import ZooKeeperSettings
from tests.config.defaults import Row, check, marked, spec

ROWS: list[Row] = [
    ("zookeeper.connect", None, "start", spec("CFG-004")),
    ("zookeeper.session.timeout.ms", "18000", "start"),
    ("zookeeper.connection.timeout.ms", None, "start"),
    ("zookeeper.max.in.flight.requests", "10", "start"),
    ("zookeeper.set.acl", "false", "start"),
    ("zookeeper.clientCnxnSocket", None, "start"),
    ("password.encoder.secret", None, "start"),
    ("password.encoder.old.secret", None, "start"),
    ("password.encoder.keyfactory.algorithm", None, "start"),
    ("password.encoder.cipher.algorithm", "AES/CBC/PKCS5Padding", "start"),
    ("password.encoder.key.length", "128", "start"),
    ("password.encoder.iterations", "4096", "start"),
    ("zookeeper.ssl.client.enable", "false", "start"),
    ("zookeeper.ssl.keystore.location", None, "start"),
    ("zookeeper.ssl.keystore.password", None, "start"),
    ("zookeeper.ssl.keystore.type", None, "start"),
    ("zookeeper.ssl.truststore.location", None, "start"),
    ("zookeeper.ssl.truststore.password", None, "start"),
    ("zookeeper.ssl.truststore.type", None, "start"),
    ("zookeeper.ssl.protocol", "TLSv1.2", "start"),
    ("zookeeper.ssl.enabled.protocols", "TLSv1.2,TLSv1.3", "start"),  # Kafka's: unset
    ("zookeeper.ssl.cipher.suites", "", "start"),
    ("zookeeper.ssl.endpoint.identification.algorithm", "HTTPS", "start"),
    ("zookeeper.ssl.crl.enable", "false", "start"),
    ("zookeeper.ssl.ocsp.enable", "false", "start"),
]


@pytest.mark.parametrize(("name", "text", "scope"), marked(ROWS))
def test_a_zookeeper_setting_has_the_default_of_kafka_3_9(
    name: str, text: str | None, scope: str
) -> None:
    check(ZooKeeperSettings, name, text, scope)


def test_every_zookeeper_setting_is_in_the_table() -> None:
    assert {row[0] for row in ROWS} == set(ZooKeeperSettings.SETTINGS)


@pytest.mark.parametrize(
    "connect", ["a", "a:2181", "a:2181,b:2181/", "a:1,b/path/of=ours#too", "[::1]:2181/x"]
)
def test_an_ensemble_is_named_as_kafka_names_it(connect: str) -> None:
    assert ZooKeeperSettings.parse({"zookeeper.connect": connect}).zookeeper_connect == connect


def test_the_type_of_a_store_is_known_by_its_name_unless_it_is_set() -> None:
    settings = ZooKeeperSettings(
        zookeeper_ssl_keystore_location="/a/key.PEM",
        zookeeper_ssl_truststore_location="/a/trust.pem",
        zookeeper_ssl_truststore_type="PKCS12",
    ).zookeeper_tls
    assert (settings.ssl_keystore_type, settings.ssl_truststore_type) == ("PEM", "PKCS12")
