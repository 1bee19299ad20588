"""A schema registry over HTTP with the part of Confluent's API that clients use.

Subjects, versions, ids, references, compatibility by a rule of the test, Protobuf as descriptors
(clients send them so), logins and TLS. What it was asked is counted, so that tests can tell how
often.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import unquote, urlparse

ROUTES: list[tuple[str, re.Pattern[str], str]] = [
    ("GET", re.compile(r"/schemas/ids/(\d+)"), "schema_of_id"),
    ("GET", re.compile(r"/subjects/([^/]+)/versions/([^/]+)"), "version_of"),
    ("POST", re.compile(r"/subjects/([^/]+)/versions"), "register"),
]


class Refused(Exception):
    def __init__(self, status: int, code: int, text: str) -> None:
        super().__init__(text)
        self.status, self.code = status, code


class Stored(NamedTuple):
    schema: dict[str, Any]
    schema_id: int


class SchemaRegistry:
    """`with SchemaRegistry() as registry:` serves at `registry.url`."""

    def __init__(
        self,
        *,
        login: str | None = None,
        tls: ssl.SSLContext | None = None,
        allows: Callable[[str, dict[str, Any]], bool] = lambda subject, schema: True,
        port: int = 0,
    ) -> None:
        self.login = login
        self.asked: Counter[str] = Counter()
        self.failing = False
        self._allows = allows
        self._ids: dict[str, int] = {}
        self._schemas: dict[int, dict[str, Any]] = {}
        self._subjects: dict[str, list[Stored]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self._scheme == "http" else "localhost"
        return f"{self._scheme}://{host}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, subject: str, schema: str, kind: str = "AVRO", references: Any = ()) -> int:
        """Register a schema, as a producer would."""
        made = {"schema": schema, "schemaType": kind, "references": list(references)}
        return int(self.register(made, subject)["id"])

    def versions(self, subject: str) -> list[dict[str, Any]]:
        return [each.schema for each in self._subjects.get(subject, [])]

    def schema_of_id(self, body: Any, schema_id: str) -> dict[str, Any]:
        self.asked[f"id {schema_id}"] += 1
        if int(schema_id) not in self._schemas:
            raise Refused(404, 40403, "Schema not found")
        return self._schemas[int(schema_id)]

    def version_of(self, body: Any, subject: str, version: str) -> dict[str, Any]:
        self.asked[f"{subject} {version}"] += 1
        stored = self._subjects.get(subject)
        if not stored:
            raise Refused(404, 40401, f"Subject '{subject}' not found.")
        number = len(stored) if version == "latest" else int(version)
        if not 1 <= number <= len(stored):
            raise Refused(404, 40402, f"Version {version} not found.")
        found = stored[number - 1]
        return {**found.schema, "subject": subject, "version": number, "id": found.schema_id}

    def register(self, body: Any, subject: str) -> dict[str, Any]:
        self.asked[f"register {subject}"] += 1
        schema = {
            "schema": body["schema"],
            "schemaType": body.get("schemaType", "AVRO"),
            "references": body.get("references") or [],
        }
        text = json.dumps(schema, sort_keys=True)
        stored = self._subjects.setdefault(subject, [])
        known = self._ids.get(text)
        if any(each.schema_id == known for each in stored):
            return {"id": known}
        if not self._allows(subject, schema):
            raise Refused(409, 409, f"Schema being registered is incompatible with {subject}")
        schema_id = self._ids.setdefault(text, len(self._ids) + 1)
        self._schemas[schema_id] = schema
        stored.append(Stored(schema, schema_id))
        return {"id": schema_id}

    def answer(self, method: str, path: str, body: Any, login: str | None) -> dict[str, Any]:
        if self.failing:
            raise Refused(503, 50301, "the registry is starting")
        if self.login is not None and login != self.login:
            raise Refused(401, 401, "Unauthorized")
        for verb, pattern, name in ROUTES:
            match = pattern.fullmatch(urlparse(path).path)
            if match is not None and verb == method:
                answer: dict[str, Any] = getattr(self, name)(body, *map(unquote, match.groups()))
                return answer
        raise Refused(404, 404, f"no such path: {path}")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._reply("GET", None)

            def do_POST(self) -> None:
                self._reply(
                    "POST", json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                )

            def _reply(self, method: str, body: Any) -> None:
                try:
                    status, answer = 200, registry.answer(method, self.path, body, self._login())
                except Refused as refused:
                    status = refused.status
                    answer = {"error_code": refused.code, "message": str(refused)}
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _login(self) -> str | None:
                given = self.headers.get("Authorization", "")
                if not given.startswith("Basic "):
                    return None
                return base64.b64decode(given.removeprefix("Basic ")).decode()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: a test's output is its own."""

        return Handler
