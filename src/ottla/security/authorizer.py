"""Decides whether a request is authorized.

Owns the ACLs in force and a cache of decisions. Every denial is a line in the audit log
(`ottla.security.audit`). Never knows where ACLs are stored, nor what an API does.

A broker without an authorizer has an `Authorizer` as well, one that allows everything.
`version` changes whenever an ACL does, so that others can keep what they derived from them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, Protocol

from ottla.security.acl import CLUSTER_NAME, MEANINGFUL, Kind, Operation, Rules

audit = logging.getLogger("ottla.security.audit")

CACHED_DECISIONS_MAX: Final = 10_000
"""Decisions in the cache; when it is full, it is cleared."""


class Requester(Protocol):
    """The client that sent a request, and its address."""

    principal: str
    address: str
    is_broker: bool


class Authorizer:
    """Decides by ACLs, or allows everything if it is not in force."""

    __slots__ = ("_decisions", "_open_by_default", "_super_users", "in_force", "rules", "version")

    def __init__(
        self,
        *,
        in_force: bool = False,
        super_users: Iterable[str] = (),
        open_by_default: bool = False,
    ) -> None:
        self.in_force = in_force
        self.version = 0
        self.rules: Rules | None = None
        """None until they have been read: only super users and brokers are authorized."""
        self._super_users = frozenset(super_users)
        self._open_by_default = open_by_default
        self._decisions: dict[tuple[str, str, Operation, Kind, str], bool] = {}

    def follow(self, rules: Rules) -> None:
        """Use these ACLs from now on."""
        self.rules = rules
        self._decisions.clear()
        self.version += 1

    def allows(
        self,
        requester: Requester,
        operation: Operation,
        kind: Kind,
        name: str,
        *,
        log_denial: bool = True,
    ) -> bool:
        """`log_denial` is False if nothing is refused, such as when a list is filtered."""
        if not self.in_force or self._is_trusted(requester):
            return True
        key = (requester.principal, requester.address, operation, kind, name)
        allowed = self._decisions.get(key)
        if allowed is None:
            allowed = self._decisions[key] = self._decide(*key)
            if len(self._decisions) > CACHED_DECISIONS_MAX:
                self._decisions.clear()
        if not allowed and log_denial:
            audit.info(
                "denied: principal=%s host=%s operation=%s resource_type=%s resource_name=%r",
                requester.principal, requester.address, operation.name, kind.name, name,
            )  # fmt: skip
        return allowed

    def allows_some(self, requester: Requester, operation: Operation, kind: Kind) -> bool:
        """Whether it is allowed on at least one resource of a type."""
        if not self.in_force or self._is_trusted(requester):
            return True
        if self.rules is None:
            return False
        allowed = self.rules.allow_some(requester.principal, requester.address, operation, kind)
        return self._open_by_default if allowed is None else allowed

    def allows_on_cluster(self, requester: Requester, operation: Operation) -> bool:
        return self.allows(requester, operation, Kind.CLUSTER, CLUSTER_NAME)

    def operations(self, requester: Requester, kind: Kind, name: str) -> int:
        """The allowed operations on a resource as a bit field, as replies carry it."""
        return sum(
            1 << operation
            for operation in MEANINGFUL[kind]
            if self.allows(requester, operation, kind, name, log_denial=False)
        )

    def _is_trusted(self, requester: Requester) -> bool:
        return requester.is_broker or requester.principal in self._super_users

    def _decide(
        self, principal: str, host: str, operation: Operation, kind: Kind, name: str
    ) -> bool:
        if self.rules is None:
            return False
        allowed = self.rules.allow(principal, host, operation, kind, name)
        return self._open_by_default if allowed is None else allowed
