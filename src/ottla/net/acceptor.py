"""Accepts connections from one listening socket, a few in each pass of the event loop.

Owns: a descriptor of the listening socket, and the sockets it has accepted until each is a
connection. Never: reads or writes on one.

The loops' own servers accept all that wait in one pass, and uvloop those that come meanwhile as
well: who opens connections fast enough would hold up everybody else's requests.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from typing import Final

log = logging.getLogger(__name__)

ACCEPTS_PER_PASS: Final = 4
"""Each costs about a tenth of a millisecond."""
RETRY_S: Final = 1.0
_OF_CLIENTS: Final = frozenset({
    errno.ECONNABORTED, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH,
    errno.ENONET, errno.ENOPROTOOPT, errno.EOPNOTSUPP, errno.EPERM, errno.EPROTO,
})  # fmt: skip
"""Linux reports what happened to a connection that waited: the next one may be fine."""


class Acceptor:
    """Makes connections of what comes to a socket that is bound already."""

    def __init__(
        self,
        descriptor: int,
        make: Callable[[], asyncio.BaseProtocol],
        prepare: Callable[[socket.socket], None],
    ) -> None:
        """`descriptor` stays the caller's; `make` makes the protocol of each connection,
        `prepare` sets the options of its socket."""
        self._listening = socket.socket(fileno=os.dup(descriptor))
        self._listening.setblocking(False)
        self._make = make
        self._prepare = prepare
        self._becoming: set[asyncio.Task[object]] = set()
        self._retry: asyncio.TimerHandle | None = None

    def start(self, backlog: int) -> None:
        """Listen, and accept from now on."""
        self._listening.listen(backlog)
        self._watch()

    async def stop(self) -> None:
        """Accept nothing more; what was accepted has become connections afterwards."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        asyncio.get_running_loop().remove_reader(self._listening)
        self._listening.close()
        if self._becoming:
            await asyncio.wait(self._becoming)

    def _watch(self) -> None:
        self._retry = None
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(ACCEPTS_PER_PASS):
            try:
                accepted, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _OF_CLIENTS:
                    continue
                log.error("cannot accept connections for %g s: %s", RETRY_S, error.strerror)
                loop.remove_reader(self._listening)
                self._retry = loop.call_later(RETRY_S, self._watch)
                return
            accepted.setblocking(False)
            becoming = loop.create_task(self._connect(accepted))
            self._becoming.add(becoming)
            becoming.add_done_callback(self._becoming.discard)

    async def _connect(self, accepted: socket.socket) -> None:
        try:
            self._prepare(accepted)
            await asyncio.get_running_loop().connect_accepted_socket(self._make, accepted)
        except OSError:  # the client is gone already
            accepted.close()
