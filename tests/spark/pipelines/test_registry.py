"""Topics whose values carry the number of a schema: read, written, and changed in mid-stream."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2

from ottla.model.errors import UserError
from ottla.security.tls.authority import issue, make_authority
from ottla.spark.pipelines.decoding import numbered, wire_format
from ottla.spark.pipelines.decoding.registry import UnknownSchema, registry_client
from ottla.spark.pipelines.restarts import is_passing
from ottla.spark.pipelines.spec import Format, Registry
from tests.spark.pipelines.jobs import Sent, Stage
from tests.spark.pipelines.schema_registry import SchemaRegistry

QUICK = {"max.retries": "0", "timeout": "5"}


def order(*more: dict[str, Any]) -> str:
    fields = [{"name": "item", "type": "string"}, {"name": "n", "type": "int"}, *more]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


V1 = order()
V2 = order({"name": "colour", "type": ["null", "string"], "default": None})


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as running:
        yield running


def written(registry: SchemaRegistry, topic: str, schema: str, rows: list[Any]) -> list[Sent]:
    """Values as Confluent's own serializer writes them."""
    client = SchemaRegistryClient({"url": registry.url})
    serialize = AvroSerializer(client, schema)
    place = SerializationContext(topic, MessageField.VALUE)
    return [Sent(serialize(row, place)) for row in rows]


def read(registry: SchemaRegistry, data: bytes | None, topic: str) -> Any:
    """A value as Confluent's own deserializer reads it."""
    client = SchemaRegistryClient({"url": registry.url})
    return AvroDeserializer(client)(data, SerializationContext(topic, MessageField.VALUE))


@pytest.mark.spec("APP-13")
def test_a_schema_that_changes_in_mid_stream_is_looked_up_once(
    stage: Stage, registry: SchemaRegistry
) -> None:
    stage.topics("orders", "big", "refused", partitions=1)
    stage.send("orders", written(registry, "orders", V1, [{"item": "a", "n": 1}]))
    pipeline = stage.pipeline(f"""
        name: evolving
        registry: {registry.url}
        sources:
          orders: {{topic: orders, format: avro, schema: registry, dead_letter: refused}}
        steps:
          - {{name: big, sql: "SELECT item, n * 10 AS n FROM orders"}}
        sinks:
          - name: out
            from: big
            topic: {{name: big, key: {{of: item}}, value: {{format: avro}}}}
        """)
    stage.once(pipeline)
    more = written(registry, "orders", V2, [{"item": "b", "n": 2, "colour": "red"}] * 3)
    bad = [Sent(b"{}"), Sent(wire_format.front(99) + b"x"), Sent(more[0].value + b"!")]  # type: ignore[operator]
    stage.send("orders", [*more, *bad])
    stage.once(pipeline)
    found = stage.read("big")
    rows = [read(registry, one.value, "big") for one in found]
    assert sorted(row["n"] for row in rows) == [10, 20, 20, 20]
    keys = {read(registry, one.key, "big") for one in found}
    assert keys == {"a", "b"}
    refused = [header(one, "ottla.dead.reason") for one in stage.read("refused")]
    assert [text.removeprefix("the value does not decode: ") for text in refused] == [
        "2 bytes: too short for the number of a schema",
        "the registry has no schema 99",
        "1 bytes after the value",
    ]
    assert registry.asked["id 99"] == 1
    assert len(registry.versions("big-value")) == len(registry.versions("big-key")) == 1


def header(record: Any, name: str) -> str:
    return str(next(value for key, value in record.headers if key == name).decode())


def decode(registry: SchemaRegistry, format: Format, data: bytes | None) -> Any:
    assert data is not None
    format = numbered.resolve(format, "sources.v")
    return numbered.decoder(format, numbered.arrow_type(format, "sources.v"))(data)


def test_the_reader_s_schema_is_the_latest_or_a_pinned_one(registry: SchemaRegistry) -> None:
    at = Registry(registry.url)
    registry.add("orders-value", V1)
    (old,) = written(registry, "orders", V1, [{"item": "a", "n": 1}])
    (new,) = written(registry, "orders", V2, [{"item": "b", "n": 2, "colour": "red"}])
    latest = Format("avro", registry=at, subject="orders-value")
    assert decode(registry, latest, old.value) == {"item": "a", "n": 1, "colour": None}
    pinned = Format("avro", registry=at, subject="orders-value", version=1)
    assert decode(registry, pinned, new.value) == {"item": "b", "n": 2}
    with pytest.raises(UserError, match=r"sources\.v\.schema: .* has no version 7 of orders-value"):
        numbered.resolve(
            Format("avro", registry=at, subject="orders-value", version=7), "sources.v"
        )
    with pytest.raises(UserError, match="has no subject nobody-value"):
        numbered.resolve(Format("avro", registry=at, subject="nobody-value"), "sources.v")


def test_a_schema_may_refer_to_others(registry: SchemaRegistry) -> None:
    colour = {"type": "enum", "name": "Colour", "namespace": "shop", "symbols": ["RED", "BLUE"]}
    registry.add("colour", json.dumps(colour))
    reference = {"name": "shop.Colour", "subject": "colour", "version": 1}
    text = order({"name": "colour", "type": "shop.Colour"})
    number = registry.add("orders-value", text, references=[reference])
    format = Format("avro", registry=Registry(registry.url), subject="orders-value")
    data = wire_format.front(number) + b"\x02a\x02\x02"
    assert decode(registry, format, data) == {"item": "a", "n": 1, "colour": "BLUE"}


JSON_V1 = {
    "title": "Order",
    "type": "object",
    "properties": {
        "item": {"type": "string"},
        "at": {"type": "string", "format": "date-time"},
        "sizes": {"type": "array", "items": {"$ref": "#/definitions/size"}},
    },
    "required": ["item"],
    "definitions": {"size": {"type": ["null", "integer"]}},
}


def test_json_is_checked_by_the_writer_s_schema(registry: SchemaRegistry) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    serialize = JSONSerializer(json.dumps(JSON_V1), client)
    place = SerializationContext("orders", MessageField.VALUE)
    data = serialize({"item": "a", "at": "2026-05-01T12:00:00+00:00", "sizes": [1, None]}, place)
    format = Format("json-schema", registry=Registry(registry.url), subject="orders-value")
    row = decode(registry, format, data)
    assert row["item"] == "a"
    assert row["sizes"] == [1, None]
    assert row["at"].isoformat() == "2026-05-01T12:00:00+00:00"
    assert data is not None
    for wrong, said in ((b'{"n": 1}', "'item' is a required property"), (b"{", "Expecting")):
        with pytest.raises(ValueError, match=said):
            decode(registry, format, data[:5] + wrong)


def test_sinks_write_json_and_protobuf_that_sources_read_again(
    stage: Stage, registry: SchemaRegistry
) -> None:
    stage.topics("orders", "as-json", "as-protobuf", "again", partitions=1)
    stage.send("orders", [Sent(b'{"item": "a", "n": 3, "at": "2026-05-01T12:00:00Z"}')])
    columns = (
        "item, n, at, array(n, 2) AS sizes, map('k', n) AS tags, named_struct('x', n) AS place"
    )
    stage.once(
        stage.pipeline(f"""
        name: writing
        registry: {registry.url}
        sources:
          orders: {{topic: orders, format: json, schema: "item STRING, n INT, at TIMESTAMP"}}
        steps: [{{name: wide, sql: "SELECT {columns}, CAST(NULL AS STRING) AS none FROM orders"}}]
        sinks:
          - {{name: a, from: wide, topic: {{name: as-json, value: {{format: json}}}}}}
          - {{name: b, from: wide, topic: {{name: as-protobuf, value: {{format: protobuf}}}}}}
        """)
    )
    place = SerializationContext("as-json", MessageField.VALUE)
    client = SchemaRegistryClient({"url": registry.url})
    schema = registry.versions("as-json-value")[0]["schema"]
    (record,) = stage.read("as-json")
    row = JSONDeserializer(schema, schema_registry_client=client)(record.value, place)
    assert row["tags"] == {"k": 3}
    assert row["none"] is None
    stage.once(
        stage.pipeline(f"""
        name: reading
        registry: {registry.url}
        sources:
          j: {{topic: as-json, format: json, schema: registry}}
          p: {{topic: as-protobuf, format: protobuf, schema: registry}}
        steps:
          - name: both
            sql: SELECT item, n, at, sizes, tags, place.x AS x, none FROM j UNION ALL
                 SELECT item, n, at, sizes, tags, place.x, none FROM p
        sinks: [{{name: a, from: both, topic: again}}]
        """)
    )
    rows = [json.loads(one.value or b"") for one in stage.read("again")]
    assert rows[0] == rows[1]
    assert rows[0]["sizes"] == [3, 2]
    assert rows[0]["tags"] == {"k": 3}
    assert rows[0]["x"] == 3


def test_a_registry_that_does_not_answer_is_not_the_value_s_fault(
    registry: SchemaRegistry,
) -> None:
    registry.add("orders-value", V1)
    (data,) = written(registry, "orders", V2, [{"item": "b", "n": 2, "colour": "red"}])
    format = Format("avro", V1, registry=Registry(registry.url, QUICK))
    registry.failing = True
    with pytest.raises(ConnectionError, match="failed: the registry is starting") as caught:
        decode(registry, format, data.value)
    assert is_passing(f"ConnectionError: {caught.value}"), "the query is started again"
    registry.failing = False
    assert decode(registry, format, data.value)["item"] == "b"


def test_nobody_at_the_address_is_said_at_the_start() -> None:
    with SchemaRegistry() as gone:
        url = gone.url
    format = Format("avro", registry=Registry(url, QUICK), subject="s")
    with pytest.raises(
        UserError, match=rf"sources\.v\.schema: no answer from the registry at {url}"
    ):
        numbered.resolve(format, "sources.v")


def test_logins_and_certificates_are_the_client_s_settings(tmp_path: Path) -> None:
    authority = make_authority("test", time.time())
    server = issue(authority, "registry", time.time(), hosts=["localhost"])
    (tmp_path / "ca.pem").write_bytes(authority.certificate_pem())
    (tmp_path / "server.pem").write_bytes(server.key_pem() + server.certificate_pem())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.pem")
    with SchemaRegistry(login="ann:secret", tls=tls) as registry:
        registry.add("s", V1)
        trusted = {**QUICK, "ssl.ca.location": str(tmp_path / "ca.pem")}
        good = Registry(registry.url, {**trusted, "basic.auth.user.info": "ann:secret"})
        assert registry_client(good).of_subject("s", None, "avro").text == V1
        assert "secret" not in repr(good)
        with pytest.raises(UserError, match="refused: Unauthorized"):
            registry_client(Registry(registry.url, trusted)).of_subject("s", None, "avro")
        with pytest.raises(ConnectionError, match="no answer"):
            registry_client(Registry(registry.url, QUICK)).of_subject("s", None, "avro")


def test_a_schema_of_another_kind_is_refused(registry: SchemaRegistry) -> None:
    number = registry.add("s", json.dumps(JSON_V1), "JSON")
    client = registry_client(Registry(registry.url))
    with pytest.raises(UnknownSchema, match="is JSON, not AVRO"):
        client.by_id(number, "avro")
    assert isinstance(SchemaRegistryClient({"url": registry.url}).get_schema(number), Schema)


def test_an_incompatible_schema_is_the_registry_s_to_refuse() -> None:
    with SchemaRegistry(allows=lambda subject, schema: False) as strict:
        client = registry_client(Registry(strict.url))
        with pytest.raises(UserError, match="refused: Schema being registered is incompatible"):
            client.id_of("s", V1, "avro")


def proto(file: descriptor_pb2.FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


def test_protobuf_is_read_by_the_message_that_its_schema_names(registry: SchemaRegistry) -> None:
    colours = descriptor_pb2.FileDescriptorProto(
        name="colour.proto", package="shop", syntax="proto3"
    )
    colours.message_type.add(name="Colour").field.add(name="red", number=1, type=5, label=1)
    registry.add("colour", proto(colours), "PROTOBUF")
    orders = descriptor_pb2.FileDescriptorProto(
        name="order.proto", package="shop", syntax="proto3", dependency=["colour.proto"]
    )
    order = orders.message_type.add(name="Order")
    order.field.add(name="item", number=1, type=9, label=1)
    order.field.add(name="colour", number=2, type=11, label=1, type_name=".shop.Colour")
    orders.message_type.add(name="Other")
    reference = {"name": "colour.proto", "subject": "colour", "version": 1}
    number = registry.add("orders-value", proto(orders), "PROTOBUF", [reference])
    format = Format("protobuf", registry=Registry(registry.url), subject="orders-value")
    made = b"\x0a\x01a\x12\x02\x08\x07"
    data = wire_format.front(number) + wire_format.indexes_front((0,)) + made
    assert decode(registry, format, data) == {"item": "a", "colour": {"red": 7}}
    other = wire_format.front(number) + wire_format.indexes_front((1,))
    with pytest.raises(ValueError, match=r"the message is a shop\.Other; expected shop\.Order"):
        decode(registry, format, other)
    registry.add("text-value", 'syntax = "proto3"; message Order {}', "PROTOBUF")
    with pytest.raises(UserError, match="returned a Protobuf schema as text"):
        numbered.resolve(
            Format("protobuf", registry=Registry(registry.url), subject="text-value"), "sources.v"
        )
