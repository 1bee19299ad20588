from __future__ import annotations

import pytest

from ottla.gateway.browser_guard import check_headers, is_loopback
from ottla.gateway.errors import HttpError


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost:8082"},
        {"host": "127.0.0.1:8082"},
        {"host": "[::1]:8082"},
        {"host": "10.0.0.5"},
        {"host": "gateway.internal:8082"},
        {},
        {"host": "localhost:8082", "origin": "http://localhost:8082"},
        {"host": "localhost:8082", "sec-fetch-site": "none"},
        {"host": "localhost:8082", "sec-fetch-site": "same-origin"},
    ],
)
def test_programs_and_pages_of_the_same_address_are_served(headers: dict[str, str]) -> None:
    check_headers(headers, {"gateway.internal"}, loopback=True)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8082"},
        {"host": "localhost.evil.example"},
        {"host": "[x"},
        {"host": "localhost:8082", "origin": "http://evil.example"},
        {"host": "localhost:8082", "origin": "null"},
        {"host": "localhost:8082", "sec-fetch-site": "cross-site"},
        {"host": "localhost:8082", "sec-fetch-site": "same-site"},
        {"host": "localhost:8082", "sec-fetch-site": ""},
    ],
)
def test_pages_of_other_sites_are_refused_on_loopback(headers: dict[str, str]) -> None:
    with pytest.raises(HttpError) as refused:
        check_headers(headers, {"gateway.internal"}, loopback=True)
    assert refused.value.status == 403


def test_elsewhere_any_name_will_do_and_origins_are_still_checked() -> None:
    check_headers({"host": "gateway.example"}, (), loopback=False)
    with pytest.raises(HttpError, match="web pages of other sites"):
        check_headers(
            {"host": "gateway.example", "origin": "http://evil.example"}, (), loopback=False
        )
    with pytest.raises(HttpError, match="web pages of other sites"):
        check_headers(
            {"host": "gateway.example", "sec-fetch-site": "cross-site"}, (), loopback=False
        )


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.5", False), ("gateway", False)],
)  # fmt: skip
def test_loopback_is_what_only_this_machine_reaches(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
