from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ottla.cli.profile.cluster import Cluster, ClusterOptions, choose_cluster, client_config
from ottla.cli.profile.profiles import (
    HIDDEN,
    Profiles,
    check_properties,
    file_path,
    load,
    mask_secrets,
    save,
)
from ottla.config.client import AdminConfig, ProducerConfig
from ottla.model.errors import UserError
from ottla.testing import Broker
from tests.cli.ottla_program import Run

PROD = {"bootstrap.servers": "prod:9092", "linger.ms": "3", "request.timeout.ms": "5000"}
KNOWN = Profiles({"prod": PROD, "dev": {"bootstrap.servers": "dev:9092"}}, "prod")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "ottla" / "profiles.json"


@pytest.mark.parametrize(
    ("given", "servers"),
    [
        (ClusterOptions(), "prod:9092"),
        (ClusterOptions(variable="env:1"), "env:1"),
        (ClusterOptions(profile="dev", variable="env:1"), "dev:9092"),
        (ClusterOptions(before="b:1", profile="dev", variable="env:1"), "b:1"),
        (ClusterOptions(after="a:1", before="b:1", profile="dev", variable="env:1"), "a:1"),
    ],
)
def test_what_is_nearer_to_the_command_names_the_cluster(
    given: ClusterOptions, servers: str
) -> None:
    assert choose_cluster(given, KNOWN) == servers
    assert choose_cluster(ClusterOptions(), Profiles({}, None)) == "localhost:9092"


def test_properties_of_a_profile_do_not_go_to_another_cluster_unasked() -> None:
    assert choose_cluster(ClusterOptions(after="other:1"), KNOWN).properties == {}
    assert choose_cluster(ClusterOptions(variable="other:1"), KNOWN).properties == {}
    assert choose_cluster(ClusterOptions(after="other:1", profile="prod"), KNOWN).properties == PROD


def test_each_client_gets_the_properties_it_has() -> None:
    cluster = Cluster("prod:9092", PROD)
    admin = client_config(cluster, AdminConfig)
    assert admin == {"bootstrap.servers": "prod:9092", "request.timeout.ms": "5000"}
    assert client_config(cluster, ProducerConfig) == PROD
    assert client_config("plain:1", AdminConfig) == {"bootstrap.servers": "plain:1"}


def test_the_file_is_its_owners_alone_and_survives_a_round(tmp_path: Path) -> None:
    path = tmp_path / "config" / "ottla" / "profiles.json"
    save(path, KNOWN)
    save(path, KNOWN.using("dev"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load(path) == KNOWN.using("dev")
    assert load(tmp_path / "none") == Profiles({}, None)
    path.write_text("{}")
    with pytest.raises(UserError, match=r"profiles\.json: not a valid profiles file"):
        load(path)


def test_secrets_are_never_shown_or_repeated() -> None:
    secret = {"sasl.jaas.config": "x", "ssl.keystore.password": "y", "linger.ms": "1"}
    assert mask_secrets(secret) == {
        "linger.ms": "1",
        "sasl.jaas.config": HIDDEN,
        "ssl.keystore.password": HIDDEN,
    }
    with pytest.raises(UserError) as refused:
        check_properties({"sasl.pasword": "hunter2"})
    assert "hunter2" not in str(refused.value)


def test_profiles_are_added_used_shown_and_removed(
    run: Run, home: Path, cli_broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVER")
    add = ("profile", "add", "here", "-b", cli_broker.bootstrap_servers)
    assert run(*add, "--set", "linger.ms=1").out == "added profile here; it is used from now on\n"
    assert topic in run("topics", "list").out
    run("produce", topic, stdin="x").failed(0)
    assert run("profile", "add", "away", "-b", "localhost:1").out == "added profile away\n"
    assert topic in run("topics", "list").out
    run("--profile", "away", "topics", "list").failed(1, "cannot reach a broker at localhost:1")
    assert run("profile", "use", "away").code == 0
    run("topics", "list").failed(1, "localhost:1")
    assert topic in run("--profile", "here", "topics", "list").out
    assert topic in run("-b", cli_broker.bootstrap_servers, "topics", "list").out
    rows = run("profile", "list", "--json").json
    assert [(row["profile"], row["used"]) for row in rows] == [("away", True), ("here", False)]
    assert "linger.ms" in run("profile", "show", "here").out
    assert run("profile", "remove", "away").code == 0
    run("profile", "show").failed(2, "no profile is in use")
    run("profile", "show", "away").failed(2, "no such profile; there are: here")


def test_mistakes_are_said_in_a_line(run: Run, home: Path) -> None:
    run("profile", "add", "a b", "-b", "h:1").failed(2, "expected letters, digits")
    run("profile", "add", "a", "-b", "h:x").failed(2, "bootstrap.servers")
    run("profile", "add", "a", "-b", "h:1", "--set", "linger=1").failed(
        2, "did you mean linger.ms?"
    )
    run("-b", "h:1", "serve").failed(2, "serve: options must follow the command")
    assert not home.exists()


def test_the_file_is_where_the_desktop_keeps_settings() -> None:
    assert file_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/ottla/profiles.json")
    assert file_path({}) == Path.home() / ".config" / "ottla" / "profiles.json"
