"""A broker for all tests of commands, and the commands against it."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ottla
from ottla.cli import main
from ottla.cli.kafka import main as kafka_main
from ottla.testing import Broker
from tests.cli.ottla_program import Ran, Run

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def cli_broker() -> Iterator[Broker]:
    settings = {
        "metrics.port": "0",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        # Lets a test leave a transaction in a partition that no coordinator knows of.
        "transaction.partition.verification.enable": "false",
        # There are access rules to look at, and none of them holds for the tests.
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Broker(settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def admin(cli_broker: Broker) -> Iterator[ottla.Admin]:
    with ottla.Admin(bootstrap_servers=cli_broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def run(
    cli_broker: Broker, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Runs `ottla` with these words; `stdin` is what it reads there."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVER", cli_broker.bootstrap_servers)
    return _runner(lambda words: main.run(words), capfd, monkeypatch)


@pytest.fixture
def run_kafka(
    cli_broker: Broker, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Runs one of Kafka's commands, by its name, against the same broker."""
    at = ("--bootstrap-server", cli_broker.bootstrap_servers)
    return _runner(lambda words: kafka_main.run(words[0], [*words[1:], *at]), capfd, monkeypatch)


def _runner(
    call: Callable[[list[str]], int],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    def run(*words: Any, stdin: str | bytes = b"") -> Ran:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        capfd.readouterr()
        code = call([str(word) for word in words])
        return Ran(code, *capfd.readouterr())

    return run


@pytest.fixture
def topic(admin: ottla.Admin) -> str:
    """A new topic with two partitions."""
    return make_topic(admin, 2)


def make_topic(admin: ottla.Admin, partitions: int = 1, **configs: str) -> str:
    name = f"topic-{next(_numbers)}"
    named = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topic(name, partitions=partitions, configs=named)
    return name


@pytest.fixture
def group(admin: ottla.Admin, topic: str) -> str:
    """A group without members that has committed offset 0 of a topic's two partitions."""
    name = f"group-{next(_numbers)}"
    admin.alter_group_offsets(name, {ottla.TopicPartition(topic, at): 0 for at in range(2)}).all()
    return name
