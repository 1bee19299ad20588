"""The one-shot watches of one session.

Owns: which watches wait for which path. Never detects changes; the store passes the changed paths,
and each watch is handed to `schedule`, which calls it on the event loop after the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from ottla.store.port import Watch

Schedule: TypeAlias = Callable[[Watch, str], object]


class WatchRegistry:
    def __init__(self) -> None:
        self._data: dict[str, list[Watch]] = {}
        self._children: dict[str, list[Watch]] = {}

    def on_data(self, path: str, watch: Watch) -> None:
        self._data.setdefault(path, []).append(watch)

    def on_children(self, path: str, watch: Watch) -> None:
        self._children.setdefault(path, []).append(watch)

    def fire(self, changed: Iterable[str], reparented: Iterable[str], schedule: Schedule) -> None:
        """Each watch fires once, in the order in which the paths were touched."""
        for path in changed:
            for watch in self._data.pop(path, ()):
                schedule(watch, path)
        for path in reparented:
            for watch in self._children.pop(path, ()):
                schedule(watch, path)

    def clear(self) -> None:
        self._data.clear()
        self._children.clear()
