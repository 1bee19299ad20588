"""Delegation tokens in the metadata store, where Kafka 3.9 keeps them: written by the broker that
handles the request, read by all.

Owns: the nodes below `/delegation_token` and their change notifications. All tokens are read before
a broker serves clients, and those that a notification names again; the active controller deletes
expired ones. Without `delegation.token.secret.key` it does nothing. Never decides who may do what:
`security/delegation_tokens.py` does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from ottla.delay.slices import sliced
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.delegation_tokens import DelegationTokens, Token
from ottla.shared_state.change_notifications import (
    NumberedNotifications,
    write_with_notification,
)
from ottla.store import paths
from ottla.store.nodes import BadNode
from ottla.store.port import (
    Create,
    Delete,
    Node,
    NodeExists,
    Op,
    SessionExpired,
    Set,
    Store,
    StoreUnavailable,
)
from ottla.store.security_nodes import TokenNode

log = logging.getLogger(__name__)

NOTIFICATIONS_RETAINED: Final = 1_000
_ROOTS: Final = (paths.DELEGATION_TOKEN, paths.TOKENS, paths.TOKEN_CHANGES)


class TokenStore:
    def __init__(
        self, store: Store, tokens: DelegationTokens, random_bytes: Callable[[int], bytes]
    ) -> None:
        """`random_bytes`: for the ids of new tokens."""
        self.tokens = tokens
        self.random_bytes = random_bytes
        self._store = store
        self._notifications = NumberedNotifications(
            store, paths.TOKEN_CHANGES, paths.TOKEN_CHANGE_PREFIX, NOTIFICATIONS_RETAINED
        )

    async def load(self) -> None:
        """Read all tokens. The watch is set first, so that no change is missed."""
        if not self.tokens.enabled:
            return
        for path in _ROOTS:
            with suppress(NodeExists):
                if await self._store.get(path) is None:
                    await self._store.create(path)
        await self._notifications.start()
        await self._load_all()

    async def run(self) -> None:
        """Apply changes of other brokers until cancelled."""
        await self._notifications.run("delegation tokens", self._load_all, self._load_changed)

    async def run_expiry(self, check_s: float, is_active: Callable[[], bool]) -> None:
        """Until cancelled: the active controller deletes expired tokens."""
        while True:
            await asyncio.sleep(check_s)
            if not is_active():
                continue
            try:
                for id in self.tokens.expired_ids():
                    await self.remove(id)
                    log.info("deleted expired delegation token %s", id)
            except (StoreUnavailable, SessionExpired) as error:
                log.warning("cannot delete expired delegation tokens, retrying later: %s", error)

    async def create(self, token: Token) -> None:
        """It is in force on this broker when this returns."""
        ops = [Create(paths.token(token.id), _encode(token)), _notification(token.id)]
        await self._store.multi(ops)
        self.tokens.put([token])

    async def update(self, token: Token) -> None:
        """Replace a token; KafkaError if it has been deleted meanwhile."""
        path = paths.token(token.id)

        def op(node: Node | None) -> Op:
            if node is None:
                raise KafkaError(ErrorCode.delegation_token_not_found)
            return Set(path, _encode(token), node.version)

        await write_with_notification(self._store, path, op, _notification(token.id))
        self.tokens.put([token])

    async def remove(self, id: str) -> None:
        path = paths.token(id)

        def op(node: Node | None) -> Op | None:
            return None if node is None else Delete(path, node.version)

        await write_with_notification(self._store, path, op, _notification(id))
        self.tokens.drop([id])

    async def _load_changed(self, notifications: Sequence[Node]) -> None:
        await self._load({node.data.decode("utf-8", "replace") for node in notifications})

    async def _load_all(self) -> None:
        ids = await self._store.children(paths.TOKENS)
        self.tokens.drop(self.tokens.all.keys() - set(ids))
        await self._load(ids)

    async def _load(self, ids: Iterable[str]) -> None:
        for some in sliced([id for id in ids if id and "/" not in id]):
            nodes = await self._store.get_many([paths.token(id) for id in some])
            for id, node in zip(some, nodes, strict=True):
                token = None if node is None else _token(id, node)
                if token is None:
                    self.tokens.drop([id])
                else:
                    self.tokens.put([token])


def _notification(id: str) -> Op:
    path = f"{paths.TOKEN_CHANGES}/{paths.TOKEN_CHANGE_PREFIX}"
    return Create(path, id.encode(), sequential=True)


def _encode(token: Token) -> bytes:
    return TokenNode(*token).encode()


def _token(id: str, node: Node) -> Token | None:
    try:
        token = Token(*TokenNode.decode(node.data))
    except BadNode as error:
        log.error("cannot parse delegation token in node %s, ignoring it: %s", id, error)
        return None
    return token if token.id == id else None
