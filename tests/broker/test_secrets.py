"""No secret that a broker is given shows up where anybody could read it."""

from __future__ import annotations

import logging
from urllib.request import urlopen

import pytest

import ottla
from ottla.client.admin import Resource
from ottla.client.admin.scram_users import ScramUpsertion
from ottla.config.broker import BrokerConfig
from ottla.model.errors import AuthenticationFailed, KafkaError
from ottla.testing import Broker
from tests.fakes.certificates import certificates, pem, trust

PLANTED = "planted-secret"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = f'{MODULE} required user_alice="{PLANTED}";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SASL = ("sasl.user", "sasl.pass")
MADE = certificates()
SETTINGS = {
    **pem(MADE.broker),
    "ssl.keystore.password": PLANTED,
    "ssl.key.password": PLANTED,
    "ssl.truststore.password": PLANTED,
    "listeners": "SASL_SSL://localhost:0",
    "security.inter.broker.protocol": "SASL_SSL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
    "connection.failed.authentication.delay.ms": "1",
    "delegation.token.secret.key": PLANTED,
    "metrics.port": "0",
}
CLIENT = {
    **trust(MADE.authority),
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": PLANTED,
}


def secrets() -> list[str]:
    key = MADE.broker.key_pem().decode().splitlines()[1]
    return [PLANTED, key, "PRIVATE KEY"]


@pytest.mark.spec("SEC-05")
def test_no_secret_is_in_logs_descriptions_or_errors(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    with Broker(SETTINGS) as broker:
        client = {**CLIENT, "bootstrap.servers": broker.bootstrap_servers}
        with ottla.Admin(config=client) as admin:
            described = admin.describe_configs([Resource.broker(0)], synonyms=True).one()
            shown += [f"{entry}" for entry in described.values()]
            hidden = described["listener.name.sasl_ssl.plain.sasl.jaas.config"]
            assert (hidden.value, hidden.sensitive) == (None, True)
            admin.alter_user_scram_credentials(
                [ScramUpsertion("bob", PLANTED, "SCRAM-SHA-256")]
            ).all()
            shown.append(str(admin.describe_user_scram_credentials().all()))
            token = admin.create_delegation_token()
            shown += [repr(token), str(admin.describe_delegation_tokens())]
            name = "listener.name.sasl_ssl.ssl.keystore.password"
            with pytest.raises(KafkaError) as refused:
                location = {"listener.name.sasl_ssl.ssl.keystore.location": "/no/such"}
                no_key = {"listener.name.sasl_ssl.ssl.keystore.key": ""}
                changes = {name: PLANTED, **location, **no_key}
                admin.incremental_alter_configs({Resource.broker(0): changes}).all()
            shown.append(str(refused.value))
        with urlopen(f"http://127.0.0.1:{broker.metrics_port}/metrics") as page:
            shown.append(page.read().decode())
        client_of_token = {
            **{name: text for name, text in client.items() if name[:9] not in SASL},
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{SCRAM} required username="{token.id}" '
            f'password="{token.hmac}" tokenauth="true";',
        }
        with ottla.Admin(config=client_of_token) as admin:
            admin.list_topics()
        assert token.hmac not in "".join([*shown, caplog.text])
        wrong = {**client, "sasl.password": f"{PLANTED}-wrong"}
        with ottla.Admin(config=wrong) as admin, pytest.raises(AuthenticationFailed) as failed:
            admin.list_topics()
        shown.append(str(failed.value))
    shown += [repr(BrokerConfig.parse(SETTINGS)), caplog.text]
    for secret in secrets():
        for text in shown:
            assert secret not in text
