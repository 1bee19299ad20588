"""ACLs in the metadata store: written by the broker that handles the request, read by all.

Owns the nodes of Kafka's ACLs and their change notifications: literal names below `/kafka-acl`,
prefixes below `/kafka-acl-extended`. A broker reads all ACLs before it serves clients, and again
after each notification; its own changes apply at once. Never authorizes: the authorizer does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from ottla.delay.slices import Slices, in_order, in_slices, sliced
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Filter, Kind, Operation, Pattern, Permission, Rule, Rules
from ottla.security.authorizer import Authorizer
from ottla.shared_state.change_notifications import (
    NotificationWatch,
    Rewrite,
    delete_notifications,
    read_on_change,
    rewrite_all,
)
from ottla.store import paths
from ottla.store.nodes import BadNode
from ottla.store.port import (
    Create,
    Delete,
    Node,
    NodeExists,
    Op,
    Set,
    Store,
)
from ottla.store.security_nodes import AclChangeNode, AclNode, RuleText

log = logging.getLogger(__name__)

NOTIFICATIONS_RETAINED: Final = 100

RESOURCES_AT_ONCE: Final = 50
"""Nodes in one write."""

Resource = tuple[Kind, str, Pattern]
"""The resource that the ACLs of one node apply to."""
Change: TypeAlias = Callable[[frozenset[Rule], frozenset[Rule]], frozenset[Rule]]
"""(stored ACLs, ACLs of the request) -> ACLs to store."""


def _node_word(value: Kind | Operation | Permission) -> str:
    """TRANSACTIONAL_ID as Kafka writes it into nodes: TransactionalId."""
    return value.name.title().replace("_", "")


KINDS: Final = {_node_word(kind): kind for kind in Kind if kind > Kind.ANY}
OPERATIONS: Final = {_node_word(value): value for value in Operation if value > Operation.ANY}
PERMISSIONS: Final = {_node_word(value): value for value in Permission if value > Permission.ANY}
_ROOTS: Final = {Pattern.LITERAL: paths.ACLS, Pattern.PREFIXED: paths.ACLS_PREFIXED}
_CHANGE_PATHS: Final = {
    Pattern.LITERAL: paths.ACL_CHANGES,
    Pattern.PREFIXED: paths.ACL_CHANGES_PREFIXED,
}


class AclStore:
    """Without an authorizer it does nothing and creates none of these nodes."""

    def __init__(self, store: Store, authorizer: Authorizer) -> None:
        self._store = store
        self._authorizer = authorizer
        self._changed = asyncio.Event()
        self._reading = asyncio.Lock()
        self._watches = [
            NotificationWatch(store, path, self._changed.set) for path in _CHANGE_PATHS.values()
        ]
        self._writers = 0

    async def load(self) -> None:
        """Read all ACLs. The watch is set first, so that no change is missed.

        It may be called again after it failed.
        """
        if not self._authorizer.in_force:
            return
        for watch in self._watches:
            watch.listen()
        await self._create_parents()
        await self._read()

    async def run(self) -> None:
        """Read the ACLs again after each change, until cancelled."""
        await read_on_change(self._changed, "ACLs", self._read_unless_writing)

    async def _read_unless_writing(self) -> None:
        if not self._writers:  # otherwise `_change_all` sets the event again when it is done
            await self._read()

    async def add(self, rules: Iterable[Rule]) -> None:
        """Store these ACLs; they are in force on this broker when this returns."""
        await self._change_all(await _by_resource(rules), frozenset.union)
        await self._read()

    async def remove(self, filters: Sequence[Filter]) -> list[list[Rule]]:
        """Delete the ACLs that match a filter; returns the deleted ones for each filter."""
        await self._read()
        rules = self._authorizer.rules or Rules()
        slices = Slices()
        removed = [
            await rules.matching(acl_filter, slices) async for acl_filter in slices.of(filters)
        ]
        all_removed = await _by_resource(rule for matching in removed for rule in matching)
        await self._change_all(all_removed, frozenset.difference)
        await self._read()
        return removed

    async def _change_all(
        self, resources: Mapping[Resource, frozenset[Rule]], change: Change
    ) -> None:
        """Write many resources at a time; this broker reads the result once, at the end."""
        self._writers += 1
        try:
            for some in sliced(list(resources.items()), RESOURCES_AT_ONCE):
                rewrites = [
                    Rewrite(
                        _path(resource),
                        partial(_change_op, resource, change, rules),
                        _notification(resource),
                    )
                    for resource, rules in some
                ]
                await rewrite_all(self._store, rewrites)
                await asyncio.sleep(0)
        finally:
            self._writers -= 1
            self._changed.set()

    async def _create_parents(self) -> None:
        kinds = [f"{root}/{kind}" for root in _ROOTS.values() for kind in KINDS]
        parents = dict.fromkeys(parent for path in kinds for parent in paths.ancestors(path))
        for path in [*parents, *kinds, *_CHANGE_PATHS.values()]:
            if await self._store.get(path) is None:
                try:
                    await self._store.create(path)
                except NodeExists:
                    continue  # another broker created it

    async def _read(self) -> None:
        async with self._reading:  # or an older reading might replace a newer one
            notifications = [await watch.read() for watch in self._watches]
            resources = [
                (kind, paths.plain(name), pattern)
                for pattern, root in _ROOTS.items()
                for word, kind in KINDS.items()
                async for name in in_slices(await self._store.children(f"{root}/{word}"))
            ]
            rules_read: list[Rule] = []
            for some in sliced(resources):
                await asyncio.sleep(0)
                nodes = await self._store.get_many([_path(resource) for resource in some])
                for resource, node in zip(some, nodes, strict=True):
                    rules_read += _rules(resource, node)
            rules = await Rules.build(rules_read)
            previous = self._authorizer.rules
            is_new = previous is None or rules.all != previous.all
            await asyncio.sleep(0)  # to compare tens of thousands takes 5 ms, to free them 8
            if is_new:
                self._authorizer.follow(rules)
            del previous
            await asyncio.sleep(0)
        for path, names in zip(_CHANGE_PATHS.values(), notifications, strict=True):
            in_age = await in_order(names)
            await delete_notifications(self._store, path, in_age, NOTIFICATIONS_RETAINED)


def _change_op(
    resource: Resource, change: Change, some: frozenset[Rule], node: Node | None
) -> Op | None:
    """The write that makes the change to a resource's node; None if there is nothing to change."""
    try:
        stored = frozenset(_decode_rules(resource, node))
    except BadNode as error:  # a write would replace what could not be read
        text = f"cannot parse the stored ACLs; fix node {_path(resource)} first: {error}"
        raise KafkaError(ErrorCode.unknown_server_error, text) from None
    changed = change(stored, some)
    return None if changed == stored else _write(_path(resource), node, changed)


async def _by_resource(rules: Iterable[Rule]) -> dict[Resource, frozenset[Rule]]:
    resources: dict[Resource, set[Rule]] = {}
    async for rule in in_slices(rules):
        resources.setdefault((rule.kind, rule.name, rule.pattern), set()).add(rule)
    return {resource: frozenset(same) async for resource, same in in_slices(resources.items())}


def _path(resource: Resource) -> str:
    kind, name, pattern = resource
    return f"{_ROOTS[pattern]}/{_node_word(kind)}/{paths.quoted(name)}"


def _write(path: str, node: Node | None, rules: frozenset[Rule]) -> Op:
    if not rules:
        assert node is not None, f"{path} does not exist and there are no ACLs to write"
        return Delete(path, node.version)
    texts = [
        RuleText(rule.principal, _node_word(rule.permission), _node_word(rule.operation), rule.host)
        for rule in sorted(rules)
    ]
    data = AclNode(texts).encode()
    return Create(path, data) if node is None else Set(path, data, node.version)


def _notification(resource: Resource) -> Op:
    kind, name, pattern = resource
    data = AclChangeNode(_node_word(kind), name, pattern.name).encode()
    return Create(f"{_CHANGE_PATHS[pattern]}/{paths.ACL_CHANGE_PREFIX}", data, sequential=True)


def _rules(resource: Resource, node: Node | None) -> list[Rule]:
    """What is in force: of ACLs that cannot be parsed, that nobody has access."""
    try:
        return _decode_rules(resource, node)
    except BadNode as error:
        # Dropping permissions would be safe, but dropping a denial would not.
        log.error(
            "cannot parse ACLs for %s %r (%s); denying all access to it until node %s is fixed: %s",
            resource[0].name, resource[1], resource[2].name, _path(resource), error,
        )  # fmt: skip
        return [Rule(*resource, "User:*", "*", Operation.ALL, Permission.DENY)]


def _decode_rules(resource: Resource, node: Node | None) -> list[Rule]:
    if node is None:
        return []
    try:
        return [
            Rule(
                *resource,
                text.principal,
                text.host,
                OPERATIONS[text.operation],
                PERMISSIONS[text.permission],
            )
            for text in AclNode.decode(node.data).rules
        ]
    except KeyError as error:
        raise BadNode(f"unknown word {error}") from None
