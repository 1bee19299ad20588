"""The proxies themselves: what a cut link does to connections through it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from tests.cluster.proxies import Address, Proxies


@contextmanager
def echo() -> Iterator[Address]:
    """A server that sends back what it gets."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with closing(connection), suppress(ConnectionResetError):
                while data := connection.recv(1000):
                    connection.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield Address(*server.getsockname())
        server.shutdown(socket.SHUT_RDWR)


def ask(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return connection.recv(1000)


def test_bytes_pass_a_link_until_it_is_cut_and_arrive_once_it_is_healed() -> None:
    with echo() as server, Proxies() as proxies:
        address = proxies.link("a", "b", server)
        with closing(socket.create_connection(address, 5)) as connection:
            assert ask(connection, b"one") == b"one"
            proxies.isolate("a", "b")
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                ask(connection, b"two")
            proxies.heal()
            connection.settimeout(5)
            assert connection.recv(1000) == b"two"


def test_a_link_can_be_cut_in_one_direction() -> None:
    with echo() as server, Proxies() as proxies:
        address = proxies.link("a", "b", server)
        with closing(socket.create_connection(address, 5)) as connection:
            assert ask(connection, b"one") == b"one"
            proxies.cut(("b", "a"))
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                ask(connection, b"two")
            proxies.heal()
            connection.settimeout(5)
            assert connection.recv(1000) == b"two"


def test_a_connection_made_over_a_cut_link_is_silent_until_it_is_healed() -> None:
    with echo() as server, Proxies() as proxies:
        address = proxies.link("a", "b", server)
        proxies.isolate("b", "a")
        with closing(socket.create_connection(address, 0.2)) as connection:
            with pytest.raises(TimeoutError):
                ask(connection, b"one")
            proxies.heal()
            connection.settimeout(5)
            assert connection.recv(1000) == b"one"


def test_a_reset_ends_connections_and_a_target_that_is_gone_ends_new_ones() -> None:
    with Proxies() as proxies:
        with echo() as server:
            address = proxies.link("a", "b", server)
            with closing(socket.create_connection(address, 5)) as connection:
                assert ask(connection, b"one") == b"one"
                proxies.reset("a", "b")
                with pytest.raises(ConnectionResetError):
                    connection.recv(1000)
        # Reset, perhaps even before the call returns, or closed.
        with suppress(ConnectionResetError), closing(socket.create_connection(address, 5)) as late:
            assert not late.recv(1000)
