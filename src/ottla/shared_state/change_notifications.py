"""Nodes whose changes are announced by notification nodes, which all brokers watch.

Owns how several brokers write such a node concurrently, how notifications are watched, and how old
ones are deleted. Never interprets a node or a notification.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Final, NamedTuple

from ottla.delay.slices import PLAIN, SLICE, in_order, in_slices, parts_of, sliced
from ottla.store import paths
from ottla.store.nodes import ConfigChangeNode
from ottla.store.port import (
    BadVersion,
    Create,
    Delete,
    Node,
    NodeExists,
    NoNode,
    Op,
    Session,
    SessionExpired,
    Store,
    StoreUnavailable,
)

log = logging.getLogger(__name__)

STORE_RETRY_S: Final = 0.5


async def write_with_notification(
    store: Store, path: str, write: Callable[[Node | None], Op | None], notification: Op
) -> None:
    """Perform the operation `write` returns for the node, with `notification`; None: do nothing."""
    while True:
        op = write(await store.get(path))
        if op is None:
            return
        try:
            await store.multi([op, notification])
        except (BadVersion, NodeExists, NoNode) as conflict:
            if conflict.at > 0:
                raise  # the parent of the notification does not exist: a retry cannot help
            continue  # another broker changed the node: apply the change to the new value
        return


class Rewrite(NamedTuple):
    """A change of one node, and its notification."""

    path: str
    write: Callable[[Node | None], Op | None]
    notification: Op


async def rewrite_all(store: Store, rewrites: Sequence[Rewrite]) -> None:
    """Write several nodes at once, or one by one if another broker changes them meanwhile."""
    nodes = await store.get_many([rewrite.path for rewrite in rewrites])
    ops: list[Op] = []
    for rewrite, node in zip(rewrites, nodes, strict=True):
        op = rewrite.write(node)
        if op is not None:
            ops += [op, rewrite.notification]
    if not ops:
        return
    try:
        await store.multi(ops)
    except (BadVersion, NodeExists, NoNode):
        for path, write, notification in rewrites:
            await write_with_notification(store, path, write, notification)


class NotificationWatch:
    """The names of the notifications below one node, and one watch on them.

    The watch is lost when the session is suspended or expires. `on_change` is called after the next
    CONNECTED too, because notifications may have been written in between.
    """

    def __init__(self, store: Store, parent: str, on_change: Callable[[], None]) -> None:
        self._store = store
        self._parent = parent
        self._on_change = on_change
        self._connection = 0
        self._watched = False
        self._listening = False

    def listen(self) -> None:
        """Follow the state of the session from now on; once, however often this is called."""
        if not self._listening:
            self._listening = True
            self._store.on_session(self.on_session)

    async def read(self) -> list[str]:
        if self._watched:
            return await self._store.children(self._parent)
        connection = self._connection
        self._watched = True
        try:
            return await self._store.watch_children(
                self._parent, lambda _: self._on_fired(connection)
            )
        except BaseException:
            if connection == self._connection:
                self._watched = False  # or it would never be watched again
            raise

    def on_session(self, state: Session) -> None:
        """To be called whenever the state of the session changes."""
        if state in (Session.SUSPENDED, Session.EXPIRED):
            self._connection += 1
            self._watched = False
        elif state is Session.CONNECTED:
            self._on_change()

    def _on_fired(self, connection: int) -> None:
        if connection == self._connection:
            self._watched = False
            self._on_change()


class NumberedNotifications:
    """Notifications whose numbers tell which are new, and whether some were missed."""

    def __init__(self, store: Store, parent: str, prefix: str, retained: int) -> None:
        """`retained`: a broker that missed more changes than this reads everything again."""
        self._store = store
        self._parent = parent
        self._prefix = prefix
        self._retained = retained
        self._changed = asyncio.Event()
        self._watch = NotificationWatch(store, parent, self._changed.set)
        self._last_number = -1

    async def start(self) -> None:
        """Watch for new ones. The caller reads everything next; may be called again."""
        self._watch.listen()
        numbered = await self._numbered()
        if numbered:
            self._last_number, _ = numbered[-1]

    async def run(
        self,
        what: str,
        read_all: Callable[[], Awaitable[None]],
        read_changed: Callable[[Sequence[Node]], Awaitable[None]],
    ) -> None:
        """Until cancelled: read what new notifications announce, or all if some were missed.

        `what` is read is for the log.
        """

        async def read() -> None:
            numbered = await self._numbered()
            new = numbered[bisect_right(numbered, self._last_number, key=itemgetter(0)) :]
            if not new:
                return
            nodes = None
            if new[0][0] == self._last_number + 1:
                nodes = await self._nodes(new)
            if nodes is None:
                await read_all()
            else:
                await read_changed(nodes)
            self._last_number = new[-1][0]
            names = [name async for _, name in in_slices(numbered, PLAIN)]
            await delete_notifications(self._store, self._parent, names, self._retained)

        await read_on_change(self._changed, what, read)

    async def _numbered(self) -> list[tuple[int, str]]:
        """Those that have a number, with it; the oldest first."""
        names = await self._watch.read()
        numbered = [(self._number(name), name) async for name in in_slices(names, PLAIN)]
        return await in_order([each for each in numbered if each[0] >= 0])

    async def _nodes(self, numbered: Sequence[tuple[int, str]]) -> list[Node] | None:
        """None if another broker has deleted some of them meanwhile."""
        nodes: list[Node] = []
        async for some in in_slices(sliced(numbered), 1):
            for node in await self._store.get_many([f"{self._parent}/{name}" for _, name in some]):
                if node is None:
                    return None
                nodes.append(node)
        return nodes

    def _number(self, name: str) -> int:
        digits = name.removeprefix(self._prefix)
        return int(digits) if digits.isdigit() else -1


async def read_on_change(
    changed: asyncio.Event, what: str, read: Callable[[], Awaitable[None]]
) -> None:
    """Until cancelled: call `read` after each change, again while the store is unavailable."""
    while True:
        await changed.wait()
        changed.clear()
        try:
            await read()
        except (StoreUnavailable, SessionExpired) as error:
            log.warning("cannot read %s from the metadata store, retrying: %s", what, error)
            await asyncio.sleep(STORE_RETRY_S)
            changed.set()


async def delete_notifications(
    store: Store, parent: str, names: Sequence[str], retained: int
) -> None:
    """Delete the oldest notifications; `names` are sorted by age, the last ones are retained."""
    async for some in in_slices(parts_of(names[:-retained], SLICE), 1):
        old: list[Op] = [Delete(f"{parent}/{name}") for name in some]
        try:
            await store.multi(old)
        except NoNode:  # another broker deletes them too
            for op in old:
                with suppress(NoNode):
                    await store.multi([op])


def config_change_notification(entity: str) -> Op:
    """Tells every broker that the settings of this entity changed."""
    return Create(
        f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}",
        ConfigChangeNode(entity).encode(),
        sequential=True,
    )
