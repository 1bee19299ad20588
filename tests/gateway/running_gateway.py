"""A gateway in a thread of the test, and an HTTP client of it."""

from __future__ import annotations

import asyncio
import base64
import http.client
import itertools
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ottla.gateway.gateway import ClientSettings, Listen, open_gateway
from ottla.gateway.limits import Limits
from ottla.model.clock import SystemClock

JSON = "application/vnd.kafka.json.v2+json"
BINARY = "application/vnd.kafka.binary.v2+json"
V2 = "application/vnd.kafka.v2+json"


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def refused(self, code: int, *words: str) -> None:
        """It is an error body with this code that has these words."""
        assert self.json["error_code"] == code, (self.status, self.body)
        assert self.status == (code // 100 if code > 999 else code)
        for word in words:
            assert word in self.json["message"], (word, self.body)


class Client:
    """Sends requests, each on a connection of its own."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self.url = url
        self.address = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        self._tls = tls

    def connect(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(*self.address, timeout=60, context=self._tls)
        return http.client.HTTPConnection(*self.address, timeout=60)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        connection = self.connect()
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path: str, accept: str = "*/*") -> Reply:
        return self.send("GET", path, headers={"Accept": accept})

    def post(self, path: str, value: object = None, content_type: str = V2) -> Reply:
        body = None if value is None else json.dumps(value).encode()
        return self.send("POST", path, body, {"Content-Type": content_type})

    def delete(self, path: str) -> Reply:
        return self.send("DELETE", path)

    def instance(self, group: str, **settings: object) -> str:
        """The path of a new consumer instance."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        reply = self.post(f"/consumers/{group}", {"auto.offset.reset": "earliest", **named})
        assert reply.status == 200, reply.body
        path: str = urlsplit(reply.json["base_uri"]).path
        return path


@contextmanager
def running_gateway(
    bootstrap_servers: str,
    limits: Limits | None = None,
    listen: Listen | None = None,
    client_tls: ssl.SSLContext | None = None,
    **consumer: str,
) -> Iterator[Client]:
    """A gateway on a free port for as long as the block lasts."""
    at = {"bootstrap.servers": bootstrap_servers}
    named = {name.replace("_", "."): value for name, value in consumer.items()}
    settings = ClientSettings(at, {**at, "linger.ms": "0"}, {**at, **named})
    place = listen or Listen(port=0)
    names = map(str, itertools.count(1))
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    ready = threading.Event()
    urls: list[str] = []
    failures: list[BaseException] = []

    async def serve() -> None:
        clock = SystemClock()
        gateway = open_gateway(settings, place, limits or Limits(), clock, names.__next__)
        async with gateway as url:
            urls.append(url)
            ready.set()
            await stop.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        except BaseException as error:
            failures.append(error)
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=run, name="gateway", daemon=True)
    thread.start()
    ready.wait(30)
    try:
        if urls:
            yield Client(urls[0], client_tls)
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        assert not thread.is_alive(), "the gateway does not stop"
    if failures:
        raise failures[0]


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()
