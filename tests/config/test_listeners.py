from __future__ import annotations

import pytest

from ottla.config.listeners import Endpoint, Listeners
from ottla.config.network import NetworkSettings
from ottla.model.errors import UserError

MAP = "PLAINTEXT:PLAINTEXT,IN:PLAINTEXT,OUT:PLAINTEXT,SAFE:SSL"


def listeners(**texts: str) -> Listeners:
    named = {key.replace("_", "."): text for key, text in texts.items()}
    return Listeners.of(NetworkSettings.parse({"listener.security.protocol.map": MAP, **named}))


@pytest.mark.spec("CFG-006", "CFG-007", "NET-33", "NET-37")
def test_without_settings_every_address_is_bound_on_9092() -> None:
    found = Listeners.of(NetworkSettings())
    assert found.bound == (Endpoint("PLAINTEXT", "", 9092),)
    assert found.advertised == found.bound
    assert (found.inter_broker, found.control_plane) == ("PLAINTEXT", None)


@pytest.mark.spec("CFG-006", "CFG-007", "CFG-008", "CFG-009", "NET-33", "NET-37", "SEC-02")
def test_a_family_of_listeners_is_read_whole() -> None:
    found = listeners(
        listeners="out://0.0.0.0:9092, IN://[::1]:9093, PLAINTEXT://localhost:0",
        advertised_listeners="OUT://kafka.example:443,IN://10.0.0.1:9093,PLAINTEXT://localhost:0",
        inter_broker_listener_name="in",
        control_plane_listener_name="PLAINTEXT",
    )
    assert found.bound == (
        Endpoint("OUT", "0.0.0.0", 9092),
        Endpoint("IN", "::1", 9093),
        Endpoint("PLAINTEXT", "localhost", 0),
    )
    assert str(found.bound[1]) == "IN://[::1]:9093"
    assert found.advertised[0] == Endpoint("OUT", "kafka.example", 443)
    assert (found.inter_broker, found.control_plane) == ("IN", "PLAINTEXT")


def test_what_clients_are_told_has_the_bound_ports_and_a_host() -> None:
    found = listeners(listeners="PLAINTEXT://:0,IN://0.0.0.0:9093,OUT://here:9094")
    told = found.advertised_endpoints({"PLAINTEXT": 51234, "IN": 9093, "OUT": 9094}, host="box")
    assert told == (
        Endpoint("PLAINTEXT", "box", 51234),
        Endpoint("IN", "box", 9093),
        Endpoint("OUT", "here", 9094),
    )


def test_without_a_name_the_inter_broker_listener_is_picked_by_protocol() -> None:
    assert listeners(listeners="OUT://:1,IN://:2").inter_broker == "OUT"
    assert listeners(listeners="OUT://:1,PLAINTEXT://:2").inter_broker == "PLAINTEXT"


def test_one_port_may_serve_both_address_families() -> None:
    assert len(listeners(listeners="IN://127.0.0.1:9092,OUT://[::1]:9092").bound) == 2


def test_free_ports_do_not_clash() -> None:
    assert len(listeners(listeners="IN://:0,OUT://:0").bound) == 2


REFUSED = [
    ({"listeners": ""}, "listeners: expected at least one"),
    ({"listeners": "9092"}, "listeners='9092': expected name://host:port"),
    ({"listeners": "PLAINTEXT://host"}, "listeners='PLAINTEXT://host': expected name://host:port"),
    ({"listeners": "PLAINTEXT://host:-1"}, "listeners='PLAINTEXT://host:-1'"),
    ({"listeners": "PLAINTEXT://host:port"}, "listeners='PLAINTEXT://host:port'"),
    ({"listeners": "PLAINTEXT://:65536"}, "listeners='PLAINTEXT://:65536': expected a port"),
    ({"listeners": "IN://:9092,OUT://:9092"}, "listeners: IN://:9092 and OUT://:9092 use the same"),
    ({"listeners": "IN://a:9,OUT://b:9"}, "listeners: IN://a:9 and OUT://b:9 use the same port 9"),
    ({"listeners": "IN://:1,in://:2"}, "listeners: the name IN is used more than once"),
    ({"listeners": "ELSE://:1"}, "listeners='ELSE://:1': ELSE is missing in listener.security"),
    ({"listener_security_protocol_map": "IN:MAGIC"}, "listener.security.protocol.map='IN:MAGIC'"),
    ({"listener_security_protocol_map": "IN"}, "listener.security.protocol.map='IN'"),
    (
        {"listener_security_protocol_map": "IN:SSL,in:SSL"},
        "listener.security.protocol.map: the listener name in is listed more than once",
    ),
    (
        {"advertised_listeners": "PLAINTEXT://0.0.0.0:9092"},
        "advertised.listeners=PLAINTEXT://0.0.0.0:9092: clients cannot connect to 0.0.0.0",
    ),
    ({"advertised_listeners": "PLAINTEXT://[::]:9092"}, "advertised.listeners=PLAINTEXT://[::]"),
    (
        {"advertised_listeners": "IN://host:1"},
        "advertised.listeners=IN://host:1: no listener is named IN",
    ),
    (
        {"advertised_listeners": "PLAINTEXT://a:1,PLAINTEXT://b:1"},
        "advertised.listeners: PLAINTEXT is listed more than once",
    ),
    (
        {"inter_broker_listener_name": "NOWHERE"},
        "inter.broker.listener.name=NOWHERE: not among advertised.listeners (PLAINTEXT)",
    ),
    (
        {"security_inter_broker_protocol": "SSL"},
        "security.inter.broker.protocol=SSL: no advertised listener uses it",
    ),
    (
        {"control_plane_listener_name": "NOWHERE"},
        "control.plane.listener.name=NOWHERE: not among advertised.listeners",
    ),
    (
        {"control_plane_listener_name": "PLAINTEXT"},
        "control.plane.listener.name=PLAINTEXT: expected another listener",
    ),
]


@pytest.mark.spec("CFG-006", "CFG-007", "CFG-008", "CFG-009", "NET-33", "NET-37")
@pytest.mark.parametrize(("texts", "said"), REFUSED, ids=lambda v: str(v)[:60])
def test_a_bad_listener_is_refused_naming_the_key(texts: dict[str, str], said: str) -> None:
    with pytest.raises(UserError) as refusal:
        listeners(**texts)
    assert str(refusal.value).startswith(said)


@pytest.mark.spec("CFG-006", "CFG-009")
def test_while_a_broker_runs_the_listeners_with_a_role_keep_it() -> None:
    names = {"inter_broker_listener_name": "IN", "control_plane_listener_name": "OUT"}
    now = listeners(listeners="IN://:1,OUT://:2", **names)
    now.check_successor(listeners(listeners="IN://:3,OUT://:4,PLAINTEXT://:5", **names))
    with pytest.raises(UserError, match="the inter-broker listener IN cannot be removed"):
        now.check_successor(
            listeners(
                listeners="PLAINTEXT://:1,OUT://:2",
                **{**names, "inter_broker_listener_name": "PLAINTEXT"},
            )
        )
    with pytest.raises(UserError, match="the control plane listener OUT cannot be changed"):
        now.check_successor(listeners(listeners="IN://:1", inter_broker_listener_name="IN"))
