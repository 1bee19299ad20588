"""The keys that tokens are signed with, and the only addresses they are read from.

Owns: the check of an address against the allowed ones, a bounded read, and the keys in force. Never
follows a redirect, and never reads an address or a file that the settings do not allow word for
word. `load` blocks: it is for a thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from ottla.model.errors import UserError

READ_MAX_BYTES: Final = 1 << 20
TIMEOUT_S: Final = 10
KEYS_MAX: Final = 100
REASON_MAX: Final = 100
"""Characters of what a host says instead of an answer: it stands in the log."""
ALLOWED: Final = "sasl.oauthbearer.allowed.urls"


WebKey: TypeAlias = dict[str, Any]
"""A key in JSON (RFC 7517)."""


def check_address(setting: str, url: str, allowed: Sequence[str]) -> None:
    """UserError unless the address is https or a file, and one of the allowed ones."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "file"):
        raise UserError(f"{setting}={url}: expected an https: or file: address")
    if parts.scheme == "https" and not parts.hostname:
        raise UserError(f"{setting}={url}: expected a host name")
    if url not in allowed:
        raise UserError(f"{setting}={url}: not allowed; add it to {ALLOWED}")


def read_address(
    url: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """At most a megabyte from an address that was checked; OSError if it cannot be read."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        with Path(unquote(parts.path)).open("rb") as file:
            data = file.read(READ_MAX_BYTES + 1)
    else:
        data = _read_https(url, body, headers or {})
    if len(data) > READ_MAX_BYTES:
        raise OSError(f"{url}: more than {READ_MAX_BYTES} bytes")
    return data


def _read_https(url: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    import urllib.request  # 25 modules, which few brokers need: a tenth of the time of a start
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError

    class NoRedirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object, **__: object) -> None:
            return None

    opener = urllib.request.build_opener(NoRedirects)
    request = urllib.request.Request(url, data=body, headers=dict(headers))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as reply:
            data: bytes = reply.read(READ_MAX_BYTES + 1)
    except URLError as error:
        if isinstance(error, HTTPError):
            error.close()  # it is the reply, too
        raise OSError(f"{url}: {str(error.reason)[:REASON_MAX]}") from None
    except HTTPException as error:
        raise OSError(f"{url}: malformed HTTP: {type(error).__name__}") from None
    return data


class KeySet:
    """The keys of one address, by id. Empty until `load` has succeeded."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.keys: Mapping[str | None, WebKey] = {}

    def load(self) -> None:
        """Read and replace the keys; an OSError or a ValueError leaves them as they were."""
        try:
            content = json.loads(read_address(self.url))
        except RecursionError:
            raise ValueError(f"{self.url}: too deeply nested") from None
        entries = content.get("keys") if isinstance(content, dict) else None
        if not isinstance(entries, list) or not entries:
            raise ValueError(f"{self.url}: expected a JSON object with a list of keys")
        if len(entries) > KEYS_MAX:
            raise ValueError(f"{self.url}: more than {KEYS_MAX} keys")
        keys = {entry.get("kid"): entry for entry in entries if _is_for_signatures(entry)}
        if not keys:
            raise ValueError(f"{self.url}: no key for signatures")
        self.keys = keys


def _is_for_signatures(entry: object) -> bool:
    """Whether it is a key of that kind, with an id that is text or none."""
    return (
        isinstance(entry, dict)
        and entry.get("use", "sig") == "sig"
        and isinstance(entry.get("kid"), str | None)
    )
