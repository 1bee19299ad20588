"""Rate-limited log lines about peers.

Owns: how many lines were written and suppressed in the current interval.
Never: lets a peer control the content or the size of the log.
"""

from __future__ import annotations

import logging
from typing import Final

from ottla.model.clock import Clock, MonoMs
from ottla.model.text import printable
from ottla.net.request_slot import Peer

HTTP: Final = (b"GET ", b"POST", b"HEAD", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI ")
TLS_HANDSHAKE: Final = b"\x16\x03"
LONGEST: Final = 200


def hint(first: bytes) -> str:
    """Advice for the operator who reads the log; empty when nothing is recognised."""
    if first.startswith(HTTP):
        return (
            "this looks like HTTP: this port serves the Kafka protocol, metrics have their own port"
        )
    if first.startswith(TLS_HANDSHAKE):
        return "this looks like a TLS handshake: this listener uses PLAINTEXT, not SSL"
    if first.startswith(b"SSH-"):
        return "this looks like SSH: this port serves the Kafka protocol"
    return ""


def escaped(text: str, longest: int = LONGEST) -> str:
    """`text` from a peer, safe to show: one line, printable, of bounded length."""
    short = text if len(text) <= longest else text[:longest] + "..."
    return printable(short)


log = logging.getLogger(__name__)

WINDOW_MS: Final = 10_000
WAITING_EVERY_MS: Final = 60_000
LINES_PER_WINDOW: Final = 10


class PeerErrorLog:
    """One line for each connection closed for a fault of its peer, until there are too many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._window = -1
        self._written = 0
        self._suppressed = 0
        self._waiting_ms: MonoMs | None = None  # when it was last logged

    def waiting(self, listener: str, reason: str) -> None:
        """Log that new connections wait, and why; once a minute at most."""
        now_ms = self._clock.mono_ms()
        if self._waiting_ms is None or now_ms - self._waiting_ms >= WAITING_EVERY_MS:
            self._waiting_ms = now_ms
            log.warning("new connections on listener %s wait: %s", listener, reason)

    def closed(self, peer: Peer, reason: str) -> None:
        """Log that the connection of `peer` was closed, and why."""
        window = self._clock.mono_ms() // WINDOW_MS
        if window != self._window:
            if self._suppressed:
                log.warning(
                    "closed %d more connections because of peer errors; log lines suppressed",
                    self._suppressed,
                )
            self._window, self._written, self._suppressed = window, 0, 0
        if self._written >= LINES_PER_WINDOW:
            self._suppressed += 1
            return
        self._written += 1
        log.warning(
            "closed connection from %s on listener %s: %s",
            escaped(str(peer)),
            escaped(peer.listener),
            escaped(reason, 500),
        )
