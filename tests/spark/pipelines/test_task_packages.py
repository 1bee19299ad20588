"""Which packages the tasks of a pipeline import, by what its file says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ottla.spark.pipelines.executors.task_packages import Needed, task_packages
from ottla.spark.pipelines.yaml_file import parse

SINK = "sinks: [{name: out, from: a, console: {}}]"
REGISTRY = "registry: http://localhost:8081"


def needed(text: str) -> dict[str, str]:
    """Package by package, the first key of the file that needs it."""
    found: dict[str, str] = {}
    for need in of(text):
        found.setdefault(need.package, need.where)
    return found


def of(text: str) -> list[Needed]:
    return list(task_packages(parse(yaml.safe_load(f"name: p\n{text}"), Path())))


def test_a_pipeline_of_text_and_json_needs_no_more_than_every_task() -> None:
    assert needed(f"{SINK}\nsources: {{a: {{topic: a, format: json, schema: n INT}}}}") == {}
    assert needed(f"{SINK}\nsources: {{a: {{csv: ./in, schema: n INT}}}}") == {}


def test_formats_need_their_decoders_and_a_registry_its_client() -> None:
    avro = '{"type": "record", "name": "A", "fields": []}'
    plain = f"sources: {{a: {{topic: a, format: avro, schema: '{avro}'}}}}"
    assert needed(f"{SINK}\n{plain}") == {"fastavro": "sources.a"}
    registered = "sources: {a: {topic: a, format: avro, schema: registry}}"
    assert needed(f"{SINK}\n{REGISTRY}\n{registered}") == {
        "fastavro": "sources.a",
        "confluent-kafka": "sources.a",
    }
    key = "sources: {a: {topic: a, key: {format: protobuf}}}"
    assert needed(f"{SINK}\n{REGISTRY}\n{key}") == {
        "protobuf": "sources.a.key",
        "confluent-kafka": "sources.a.key",
    }


def test_a_sink_with_schemas_of_a_registry_needs_its_client() -> None:
    text = """
    sources: {a: {topic: a}}
    sinks: [{name: out, from: a, topic: {name: b, value: {format: json}}}]
    """
    assert needed(f"{REGISTRY}{text}".replace("\n    ", "\n")) == {
        "jsonschema": "sinks.out.value",
        "confluent-kafka": "sinks.out.value",
    }


@pytest.mark.parametrize(
    ("keys", "package"),
    [
        ("{database: 'postgresql://db/shop', table: t}", "adbc-driver-postgresql"),
        ("{database: 'sqlite:///shop.db', table: t}", "adbc-driver-sqlite"),
        ("{database: 'x://db', driver: snowflake, table: t}", None),  # perhaps a library
    ],
)
def test_a_table_of_a_database_needs_its_driver(keys: str, package: str | None) -> None:
    expected = {"adbc-driver-manager": "sources.t"}
    if package is not None:
        expected[package] = "sources.t"
    assert needed(f"{SINK}\nsources: {{a: {{topic: a}}, t: {keys}}}") == expected


@pytest.mark.parametrize(
    ("option", "package"),
    [
        ("kafka.sasl.mechanism: GSSAPI", "gssapi"),
        ("kafka.ssl.keystore.type: PKCS12", "cryptography"),
        ("kafka.ssl.truststore.location: /etc/trust.p12", "cryptography"),
        ("kafka.ssl.keystore.location: /etc/key.pem", None),
        ("kafka.sasl.mechanism: SCRAM-SHA-256", None),
    ],
)
def test_logins_and_stores_need_their_packages_in_sources_and_sinks(
    option: str, package: str | None
) -> None:
    read = f"sources: {{a: {{topic: a, options: {{{option}}}}}}}"
    assert needed(f"{SINK}\n{read}") == ({package: "sources.a"} if package else {})
    write = f"sinks: [{{name: out, from: a, topic: {{name: b, options: {{{option}}}}}}}]"
    expected = {package: "sinks.out"} if package else {}
    assert needed(f"sources: {{a: {{topic: a}}}}\n{write}") == expected


def test_each_need_says_which_extra_has_its_package() -> None:
    registered = "sources: {a: {topic: a, format: avro, schema: registry}}"
    extras = {need.package: need.extra for need in of(f"{SINK}\n{REGISTRY}\n{registered}")}
    assert extras == {"fastavro": "avro", "confluent-kafka": "registry"}
