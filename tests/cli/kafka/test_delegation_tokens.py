from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ottla
from ottla.cli.kafka import main
from ottla.testing import Broker
from tests.cli.ottla_program import Ran

TOKENS = "kafka-delegation-tokens.sh"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"

Tool = Callable[..., Ran]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {
        "listeners": "SASL_PLAINTEXT://localhost:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{PLAIN} required username="alice" password="1" user_alice="1" user_bob="2";'
        ),
        "delegation.token.secret.key": "a key",
    }
    with Broker(settings) as running:
        yield running


def login(broker: Broker, line: str, mechanism: str = "PLAIN") -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": line,
    }


@pytest.fixture
def tool(broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tool:
    file = tmp_path / "alice.properties"
    settings = login(broker, f'{PLAIN} required username="alice" password="1";')
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def run(*words: str) -> Ran:
        capsys.readouterr()
        code = main.run(TOKENS, ["--command-config", str(file), *words])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.mark.spec("SEC-06")
def test_a_token_is_created_described_renewed_used_and_expired(broker: Broker, tool: Tool) -> None:
    made = tool("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob").out
    called, created, _, headings, _, row = made.splitlines()
    assert called == (
        "Calling create token operation with renewers :[User:bob] , max-life-time-period :-1"
    )
    assert headings.split() == [
        "TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE",
    ]  # fmt: skip
    id, hmac, *who = row.split()
    assert created == f"Created delegation token with tokenId : {id}"
    assert who[:3] == ["User:alice", "User:alice", "[User:bob]"]
    by_token = f'{SCRAM} required username="{id}" password="{hmac}" tokenauth="true";'
    with ottla.Admin(config=login(broker, by_token, "SCRAM-SHA-256")) as admin:
        assert admin.list_topics() == []
    described = tool("--describe").out
    assert described.startswith("Calling describe token operation for current user.\n")
    assert "Total number of tokens : 1\n" in described
    assert row in described.splitlines()
    of_carol = tool("--describe", "--owner-principal", "User:carol").out
    assert of_carol.startswith("Calling describe token operation for owners: [User:carol]\n")
    assert id not in of_carol
    renewed = tool("--renew", "--renew-time-period", "60000", "--hmac", hmac).out
    called, done = renewed.splitlines()
    assert called == f"Calling renew token operation with hmac :{hmac} , renew-time-period :60000"
    assert done.startswith("Completed renew operation. New expiry date : 20")
    expired = tool("--expire", "--expiry-time-period", "-1", "--hmac", hmac).out
    assert "\nCompleted expire operation. New expiry date : 20" in expired
    assert id not in tool("--describe").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "exactly one action: --create, --renew, --expire or --describe"),
        ("--create --describe", "exactly one action"),
        ("--create", 'Missing required argument "[max-life-time-period]"'),
        ("--renew --renew-time-period 1", 'Missing required argument "[hmac]"'),
        ("--renew --hmac aGk=", 'Missing required argument "[renew-time-period]"'),
        ("--expire --hmac aGk=", 'Missing required argument "[expiry-time-period]"'),
        (
            "--describe --hmac aGk=",
            'Option "[describe]" can\'t be used with option "[hmac]"',
        ),
        ("--create --max-life-time-period x", "expected a whole number"),
        (
            "--create --max-life-time-period -1 --renewer-principal bob",
            "expected a string in format principalType:principalName but got bob",
        ),
        (
            "--renew --renew-time-period 1 --hmac aGk=",
            "Error while executing delegation token command : ",
        ),
        ("--renew --renew-time-period 1 --hmac -", "Error while executing delegation token"),
        ("--expire --expiry-time-period 1 --hmac é", "Error while executing delegation token"),
    ],
)
def test_mistakes_are_said_in_kafkas_words(tool: Tool, words: str, said: str) -> None:
    tool(*words.split()).failed(1, said)


def test_a_client_configuration_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(TOKENS, ["--describe"]) == 1
    assert 'Missing required argument "[command-config]"' in capsys.readouterr().err
