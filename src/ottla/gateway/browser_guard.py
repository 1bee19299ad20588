"""Keeps web pages away from a gateway that has no login. Pure.

Owns: what the headers Origin and Host must be. Never: authenticates anybody.

A browser on this machine reaches loopback addresses, and runs what any page contains. Four things
stop a page of another site: what it sends has its Origin, which is refused here; JSON bodies need
a permission (a preflight) that is never given; and a name that its owner points at 127.0.0.1
arrives in Host, where a gateway on loopback accepts localhost, addresses, and the names given to
it. What a page fetches by an image, a script or a link has no Origin, and a read moves a consumer
instance on: browsers say in Sec-Fetch-Site that it is of another site.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from ottla.gateway.errors import HttpError

NOT_OF_A_PAGE: Final = "none"
"""Typed by the user, or a bookmark; programs send no such header."""
SAME_ORIGIN: Final = "same-origin"


def check_headers(
    headers: Mapping[str, str], allowed_hosts: Collection[str], *, loopback: bool
) -> None:
    """Refuse requests that a page of another site makes."""
    host = headers.get("host", "")
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise HttpError(403, f"Origin {origin!r}: requests from web pages of other sites")
    site = headers.get("sec-fetch-site", NOT_OF_A_PAGE)
    if site not in (NOT_OF_A_PAGE, SAME_ORIGIN):
        raise HttpError(403, f"Sec-Fetch-Site {site!r}: requests from web pages of other sites")
    name = host_name(host)
    if loopback and not is_local_name(name) and name not in allowed_hosts:
        raise HttpError(
            403, f"Host {host!r}: expected localhost, an address, or a name given with --host-name"
        )


def host_name(host: str) -> str:
    """The name in a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return host  # not a name at all


def is_local_name(name: str) -> bool:
    """Whether no owner of a name can have chosen it: an address, or localhost.

    A request of HTTP/1.0 may have no name at all; browsers always send one.
    """
    return name in ("", "localhost") or name.endswith(".localhost") or is_address(name)


def is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach this address."""
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)
