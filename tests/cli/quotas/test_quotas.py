from __future__ import annotations

import pytest

import ottla
from ottla.cli.kafka.quota_configs import java_text
from ottla.client.admin.quotas import ANY_NAME
from ottla.security.quotas.entities import DEFAULT, QuotaEntity
from tests.cli.ottla_program import Run

CONFIGS = "kafka-configs.sh"


@pytest.mark.spec("SEC-07")
def test_quotas_are_set_listed_and_removed(run: Run) -> None:
    assert run("quotas", "set", "producer_byte_rate=1048576", "--user", "cli").code == 0
    run("quotas", "set", "request_percentage=200", "--user", "cli", "--client-id", "<default>")
    run("quotas", "set", "connection_creation_rate=1000", "--ip", "10.9.8.7")
    assert run("quotas", "list", "--user", "cli", "--json").json == [
        {
            "user": "cli",
            "client_id": "<default>",
            "ip": None,
            "quota": "request_percentage",
            "value": 200.0,
        },
        {
            "user": "cli",
            "client_id": None,
            "ip": None,
            "quota": "producer_byte_rate",
            "value": 1048576.0,
        },
    ]
    assert "10.9.8.7" in run("quotas", "list", "--ip", "10.9.8.7").out
    assert run("quotas", "remove", "--user", "cli").out == "removed producer_byte_rate\n"
    assert run("quotas", "remove", "--user", "cli").out == "there are no such quotas\n"
    run("quotas", "remove", "request_percentage", "--user", "cli", "--client-id", "<default>")
    run("quotas", "remove", "--ip", "10.9.8.7")
    left = run("quotas", "list", "--json").json
    assert not [row for row in left if row["user"] == "cli" or row["ip"] == "10.9.8.7"]


def test_mistakes_are_explained(run: Run) -> None:
    run("quotas", "set", "producer_byte_rate=1").failed(2, "name an entity")
    run("quotas", "set", "producer_byte_rate=x", "--user", "u").failed(2, "expected QUOTA=NUMBER")
    assert run("quotas", "set", "color=5", "--user", "u").code != 0


@pytest.mark.spec("TOOL-18", "SEC-07")
def test_kafkas_tool_sets_describes_and_deletes_quotas(run_kafka: Run) -> None:
    words = ("--entity-type", "users", "--entity-name", "kc", "--entity-type", "clients")
    add = ("--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048")
    ran = run_kafka(CONFIGS, "--alter", *words, "--entity-default", *add)
    assert ran.out == "Completed updating config for user kc.\n"
    shown = "Quota configs for user-principal 'kc', the default client-id are "
    quotas = "consumer_byte_rate=2048.0, producer_byte_rate=1024.0\n"
    assert run_kafka(CONFIGS, "--describe", *words).out == shown + quotas
    delete = ("--delete-config", "producer_byte_rate,consumer_byte_rate")
    run_kafka(CONFIGS, "--alter", *words, "--entity-default", *delete)
    assert run_kafka(CONFIGS, "--describe", *words).out == ""
    ran = run_kafka(CONFIGS, "--alter", "--client-defaults", "--add-config", "request_percentage=9")
    assert ran.out == "Completed updating default config for clients in the cluster.\n"
    shown = run_kafka(CONFIGS, "--describe", "--entity-type", "clients").out
    assert shown == "Quota configs for the default client-id are request_percentage=9.0\n"
    undo = ("--entity-type", "clients", "--entity-default", "--delete-config")
    assert run_kafka(CONFIGS, "--alter", *undo, "request_percentage").code == 0


@pytest.mark.spec("SEC-07")
def test_the_admin_describes_by_filter(admin: ottla.Admin) -> None:
    user, both = QuotaEntity("ad"), QuotaEntity("ad", DEFAULT)
    changes = {user: {"producer_byte_rate": 5.0}, both: {"consumer_byte_rate": 6.0}}
    admin.alter_client_quotas(changes).all()
    assert admin.describe_client_quotas({"user": "ad"}) == changes
    assert admin.describe_client_quotas({"user": "ad"}, strict=True) == {user: changes[user]}
    assert admin.describe_client_quotas({"client-id": ANY_NAME, "user": "ad"}) == {
        both: changes[both]
    }
    removed = {user: {"producer_byte_rate": None}, both: {"consumer_byte_rate": None}}
    admin.alter_client_quotas(removed).all()
    assert admin.describe_client_quotas({"user": "ad"}) == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1024.0, "1024.0"),
        (9e8, "9.0E8"),
        (12345678.5, "1.23456785E7"),
        (0.0, "0.0"),
        (5e-4, "5.0E-4"),
    ],
)
def test_numbers_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_text(value) == text
