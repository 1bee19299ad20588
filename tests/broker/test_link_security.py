"""Connections from broker to broker, with the security of their listener."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from random import Random

import pytest

from ottla.broker.environment import Environment
from ottla.broker.link_security import LinkSecurity
from ottla.broker.listener_security import CHECK_S, ListenerSecurity
from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.log.files import RealDisk
from ottla.model.clock import SystemClock
from ottla.model.errors import UserError
from ottla.model.metrics import Registry
from ottla.net.broker_link import BrokerLink
from ottla.net.limits import NetLimits
from ottla.net.network import Network
from ottla.net.request_metrics import RequestMetrics
from ottla.security.sasl.scram import ScramCredentials
from ottla.security.tls.authority import Issued
from ottla.store.memory import Ensemble, MemoryStore
from ottla.testing import Broker
from tests.fakes.certificates import certificates, pem, trust
from tests.fakes.inline_pool import InlinePool

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


class Refreshing:
    """The loop that applies changes of files, for a broker whose certificates are in one."""

    def __init__(self, store: Path) -> None:
        self.store = store
        texts = {
            "listeners": "SSL://localhost:9093",
            "security.inter.broker.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            **trust(MADE.authority),
        }
        self.write(MADE.broker)
        config = DynamicConfig(texts)
        clock = SystemClock()
        metrics = RequestMetrics(Registry(), {}, clock)
        network = Network(NetLimits(), clock, metrics, InlinePool())
        environment = Environment(
            clock, Random(1), RealDisk(), lambda _: MemoryStore(Ensemble()), None
        )
        self.security = ListenerSecurity(
            config, ScramCredentials(), environment, network, lambda frame, slot: None
        )
        self.links = LinkSecurity(config.current, clock, os.urandom)
        self.security.links = self.links

    def write(self, issued: Issued) -> None:
        self.store.write_bytes(issued.key_pem() + issued.certificate_pem())

    def damage(self, text: str) -> None:
        self.store.write_text(text)


@pytest.mark.spec("SEC-01")
async def test_a_damaged_certificate_of_links_is_logged_once_until_it_is_mended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ottla.broker.listener_security")
    broker = Refreshing(tmp_path / "broker.pem")
    task = asyncio.create_task(broker.security.run())
    try:
        for content, line in (
            ("no key", "connections to other brokers: keeping the certificates in force: "),
            (None, "connections to other brokers: certificates replaced"),
            ("", "connections to other brokers: keeping the certificates in force: "),
        ):
            caplog.clear()
            if content is None:
                broker.write(MADE.alice)
            else:
                broker.damage(content)
            await asyncio.sleep(10 * CHECK_S)
            [logged] = caplog.messages
            assert logged.startswith(line)
    finally:
        task.cancel()


def test_a_listener_without_credentials_for_brokers_is_refused() -> None:
    with pytest.raises(UserError, match="needs a user and a password"):
        LinkSecurity(BrokerConfig.parse(SETTINGS), SystemClock(), os.urandom)
