"""How a gateway starts, limits itself and stops, with a broker."""

from __future__ import annotations

import ssl
import threading
import time
from pathlib import Path

import pytest

import ottla
from ottla.gateway.gateway import Listen, producer_settings
from ottla.gateway.limits import Limits
from ottla.testing import Broker
from tests.fakes.certificates import certificates
from tests.gateway.running_gateway import BINARY, JSON, V2, Reply, running_gateway


def test_instances_expire_and_are_limited_in_number(
    gateway_broker: Broker, admin: ottla.Admin, topic: str, group: str
) -> None:
    limits = Limits(max_consumers=1, instance_timeout_ms=400)
    with running_gateway(gateway_broker.bootstrap_servers, limits) as client:
        path = client.instance(group, name="a")
        client.post(f"{path}/subscription", {"topics": [topic]})
        refused = client.post(f"/consumers/{group}", {"name": "b"})
        refused.refused(503, "--max-consumers")
        assert refused.headers["Retry-After"] == "5"
        assert client.get(f"{path}/records?timeout=900").status == 200, "in use it does not expire"
        wait_until_empty(admin, group)
        client.get(f"{path}/records").refused(40403, "expired")
        client.instance(group, name="b")


def wait_until_empty(admin: ottla.Admin, group: str) -> None:
    pause = threading.Event()
    for _ in range(100):
        if admin.describe_group(group).members == ():
            return
        pause.wait(0.1)
    raise AssertionError(admin.describe_group(group))


def test_a_stop_answers_readers_and_leaves_groups_at_once(
    gateway_broker: Broker, admin: ottla.Admin, topic: str, group: str
) -> None:
    replies: list[Reply] = []
    with running_gateway(gateway_broker.bootstrap_servers) as client:
        path = client.instance(group, **{"consumer.request.timeout.ms": 15_000})
        client.post(f"{path}/subscription", {"topics": [topic]})
        client.get(f"{path}/records?timeout=500")
        assert len(admin.describe_group(group).members) == 1
        reader = threading.Thread(target=lambda: replies.append(client.get(f"{path}/records")))
        reader.start()
        threading.Event().wait(0.3)
        before = time.monotonic()
    assert time.monotonic() - before < 8, "a read of 15 s is ended"
    reader.join()
    assert [(reply.status, reply.json) for reply in replies] == [(200, [])]
    assert admin.describe_group(group).members == ()


def test_an_instance_can_be_deleted_while_a_request_reads(
    gateway_broker: Broker, topic: str, group: str
) -> None:
    replies: list[Reply] = []
    with running_gateway(gateway_broker.bootstrap_servers) as client:
        path = client.instance(group, **{"consumer.request.timeout.ms": 15_000})
        client.post(f"{path}/subscription", {"topics": [topic]})
        reader = threading.Thread(target=lambda: replies.append(client.get(f"{path}/records")))
        reader.start()
        threading.Event().wait(0.5)
        before = time.monotonic()
        assert client.delete(path).status == 204
        reader.join()
        assert time.monotonic() - before < 8
    assert replies[0].json == []


def test_a_body_that_is_too_large_is_refused(gateway_broker: Broker, topic: str) -> None:
    limits = Limits(max_body_bytes=1_000, max_records=2)
    with running_gateway(gateway_broker.bootstrap_servers, limits) as client:
        large = client.post(f"/topics/{topic}", {"records": [{"value": "x" * 1_000}]}, JSON)
        large.refused(413, "at most 1000 bytes")
        many = client.post(f"/topics/{topic}", {"records": [{}] * 3}, JSON)
        many.refused(422, "records", "at most 2")


def test_a_large_body_is_produced(gateway_broker: Broker, topic: str) -> None:
    with running_gateway(gateway_broker.bootstrap_servers) as client:
        records = [{"value": "x" * 600} for _ in range(5_000)]
        reply = client.post(f"/topics/{topic}", {"records": records}, JSON)
        assert reply.status == 200
        assert {row["error_code"] for row in reply.json["offsets"]} == {None}
        path = client.instance("large", format="json")
        at = [{"topic": topic, "partition": number} for number in range(2)]
        client.post(f"{path}/assignments", {"partitions": at})
        count = 0
        while count < 5_000:
            rows = client.get(f"{path}/records?timeout=5000").json
            assert rows, count
            count += len(rows)
        assert count == 5_000


def test_web_pages_of_other_sites_are_refused(gateway_broker: Broker, topic: str) -> None:
    with running_gateway(
        gateway_broker.bootstrap_servers, listen=Listen(port=0, host_names=frozenset({"gw"}))
    ) as client:
        body = b'{"records": [{"value": ""}]}'
        path = f"/topics/{topic}"
        sent = {"Content-Type": BINARY}
        client.send("POST", path, body, {**sent, "Origin": "http://evil"}).refused(403, "Origin")
        client.send("GET", "/topics", None, {"Host": "evil.example"}).refused(403, "--host-name")
        image = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
        client.send("GET", "/topics", None, image).refused(403, "Sec-Fetch-Site")
        client.send("POST", path, body, {"Content-Type": "text/plain"}).refused(415)
        preflight = {"Origin": client.url, "Access-Control-Request-Method": "POST"}
        asked = client.send("OPTIONS", path, None, preflight)
        assert asked.status == 405
        assert not [name for name in asked.headers if name.lower().startswith("access-control-")]
        client.send("POST", path, body).refused(415)
        assert client.send("GET", "/topics", None, {"Host": "gw"}).status == 200


def test_https_with_a_certificate(gateway_broker: Broker, tmp_path: Path) -> None:
    made = certificates()
    (tmp_path / "key.pem").write_bytes(made.broker.key_pem())
    (tmp_path / "cert.pem").write_bytes(made.broker.certificate_pem())
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    trusting = ssl.create_default_context(cadata=made.authority.certificate_pem().decode())
    with running_gateway(
        gateway_broker.bootstrap_servers, listen=Listen(port=0, tls=served), client_tls=trusting
    ) as client:
        assert client.url.startswith("https://")
        assert client.get("/brokers", V2).json == {"brokers": [0]}
        created = client.post("/consumers/tls", {"name": "a/b"})
        assert created.json["base_uri"] == f"{client.url}/consumers/tls/instances/a%2Fb"
        assert client.delete("/consumers/tls/instances/a%2Fb").status == 204
        with pytest.raises(ssl.SSLError):
            type(client)(client.url, ssl.create_default_context()).get("/brokers")


def test_a_cluster_that_goes_away_is_an_error_that_can_be_retried(topic: str) -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        gateway = running_gateway(servers, Limits(request_timeout_ms=3_000))
        client = gateway.__enter__()
        assert client.get("/brokers").status == 200
    try:
        client.get("/brokers").refused(50003)
        client.get("/topics").refused(50003)
        client.post("/topics/orders", {"records": [{"value": 1}]}, JSON).refused(50003)
    finally:
        gateway.__exit__(None, None, None)


def test_settings_of_the_user_come_before_the_gateways_own() -> None:
    assert producer_settings({})["delivery.timeout.ms"] == "20000"
    given = producer_settings({"request.timeout.ms": "30000", "max.block.ms": "1"})
    assert "delivery.timeout.ms" not in given
    assert given["max.block.ms"] == "1"
