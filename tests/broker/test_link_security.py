"""Connections from broker to broker, with the security of their listener."""

from __future__ import annotations

import os
from random import Random

import pytest

from ottla.broker.link_security import LinkSecurity
from ottla.config.broker import BrokerConfig
from ottla.model.clock import SystemClock
from ottla.model.errors import UserError
from ottla.net.broker_link import BrokerLink
from ottla.testing import Broker
from tests.fakes.certificates import certificates, pem, trust

METADATA = 3
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
MADE = certificates()
SETTINGS = {
    **pem(MADE.broker),
    **trust(MADE.authority),
    "listeners": "SASL_SSL://localhost:0",
    "security.inter.broker.protocol": "SASL_SSL",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "connections.max.reauth.ms": "60000",
    "connection.failed.authentication.delay.ms": "1",
}
JAAS = "listener.name.sasl_ssl.plain.sasl.jaas.config"


def with_password(password: str) -> dict[str, str]:
    line = f'{MODULE} required username="broker" password="{password}" user_broker="secret";'
    return {**SETTINGS, JAAS: line}


@pytest.mark.spec("SEC-01")
@pytest.mark.real_loop
async def test_a_broker_logs_in_to_another_over_tls() -> None:
    async with Broker(with_password("secret")) as broker:
        host, port = broker.bootstrap_servers.split(":")
        for password in ("secret", "wrong"):
            security = LinkSecurity(
                BrokerConfig.parse(with_password(password)), SystemClock(), os.urandom
            )
            link = BrokerLink(
                host, int(port), SystemClock(), Random(1), "b", login=security.login,
                tls=security.tls,
            )  # fmt: skip
            fields = {
                "topics": [],
                "allow_auto_topic_creation": False,
                "include_topic_authorized_operations": False,
            }
            if password == "secret":
                reply = await link.ask(METADATA, fields, 10_000)
                assert len(reply.body.brokers) == 1
            else:
                with pytest.raises(ConnectionError, match="login by PLAIN failed"):
                    await link.ask(METADATA, fields, 10_000)
            link.close()


def test_a_listener_without_credentials_for_brokers_is_refused() -> None:
    with pytest.raises(UserError, match="needs a user and a password"):
        LinkSecurity(BrokerConfig.parse(SETTINGS), SystemClock(), os.urandom)
