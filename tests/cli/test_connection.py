from __future__ import annotations

import pytest

from ottla.cli import main
from ottla.cli.commands import COMMANDS, Command
from ottla.cli.connection import admin_connection
from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.fakes.certificates import certificates, pem
from tools.nodes import free_ports

WORDS = {  # what a command needs before it would try a connection
    "acls add": ("--allow", "User:a", "--operation", "read", "--topic", "t"),
    "acls remove": ("--topic", "t"),
    "brokers decommission": ("1",),
    "brokers describe": ("1",),
    "brokers drain": ("1",),
    "configs delete": ("topic", "retention.ms", "--name", "t"),
    "configs describe": ("topic", "--name", "t"),
    "configs set": ("topic", "retention.ms=1", "--name", "t"),
    "consume": ("t",),
    "delete-records": ("t", "--before", "1", "--yes"),
    "groups delete": ("g",),
    "groups members": ("g",),
    "groups reset-offsets": ("g", "--to", "earliest"),
    "offsets list": ("t",),
    "perf consume": ("t",),
    "perf latency": ("t",),
    "perf produce": ("t",),
    "produce": ("t",),
    "quotas remove": ("--user", "u"),
    "quotas set": ("producer_byte_rate=1", "--user", "u"),
    "reassign plan": ("t",),
    "topics alter": ("t", "--partitions", "2"),
    "topics create": ("t",),
    "topics delete": ("t", "--yes"),
    "transactions abort": ("x",),
    "transactions describe": ("x",),
}
LOCAL = {"adopt", "kafka-commands", "log", "pipeline", "profile", "reassign execute"}
LOCAL |= {"reassign cancel"}
LOCAL |= {"metadata", "zookeeper", "reassign verify", "certs"}
LOCAL |= {"cluster start", "cluster status", "cluster stop"}
LOCAL |= {"users add", "users remove", "tokens expire", "tokens renew"}  # they ask or read first
REMOTE = [
    command for command in COMMANDS if not {command.words[0], " ".join(command.words)} & LOCAL
]


@pytest.mark.parametrize("command", REMOTE, ids=lambda command: " ".join(command.words))
def test_a_broker_out_of_reach_is_one_line_that_says_what_to_check(
    command: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    [port] = free_ports(1)
    at = f"127.0.0.1:{port}"
    words = WORDS.get(" ".join(command.words), ())
    code = main.run([*command.words, *words, "--bootstrap-server", at])
    out, err = capfd.readouterr()
    assert code == 1
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"ottla: cannot reach a broker at {at}")
    assert "ottla serve" in err and "--bootstrap-server" in err


def test_a_listener_that_wants_tls_is_said_to_need_settings(
    capfd: pytest.CaptureFixture[str],
) -> None:
    texts = {
        **pem(certificates().broker),
        "listeners": "SSL://localhost:0",
        "security.inter.broker.protocol": "SSL",
    }
    with Broker(texts) as broker:
        assert main.run(["topics", "list", "-b", broker.bootstrap_servers]) == 1
    _, err = capfd.readouterr()
    assert "closed the connection" in err
    assert "if that listener asks for TLS or a login, give --command-config" in err


@pytest.mark.parametrize("server", ["nonsense:port", "host:0", ":9092"])
def test_an_address_that_is_none_is_a_mistake_of_the_user(server: str, run: Run) -> None:
    run("topics", "list", "--bootstrap-server", server).failed(2, "bootstrap.servers", "host:port")


def test_the_server_comes_from_the_option_or_the_environment(
    run: Run, cli_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("topics", "list").code == 0
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVER")
    assert run("topics", "list", "-b", cli_broker.bootstrap_servers).code == 0


def test_an_admin_is_connected_while_the_block_lasts(cli_broker: Broker) -> None:
    with admin_connection(cli_broker.bootstrap_servers) as admin:
        assert admin.describe_cluster().controller == 0
