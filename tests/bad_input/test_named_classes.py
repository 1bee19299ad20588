"""Settings that name a class or a module: none of them is loaded, whoever reads the setting."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

import ottla
from ottla.config.client import ConsumerConfig, ProducerConfig
from ottla.config.properties import load
from ottla.config.providers import resolve
from ottla.model.errors import UserError
from ottla.spark.parsed_options import ParsedOptions
from ottla.testing import Broker

MODULE: Final = "planted_module"
NAMES: Final = (f"{MODULE}.Planted", f"{MODULE}:Planted", MODULE)
BROKER: Final = (
    "alter.config.policy.class.name",
    "authorizer.class.name",
    "client.quota.callback.class",
    "config.providers.planted.class",
    "create.topic.policy.class.name",
    "kafka.metrics.reporters",
    "listener.name.plaintext.plain.sasl.server.callback.handler.class",
    "metric.reporters",
    "principal.builder.class",
    "remote.log.storage.manager.class.name",
    "replica.selector.class",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.server.callback.handler.class",
    "security.providers",
    "ssl.engine.factory.class",
    "zookeeper.clientCnxnSocket",
)
CLIENT: Final = (
    "interceptor.classes",
    "key.deserializer",
    "key.serializer",
    "metric.reporters",
    "partition.assignment.strategy",
    "partitioner.class",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.oauthbearer.jwt.retriever.class",
    "security.providers",
    "ssl.engine.factory.class",
    "value.deserializer",
    "value.serializer",
)
JAAS: Final = '{name} required user_alice="secret" username="alice" password="secret";'


@pytest.fixture(autouse=True)
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module that could be imported; that it was not is what each test shows."""
    (tmp_path / f"{MODULE}.py").write_text("class Planted:\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    loaded = sys.modules.pop(MODULE, None)
    assert loaded is None, "it was imported"


def test_a_module_that_is_imported_would_be_noticed() -> None:
    __import__(MODULE)
    assert sys.modules.pop(MODULE)


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("setting", BROKER)
def test_a_broker_loads_no_class_that_a_setting_names(setting: str, name: str) -> None:
    more = {"config.providers": "planted"} if setting.startswith("config.providers.") else {}
    try:
        texts = resolve({**more, setting: name}, {}, lambda text: {})
        with Broker(texts):
            pass
        said = " ".join(load(None, sets=[f"{key}={text}" for key, text in texts.items()]).warnings)
    except UserError as refused:
        said = str(refused)
    assert setting in said, "refused, or without effect with a warning"


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI"])
def test_neither_side_of_a_login_loads_a_module_that_a_jaas_line_names(
    mechanism: str, name: str
) -> None:
    line = JAAS.format(name=name)
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.inter.broker.protocol": mechanism,
        f"listener.name.sasl_plaintext.{mechanism.lower()}.sasl.jaas.config": line,
    }
    with suppress(UserError), Broker(settings):  # of SCRAM a listener needs no line
        pass
    login = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": line,
    }
    with pytest.raises(UserError), ottla.Admin(config=login) as admin:
        admin.list_topics()


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("setting", CLIENT)
def test_no_client_loads_a_class_that_a_setting_names(
    setting: str, name: str, ottla_broker: Broker
) -> None:
    config: dict[str, Any] = {"bootstrap.servers": ottla_broker.bootstrap_servers, setting: name}
    for kind in (ottla.Admin, ottla.Producer, ottla.Consumer):
        try:
            with kind(config=config):
                pass
        except UserError as refused:
            assert setting in str(refused)


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("setting", CLIENT)
def test_sparks_source_and_sink_load_no_class_that_an_option_names(setting: str, name: str) -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", f"kafka.{setting}": name}
    for kind in (ConsumerConfig, ProducerConfig):
        try:
            ParsedOptions(options, ()).client({}, "source", kind)
        except UserError as refused:
            assert setting in str(refused)
