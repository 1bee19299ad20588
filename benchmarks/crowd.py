"""Thousands of clients in one process, each a conversation on a connection of its own.

Owns: the sockets, and whose turn it is. A conversation is a generator: it yields a framed request
and is sent the reply, or yields a `Pause`. It is connected when it first says something: a broker
that is called by thousands in one moment has calls it does not hear. Never: decodes anything.
"""

from __future__ import annotations

import heapq
import select
import socket
import struct
import time
from collections.abc import Generator, Sequence
from typing import Final, NamedTuple, TypeAlias

_RECEIVE: Final = 1 << 16
_SIZE: Final = struct.Struct(">i")


class Pause(NamedTuple):
    """Say nothing before this moment of `time.perf_counter`."""

    until: float


Talk: TypeAlias = Generator[bytes | Pause, bytes, None]


class Crowd:
    """One connection for each conversation; all of them end before `run` does."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._address = host, int(port)
        self._poller = select.epoll()
        self._talks: dict[int, Talk] = {}
        self._connections: dict[int, socket.socket] = {}
        self._whose: dict[int, int] = {}  # descriptor -> number of the conversation
        self._partial: dict[int, bytes] = {}
        self._paused: list[tuple[float, int]] = []

    def run(self, talks: Sequence[Talk]) -> None:
        self._talks = dict(enumerate(talks))
        for number, talk in enumerate(talks):
            self._perform(number, next(talk))
        while self._talks:
            for descriptor, _ in self._poller.poll(self._wait_s()):
                self._receive(self._whose[descriptor])
            while self._paused and self._paused[0][0] <= time.perf_counter():
                self._go_on(heapq.heappop(self._paused)[1], b"")

    def _wait_s(self) -> float:
        if not self._paused:
            return -1
        return max(0.0, self._paused[0][0] - time.perf_counter())

    def _receive(self, number: int) -> None:
        got = self._connections[number].recv(_RECEIVE)
        if not got:
            raise ConnectionError("the broker closed the connection")
        got = self._partial.pop(number, b"") + got
        if len(got) < _SIZE.size or len(got) < _SIZE.size + _SIZE.unpack_from(got)[0]:
            self._partial[number] = got
        else:
            self._go_on(number, got[_SIZE.size :])

    def _go_on(self, number: int, reply: bytes) -> None:
        try:
            said = self._talks[number].send(reply)
        except StopIteration:
            self._hang_up(number)
        else:
            self._perform(number, said)

    def _perform(self, number: int, said: bytes | Pause) -> None:
        if isinstance(said, Pause):
            heapq.heappush(self._paused, (said.until, number))
        else:
            connection = self._connections.get(number) or self._connect(number)
            connection.sendall(said)

    def _connect(self, number: int) -> socket.socket:
        connection = socket.create_connection(self._address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poller.register(connection, select.EPOLLIN)
        self._connections[number] = connection
        self._whose[connection.fileno()] = number
        return connection

    def _hang_up(self, number: int) -> None:
        del self._talks[number]
        connection = self._connections.pop(number, None)
        if connection is not None:
            del self._whose[connection.fileno()]
            connection.close()
