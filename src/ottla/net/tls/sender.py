"""Encryption of what is sent.

Owns: the ciphertext that the socket has not taken yet, never more than one slice of it: plaintext
is encrypted when the slice before it has left, so a peer that does not read costs no more memory.
Never: decides what is sent when; `ReplyWriter` does, through the same interface as in plaintext.

Bytes count as taken only after their ciphertext has left: limits on unsent bytes hold as without
TLS. Records in files are read and encrypted, a slice at a time. The slice grows to
`SLICE_MAX_BYTES` while the peer keeps up and shrinks while it does not.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from ottla.net.reply_writer import FILE_TOO_SHORT, Transport
from ottla.net.request_slot import Bytes, FileSlice

SLICE_MIN_BYTES: Final = 64 << 10
SLICE_FIRST_BYTES: Final = 128 << 10
SLICE_MAX_BYTES: Final = 1 << 20
JOIN_MAX_BYTES: Final = 64 << 10


class TlsSender:
    """A `Transport` that encrypts, over another that sends."""

    __slots__ = (
        "_callback",
        "_ciphertext",
        "_closed",
        "_encrypted",
        "_lower",
        "_outgoing",
        "_slice_bytes",
        "_tls",
        "_transport",
    )  # fmt: skip

    def __init__(
        self, outgoing: ssl.MemoryBIO, lower: Transport, transport: asyncio.Transport
    ) -> None:
        self._tls: ssl.SSLObject | None = None  # until the handshake begins
        self._outgoing = outgoing
        self._lower = lower
        self._transport = transport
        self._ciphertext = memoryview(b"")  # ciphertext that waits for the socket
        self._encrypted = 0  # bytes of plaintext in it that were not reported as taken
        self._slice_bytes = SLICE_FIRST_BYTES
        self._callback: Callable[[], None] | None = None
        self._closed = False

    def begin(self, tls: ssl.SSLObject) -> None:
        """Encrypt with this session."""
        self._tls = tls

    @property
    def held_bytes(self) -> int:
        return len(self._ciphertext)

    def write(self, data: Bytes) -> int:
        return self.write_all((data,), more=False)

    def write_all(self, buffers: Sequence[Bytes], *, more: bool) -> int:
        taken = self._settle()
        if taken is not None:
            return taken
        left = self._slice_bytes
        run: list[Bytes] = []
        for buffer in buffers:
            piece = buffer if len(buffer) <= left else memoryview(buffer)[:left]
            run.append(piece)
            left -= len(piece)
            if not left:
                break
        return self._encrypt(_joined(run))

    def send_file(self, slice_: FileSlice, position: int, limit: int) -> int:
        taken = self._settle()
        if taken is not None:
            return taken
        count = min(slice_.size - position, limit, self._slice_bytes)
        data = os.pread(slice_.fileno(), count, slice_.position + position)
        if not data:
            raise OSError(FILE_TOO_SHORT)
        return self._encrypt((data,))

    def call_when_writable(self, callback: Callable[[], None] | None) -> None:
        self._callback = callback
        self._watch()

    def flush(self) -> None:
        """Send what the TLS layer itself has to say: handshakes, key updates, alerts."""
        if self._outgoing.pending and not self._closed:
            self._ciphertext = memoryview(bytes(self._ciphertext) + self._outgoing.read())
            self._push()
            self._watch()

    def close(self) -> None:
        """What is encrypted already still leaves, and a notice that nothing follows."""
        if self._closed:
            return
        self._closed = True
        self._callback = None
        if self._tls is not None:
            with suppress(ssl.SSLError, ValueError):
                self._tls.unwrap()
        rest = bytes(self._ciphertext) + self._outgoing.read()
        self._ciphertext = memoryview(b"")
        self._lower.close()
        if rest and not self._transport.is_closing():
            self._transport.write(rest)

    def _settle(self) -> int | None:
        """Send what is held. How much plaintext has left with it; None: go on with more."""
        if self._closed:
            return 0
        if self._ciphertext:
            self._push()
            if self._ciphertext:
                return 0
        if self._encrypted:
            taken, self._encrypted = self._encrypted, 0
            return taken
        return None

    def _encrypt(self, run: Sequence[Bytes]) -> int:
        size, tls = 0, self._tls
        assert tls is not None, "nothing is sent before the handshake"
        try:
            for data in run:
                size += tls.write(data)
        except ssl.SSLError as error:
            raise ConnectionError(f"cannot encrypt: {error.reason}") from None
        self._ciphertext = memoryview(self._outgoing.read())
        self._push()
        if not self._ciphertext:
            if size == self._slice_bytes:
                self._slice_bytes = min(2 * size, SLICE_MAX_BYTES)
            return size
        self._slice_bytes = max(self._slice_bytes // 2, SLICE_MIN_BYTES)
        self._encrypted = size
        return 0

    def _push(self) -> None:
        while self._ciphertext:
            taken = self._lower.write(self._ciphertext)
            if not taken:
                return
            self._ciphertext = self._ciphertext[taken:]

    def _watch(self) -> None:
        wanted = bool(self._ciphertext) or self._callback is not None
        self._lower.call_when_writable(self._on_writable if wanted else None)

    def _on_writable(self) -> None:
        callback = self._callback
        if callback is None:
            with suppress(OSError):  # the loop sees the same error and ends the connection
                self._push()
            self._watch()
        else:
            callback()


def _joined(run: Sequence[Bytes]) -> Sequence[Bytes]:
    """Small parts become one: each would be a record of its own."""
    if len(run) < 2 or len(run[-1]) >= JOIN_MAX_BYTES:
        return run
    return (b"".join(run),)
