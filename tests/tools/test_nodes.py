"""How a broker's process is found to be ready."""

from __future__ import annotations

import socket

from tools import nodes


def test_the_address_is_read_from_the_ready_line() -> None:
    said = "loading\nbroker 0 ready on PLAINTEXT://127.0.0.1:40123, data in /tmp/d\n"
    assert nodes.ready_address(said) == "127.0.0.1:40123"


def test_nothing_is_ready_before_it_says_so() -> None:
    assert nodes.ready_address("loading 10,000 partitions\n") is None


def test_a_port_that_only_listens_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert not nodes.answers(silent.getsockname()[1])


def test_free_ports_differ() -> None:
    assert len(set(nodes.free_ports(5))) == 5
