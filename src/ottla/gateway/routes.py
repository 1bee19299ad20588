"""Finds what a method and a path ask for. Pure.

Owns: matching paths against patterns such as `/topics/{topic}`. Never: knows the API's paths; the
table is in `dispatch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from ottla.gateway.errors import HttpError, invalid
from ottla.gateway.json_fields import INT32_MAX

HandlerT = TypeVar("HandlerT")


class Route(NamedTuple, Generic[HandlerT]):
    """A method, a pattern of paths, and what handles them."""

    method: str
    pattern: str
    handler: HandlerT


class Match(NamedTuple, Generic[HandlerT]):
    """The handler of a request, and the parts of its path by name."""

    handler: HandlerT
    names: PathNames


class PathNames:
    """The parts of a path that a pattern names."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        return self._values[name]

    def integer(self, name: str) -> int:
        """A part that is the number of a partition."""
        text = self._values[name]
        if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) > INT32_MAX:
            raise invalid(f"{name} in the path", f"an integer from 0 to {INT32_MAX}, not {text!r}")
        return int(text)


def find_route(
    routes: Iterable[Route[HandlerT]], method: str, segments: Sequence[str]
) -> Match[HandlerT]:
    """The route of a request; refused with 404 or, if only the method is wrong, with 405."""
    methods: list[str] = []
    for route in routes:
        values = _names_in(route.pattern, segments)
        if values is not None and route.method == method:
            return Match(route.handler, PathNames(values))
        if values is not None:
            methods.append(route.method)
    path = "/" + "/".join(segments)
    if methods:
        raise HttpError(405, f"{method} {path}: expected {' or '.join(methods)}")
    raise HttpError(404, f"{path}: no such path")


def _names_in(pattern: str, segments: Sequence[str]) -> Mapping[str, str] | None:
    parts = pattern.strip("/").split("/") if pattern != "/" else []
    if len(parts) != len(segments):
        return None
    values: dict[str, str] = {}
    for part, segment in zip(parts, segments, strict=True):
        if part.startswith("{"):
            values[part.strip("{}")] = segment
        elif part != segment:
            return None
    return values
