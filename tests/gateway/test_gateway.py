"""The gateway over real sockets, with a broker and other people's clients."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any, TypeAlias
from urllib.parse import quote

import confluent_kafka
import pytest

import ottla
from ottla.testing import Broker
from tests.gateway.running_gateway import BINARY, JSON, V2, Client, base64_of

Row: TypeAlias = dict[str, Any]


@pytest.mark.spec("APP-20")
def test_what_is_produced_by_http_is_read_by_a_kafka_client(
    client: Client, gateway_broker: Broker, topic: str
) -> None:
    records = [
        {"key": {"id": 1}, "value": {"n": [1, None, "é"]}, "partition": 1},
        {"value": None, "partition": 0},
        {"value": "text"},
    ]
    reply = client.post(f"/topics/{topic}", {"records": records}, JSON)
    assert reply.status == 200, reply.body
    assert reply.headers["Content-Type"] == V2
    assert [row["error_code"] for row in reply.json["offsets"]] == [None, None, None]
    assert reply.json["offsets"][0] == {
        "partition": 1, "offset": 0, "error_code": None, "error": None,
    }  # fmt: skip
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": gateway_broker.bootstrap_servers, "group.id": "by-topic"}
    )
    partitions = [confluent_kafka.TopicPartition(topic, number, 0) for number in range(2)]
    consumer.assign(partitions)
    messages = consumer.consume(3, 20)
    read = {(message.key(), message.value()) for message in messages}
    consumer.close()
    assert read == {
        (b'{"id":1}', '{"n":[1,null,"é"]}'.encode()),
        (None, None),
        (None, b'"text"'),
    }


@pytest.mark.spec("APP-20")
def test_a_partition_can_be_named_by_the_path(
    client: Client, gateway_broker: Broker, topic: str
) -> None:
    value = base64_of(b"\x00\xff")
    body = {"records": [{"key": base64_of(b"k"), "value": value}]}
    reply = client.post(f"/topics/{topic}/partitions/1", body, BINARY)
    assert reply.json["offsets"][0]["partition"] == 1
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": gateway_broker.bootstrap_servers, "group.id": "by-path"}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 1, 0)])
    message = consumer.poll(20)
    assert message is not None
    assert (message.key(), message.value()) == (b"k", b"\x00\xff")
    consumer.close()


@pytest.mark.spec("APP-20")
def test_two_instances_of_a_group_share_what_a_kafka_client_produces(
    client: Client, gateway_broker: Broker, topic: str, group: str
) -> None:
    paths = [client.instance(group, name=f"i{number}", format="binary") for number in range(2)]
    for path in paths:
        assert client.post(f"{path}/subscription", {"topics": [topic]}).status == 204
        assert client.get(f"{path}/subscription").json == {"topics": [topic]}
    threads = [threading.Thread(target=client.get, args=[f"{path}/records"]) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared = [{row["partition"] for row in wait_for_assignment(client, path)} for path in paths]
    assert sorted(map(sorted, shared)) == [[0], [1]]
    producer = confluent_kafka.Producer({"bootstrap.servers": gateway_broker.bootstrap_servers})
    for number in range(20):
        producer.produce(topic, str(number).encode(), b"key", partition=number % 2)
    producer.flush()
    values: set[str] = set()
    for path, partitions in zip(paths, shared, strict=True):
        rows = read_all(client, path, 10)
        assert {row["partition"] for row in rows} == partitions
        assert {row["topic"] for row in rows} == {topic}
        assert {row["key"] for row in rows} == {base64_of(b"key")}
        values |= {row["value"] for row in rows}
    assert values == {base64_of(str(number).encode()) for number in range(20)}
    for path in paths:
        assert client.delete(path).status == 204
        client.get(f"{path}/records").refused(40403, "Consumer instance not found")


def wait_for_assignment(client: Client, path: str) -> list[Row]:
    for _ in range(30):
        rows: list[Row] = client.get(f"{path}/assignments").json["partitions"]
        if len(rows) == 1:
            return rows
        client.get(f"{path}/records?timeout=200")
    raise AssertionError(f"{path}: no partition assigned")


def read_all(client: Client, path: str, count: int, accept: str = "*/*") -> list[Row]:
    rows: list[Row] = []
    for _ in range(60):
        reply = client.get(f"{path}/records?timeout=1000", accept)
        assert reply.status == 200, reply.body
        rows += reply.json
        if len(rows) >= count:
            return rows
    raise AssertionError(rows)


def produce(client: Client, topic: str, *values: object, partition: int = 0) -> None:
    records = [{"value": value, "partition": partition} for value in values]
    assert client.post(f"/topics/{topic}", {"records": records}, JSON).status == 200


@pytest.mark.spec("APP-20")
def test_topics_partitions_and_brokers_are_shown(client: Client, topic: str) -> None:
    produce(client, topic, 1, 2)
    assert topic in client.get("/topics").json
    shown = client.get(f"/topics/{topic}", "application/json")
    assert shown.headers["Content-Type"] == "application/json"
    partition = {
        "partition": 0,
        "leader": 0,
        "replicas": [{"broker": 0, "leader": True, "in_sync": True}],
    }
    assert shown.json["name"] == topic
    assert shown.json["configs"]["cleanup.policy"] == "delete"
    assert shown.json["partitions"] == [partition, {**partition, "partition": 1}]
    assert client.get(f"/topics/{topic}/partitions").json == shown.json["partitions"]
    assert client.get(f"/topics/{topic}/partitions/0").json == partition
    assert client.get(f"/topics/{topic}/partitions/0/offsets").json == {
        "beginning_offset": 0,
        "end_offset": 2,
    }
    assert client.get("/brokers").json == {"brokers": [0]}


@pytest.mark.spec("APP-20")
def test_unknown_topics_partitions_and_instances_have_codes_of_their_own(
    client: Client, topic: str
) -> None:
    client.get("/topics/none").refused(40401, "none")
    client.get("/topics/none/partitions").refused(40401)
    client.get(f"/topics/{quote('a b/c', safe='')}").refused(40401, "a b/c")
    client.get(f"/topics/{topic}/partitions/2").refused(40402, f"{topic}-2")
    client.post(f"/topics/{topic}/partitions/2", {"records": [{"value": 1}]}, JSON).refused(40402)
    client.get("/consumers/g/instances/none/records").refused(40403, "'none'", "'g'")
    client.delete("/consumers/g/instances/none").refused(40403)
    client.get("/nothing").refused(404, "/nothing")
    client.delete("/topics").refused(405, "expected GET")


def test_producing_to_an_unknown_topic_is_refused_if_the_broker_creates_none(
    client: Client,
) -> None:
    client.post("/topics/none", {"records": [{"value": 1}]}, JSON).refused(40401, "none")


@pytest.mark.spec("APP-20")
def test_a_record_that_cannot_be_written_has_an_error_in_its_place(
    client: Client, topic: str
) -> None:
    body = {"records": [{"value": 1}, {"value": 2, "partition": 7}, {"value": "x" * 2_000_000}]}
    reply = client.post(f"/topics/{topic}", body, JSON)
    assert reply.status == 200
    first, second, third = reply.json["offsets"]
    assert first["error_code"] is None
    assert (second["offset"], second["error_code"]) == (None, 40402)
    assert (third["partition"], third["error_code"]) == (None, 50002)
    assert "max.request.size" in third["error"]


def test_malformed_requests_name_the_field_and_what_was_expected(
    client: Client, topic: str
) -> None:
    def refused(body: bytes, code: int, *words: str, content_type: str = JSON) -> None:
        headers = {"Content-Type": content_type}
        client.send("POST", f"/topics/{topic}", body, headers).refused(code, *words)

    refused(b"{", 400, "not JSON")
    refused(b"", 400, "not JSON")
    refused(b'{"records": [{"value": NaN}]}', 400, "NaN")
    refused(b"\xff", 400, "not UTF-8")
    refused(b"[" * 100_000, 400, "nested too deeply")
    refused(b"[]", 422, "request body: expected an object, not an array")
    refused(b"{}", 422, "records: expected 1 to")
    refused(b'{"records": [{"values": 1}]}', 422, "records[0].values", "key, value, partition")
    refused(b'{"records": [{}, {"partition": -1}]}', 422, "records[1].partition")
    refused(b'{"records": [{"value": "%"}]}', 422, "records[0].value", content_type=BINARY)
    refused(b"{}", 415, "vnd.kafka.json.v2+json", content_type="text/plain")
    refused(b"{}", 415, content_type="application/vnd.kafka.avro.v2+json")
    client.get("/topics", "text/html").refused(406, "text/html")
    client.get(f"/topics/{topic}/partitions/x").refused(422, "partition in the path")


@pytest.mark.spec("APP-20")
def test_offsets_are_committed_when_the_client_says_so(
    client: Client, admin: ottla.Admin, topic: str, group: str
) -> None:
    produce(client, topic, *range(10))
    path = client.instance(group, format="json", auto_commit_enable="false")
    client.post(f"{path}/subscription", {"topics": [topic]})
    assert [row["value"] for row in read_all(client, path, 10, JSON)] == list(range(10))
    client.delete(path)
    assert admin.list_group_offsets(group) == {}

    path = client.instance(group, format="json", auto_commit_enable="false")
    client.post(f"{path}/subscription", {"topics": [topic]})
    read_all(client, path, 10)
    at = {"topic": topic, "partition": 0}
    reply = client.post(f"{path}/offsets", {"offsets": [{**at, "offset": 3, "metadata": "m"}]})
    assert (reply.status, reply.json) == (200, [])
    committed = {**at, "offset": 4, "metadata": "m"}
    asked = json.dumps({"partitions": [at]}).encode()
    shown = client.send("GET", f"{path}/offsets", asked, {"Content-Type": V2})
    assert shown.json == {"offsets": [committed]}
    assert client.post(f"{path}/offsets").status == 200
    assert {**committed, "offset": 10, "metadata": ""} in client.get(f"{path}/offsets").json[
        "offsets"
    ]
    client.delete(path)


@pytest.mark.spec("APP-20")
def test_an_instance_reads_the_partitions_it_is_told_from_where_it_is_told(
    client: Client, topic: str, group: str
) -> None:
    produce(client, topic, *range(5))
    path = client.instance(group, format="json")
    at = {"topic": topic, "partition": 0}
    client.post(f"{path}/positions", {"offsets": [{**at, "offset": 1}]}).refused(40903, "assign")
    client.get(f"{path}/records").refused(40903, "subscribe() or assign()")
    assert client.post(f"{path}/assignments", {"partitions": [at]}).status == 204
    assert client.get(f"{path}/assignments").json == {"partitions": [at]}
    assert client.post(f"{path}/positions", {"offsets": [{**at, "offset": 3}]}).status == 204
    assert [row["offset"] for row in read_all(client, path, 2)] == [3, 4]
    assert client.post(f"{path}/positions/beginning", {"partitions": [at]}).status == 204
    assert [row["offset"] for row in read_all(client, path, 5)] == list(range(5))
    assert client.post(f"{path}/positions/end", {"partitions": [at]}).status == 204
    assert client.get(f"{path}/records?timeout=100").json == []
    since = {**at, "timestamp": "2020-01-01T00:00:00Z"}
    assert client.post(f"{path}/positions", {"timestamps": [since]}).status == 204
    assert len(read_all(client, path, 5)) == 5
    client.post(f"{path}/subscription", {"topics": [topic]}).refused(40903)
    assert client.delete(f"{path}/subscription").status == 204
    assert client.post(f"{path}/subscription", {"topic_pattern": f"{topic}|x"}).status == 204
    assert len(read_all(client, path, 5)) == 5
    assert client.get(f"{path}/subscription").json == {"topics": [topic]}
    client.delete(path)


def test_a_reply_is_bounded_and_loses_nothing(client: Client, topic: str, group: str) -> None:
    produce(client, topic, *("x" * 98 for _ in range(10)))
    path = client.instance(group, format="json")
    client.post(f"{path}/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
    offsets: list[int] = []
    sizes: set[int] = set()
    while len(offsets) < 10:
        rows = client.get(f"{path}/records?max_bytes=350&timeout=5000").json
        sizes.add(len(rows))
        offsets += [row["offset"] for row in rows]
    assert offsets == list(range(10))
    assert sizes == {3, 1}
    client.post(f"{path}/positions/beginning", {"partitions": [{"topic": topic, "partition": 0}]})
    assert len(client.get(f"{path}/records?max_bytes=1&timeout=5000").json) == 1
    client.delete(path)


def test_a_record_that_is_not_json_is_named_and_can_be_skipped(
    client: Client, topic: str, group: str
) -> None:
    records = [base64_of(value) for value in (b"1.10", b"{", b"3")]
    body = {"records": [{"value": value, "partition": 0} for value in records]}
    client.post(f"/topics/{topic}", body, BINARY)
    path = client.instance(group, format="json")
    at = {"topic": topic, "partition": 0}
    client.post(f"{path}/assignments", {"partitions": [at]})
    first = client.get(f"{path}/records?timeout=5000")
    assert b'"value":1.10,' in first.body, "digits are not changed"
    for _ in range(2):
        client.get(f"{path}/records?timeout=5000").refused(
            50002, f"{topic}-0 offset 1", "positions"
        )
    client.post(f"{path}/positions", {"offsets": [{**at, "offset": 2}]})
    assert [row["value"] for row in read_all(client, path, 1)] == [3]
    client.get(f"{path}/records", BINARY).refused(40601, "json")
    client.delete(path)


def test_an_instance_that_exists_or_has_a_wrong_setting_is_refused(
    client: Client, group: str
) -> None:
    path = client.instance(group, name="a")
    client.post(f"/consumers/{group}", {"name": "a"}).refused(40902, "'a'")
    client.post(f"/consumers/{group}", {"format": "avro"}).refused(422, "format", "binary or json")
    client.post(f"/consumers/{group}", {"auto.offset.reset": "x"}).refused(
        42204, "auto.offset.reset: expected earliest or latest"
    )
    client.post(f"{path}/subscription", {"topic_pattern": "("}).refused(422, "topic_pattern")
    client.post(f"{path}/subscription", {}).refused(422, "topics")
    client.delete(path)
    assert client.post(f"/consumers/{group}").json["instance_id"].startswith("rest-consumer-")


def test_a_client_that_goes_away_while_it_waits_loses_no_record(
    client: Client, topic: str, group: str
) -> None:
    path = client.instance(group, format="json")
    client.post(f"{path}/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
    assert client.get(f"{path}/records?timeout=200").json == []
    with socket.create_connection(client.address) as waiting:
        waiting.sendall(
            f"GET {path}/records?timeout=15000 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        )
    produce(client, topic, "not lost")
    assert [row["value"] for row in read_all(client, path, 1)] == ["not lost"]
    client.delete(path)
