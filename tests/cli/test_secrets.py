"""Secrets that a user has planted are in nothing that a command prints, if it succeeds or not."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import ottla
from ottla.cli.kafka.main import run as run_kafkas
from ottla.cli.main import run
from ottla.client.admin.scram_users import ScramUpsertion
from ottla.config.client import AdminConfig
from ottla.config.properties import load
from ottla.model.errors import KafkaError, UserError
from ottla.testing import Broker
from tests.fakes.certificates import certificates, pem, trust

pytestmark = pytest.mark.spec("SEC-05")

PLANTED: Final = "planted-secret"
MADE: Final = certificates()
PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
SETTINGS: Final = {
    **pem(MADE.broker),
    "listeners": "SASL_SSL://localhost:0",
    "security.inter.broker.protocol": "SASL_SSL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} required user_alice="{PLANTED}";',
    "delegation.token.secret.key": PLANTED,
    "password.encoder.secret": PLANTED,
    "ssl.key.password": PLANTED,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:alice",
}
KEY_LINE: Final = MADE.alice.key_pem().decode().splitlines()[1]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        login = {
            "bootstrap.servers": running.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": PLANTED,
        }
        with ottla.Admin(config={**login, **trust(MADE.authority)}) as admin:
            admin.create_topic("described")
        yield running


@pytest.fixture
def client_file(broker: Broker, tmp_path: Path) -> Path:
    login = f'{PLAIN} required username="alice" password="{PLANTED}";'
    texts = {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": login,
        **trust(MADE.authority),
        **pem(MADE.alice),
    }
    file = tmp_path / "client.properties"
    lines = (f"{name}={text}".replace("\n", "\\n") for name, text in texts.items())
    file.write_text("\n".join(lines) + "\n")
    return file


COMMANDS: Final = (
    "configs describe broker --name 0 --all",
    "configs describe broker --name 0 --all --json",
    "configs set broker --name 0 listener.name.sasl_ssl.ssl.keystore.password=planted-secret",
    "configs describe broker --name 0 --json",
    "users list --json",
    "users add bob --password-file PASSWORD_FILE",
    "tokens list --json",
    "acls list --json",
    "brokers describe 0 --json",
    "cluster describe --json",
    "doctor --json",
    "topics create t",
    "topics describe described --json",
    "groups list --json",
    "kafka-configs.sh --describe --all --entity-type brokers --entity-name 0",
    "kafka-configs.sh --describe --entity-type users",
    "kafka-configs.sh --alter --entity-type users --entity-name eve "
    "--add-config SCRAM-SHA-256=[password=planted-secret]",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_a_secret(
    command: str,
    client_file: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    password = client_file.with_name("password.txt")
    password.write_text(f"{PLANTED}\n")
    first, *words = command.replace("PASSWORD_FILE", str(password)).split()
    options = ["--command-config", str(client_file)]
    if first.startswith("kafka-"):
        servers = client_file.read_text().partition("bootstrap.servers=")[2].split("\n")[0]
        code = run_kafkas(first, [*words, "--bootstrap-server", servers, *options])
    else:
        code = run([*options, first, *words])
    shown = capfd.readouterr()
    assert code == 0, shown.err
    for text in (shown.out, shown.err, caplog.text):
        check(text)


def check(text: str) -> None:
    for secret in (PLANTED, KEY_LINE, "PRIVATE KEY"):
        assert secret not in text


def test_a_token_is_shown_only_where_it_was_asked_for(
    client_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ["--command-config", str(client_file)]
    output = tmp_path / "job.properties"
    assert run([*options, "tokens", "create", "--output", str(output)]) == 0
    hmac = output.read_text().partition('password="')[2].partition('"')[0]
    assert len(hmac) > 20
    check(output.read_text())
    assert run(["--command-config", str(output), "topics", "list"]) == 0, "it is all that is needed"
    for command in ("list", "list --json"):
        run([*options, "tokens", *command.split()])
    shown = capfd.readouterr()
    assert hmac not in shown.out + shown.err


def test_profiles_hide_secrets(
    client_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    values = (f"sasl.password={PLANTED}", f"ssl.keystore.key={MADE.alice.key_pem().decode()}")
    sets = [word for value in values for word in ("--set", value)]
    run(["profile", "add", "prod", "-b", "localhost:1", *sets])
    for command in ("profile show prod", "profile show prod --json", "profile list --json"):
        run(command.split())
    shown = capfd.readouterr()
    assert "ssl.keystore.key" in shown.out
    check(shown.out + shown.err)
    stored = json.loads((tmp_path / "ottla" / "profiles.json").read_text())
    assert stored["profiles"]["prod"]["sasl.password"] == PLANTED


def test_a_profile_with_a_login_is_used_by_every_command(
    broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PASSWORD_OF_ALICE", PLANTED)
    texts = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "${env:PASSWORD_OF_ALICE}",
        **trust(MADE.authority),
    }
    sets = [word for pair in texts.items() for word in ("--set", "=".join(pair))]
    assert run(["profile", "add", "secure", "-b", broker.bootstrap_servers, *sets]) == 0
    for command in ("topics create of-profile", "topics list --json", "produce of-profile"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a value\n")))
        assert run(["--profile", "secure", *command.split()]) == 0
    assert PLANTED not in (tmp_path / "ottla" / "profiles.json").read_text()
    shown = capfd.readouterr()
    assert "of-profile" in shown.out
    check(shown.out + shown.err)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sasl.jaas.config": f'org.example.Module required password="{PLANTED}";'},
        {"sasl.jaas.config": f'{PLAIN} required password="{PLANTED}'},
        {"sasl.jaas.config": PLANTED},
        {"sasl.jaas.config": f'{SCRAM} required username="a" password="{PLANTED}";'},
        {"ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----\n{PLANTED}\n"},
        {"ssl.key.password": PLANTED, "ssl.keystore.location": "/no/such/file"},
        {"sasl.oauthbearer.token": PLANTED, "sasl.mechanism": "OAUTHBEARER"},
        {"sasl.password": PLANTED, "sasl.username": "nobody"},
    ],
)
def test_errors_of_clients_show_no_secret(
    wrong: dict[str, str], broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    config = {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        **trust(MADE.authority),
        **wrong,
    }
    texts: list[str] = [repr(AdminConfig.from_options({}, config))]
    with (
        pytest.raises((UserError, KafkaError, OSError)) as failed,
        ottla.Admin(config=config) as admin,
    ):
        admin.list_topics()
    chain: BaseException | None = failed.value
    while chain is not None:
        texts.append(f"{chain!r} {chain}")
        chain = chain.__cause__ or chain.__context__
    for text in (*texts, caplog.text):
        assert PLANTED not in text


@pytest.mark.parametrize(
    "setting",
    [
        f'sasl.jaas.config=org.example.Module required password="{PLANTED}";',
        f"listener.name.sasl_ssl.plain.sasl.jaas.config={PLANTED}",
        f"ssl.keystore.key={PLANTED}",
        f"delegation.token.secret.key={PLANTED}",
        f"password.encoder.secret={PLANTED}",
    ],
)
def test_errors_and_descriptions_of_a_brokers_settings_show_no_secret(setting: str) -> None:
    """One that is invalid is said without its value."""
    sets = ["listeners=SASL_SSL://localhost:0", "security.inter.broker.protocol=SASL_SSL", setting]
    try:
        loaded = load(None, sets=sets)
        with Broker(loaded.texts):
            pass
        text = repr(loaded.config) + "".join(loaded.warnings)
    except (UserError, OSError) as error:
        text = str(error)
    assert PLANTED not in text


def test_a_users_password_is_not_in_what_its_admin_shows() -> None:
    shown = repr(ScramUpsertion("bob", PLANTED, "SCRAM-SHA-256"))
    assert PLANTED not in shown
