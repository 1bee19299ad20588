"""Delegation tokens: our clients and commands, and Kafka's tool and client."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import ottla
from ottla import AclRule, ErrorCode, KafkaError
from ottla.cli.kafka import main as kafka_main
from ottla.cli.main import run as ottla_run
from ottla.client.admin.scram_users import ScramUpsertion
from ottla.client.admin.tokens import DelegationToken
from ottla.model.errors import AuthenticationFailed
from ottla.testing import Broker
from tests.interop.tools_in_one import KafkaTools
from tools import kafka_cache

pytestmark = [pytest.mark.spec("SEC-06"), pytest.mark.timeout(120, method="thread")]

SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
WAIT_S: Final = 20.0


class Listening(NamedTuple):
    sasl: str
    plaintext: str

    def client(self, user: str, password: str, options: str = "") -> dict[str, str]:
        line = f'{SCRAM} required username="{user}" password="{password}" {options};'
        return {
            "bootstrap.servers": self.sasl,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": line,
        }

    def user(self, name: str) -> dict[str, str]:
        return self.client(name, f"{name}-secret")

    def token(self, token: DelegationToken) -> dict[str, str]:
        return self.client(token.id, token.hmac, 'tokenauth="true"')


@pytest.fixture(scope="module")
def listening() -> Iterator[Listening]:
    settings = {
        "listeners": "SASL_PLAINTEXT://localhost:0,PLAINTEXT://localhost:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} required user_x="y";',
        "delegation.token.master.key": "planted-key",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    with Broker(settings) as broker:
        given = Listening(*broker.bootstrap_servers.split(","))
        with ottla.Admin(bootstrap_servers=given.plaintext) as admin:
            users = ("admin", "alice", "bob")
            changes = [
                ScramUpsertion(user, f"{user}-secret", mechanism)
                for user in users
                for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            ]
            admin.alter_user_scram_credentials(changes).all()
            rules = [
                AclRule.allow("User:alice", operation, kind, name, pattern="prefixed")
                for kind, name, operation in (
                    ("topic", "t-", "all"), ("group", "g-", "all"),
                )
            ]  # fmt: skip
            admin.create_acls(rules).all()
        yield given


def refused(call: object) -> ErrorCode:
    assert callable(call)
    with pytest.raises(KafkaError) as raised:
        call()
    return raised.value.code


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_our_clients_produce_and_consume_with_a_token_as_its_owner(
    listening: Listening, mechanism: str
) -> None:
    with ottla.Admin(config=listening.user("alice")) as admin:
        token = admin.create_delegation_token(renewers=["User:bob"])
    assert (token.owner, token.requester, token.renewers) == (
        "User:alice",
        "User:alice",
        ("User:bob",),
    )
    config = {**listening.token(token), "sasl.mechanism": mechanism}
    topic = f"t-{mechanism.lower()}"
    with ottla.Producer(config=config) as producer:
        producer.send(topic, b"a value").result(WAIT_S)
    more = {"group.id": f"g-{topic}", "auto.offset.reset": "earliest"}
    with ottla.Consumer(config={**config, **more}) as consumer:
        consumer.subscribe([topic])
        [record] = consumer.poll(WAIT_S)
        assert record.value == b"a value"
    with ottla.Admin(config=config) as admin:  # what is not a token's
        not_allowed = ErrorCode.delegation_token_request_not_allowed
        assert refused(admin.create_delegation_token) is not_allowed
        assert refused(admin.describe_delegation_tokens) is not_allowed


def test_tokens_are_renewed_and_expired_by_owner_and_renewers_only(listening: Listening) -> None:
    with (
        ottla.Admin(config=listening.user("alice")) as alice,
        ottla.Admin(config=listening.user("bob")) as bob,
        ottla.Admin(config=listening.user("admin")) as admin,
    ):
        token = alice.create_delegation_token(renewers=["User:bob"], max_lifetime_ms=3_600_000)
        assert token in bob.describe_delegation_tokens(["User:alice"])
        assert bob.renew_delegation_token(token.hmac, 10**11) == token.max_ms
        mismatch = ErrorCode.delegation_token_owner_mismatch
        assert refused(lambda: admin.renew_delegation_token(token.hmac)) is mismatch
        own = alice.create_delegation_token()
        assert own not in bob.describe_delegation_tokens()
        assert own in admin.describe_delegation_tokens(), "a super user sees all"
        no = ErrorCode.delegation_token_authorization_failed
        assert refused(lambda: bob.create_delegation_token(owner="User:alice")) is no
        for_bob = admin.create_delegation_token(owner="User:bob")
        assert (for_bob.owner, for_bob.requester) == ("User:bob", "User:admin")
        bob.expire_delegation_token(token.hmac)
        not_found = ErrorCode.delegation_token_not_found
        assert refused(lambda: alice.renew_delegation_token(token.hmac)) is not_found
    with (
        ottla.Admin(config=listening.token(token)) as late,
        pytest.raises(AuthenticationFailed),
    ):
        late.list_topics()


def test_an_open_connection_gets_no_token_and_a_broker_without_a_key_none(
    listening: Listening,
) -> None:
    with ottla.Admin(bootstrap_servers=listening.plaintext) as admin:
        not_allowed = ErrorCode.delegation_token_request_not_allowed
        assert refused(admin.create_delegation_token) is not_allowed
    settings = {
        "listeners": "SASL_PLAINTEXT://localhost:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} required user_x="y";',
    }
    config = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "x",
        "sasl.password": "y",
    }
    with (
        Broker(settings) as broker,
        ottla.Admin(config={**config, "bootstrap.servers": broker.bootstrap_servers}) as admin,
    ):
        disabled = ErrorCode.delegation_token_auth_disabled
        assert refused(admin.create_delegation_token) is disabled
        assert refused(admin.describe_delegation_tokens) is disabled


def properties(file: Path, config: dict[str, str]) -> str:
    lines = [f"{name}={value}" for name, value in config.items() if name != "bootstrap.servers"]
    file.write_text("\n".join(lines) + "\n")
    return str(file)


def test_our_commands_create_list_renew_and_expire(
    listening: Listening, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = properties(tmp_path / "alice.properties", listening.user("alice"))
    where = ["-b", listening.sasl, "--command-config", file, "tokens"]
    made = tmp_path / "job.properties"
    assert ottla_run([*where, "create", "--renewer", "User:bob", "--output", str(made)]) == 0
    assert made.stat().st_mode & 0o777 == 0o600
    found = re.search(r'username="(.+?)" password="(.+?)"', made.read_text())
    assert found is not None
    capsys.readouterr()
    assert ottla_run([*where, "list", "--json"]) == 0
    listed = capsys.readouterr().out
    assert found[1] in listed
    assert found[2] not in listed
    hmac = tmp_path / "hmac"
    hmac.write_text(found[2])
    for verb in ("renew", "expire"):
        assert ottla_run([*where, verb, "--hmac-file", str(hmac)]) == 0
        assert capsys.readouterr().out.startswith("expires 20")
    assert ottla_run([*where, "renew", "--hmac-file", str(hmac)]) == 1


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def tools(listening: Listening) -> Iterator[KafkaTools]:
    try:
        running = KafkaTools(listening.sasl)
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    with closing(running):
        yield running


def test_kafkas_tool_makes_a_token_that_javas_client_logs_in_with(
    listening: Listening, tools: KafkaTools, tmp_path: Path
) -> None:
    file = properties(tmp_path / "alice.properties", listening.user("alice"))

    def tool(*words: str) -> str:
        return tools.done("kafka-delegation-tokens", "--command-config", file, *words)

    made = tool("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    with ottla.Admin(config=listening.user("alice")) as admin:
        token = max(admin.describe_delegation_tokens(), key=lambda each: each.issued_ms)
    assert token.id in made
    assert token.hmac in made
    assert token.id in tool("--describe", "--owner-principal", "User:alice")
    assert "Completed renew" in tool("--renew", "--renew-time-period", "-1", "--hmac", token.hmac)
    by_token = properties(tmp_path / "token.properties", listening.token(token))
    sent = kafka_cache.run_tool(
        "kafka-console-producer", "--bootstrap-server", listening.sasl, "--topic", "t-java",
        "--command-config", by_token, stdin="a value\n",
    )  # fmt: skip
    assert sent.returncode == 0, sent.stderr
    assert "Completed expire" in tool(
        "--expire", "--expiry-time-period", "-1", "--hmac", token.hmac
    )
    late = tools.run("kafka-topics", "--list", "--command-config", by_token)
    assert "SaslAuthenticationException" in late.stdout + late.stderr


def test_our_copy_of_kafkas_tool_prints_what_it_prints(
    in_utc: None,
    listening: Listening,
    tools: KafkaTools,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = properties(tmp_path / "alice.properties", listening.user("alice"))
    at = ("--bootstrap-server", listening.sasl, "--command-config", file)

    def ours(*words: str) -> str:
        capsys.readouterr()
        assert kafka_main.run("kafka-delegation-tokens.sh", [*at, *words]) == 0
        return capsys.readouterr().out

    def theirs(*words: str) -> str:
        return tools.done("kafka-delegation-tokens", "--command-config", file, *words)

    create = ("--create", "--max-life-time-period", "3600000", "--renewer-principal", "User:bob")
    with ottla.Admin(config=listening.user("alice")) as admin:

        def newest() -> DelegationToken:
            return max(admin.describe_delegation_tokens(), key=lambda each: each.issued_ms)

        def without_token(printed: str) -> list[str]:
            token = newest()
            changing = {token.id: "ID", token.hmac: "HMAC"}
            for value, name in changing.items():
                printed = printed.replace(value, name)
            return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", "DATE", printed).split()

        assert without_token(ours(*create)) == without_token(theirs(*create))
        describe = ("--describe", "--owner-principal", "User:alice")
        assert sorted(ours(*describe).splitlines()) == sorted(theirs(*describe).splitlines())
        hmac = ("--hmac", newest().hmac)
        for change in ("--renew --renew-time-period -1", "--expire --expiry-time-period 60000"):
            words = (*change.split(), *hmac)
            assert without_token(ours(*words)) == without_token(theirs(*words))
