"""Many conversations on one thread, each with what was said to it."""

from __future__ import annotations

import socket
import threading
import time

from benchmarks import frames
from benchmarks.crowd import Crowd, Pause, Talk


def test_every_conversation_hears_its_own_replies_whole() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_echo, args=(server, 20), daemon=True).start()
        host, port = server.getsockname()
        heard: dict[int, list[bytes]] = {number: [] for number in range(20)}
        Crowd(f"{host}:{port}").run([_talk(number, heard[number]) for number in range(20)])
    for number, replies in heard.items():
        said = [frames.request(number, turn, bytes(turn * 50_000))[4:] for turn in range(4)]
        assert replies == said


def test_a_pause_is_kept() -> None:
    until = time.perf_counter() + 0.05

    def talk() -> Talk:
        yield Pause(until)

    Crowd("127.0.0.1:1").run([talk()])  # it says nothing, so nobody has to listen
    assert time.perf_counter() >= until


def _talk(number: int, heard: list[bytes]) -> Talk:
    for turn in range(4):
        heard.append((yield frames.request(number, turn, bytes(turn * 50_000))))


def _echo(server: socket.socket, count: int) -> None:
    for _ in range(count):
        connection, _ = server.accept()
        threading.Thread(target=_repeat, args=(connection,), daemon=True).start()


def _repeat(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(1 << 16):
            connection.sendall(data)
