"""JAAS lines and files: Kafka's own modules, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.config.broker import BrokerConfig
from ottla.model.errors import UserError
from ottla.security.sasl import jaas
from ottla.security.sasl.server import ListenerSettings

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_a_line_has_a_module_and_its_options() -> None:
    [entry] = jaas.parse_line(
        f'{PLAIN} required\n username="admin" password="a \\"b\\" ;"\n user_alice=\'x\' user_b=y;'
    )
    assert entry.mechanism == "PLAIN"
    assert entry.options["password"] == 'a "b" ;'
    assert entry.users == {"alice": "x", "b": "y"}
    assert "admin" not in repr(entry)


def test_a_file_has_sections_for_listeners_and_comments(tmp_path: Path) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(
        f"""
        // for brokers
        KafkaServer {{
            {PLAIN} required user_alice="1";
            {SCRAM} required username="broker" password="2";
        }};
        /* another */
        external.KafkaServer {{ {PLAIN} required user_bob="3"; }};
        # for clients
        KafkaClient {{ {SCRAM} required username="c" password="4"; }};
        Client {{ {jaas.DIGEST_MODULE} required username="kafka" password="5"; }};
        Other {{ org.example.X required; }};
        """
    )
    both = jaas.read_section(str(file), "sasl_ssl.KafkaServer", "KafkaServer")
    assert [entry.mechanism for entry in both] == ["PLAIN", "SCRAM"]
    scram = jaas.find(both, "SCRAM-SHA-512")
    assert scram is not None
    assert scram.options["username"] == "broker"
    assert jaas.find(both, "OAUTHBEARER") is None
    [own] = jaas.read_section(str(file), "external.KafkaServer", "KafkaServer")
    assert own.users == {"bob": "3"}
    assert jaas.read_section(str(file), "nobody") == ()
    [client] = jaas.read_section(str(file), "Client", modules=(jaas.DIGEST_MODULE,))
    assert client.options["username"] == "kafka"
    with pytest.raises(
        UserError, match=r"section Other: unsupported login module 'org\.example\.X'"
    ):
        jaas.read_section(str(file), "Other")
    with pytest.raises(UserError, match="section Client: unsupported login module"):
        jaas.read_section(str(file), "Client")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('com.sun.security.auth.module.JndiLoginModule required url="ldap://x";', "unsupported"),
        ("org.example.Evil required;", "unsupported login module"),
        (f"{PLAIN} required", "expected an option"),
        (f"{PLAIN};", "expected required"),
        (f"{PLAIN} perhaps;", "expected required"),
        (f'{PLAIN} required password="hunter2', "not closed"),
        (f"{PLAIN} required password;", "expected '='"),
        (f"{PLAIN} required password=;", "expected the value"),
        ("", "expected a login module"),
    ],
)
def test_a_mistake_is_named_and_no_value_is_shown(line: str, text: str) -> None:
    with pytest.raises(UserError, match=text) as mistake:
        jaas.parse_line(line)
    assert "hunter2" not in str(mistake.value)


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize(
    ("lines", "users"),
    [
        ({}, {"of_file": "1"}),
        ({"sasl.jaas.config": "unnamed"}, {"of_file": "1"}),  # which Kafka ignores
        ({"plain.sasl.jaas.config": "named"}, {"named": "2"}),
        ({"plain.sasl.jaas.config": "named", "sasl.jaas.config": "unnamed"}, {"named": "2"}),
    ],
)
def test_a_jaas_file_counts_unless_a_line_is_for_the_listener_and_its_mechanism(
    lines: dict[str, str], users: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(f'KafkaServer {{ {PLAIN} required user_of_file="1"; }};')
    overrides = {name: f'{PLAIN} required user_{user}="2";' for name, user in lines.items()}
    config = BrokerConfig.parse({"java.security.auth.login.config": str(file)})
    [entry] = ListenerSettings.of("SASL_SSL", config, overrides).login_modules("PLAIN")
    assert entry.users == users


def test_without_a_file_a_line_for_any_mechanism_is_taken() -> None:
    config = BrokerConfig.parse({"sasl.jaas.config": f'{PLAIN} required user_a="2";'})
    [entry] = ListenerSettings.of("SASL_SSL", config, {}).login_modules("PLAIN")
    assert entry.users == {"a": "2"}
