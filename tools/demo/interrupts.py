"""Ctrl-C in the demo: the first closes the shop, the second ends everything at once.

Owns: what the two mean, and counting them. Needs no package.
"""

from __future__ import annotations

from threading import Event


class Interrupts:
    """`closing`: nothing more is sent, and what was sent is read to its end; `now`: nor that."""

    def __init__(self) -> None:
        self.closing = Event()
        self.now = Event()

    def add(self) -> None:
        (self.now if self.closing.is_set() else self.closing).set()
