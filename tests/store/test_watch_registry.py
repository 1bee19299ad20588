from __future__ import annotations

from ottla.store.port import Watch
from ottla.store.watch_registry import WatchRegistry


def test_each_watch_fires_once_in_the_order_of_the_changes() -> None:
    watches, fired = WatchRegistry(), list[str]()
    for path in ("/a", "/b"):
        watches.on_data(path, lambda p: fired.append(f"data {p}"))
    watches.on_children("/a", lambda p: fired.append(f"children {p}"))

    def soon(watch: Watch, path: str) -> None:
        watch(path)

    watches.fire(["/b", "/a", "/b"], ["/a", "/other"], soon)
    watches.fire(["/a", "/b"], ["/a"], soon)
    assert fired == ["data /b", "data /a", "children /a"]


def test_forgotten_watches_never_fire() -> None:
    watches, fired = WatchRegistry(), list[str]()
    watches.on_data("/a", fired.append)
    watches.on_children("/a", fired.append)
    watches.clear()
    watches.fire(["/a"], ["/a"], lambda watch, path: watch(path))
    assert fired == []
