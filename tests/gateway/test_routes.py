from __future__ import annotations

import pytest

from ottla.gateway.dispatch import ROUTES
from ottla.gateway.errors import HttpError
from ottla.gateway.http_messages import request_of
from ottla.gateway.routes import PathNames, Route, find_route

TABLE = (
    Route("GET", "/", "root"),
    Route("GET", "/topics/{topic}", "show"),
    Route("POST", "/topics/{topic}", "produce"),
)


def test_a_path_is_found_with_its_names() -> None:
    found = find_route(TABLE, "POST", ("topics", "a b"))
    assert found.handler == "produce"
    assert found.names.text("topic") == "a b"
    assert find_route(TABLE, "GET", ()).handler == "root"


def test_an_unknown_path_is_not_an_unknown_method() -> None:
    with pytest.raises(HttpError, match="/topic/a: no such path") as refused:
        find_route(TABLE, "GET", ("topic", "a"))
    assert refused.value.code == 404
    with pytest.raises(HttpError, match="expected GET or POST") as refused:
        find_route(TABLE, "PUT", ("topics", "a"))
    assert refused.value.code == 405


def test_a_slash_that_is_quoted_belongs_to_the_name() -> None:
    request = request_of("GET", "/consumers/a%2Fb/?timeout=1&x=%C3%A9", {}, b"")
    assert request.segments == ("consumers", "a/b")
    assert request.query == {"timeout": "1", "x": "é"}


@pytest.mark.parametrize("target", ["*", "topics", "/%ff", "/?" + "a=b&" * 30, "http://[x/"])
def test_a_target_that_is_no_path_is_refused(target: str) -> None:
    with pytest.raises(HttpError, match="request target"):
        request_of("GET", target, {}, b"")


@pytest.mark.parametrize("text", ["-1", "x", "", "²", "2147483648", "1" * 5_000])
def test_a_partition_in_a_path_is_a_number(text: str) -> None:
    with pytest.raises(HttpError, match="partition in the path"):
        PathNames({"partition": text}).integer("partition")


def test_no_two_handlers_have_the_same_path() -> None:
    assert len({(route.method, route.pattern) for route in ROUTES}) == len(ROUTES)
