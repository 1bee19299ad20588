"""SIGTERM as a good end of a command that reads for ever.

Owns: that a consumer leaves its group when it is told to stop, and how long that may take. Without
it the process would be gone at once, and its partitions would wait for the session timeout before
another member has them.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

from ottla.client.consumer.sync import Consumer

CLOSE_S: Final = 5.0
"""For leaving a group whose broker does not answer; the consumer's own default is 30 s."""


@contextmanager
def open_consumer(config: Mapping[str, object]) -> Iterator[Consumer[bytes, bytes]]:
    """A consumer that is closed within a few seconds, whether or not a broker answers."""
    with Consumer[bytes, bytes](config=config) as consumer:
        try:
            yield consumer
        finally:
            consumer.close(CLOSE_S)


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt while the block lasts, the first time; later ones are
    ignored, so that leaving is not cut short."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
