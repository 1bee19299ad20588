"""What the first bytes of a peer that does not speak Kafka's protocol give away.

Owns: the guesses and the advice that goes into the log line.
Never: decides to close; the size that these bytes would mean already did.
"""

from __future__ import annotations

from typing import Final

HTTP: Final = (b"GET ", b"POST", b"HEAD", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI ")
TLS_HANDSHAKE: Final = b"\x16\x03"
LONGEST: Final = 200


def hint(first: bytes) -> str:
    """Advice for the operator who reads the log; empty when nothing is recognised."""
    if first.startswith(HTTP):
        return "this looks like HTTP: the port speaks Kafka's protocol, metrics have their own port"
    if first.startswith(TLS_HANDSHAKE):
        return "this looks like a TLS hello: the listener is not encrypted, or the wrong port"
    if first.startswith(b"SSH-"):
        return "this looks like SSH"
    return ""


def escaped(text: str, longest: int = LONGEST) -> str:
    """`text` from a peer, safe to show: one line, printable, of bounded length."""
    shown = text if len(text) <= longest else text[:longest] + "..."
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
