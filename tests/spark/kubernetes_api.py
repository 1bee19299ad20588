"""What a Spark driver asks of Kubernetes: an API server that says yes, and remembers.

    with KubernetesApi() as api:
        ... a session with master k8s://{api.url} ...
        api.asked     ("create", "pods"), ("list", "pods"), …

Verbs are those of roles. Nothing is started: executors that are asked for stay pending.
"""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlparse

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
OF_NAMED = {"GET": "get", "DELETE": "delete"}
OF_ALL = {"GET": "list", "DELETE": "deletecollection"}


def verb_of(method: str, path: str) -> tuple[str, str]:
    """The verb and the resource that a role must allow, of /api/v1/namespaces/NAME/pods/…"""
    url = urlparse(path)
    resource, *name = url.path.split("/namespaces/")[-1].split("/")[1:]
    if parse_qs(url.query).get("watch") == ["true"]:
        return "watch", resource
    return VERBS.get(method) or (OF_NAMED if name else OF_ALL)[method], resource


class KubernetesApi:
    def __init__(self) -> None:
        self.asked: set[tuple[str, str]] = set()
        self.created: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

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

    def wait_for_pods(self, count: int, deadline_s: float) -> None:
        """Until so many were asked for."""
        until = time.monotonic() + deadline_s
        while sum(made["kind"] == "Pod" for made in self.created) < count:
            assert time.monotonic() < until, f"asked for {self.asked}"
            time.sleep(0.1)

    def answer(self, method: str, path: str, body: bytes) -> dict[str, Any]:
        verb, resource = verb_of(method, path)
        self.asked.add((verb, resource))
        if verb == "create":
            made: dict[str, Any] = json.loads(body)
            made["metadata"]["uid"] = f"uid-{len(self.created)}"
            self.created.append(made)
            return made
        if verb == "get":
            name = urlparse(path).path.rsplit("/", 1)[-1]
            metadata = {"name": name, "uid": f"uid-{name}", "namespace": "pipelines"}
            return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        if verb == "list":
            kind = {"pods": "PodList", "configmaps": "ConfigMapList"}.get(resource, "List")
            metadata = {"resourceVersion": "1"}
            return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "items": []}
        return {"apiVersion": "v1", "kind": "Status", "status": "Success"}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _reply(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                answer = json.dumps(api.answer(self.command, self.path, body)).encode()
                if verb_of(self.command, self.path)[0] == "watch":
                    answer = b""  # nothing has changed; it is asked again
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _reply

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: a test's output is its own."""

        return Handler
