"""A broker at one address that goes away and comes back with its data."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ottla.testing import Broker
from tests.spark.default_settings import DEFAULT_SETTINGS
from tools import nodes

HANGS_UP = 4
DEADLINE_S = 60.0


class RestartingBroker:
    """A broker at one address that goes away and comes back with its data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = nodes.free_ports(1)[0]
        self.servers = f"127.0.0.1:{self._port}"
        self.client = {"bootstrap.servers": self.servers}

    @contextmanager
    def up(self) -> Iterator[None]:
        listeners = {"listeners": f"PLAINTEXT://127.0.0.1:{self._port}"}
        with Broker({**DEFAULT_SETTINGS, **listeners}, data_dir=self._folder):
            yield

    def hang_up_on(self, doing: Sequence[Future[Any]]) -> None:
        """Accept and close connections, a few for each, while they are being tried."""
        with socket.create_server(("127.0.0.1", self._port)) as listener:
            listener.settimeout(0.2)
            left, ends = HANGS_UP * len(doing), time.monotonic() + DEADLINE_S
            while left and not all(each.done() for each in doing):
                assert time.monotonic() < ends, "they do not try again"
                try:
                    listener.accept()[0].close()
                    left -= 1
                except TimeoutError:
                    continue
