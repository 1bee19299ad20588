"""What the machine itself can do: no broker can be quicker than these.

Owns: three loops that do one thing each. They stand beside the results, because a figure on a slow
or busy machine says nothing without them.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import crc32c

_SECONDS: Final = 1.0
_BLOCK: Final = 1 << 20


def measure(folder: Path) -> dict[str, float]:
    """MB/s of each, and how long a small fsync takes."""
    return {
        "loopback copy MB/s": loopback(),
        "page-cache write MB/s": page_cache(folder),
        "checksum MB/s": checksum(),
        "fsync of 4 KB ms": fsync_ms(folder),
        "loopback round trips/s": round_trips(),
    }


def loopback() -> float:
    """One thread sends, one receives, both in blocks of 1 MB."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = threading.Thread(target=_flood, args=(server.getsockname(),))
        sender.start()
        connection, _ = server.accept()
        scratch = bytearray(_BLOCK)
        with connection:
            rate = _rate(lambda: connection.recv_into(scratch))
        sender.join()
    return rate


def page_cache(folder: Path) -> float:
    """Writes over the same 256 MB again and again: pages that are there already."""
    block = bytes(_BLOCK)
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(256):
            os.write(file.fileno(), block)
        place = 0

        def write() -> int:
            nonlocal place
            place = (place + 1) % 256
            return os.pwrite(file.fileno(), block, place * _BLOCK)

        return _rate(write)


def checksum() -> float:
    block = bytes(_BLOCK)

    def check() -> int:
        crc32c.crc32c(block)
        return _BLOCK

    return _rate(check)


def fsync_ms(folder: Path) -> float:
    """The median of a hundred appends of 4 KB, each flushed."""
    taken = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(100):
            os.write(file.fileno(), bytes(4096))
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - start)
    return 1000 * sorted(taken)[50]


def round_trips() -> float:
    """A hundred bytes there and back, one at a time, between two threads."""
    near, far = socket.socketpair()
    echo = threading.Thread(target=_echo, args=(far,))
    echo.start()
    message = bytes(100)
    count = 0
    start = time.perf_counter()
    with near:
        while time.perf_counter() - start < _SECONDS:
            near.sendall(message)
            near.recv(100, socket.MSG_WAITALL)
            count += 1
    echo.join()
    return count / _SECONDS


def _rate(move: Callable[[], int]) -> float:
    moved = 0
    start = time.perf_counter()
    while (spent := time.perf_counter() - start) < _SECONDS:
        moved += move()
    return moved / spent / 1e6


def _flood(address: tuple[str, int]) -> None:
    block = bytes(_BLOCK)
    try:
        with socket.create_connection(address) as connection:
            while True:
                connection.sendall(block)
    except OSError:
        return  # the reader has seen enough


def _echo(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(4096):
            connection.sendall(data)
