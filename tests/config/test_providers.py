"""Values of settings that stand in files and in the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.profile.cluster import resolve_cluster
from ottla.config.properties import load, parse, read_client_file
from ottla.config.providers import resolve
from ottla.model.errors import UserError

pytestmark = pytest.mark.spec("SEC-05")

KAFKAS = "org.apache.kafka.common.config.provider"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secrets.properties").write_text("key.password=from\\ file\nother=x\n")
    (tmp_path / "whole").write_text("from a directory\n")
    return tmp_path


def test_a_broker_reads_values_from_files_directories_and_the_environment(folder: Path) -> None:
    file = folder / "server.properties"
    file.write_text(
        f"ssl.key.password=${{file:{folder}/secrets.properties:key.password}}\n"
        f"ssl.keystore.password=${{dir:{folder}:whole}}\n"
        "ssl.truststore.password=<${env:TRUST}>\n"
    )
    sets = [f"delegation.token.secret.key=${{file:{folder}/whole}}"]
    loaded = load(file, environment={"TRUST": "it"}, sets=sets)
    assert loaded.config.ssl_key_password == "from file"
    assert loaded.config.ssl_keystore_password == "from a directory"
    assert loaded.config.ssl_truststore_password == "<it>"
    assert loaded.config.delegation_token_secret_key == "from a directory"
    assert loaded.warnings == []


def test_a_clients_file_has_them_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "client.properties"
    file.write_text("sasl.username=alice\nsasl.password=${env:PASSWORD_OF_ALICE}\n")
    monkeypatch.setenv("PASSWORD_OF_ALICE", "secret")
    cluster = resolve_cluster("localhost:9092", None, None, file)
    assert cluster.properties == {"sasl.username": "alice", "sasl.password": "secret"}


def test_providers_may_have_other_names_and_be_restricted(folder: Path) -> None:
    texts = {
        "config.providers": "secrets,env",
        "config.providers.secrets.class": f"{KAFKAS}.FileConfigProvider",
        "config.providers.secrets.param.allowed.paths": str(folder),
        "config.providers.env.class": f"{KAFKAS}.EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "OTTLA_.*",
    }
    value = {"a": f"${{secrets:{folder}/secrets.properties:other}}", "b": "${env:OTTLA_B}"}
    assert resolve({**texts, **value}, {"OTTLA_B": "b"}, parse) == {"a": "x", "b": "b"}
    with pytest.raises(UserError, match=r"x=\$\{secrets:/etc/passwd\}: not below allowed.paths"):
        resolve({**texts, "x": "${secrets:/etc/passwd}"}, {}, parse)
    outside = f"${{secrets:{folder}/../other:key}}"
    with pytest.raises(UserError, match=r"not below allowed\.paths"):
        resolve({**texts, "x": outside}, {}, parse)
    with pytest.raises(UserError, match=r"not allowed by allowlist\.pattern"):
        resolve({**texts, "x": "${env:HOME}"}, {"HOME": "/root"}, parse)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${env:NO_SUCH}", "the environment variable NO_SUCH is not set"),
        ("${file:/no/such:key}", "No such file"),
        ("${file:/no/such}", "No such file"),
        ("${file:%s/secrets.properties:nothing}", "has no key nothing"),
        ("${dir:%s:../x}", "expected a directory and the name of a file in it"),
        ("${dir:whole}", "expected a directory and the name of a file in it"),
    ],
)
def test_what_cannot_be_found_is_said_with_the_setting(
    folder: Path, text: str, reason: str
) -> None:
    reference = text.replace("%s", str(folder))
    with pytest.raises(UserError, match=reason) as refused:
        load(None, environment={}, sets=[f"ssl.key.password={reference}"])
    assert "ssl.key.password=${" in str(refused.value)
    assert "from file" not in str(refused.value)


def test_no_class_is_loaded_and_other_texts_are_left_alone() -> None:
    texts = {"config.providers": "x", "config.providers.x.class": "com.example.Vault"}
    with pytest.raises(UserError, match="no class is loaded by name"):
        resolve(texts, {}, parse)
    assert resolve({"a": "${vault:x} ${y} $z"}, {}, parse) == {"a": "${vault:x} ${y} $z"}


def test_a_handler_of_one_listener_is_warned_of() -> None:
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    name = "listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class"
    [warning] = load(None, sets=[f"{name}={handler}"]).warnings
    assert warning.startswith(f"{name} has no effect: no class is loaded by name")


def test_the_jaas_file_of_kafkas_scripts_is_used_unless_a_setting_names_another(
    tmp_path: Path,
) -> None:
    name = "java.security.auth.login.config"
    environment = {"KAFKA_OPTS": f"-Xmx1g '-D{name}=/etc/kafka jaas.conf' -Dother=x"}
    loaded = load(None, environment=environment)
    assert loaded.config.java_security_auth_login_config == "/etc/kafka jaas.conf"
    assert loaded.warnings == []
    explicit = load(None, environment=environment, sets=[f"{name}=/other.conf"])
    assert explicit.config.java_security_auth_login_config == "/other.conf"
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_SSL\n")
    assert read_client_file(file, environment)[name] == "/etc/kafka jaas.conf"
    with pytest.raises(UserError, match="KAFKA_OPTS"):
        load(None, environment={"KAFKA_OPTS": "-D'x"})
