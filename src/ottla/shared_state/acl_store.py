"""Access rules kept in the store: written by whoever is asked, heard by every broker.

Owns the nodes of Kafka's ACLs and the notes of changes beside them: literal names below
`/kafka-acl`, prefixes below `/kafka-acl-extended`. A broker reads all rules before it serves
anybody, and again whenever a note appears; what it changed itself holds at once. Never decides by a
rule: the authorizer does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from ottla.delay.slices import in_slices, sliced
from ottla.security.acl import Filter, Kind, Operation, Pattern, Permission, Rule, Rules
from ottla.security.authorizer import Authorizer
from ottla.shared_state.change_notifications import Rewrite, delete_notifications, rewrite_all
from ottla.store import paths
from ottla.store.acl_nodes import AclChangeNode, AclNode, RuleText
from ottla.store.nodes import BadNode
from ottla.store.port import (
    Create,
    Delete,
    Node,
    NodeExists,
    Op,
    Session,
    SessionExpired,
    Set,
    Store,
    StoreUnavailable,
)

log = logging.getLogger(__name__)

NOTES_KEPT: Final = 100
STORE_RETRY_S: Final = 0.5

PLACES_AT_ONCE: Final = 50
"""Nodes that are written at a time."""
FILTERS_AT_ONCE: Final = 5
"""Filters between two turns of the loop: each may look at every rule."""

Place = tuple[Kind, str, Pattern]
"""What the rules of one node are about."""
Change: TypeAlias = Callable[[frozenset[Rule], frozenset[Rule]], frozenset[Rule]]
"""What becomes of the rules that are kept, for those that are asked about."""


def _spelled(word: Kind | Operation | Permission) -> str:
    """TRANSACTIONAL_ID as Kafka's nodes spell it: TransactionalId."""
    return word.name.title().replace("_", "")


KINDS: Final = {_spelled(kind): kind for kind in Kind if kind > Kind.ANY}
OPERATIONS: Final = {_spelled(one): one for one in Operation if one > Operation.ANY}
PERMISSIONS: Final = {_spelled(one): one for one in Permission if one > Permission.ANY}
_ROOTS: Final = {Pattern.LITERAL: paths.ACLS, Pattern.PREFIXED: paths.ACLS_PREFIXED}
_NOTES: Final = {Pattern.LITERAL: paths.ACL_CHANGES, Pattern.PREFIXED: paths.ACL_CHANGES_PREFIXED}


class AclStore:
    """For a broker without an authorizer it does nothing, and its store has none of these nodes."""

    def __init__(self, store: Store, authorizer: Authorizer) -> None:
        self._store = store
        self._authorizer = authorizer
        self._changed = asyncio.Event()
        self._reading = asyncio.Lock()
        self._watched: set[str] = set()
        self._writers = 0

    async def load(self) -> None:
        """All rules. Watched first, so that no change is missed."""
        if not self._authorizer.in_force:
            return
        self._store.on_session(self._session_changed)
        await self._lay_ground()
        await self._read()

    async def run(self) -> None:
        """Hear of changes until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._writers:
                continue  # whoever writes says so again when that is done
            try:
                await self._read()
            except (StoreUnavailable, SessionExpired) as gone:
                self._watched.clear()
                log.warning("access rules cannot be read: %s", gone)
                await asyncio.sleep(STORE_RETRY_S)
                self._changed.set()

    async def add(self, rules: Iterable[Rule]) -> None:
        """Keep these rules as well; they hold here when this returns."""
        await self._change_all(_by_place(rules), frozenset.union)
        await self._read()

    async def remove(self, filters: Sequence[Filter]) -> list[list[Rule]]:
        """Drop what each filter accepts, and say what that was."""
        await self._read()
        rules = self._authorizer.rules or Rules()
        removed = [rules.matching(one) async for one in in_slices(filters, FILTERS_AT_ONCE)]
        gone = {rule for some in removed for rule in some}
        await self._change_all(_by_place(gone), frozenset.difference)
        await self._read()
        return removed

    async def _change_all(self, places: Mapping[Place, frozenset[Rule]], change: Change) -> None:
        """Many places share a write. What this broker writes it reads once, at the end."""
        self._writers += 1
        try:
            for some in sliced(list(places.items()), PLACES_AT_ONCE):
                rewrites = [
                    Rewrite(_path(place), partial(_changed, place, change, rules), _note(place))
                    for place, rules in some
                ]
                await rewrite_all(self._store, rewrites)
                await asyncio.sleep(0)
        finally:
            self._writers -= 1
            self._changed.set()

    async def _lay_ground(self) -> None:
        kinds = [f"{root}/{kind}" for root in _ROOTS.values() for kind in KINDS]
        parents = dict.fromkeys(parent for path in kinds for parent in paths.ancestors(path))
        for path in [*parents, *kinds, *_NOTES.values()]:
            if await self._store.get(path) is None:
                try:
                    await self._store.create(path)
                except NodeExists:
                    continue  # another broker came first

    async def _read(self) -> None:
        async with self._reading:  # or an older reading might come to hold after a newer one
            notes = [await self._notes(path) for path in _NOTES.values()]
            places = [
                (kind, paths.plain(name), pattern)
                for pattern, root in _ROOTS.items()
                for spelled, kind in KINDS.items()
                for name in await self._store.children(f"{root}/{spelled}")
            ]
            found: list[Rule] = []
            for some in sliced(places):
                await asyncio.sleep(0)
                nodes = await self._store.get_many([_path(place) for place in some])
                for place, node in zip(some, nodes, strict=True):
                    found += _rules(place, node)
            rules = Rules(found)
            await asyncio.sleep(0)
            if self._authorizer.rules is None or rules.all != self._authorizer.rules.all:
                self._authorizer.follow(rules)
        for path, names in zip(_NOTES.values(), notes, strict=True):
            await delete_notifications(self._store, path, sorted(names), NOTES_KEPT)

    async def _notes(self, path: str) -> list[str]:
        if path in self._watched:
            return await self._store.children(path)
        self._watched.add(path)
        try:
            return await self._store.watch_children(path, self._told)
        except (StoreUnavailable, SessionExpired):
            self._watched.discard(path)  # or nobody would ever watch it
            raise

    def _told(self, path: str) -> None:
        self._watched.discard(path)
        self._changed.set()

    def _session_changed(self, state: Session) -> None:
        if state is Session.EXPIRED:
            self._watched.clear()  # the watches went with their session
        elif state is Session.CONNECTED:
            self._changed.set()


def _changed(place: Place, change: Change, some: frozenset[Rule], node: Node | None) -> Op | None:
    """What must be written to the node of a place; None if it says so already."""
    kept = frozenset(_rules(place, node))
    wanted = change(kept, some)
    return None if wanted == kept else _write(_path(place), node, wanted)


def _by_place(rules: Iterable[Rule]) -> dict[Place, frozenset[Rule]]:
    places: dict[Place, frozenset[Rule]] = {}
    for rule in rules:
        place = (rule.kind, rule.name, rule.pattern)
        places[place] = places.get(place, frozenset()) | {rule}
    return places


def _path(place: Place) -> str:
    kind, name, pattern = place
    return f"{_ROOTS[pattern]}/{_spelled(kind)}/{paths.quoted(name)}"


def _write(path: str, node: Node | None, wanted: frozenset[Rule]) -> Op:
    if not wanted:
        assert node is not None, "nothing was kept, and nothing is wanted"
        return Delete(path, node.version)
    texts = [
        RuleText(rule.principal, _spelled(rule.permission), _spelled(rule.operation), rule.host)
        for rule in sorted(wanted)
    ]
    data = AclNode(texts).encode()
    return Create(path, data) if node is None else Set(path, data, node.version)


def _note(place: Place) -> Op:
    kind, name, pattern = place
    data = AclChangeNode(_spelled(kind), name, pattern.name).encode()
    return Create(f"{_NOTES[pattern]}/{paths.ACL_CHANGE_PREFIX}", data, sequential=True)


def _rules(place: Place, node: Node | None) -> list[Rule]:
    if node is None:
        return []
    try:
        return [
            Rule(
                *place,
                text.principal,
                text.host,
                OPERATIONS[text.operation],
                PERMISSIONS[text.permission],
            )
            for text in AclNode.decode(node.data).rules
        ]
    except (BadNode, KeyError) as error:
        # Without its permissions nobody gains anything, but a denial must not be lost either.
        log.error("access rules of %s cannot be read; nobody may use it: %s", place, error)
        return [Rule(*place, "User:*", "*", Operation.ALL, Permission.DENY)]
