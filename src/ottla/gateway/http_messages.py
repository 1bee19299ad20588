"""One request and one reply as values, without sockets. Pure.

Owns: splitting a request's target, and JSON bodies both ways. Never: knows a path of the API.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple, NoReturn
from urllib.parse import parse_qsl, unquote, urlsplit

from ottla.gateway.errors import HttpError
from ottla.gateway.media_types import JSON, error_type

MAX_QUERY_FIELDS: Final = 20
SEPARATORS: Final = (b",", b"[", b"{")
MAX_SEPARATORS: Final = 1_000_000


class Request(NamedTuple):
    """One request with its whole body; names of headers are in lower case."""

    method: str
    segments: tuple[str, ...]
    """The parts of the path between slashes, unquoted."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        return "/" + "/".join(self.segments)


class Response(NamedTuple):
    """A reply; without a content type it has no body."""

    status: int
    body: bytes = b""
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = ()


NO_CONTENT: Final = Response(204)


def request_of(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Request:
    """A request from what HTTP has of it; a target that is no path is refused."""
    try:
        parts = urlsplit(target)
        path = unquote(parts.path, errors="strict")
        query = dict(parse_qsl(parts.query, errors="strict", max_num_fields=MAX_QUERY_FIELDS))
    except ValueError as error:
        raise HttpError(400, f"request target {target[:80]!r}: {error}") from None
    if not path.startswith("/"):
        raise HttpError(400, f"request target {target[:80]!r}: expected a path such as /topics")
    raw_segments = parts.path.strip("/").split("/")
    segments = tuple(unquote(segment) for segment in raw_segments if segment)
    return Request(method, segments, query, headers, body)


def json_reply(value: object, content_type: str, status: int = 200) -> Response:
    return Response(status, dump_json(value), content_type)


def error_reply(error: HttpError, accept: str | None = None) -> Response:
    """The error body that clients of the API know."""
    value = {"error_code": error.code, "message": error.message}
    headers: tuple[tuple[str, str], ...] = ()
    if error.retry_after_s is not None:
        headers = (("Retry-After", str(error.retry_after_s)),)
    content_type = JSON if accept is None else error_type(accept)
    return Response(error.status, dump_json(value), content_type, headers)


def dump_json(value: object) -> bytes:
    """JSON in UTF-8, without spaces; NaN and lone surrogates are a ValueError."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def parse_json(body: bytes) -> object:
    """The JSON value of a body, as RFC 8259 has it; anything else is refused.

    Counting first takes a millisecond; parsing millions of empty arrays would stop the process for
    seconds, on whatever thread, and take 20 times the memory of their text.
    """
    if sum(map(body.count, SEPARATORS)) > MAX_SEPARATORS:
        text = f"request body: expected at most {MAX_SEPARATORS:,} commas, brackets and braces"
        raise HttpError(413, text)
    try:
        value: object = json.loads(body, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise HttpError(400, f"request body: not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise HttpError(400, "request body: arrays and objects are nested too deeply") from None
    except ValueError as error:
        raise HttpError(400, f"request body: not JSON: {error}") from None
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
